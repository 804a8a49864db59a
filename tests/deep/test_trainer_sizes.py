"""Sizes of categories in training: when they are expected, and what they change."""

import dataclasses

import numpy as np
import pytest
from trainer_runs import Collect, run, small

from newfound.deep import estep, final_mixture
from newfound.deep.images.batches import epoch_batches
from newfound.deep.method import PrototypicalContrast

# few pictures and few epochs: K is not what these tests are about
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")


class UsualBatches(PrototypicalContrast):
    """The usual method, which keeps its batches."""

    def __init__(self, settings):
        super().__init__(settings)
        self.batches = []

    def loss(self, batch):
        self.batches.append(batch)
        return super().loss(batch)


@pytest.mark.parametrize("sizes", ["none", "unknown", "alike", "0.8"])
def test_the_loss_has_expected_sizes_if_the_settings_say_so(
    digits, tmp_path, sizes, sizes_are_reached
):
    settings = small(sizes=sizes, epochs=1, selection="last", n_components=8)
    method = UsualBatches(settings)
    trained = run(digits, tmp_path, settings, method=method)
    excess = method.batches[0].prototypes.excess
    if sizes == "none":
        assert excess is None
        return
    assert excess.shape == (trained.history[0].n_components,)
    assert excess.isfinite().all()
    assert excess.min() < 0 < excess.max()  # shares of both kinds sum to 1


def test_the_rows_of_a_batch_are_in_the_balanced_components(
    digits, tmp_path, monkeypatch, sizes_are_reached
):
    made = []

    def watch(*given):
        made.append((given, original(*given)))
        return made[-1][1]

    original = estep.heed_sizes
    monkeypatch.setattr(estep, "heed_sizes", watch)
    settings = small(epochs=1, selection="last", n_components=8)
    method = UsualBatches(settings)
    run(digits, tmp_path, settings, method=method)
    (before, labels, sizes, n_novel_rows, _), balanced = made[0]
    np.testing.assert_array_equal(labels.codes, digits.y)
    assert sizes == "unknown"
    assert np.isnan(n_novel_rows)  # features of random weights are not counted
    assert (balanced.labels != before.labels).any()
    rows = epoch_batches(digits.y != -1, 16, 16, seed=0, epoch=0)
    for batch, drawn in zip(method.batches, rows, strict=True):
        np.testing.assert_array_equal(batch.assigned.numpy(), balanced.labels[drawn])


@pytest.mark.parametrize("n_absent", [0, 1])
def test_sizes_are_left_alone_where_known_classes_are_absent(
    digits, tmp_path, monkeypatch, n_absent, sizes_are_reached
):
    original = estep.count_categories

    def count(*given, **options):
        return dataclasses.replace(original(*given, **options), n_absent=n_absent)

    monkeypatch.setattr(estep, "count_categories", count)
    settings = small(epochs=1, selection="last", count_on="start")
    method = UsualBatches(settings)
    trained = run(digits, tmp_path, settings, method=method)
    assert (method.batches[0].prototypes.excess is None) == (n_absent > 0)
    assert trained.mixture.sizes == ("unknown" if n_absent == 0 else None)


def test_sizes_are_left_alone_where_each_class_has_its_quota(digits, tmp_path):
    place = np.array([(digits.truth[:i] == code).sum() for i, code in enumerate(digits.truth)])
    quota = digits._replace(y=np.where((digits.truth < 5) & (place < 8), digits.truth, -1))
    settings = small(epochs=1, selection="last", sizes="alike")
    method = UsualBatches(settings)
    trained = run(quota, tmp_path, settings, method=method)
    assert method.batches[0].prototypes.excess is None
    assert not trained.mixture.offsets_.any()


def test_all_labels_are_counted_and_say_how_many_rows_are_novel(digits, tmp_path, monkeypatch):
    """Those that are held out to choose the epoch, too."""
    counted, heeded = [], []

    def count(X, codes, **options):
        counted.append((codes, options["sizes"]))
        return original(X, codes, **options)

    def watch(*given):
        heeded.append(given)
        return given[0]

    original = estep.count_categories
    monkeypatch.setattr(estep, "count_categories", count)
    monkeypatch.setattr(estep, "heed_sizes", watch)
    run(digits, tmp_path, small(epochs=1, selection="validation", count_on="start", sizes="0.8"))
    np.testing.assert_array_equal(counted[0][0], digits.y)
    assert counted[0][1] == 0.8
    _, labels, sizes, n_novel_rows, _ = heeded[0]
    assert labels.held_out.any()
    assert sizes == 0.8
    assert 0 <= n_novel_rows <= (digits.y == -1).sum()


@pytest.mark.parametrize(
    ("sizes", "counts"), [("unknown", True), ("alike", False), ("none", False)]
)
def test_with_a_given_k_novel_rows_are_counted_if_sizes_are_unknown(
    digits, tmp_path, monkeypatch, sizes, counts
):
    counted = []

    def count(*given, **options):
        counted.append(options["sizes"])
        return original(*given, **options)

    original = estep.count_categories
    monkeypatch.setattr(estep, "count_categories", count)
    changes = {"n_components": 8, "count_on": "start", "sizes": sizes}
    trained = run(digits, tmp_path, small(epochs=1, selection="last", **changes))
    assert counted == (["alike"] if counts else [])
    assert trained.history[0].n_components == 8


@pytest.mark.parametrize(
    ("changes", "sizes"),
    [
        ({}, "alike"),
        ({"sizes": "0.8"}, 0.8),
        ({"sizes": "none"}, None),
        ({"sizes": "none", "acceptance": "literal"}, None),
    ],
)
def test_the_rehearsal_looks_for_k_and_for_sizes_as_the_run_did(
    digits, tmp_path, monkeypatch, sizes_are_reached, changes, sizes
):
    seen = []
    monkeypatch.setattr(
        final_mixture, "rehearse", lambda mixture, *given, **more: seen.append(mixture)
    )
    run(digits, tmp_path, small(epochs=1, selection="last", rehearse=True, **changes))
    assert [mixture.n_components for mixture in seen] == [None]  # not the K that was found
    assert [mixture.sizes for mixture in seen] == [sizes]


def test_sizes_need_common_directions(digits, tmp_path, sizes_are_reached):
    settings = small(epochs=1, selection="last", pca="batch")
    method = UsualBatches(settings)
    trained = run(digits, tmp_path, settings, method=method)
    assert method.batches[0].prototypes.excess is None
    assert trained.mixture.sizes is None


def test_a_method_that_expects_no_sizes_gets_none(digits, tmp_path, sizes_are_reached):
    settings = small(epochs=1, selection="last")
    method = Collect(settings)
    trained = run(digits, tmp_path, settings, method=method)
    assert method.batches[0].prototypes.excess is None
    assert trained.mixture.sizes is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "alike"),
        ({"n_components": 9}, "unknown"),
        ({"sizes": "alike"}, "alike"),
        ({"sizes": "none"}, None),
    ],
)
def test_the_mixture_of_the_result_expects_sizes_as_the_loop_does(
    digits, tmp_path, changes, expected, sizes_are_reached
):
    mixture = run(digits, tmp_path, small(epochs=1, selection="last", **changes)).mixture
    assert mixture.sizes == expected
    assert (mixture.offsets_ != 0).any() == (expected is not None)
