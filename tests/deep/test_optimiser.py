"""SGD and its learning rate."""

import pytest
from torch import nn

from newfound.deep.optimiser import cosine_rate, make_optimiser
from newfound.deep.settings import OptimiserSettings


def test_the_cosine_falls_to_a_thousandth():
    rates = [cosine_rate(epoch, 10, 0.1) for epoch in range(11)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[5] == pytest.approx(0.05005)
    assert rates[10] == pytest.approx(1e-4)
    assert rates == sorted(rates, reverse=True)


def test_decay_is_on_matrices_only_and_frozen_weights_have_no_part():
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Linear(4, 2))
    network[0].requires_grad_(False)
    optimiser = make_optimiser(network, OptimiserSettings(weight_decay=0.3, momentum=0.7))
    decays = {
        id(value): group["weight_decay"]
        for group in optimiser.param_groups
        for value in group["params"]
    }
    expected = {id(value): 0.0 for value in network[1].parameters()}
    expected |= {id(network[2].weight): 0.3, id(network[2].bias): 0.0}
    assert decays == expected
    assert {group["momentum"] for group in optimiser.param_groups} == {0.7}
