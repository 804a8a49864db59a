"""What a batch is made of, and what a step of the optimiser does."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from trainer_runs import N_STEPS, Collect, averaged, last_step, run, small

from newfound.deep.images.batches import epoch_batches
from newfound.deep.images.views import draw
from newfound.deep.method import Method
from newfound.deep.optimiser import cosine_rate

# few pictures and few epochs: K is not what these tests are about
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")


def test_batches_are_two_views_of_the_rows_that_were_drawn(digits, tmp_path):
    settings = small(
        model="test_vit", image_size=16, learning_rate=0.0, selection="last", epochs=2, seed=3
    )
    method = Collect(settings)
    trained = run(digits, tmp_path, settings, method=method)
    network = trained.network  # its weights have not changed
    pixels = torch.from_numpy(digits.pixels)
    batches = iter(method.batches)
    for epoch in range(2):
        assigned = None
        for i, rows in enumerate(epoch_batches(digits.y != -1, 16, 16, seed=3, epoch=epoch)):
            batch = next(batches)
            assert batch.epoch == epoch
            np.testing.assert_array_equal(batch.codes.numpy(), digits.y[rows])
            draws = draw(32, seed=3, epoch=epoch, batch=i)
            for view in range(2):
                images = trained.views.random(pixels[rows], draws[view])
                with torch.no_grad():
                    z, h = network(images)
                torch.testing.assert_close(batch.z[view], z, rtol=0, atol=1e-5)
                torch.testing.assert_close(batch.h[view], h, rtol=0, atol=1e-5)
            # labelled rows are assigned to their class, each row to one component throughout
            labelled = batch.codes >= 0
            assert torch.equal(batch.assigned[labelled], batch.codes[labelled])
            assigned = np.full(112, -1) if assigned is None else assigned
            known = assigned[rows] >= 0
            np.testing.assert_array_equal(assigned[rows][known], batch.assigned.numpy()[known])
            assigned[rows] = batch.assigned.numpy()
        n_components = trained.history[epoch].n_components
        assert set(assigned[assigned >= 0]) <= set(range(n_components))
        assert assigned.max() >= 5


# --- steps of the optimiser


class Slope(nn.Module):
    """A number that does not depend on the images."""

    def __init__(self):
        super().__init__()
        self.number = nn.Parameter(torch.zeros(1))

    def forward(self, features):
        return 0 * features[:, :1] + self.number


class Downhill(Method):
    """A method whose loss is a number of its head: a step lowers it by the learning rate."""

    def __init__(self, settings):
        super().__init__(settings)
        self.numbers = []

    def head(self, n_features):
        return Slope()

    def loss(self, batch):
        loss = batch.h.mean()
        self.numbers.append(loss.item())
        return loss


@pytest.mark.parametrize(
    ("accumulate", "n_steps"), [(1, [0, 1, 2, 3]), (2, [0, 0, 1, 1]), (4, [0, 0, 0, 0])]
)
def test_a_step_is_the_learning_rate_times_the_mean_gradient(digits, tmp_path, accumulate, n_steps):
    settings = small(accumulate=accumulate, momentum=0.0, epochs=2, learning_rate=0.1)
    method = Downhill(settings)
    trained = run(digits, tmp_path, settings, method=method)
    per_epoch = N_STEPS // accumulate
    rates = [0.1, cosine_rate(1, 2, 0.1)]
    expected = [-rates[0] * n for n in n_steps]
    expected += [-rates[0] * per_epoch - rates[1] * n for n in n_steps]
    np.testing.assert_allclose(method.numbers, expected, rtol=1e-5, atol=1e-7)
    end = -per_epoch * sum(rates)
    assert trained.network.head.number.item() == pytest.approx(end, rel=1e-5)


class DownhillWithCategories(Downhill):
    """The same with E-steps, and with a mean of the weights."""

    uses_prototypes = True
    averages_weights = True
    ends_with_mixture = False


@pytest.mark.parametrize("accumulate", [1, 2, 3])
@pytest.mark.parametrize("decay", [0.0, 0.7])
def test_the_mean_is_over_the_steps_of_the_optimiser(digits, tmp_path, accumulate, decay):
    settings = small(
        accumulate=accumulate,
        momentum=0.0,
        epochs=2,
        learning_rate=0.1,
        selection="last",
        weight_average=decay,
    )
    method = DownhillWithCategories(settings)
    trained = run(digits, tmp_path, settings, method=method)
    number = mean = 0.0
    n_steps = 0
    for rate in (0.1, cosine_rate(1, 2, 0.1)):
        for _ in range(math.ceil(N_STEPS / accumulate)):
            number -= rate
            delta = min(decay, (1 + n_steps) / (10 + n_steps))
            mean = delta * mean + (1 - delta) * number
            n_steps += 1
    assert trained.network.head.number.item() == pytest.approx(mean, rel=1e-5)
    assert last_step(tmp_path)["head.number"].item() == pytest.approx(number, rel=1e-5)
    assert averaged(tmp_path)["head.number"].item() == pytest.approx(mean, rel=1e-5)


def test_batches_that_are_left_are_not_carried_into_the_next_epoch(digits, tmp_path):
    settings = small(accumulate=3, momentum=0.0, epochs=2)
    method = Downhill(settings)
    run(digits, tmp_path, settings, method=method)
    numbers = method.numbers
    assert numbers[0] == numbers[1] == numbers[2] > numbers[3] > numbers[4]
    assert numbers[4] == numbers[5] == numbers[6] > numbers[7]
