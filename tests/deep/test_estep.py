"""What the E-step of the loop starts from, and which labels it reads."""

import numpy as np
import pytest
from trainer_runs import run, small

from newfound import CategoryCount
from newfound.deep import estep
from newfound.deep.holdout import hold_out
from newfound.deep.method import PrototypicalContrast
from newfound.deep.partition import reassign


class Watched(PrototypicalContrast):
    """The usual method, which notes what each partition is made from."""

    ends_with_mixture = False

    def __init__(self, settings):
        super().__init__(settings)
        self.seen = []

    def partition(self, X, codes, labels, *, moves, seed, count):
        self.seen.append((labels is not None, moves, codes.copy(), count))
        return super().partition(X, codes, labels, moves=moves, seed=seed, count=count)

    def reassign(self, X, codes, labels, *given):
        """In place of the function of this name, which E-steps without moves call."""
        self.seen.append((True, False, codes.copy(), None))
        return reassign(X, codes, labels, *given)


@pytest.fixture
def counted(monkeypatch):
    """The labels of every count; each count finds three novel categories."""
    seen = []

    def count(X, codes, **options):
        seen.append(codes.copy())
        return CategoryCount(3.0, (2.0, 4.0), 0.9, 0.5, 0.5, 5, 0)

    monkeypatch.setattr(estep, "count_categories", count)
    return seen


@pytest.fixture
def watch(digits, tmp_path, monkeypatch):
    def run_watched(**changes):
        method = Watched(small(**changes))
        monkeypatch.setattr(estep, "reassign", method.reassign)
        run(digits, tmp_path, method.settings, method=method)
        return method.seen

    return run_watched


@pytest.mark.parametrize(
    ("acceptance", "moves_every", "continues"),
    [
        # two epochs of warm-up; the last E-step comes after the last epoch
        ("calibrated", 1, [False, False, True, True]),
        # without moves there is nothing to start again for
        ("calibrated", 4, [False, True, True, True]),
        ("literal", 1, [False, True, True, True]),
    ],
)
def test_moves_of_the_warm_up_start_from_k_means(
    watch, counted, acceptance, moves_every, continues
):
    changes = {"acceptance": acceptance, "moves_every": moves_every, "count_on": "start"}
    seen = watch(epochs=3, warmup_epochs=2, selection="last", **changes)
    assert [moves for _, moves, _, _ in seen] == [epoch % moves_every == 0 for epoch in range(4)]
    assert [goes_on for goes_on, _, _, _ in seen] == continues


@pytest.mark.parametrize("count_on", ["start", "now"])
def test_counts_read_all_labels_and_partitions_those_of_training(digits, watch, counted, count_on):
    settings = {"selection": "validation", "count_on": count_on, "moves_every": 2}
    seen = watch(**settings)
    held_out = hold_out(digits.y, small().run.validation_share, small().run.seed)
    assert held_out.sum() >= 5
    # at the start, or in each of the two E-steps that may make moves
    assert len(counted) == (1 if count_on == "start" else 2)
    for codes in counted:
        np.testing.assert_array_equal(codes, digits.y)
    for _, moves, codes, count in seen:
        np.testing.assert_array_equal(codes, np.where(held_out, -1, digits.y))
        assert (count is not None) == moves  # only moves need it


@pytest.mark.parametrize("changes", [{"acceptance": "literal"}, {"n_components": 8}])
def test_nothing_is_counted_that_nobody_needs(watch, counted, changes):
    watch(selection="validation", count_on="now", **changes)
    assert counted == []


@pytest.mark.parametrize(("count_on", "asked"), [("start", "unknown"), ("now", "alike")])
def test_sizes_are_measured_in_the_features_before_training_only(
    watch, monkeypatch, count_on, asked
):
    """Training draws known classes together, which makes them look large (D27)."""
    seen = []

    def count(X, codes, *, sizes, **options):
        seen.append(sizes)
        return CategoryCount(3.0, (2.0, 4.0), 0.9, 0.5, 0.5, 5, 0)

    monkeypatch.setattr(estep, "count_categories", count)
    watch(selection="validation", count_on=count_on, sizes="unknown")
    assert set(seen) == {asked}
