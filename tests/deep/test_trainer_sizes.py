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


@pytest.mark.parametrize("size_weight", [0.0, 1.0])
def test_the_loss_has_expected_sizes_if_the_settings_say_so(
    digits, tmp_path, size_weight, alike_sizes
):
    settings = small(size_weight=size_weight, epochs=1, selection="last")
    method = UsualBatches(settings)
    trained = run(digits, tmp_path, settings, method=method)
    excess = method.batches[0].prototypes.excess
    if size_weight == 0:
        assert excess is None
        return
    assert excess.shape == (trained.history[0].n_components,)
    assert excess.isfinite().all()
    assert excess.min() < 0 < excess.max()  # shares of both kinds sum to 1


def test_the_rows_of_a_batch_are_in_the_balanced_components(
    digits, tmp_path, monkeypatch, alike_sizes
):
    made = []

    def watch(*given):
        made.append((given, original(*given)))
        return made[-1][1]

    original = estep.fit_expected_sizes
    monkeypatch.setattr(estep, "fit_expected_sizes", watch)
    settings = small(epochs=1, selection="last")
    method = UsualBatches(settings)
    run(digits, tmp_path, settings, method=method)
    (_, codes, _), balanced = made[0]
    np.testing.assert_array_equal(codes, digits.y)
    rows = epoch_batches(digits.y != -1, 16, 16, seed=0, epoch=0)
    for batch, drawn in zip(method.batches, rows, strict=True):
        np.testing.assert_array_equal(batch.assigned.numpy(), balanced.labels[drawn])


@pytest.mark.parametrize("n_absent", [0, 1])
def test_sizes_are_left_alone_where_known_classes_are_absent(
    digits, tmp_path, monkeypatch, n_absent, alike_sizes
):
    original = estep.count_categories

    def count(*given, **options):
        return dataclasses.replace(original(*given, **options), n_absent=n_absent)

    monkeypatch.setattr(estep, "count_categories", count)
    settings = small(epochs=1, selection="last", count_on="start")
    method = UsualBatches(settings)
    trained = run(digits, tmp_path, settings, method=method)
    assert (method.batches[0].prototypes.excess is None) == (n_absent > 0)
    assert trained.mixture.expect_sizes == (n_absent == 0)


def test_sizes_are_left_alone_where_labels_do_not_speak_for_them(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(estep, "sizes_are_alike", lambda *given: False)
    settings = small(epochs=1, selection="last")
    method = UsualBatches(settings)
    trained = run(digits, tmp_path, settings, method=method)
    assert method.batches[0].prototypes.excess is None
    assert not trained.mixture.expect_sizes


@pytest.mark.parametrize(
    ("changes", "expect_sizes"),
    [
        ({}, None),
        ({"size_weight": 0.0}, False),
        ({"size_weight": 0.0, "acceptance": "literal"}, False),
    ],
)
def test_the_rehearsal_looks_for_k_and_for_sizes_as_the_run_did(
    digits, tmp_path, monkeypatch, alike_sizes, changes, expect_sizes
):
    seen = []
    monkeypatch.setattr(
        final_mixture, "rehearse", lambda mixture, *given, **more: seen.append(mixture)
    )
    run(digits, tmp_path, small(epochs=1, selection="last", rehearse=True, **changes))
    assert [mixture.n_components for mixture in seen] == [None]  # not the K that was found
    assert [mixture.expect_sizes for mixture in seen] == [expect_sizes]


def test_sizes_need_common_directions(digits, tmp_path, alike_sizes):
    settings = small(epochs=1, selection="last", pca="batch")
    method = UsualBatches(settings)
    trained = run(digits, tmp_path, settings, method=method)
    assert method.batches[0].prototypes.excess is None
    assert not trained.mixture.expect_sizes


def test_a_method_that_expects_no_sizes_gets_none(digits, tmp_path, alike_sizes):
    settings = small(epochs=1, selection="last")
    method = Collect(settings)
    trained = run(digits, tmp_path, settings, method=method)
    assert method.batches[0].prototypes.excess is None
    assert not trained.mixture.expect_sizes


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, True), ({"n_components": 9}, True), ({"size_weight": 0.0}, False)],
)
def test_the_mixture_of_the_result_expects_sizes_as_the_loop_does(
    digits, tmp_path, changes, expected, alike_sizes
):
    mixture = run(digits, tmp_path, small(epochs=1, selection="last", **changes)).mixture
    assert mixture.expect_sizes is expected
    assert (mixture.offsets_ != 0).any() == expected
