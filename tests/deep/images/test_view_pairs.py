"""Two views of each image of a batch, drawn anew or from the store."""

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric

from newfound.deep.images import view_pairs
from newfound.deep.images.feed import Feed
from newfound.deep.images.view_pairs import FreshViews, Shelf, StoredViews, shared_views
from newfound.deep.images.views import Views, draw
from newfound.deep.network.backbone import load_backbone
from newfound.deep.records import Listener
from newfound.deep.settings import Settings
from newfound.deep.trainer import train
from newfound.errors import InputError

VIEWS = Views(16, crop_min=0.6, crop_max=1.0)
ROWS = np.array([[3, 70, 5, 111], [9, 3, 100, 0]])
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")


@pytest.fixture(scope="module")
def fabric():
    return Fabric(accelerator="cpu", devices=1)


@pytest.fixture(params=["test_vit", "test_resnet"])
def backbone(request):
    torch.manual_seed(0)
    return load_backbone(request.param, "random", image_size=16, trainable="last")


def store(backbone, digits, fabric, n_views=4, seed=7):
    feed = Feed(digits.pixels, fabric.device)
    return StoredViews(backbone, VIEWS, feed, fabric, n_views=n_views, seed=seed)


def test_fresh_views_are_the_views_of_the_draws(digits, fabric):
    fresh = FreshViews(VIEWS, Feed(digits.pixels, fabric.device), fabric, seed=7)
    images = torch.from_numpy(digits.pixels)
    for i, two in enumerate(fresh.batches(ROWS, epoch=3)):
        draws = draw(4, seed=7, epoch=3, batch=i)
        for view, half in enumerate(two.split(4)):
            expected = VIEWS.random(images[ROWS[i]], draws[view])
            torch.testing.assert_close(half, expected, rtol=0, atol=1e-6)


def all_views(backbone, digits, n_views, seed, together=512):
    """Slowly: every view of every image through the frozen part, (n, n_views, ...)."""
    images = torch.from_numpy(digits.pixels)
    backbone.eval()
    seen = [None] * len(images)
    for i, start in enumerate(range(0, len(images), together)):
        part = images[start : start + together]
        draws = draw(len(part), seed=seed, epoch=0, batch=i, n_views=n_views)
        for j in range(len(part)):
            views = [VIEWS.random(part[j : j + 1], draws[v, j : j + 1]) for v in range(n_views)]
            with torch.no_grad():
                seen[start + j] = torch.cat([backbone.before(view) for view in views])
    return torch.stack(seen)


def test_a_batch_takes_two_different_stored_views_of_each_image(backbone, digits, fabric):
    stored = store(backbone, digits, fabric)
    expected = all_views(backbone, digits, n_views=4, seed=7)
    for i, two in enumerate(stored.batches(ROWS, epoch=2)):
        chosen = []
        for half in two.split(4):
            distances = (expected[ROWS[i]] - half[:, None]).flatten(2).abs().amax(dim=2)
            assert distances.min(dim=1).values.max() < 1e-5
            chosen.append(distances.argmin(dim=1))
        assert (chosen[0] != chosen[1]).all()


@pytest.mark.parametrize("size", [7, 50, 64])
def test_views_do_not_depend_on_the_size_of_chunks(backbone, digits, fabric, monkeypatch, size):
    monkeypatch.setattr(view_pairs, "_DRAWN_TOGETHER", 50)
    monkeypatch.setattr(view_pairs, "chunk_size", lambda device, image_size: size)
    stored = store(backbone, digits, fabric)._inputs
    expected = all_views(backbone, digits, n_views=4, seed=7, together=50)
    torch.testing.assert_close(stored, expected, rtol=0, atol=1e-5)


def test_a_shelf_gives_the_same_views_to_the_next_training(backbone, digits, fabric, monkeypatch):
    alone, shelf, calls = store(backbone, digits, fabric), Shelf(), []
    monkeypatch.setattr(
        view_pairs, "draw", lambda *a, **k: (calls.append(k["seed"]), draw(*a, **k))[1]
    )
    with shared_views(shelf):
        first = store(backbone, digits, fabric)
        n_calls = len(calls)
        with torch.no_grad():  # an epoch later: only what is trained has changed
            for value in (p for p in backbone.parameters() if p.requires_grad):
                value.add_(1)
        again = store(backbone, digits, fabric)
        assert len(calls) == n_calls
        assert again._inputs is first._inputs
        assert torch.equal(first._inputs, alone._inputs)


@pytest.mark.parametrize("other", ["seed", "n_views", "images", "frozen part"])
def test_a_shelf_never_gives_views_of_something_else(backbone, digits, fabric, other):
    shelf = Shelf()
    with shared_views(shelf):
        store(backbone, digits, fabric)
        key = shelf.key
        if other == "images":
            changed = digits.pixels.copy()
            changed[0, 0, 0, 0] ^= 1
            feed = Feed(changed, fabric.device)
            StoredViews(backbone, VIEWS, feed, fabric, n_views=4, seed=7)
        elif other == "frozen part":
            next(iter(backbone.frozen_tensors().values())).data.add_(1)
            store(backbone, digits, fabric)
        else:
            store(backbone, digits, fabric, **{other: 5})
        assert shelf.key != key


def test_the_choice_is_keyed_by_epoch_and_seed_alone(backbone, digits, fabric):
    stored = store(backbone, digits, fabric)
    first, again, later = (list(stored.batches(ROWS, epoch)) for epoch in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, later, strict=True))


def test_all_views_are_chosen_about_equally_often(backbone, digits, fabric):
    stored = store(backbone, digits, fabric, n_views=3)
    row = np.zeros((300, 1), dtype=int)
    inputs = torch.stack(list(stored.batches(row, epoch=0))).flatten(2)  # (300, 2, ...)
    views = stored._inputs[0].flatten(1)
    chosen = (inputs[:, :, None] - views).abs().amax(dim=3).argmin(dim=2)
    for which in (0, 1):
        assert np.bincount(chosen[:, which], minlength=3).min() > 60


def test_the_network_is_left_in_the_mode_it_was_in(backbone, digits, fabric):
    for mode in (True, False):
        backbone.train(mode)
        store(backbone, digits, fabric)
        assert backbone.training is mode


def test_a_network_without_a_frozen_part_is_refused(digits, fabric):
    backbone = load_backbone("test_resnet", "random", image_size=16, trainable="all")
    with pytest.raises(InputError, match=r"n_stored_views=4 needs .* Set n_stored_views=0"):
        store(backbone, digits, fabric)


def test_one_view_is_refused(backbone, digits, fabric):
    with pytest.raises(InputError, match="at least 2; got 1"):
        store(backbone, digits, fabric, n_views=1)


def test_views_that_do_not_fit_are_refused(backbone, digits, fabric, monkeypatch):
    monkeypatch.setattr(view_pairs, "free_memory", lambda device: 4096)
    with pytest.raises(InputError, match="4 stored views need"):
        store(backbone, digits, fabric)


SETTINGS = {
    "model": "test_vit",
    "weights": "random",
    "trainable": "last",
    "image_size": 16,
    "epochs": 2,
    "n_labelled_per_batch": 16,
    "n_unlabelled_per_batch": 16,
    "n_directions": 8,
    "rehearse": False,
    "selection": "last",
}


class Stop(Listener):
    """Stops in the second epoch."""

    def epoch(self, record):
        if record.epoch == 0:
            raise KeyboardInterrupt


def test_training_goes_on_from_a_checkpoint_with_the_same_views(digits, tmp_path):
    settings = Settings(**SETTINGS, n_stored_views=3)

    def run(folder, listener=None):
        return train(digits.pixels, digits.y, settings, tmp_path / folder, listener=listener)

    whole = run("whole")
    with pytest.raises(KeyboardInterrupt):
        run("stopped", Stop())
    np.testing.assert_array_equal(run("stopped").features, whole.features)


def test_the_frozen_part_runs_once_for_each_stored_view(digits, tmp_path, monkeypatch):
    seen = []
    backbone = type(load_backbone("test_vit", "random", image_size=16, trainable="last"))
    original = backbone.before
    monkeypatch.setattr(
        backbone,
        "before",
        lambda self, images: (seen.append(len(images)), original(self, images))[1],
    )
    for n_views in (2, 5):
        seen.clear()
        settings = Settings(**SETTINGS, n_stored_views=n_views)
        train(digits.pixels, digits.y, settings, tmp_path / str(n_views))
        # the probe of a new network, the middle views for the E-step, the stored views
        assert sum(seen) == 1 + 112 * (1 + n_views)
