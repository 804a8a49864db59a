"""The running mean of the weights against the recursion written out, and its way in and out."""

import pytest
import torch
from torch import nn

from newfound.deep.average import WeightAverage


def some_network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).double()


def weights_of(network):
    """Parameters and buffers by reference, as the trainer gives them."""
    return dict(network.named_parameters()) | dict(network.named_buffers())


def copies(weights):
    return {name: w.detach().clone() for name, w in weights.items()}


def move(network, step):
    """What a step does: other weights, and one more batch counted."""
    generator = torch.Generator().manual_seed(step)
    with torch.no_grad():
        for w in weights_of(network).values():
            if w.is_floating_point():
                w.add_(torch.randn(w.shape, generator=generator, dtype=w.dtype))
            else:
                w.add_(1)


def after_steps(decay, n_steps=3):
    network = some_network()
    average = WeightAverage(weights_of(network), decay)
    for step in range(n_steps):
        move(network, step)
        average.update()
    return network, average


def assert_same(tensors, others):
    assert tensors.keys() == others.keys()
    for name, value in tensors.items():
        assert torch.equal(value, others[name]), name


@pytest.mark.parametrize("decay", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("n_steps", [0, 1, 5])
def test_the_mean_is_the_recursion_from_the_first_weights_on(decay, n_steps):
    network = some_network()
    average = WeightAverage(weights_of(network), decay)
    expected = {name: w.detach().tolist() for name, w in network.named_parameters()}
    for step in range(n_steps):
        move(network, step)
        average.update()
        delta = min(decay, [1 / 10, 2 / 11, 3 / 12, 4 / 13, 5 / 14][step])
        for name, w in network.named_parameters():
            mean = torch.tensor(expected[name], dtype=torch.float64)
            expected[name] = (delta * mean + (1 - delta) * w.detach()).tolist()
    for name, values in expected.items():
        mean = average.tensors[f"average.{name}"]
        torch.testing.assert_close(mean, torch.tensor(values, dtype=torch.float64))


def test_running_statistics_have_a_mean_and_whole_numbers_have_none():
    network, average = after_steps(0.9)
    floats = set(weights_of(network)) - {"1.num_batches_tracked"}
    assert set(average.tensors) == {f"average.{name}" for name in floats} | {"n_averaged"}
    assert average.tensors["n_averaged"] == 3
    with average.in_place():
        assert network[1].num_batches_tracked == 3
    assert network[1].num_batches_tracked == 3
    assert not torch.equal(average.tensors["average.1.running_mean"], network[1].running_mean)


def test_a_mean_has_no_gradient_and_follows_no_later_weight():
    network, average = after_steps(0.9)
    before = copies(average.tensors)
    assert not any(mean.requires_grad for mean in average.tensors.values())
    move(network, 9)
    assert_same(average.tensors, before)


def test_with_a_decay_of_0_nothing_is_kept_and_nothing_changes():
    network, average = after_steps(0.0)
    before = copies(weights_of(network))
    assert average.tensors == {}
    average.swap()
    assert_same(weights_of(network), before)
    with average.in_place():
        assert_same(weights_of(network), before)
    average.load({})


def test_the_mean_is_in_the_place_of_the_weights_for_a_while():
    network, average = after_steps(0.9)
    weights, means = copies(weights_of(network)), copies(average.tensors)
    with average.in_place():
        inside = copies(weights_of(network))
    for name in weights:
        if name != "1.num_batches_tracked":
            assert torch.equal(inside[name], means[f"average.{name}"]), name
    assert not torch.equal(inside["0.weight"], weights["0.weight"])
    assert_same(weights_of(network), weights)
    assert_same(average.tensors, means)


def test_weights_come_back_after_an_error():
    network, average = after_steps(0.9)
    weights, means = copies(weights_of(network)), copies(average.tensors)
    with pytest.raises(KeyboardInterrupt), average.in_place():
        raise KeyboardInterrupt
    assert_same(weights_of(network), weights)
    assert_same(average.tensors, means)


def test_weights_stay_the_tensors_that_the_optimiser_has():
    network, average = after_steps(0.9)
    before = {name: id(w) for name, w in weights_of(network).items()}
    average.swap()
    assert {name: id(w) for name, w in weights_of(network).items()} == before


def test_taking_over_twice_is_as_good_as_not_at_all():
    network, average = after_steps(0.9)
    weights, means = copies(weights_of(network)), copies(average.tensors)
    average.swap()
    for name, now in weights_of(network).items():
        if name != "1.num_batches_tracked":
            assert torch.equal(average.tensors[f"average.{name}"], weights[name]), name
            assert torch.equal(now, means[f"average.{name}"]), name
    average.swap()
    assert_same(weights_of(network), weights)


def test_a_mean_that_was_stored_goes_on_to_the_same_bits():
    network, average = after_steps(0.9)
    other = some_network()
    other.load_state_dict(network.state_dict())
    resumed = WeightAverage(weights_of(other), 0.9)
    resumed.load(copies(average.tensors) | {"network.other": torch.zeros(1)})
    assert_same(resumed.tensors, average.tensors)
    for each, mean in ((network, average), (other, resumed)):
        move(each, 7)
        mean.update()
    assert_same(resumed.tensors, average.tensors)
