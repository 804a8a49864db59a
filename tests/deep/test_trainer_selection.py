"""Labels that are held out, and the epoch that they select."""

import numpy as np
import pytest
import torch
from trainer_runs import Interrupted, StopAt, Usual, averaged, run, small

from newfound.deep import estep, holdout, method
from newfound.deep.checkpoint import BEST, LAST, load_checkpoint
from newfound.deep.holdout import hold_out
from newfound.deep.partition import Clusters
from newfound.mixture.counting.count import CategoryCount

# few pictures and few epochs: K is not what these tests are about
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")


TWO = CategoryCount(2.0, (1.0, 3.0), 0.9, 0.5, 0.4, 5, 0)


@pytest.mark.parametrize("count_on", ["now", "start"])
def test_held_out_labels_have_no_say_in_training(digits, tmp_path, monkeypatch, count_on):
    held_out = hold_out(digits.y, 0.3, seed=0)
    monkeypatch.setattr(holdout, "hold_out", lambda *_: held_out)
    other = digits.y.copy()
    other[held_out] = (other[held_out] + 1) % 5  # all wrong
    # the end is what is selected; numbers of all labels enter the count and the expected sizes
    settings = small(warmup_epochs=10, count_on=count_on, sizes="none")
    monkeypatch.setattr(estep, "count_categories", lambda *given, **options: TWO)
    outcomes = [
        run(digits._replace(y=y), tmp_path / str(i), settings)
        for i, y in enumerate((digits.y, other))
    ]
    (tensors, plain), (others, other_plain) = (
        load_checkpoint(tmp_path / str(i) / LAST) for i in range(2)
    )
    for name, value in tensors.items():
        assert torch.equal(value, others[name]), name
    assert [record["loss"] for record in plain["history"]] == [
        record["loss"] for record in other_plain["history"]
    ]
    np.testing.assert_array_equal(outcomes[0].features, outcomes[1].features)
    assert plain["history"][0]["accuracy"] != other_plain["history"][0]["accuracy"]


def watch_codes(monkeypatch):
    """The labels that every E-step is given."""
    seen = []

    def watched(original):
        def watch(X, codes, *rest, **options):
            seen.append(codes.copy())
            return original(X, codes, *rest, **options)

        return watch

    monkeypatch.setattr(method, "find_clusters", watched(method.find_clusters))
    monkeypatch.setattr(estep, "reassign", watched(estep.reassign))
    return seen


def test_held_out_rows_are_unlabelled_rows_to_the_method_and_to_the_mixture(
    digits, tmp_path, monkeypatch
):
    settings = small()
    held_out = hold_out(digits.y, settings.run.validation_share, settings.run.seed)
    assert held_out.sum() >= 5
    seen = watch_codes(monkeypatch)
    method = Usual(settings)
    trained = run(digits, tmp_path, settings, method=method)
    for codes in seen:
        np.testing.assert_array_equal(codes, np.where(held_out, -1, digits.y))
    assert set(method.n_labelled) == {16}
    labelled = digits.y != -1  # the last mixture has them all
    np.testing.assert_array_equal(trained.mixture.labels_[labelled], digits.y[labelled])


def test_without_selection_nothing_is_held_out(digits, tmp_path, monkeypatch):
    seen = watch_codes(monkeypatch)
    trained = run(digits, tmp_path, small(selection="last"))
    for codes in seen:
        np.testing.assert_array_equal(codes, digits.y)
    assert trained.selected_epoch == 3
    assert not (tmp_path / BEST).exists()


def select(digits, folder, monkeypatch, good_epochs, *, warmup_epochs, listener=None):
    """A run in which the held-out rows are in their class in some epochs only."""
    settings = small(selection="validation", warmup_epochs=warmup_epochs)
    held_out = hold_out(digits.y, settings.run.validation_share, settings.run.seed)
    epochs = iter(range(100))

    def accuracy(_, codes, rows):
        np.testing.assert_array_equal(codes, digits.y)
        np.testing.assert_array_equal(rows, held_out)
        return 0.9 if next(epochs) in good_epochs else 0.5

    with monkeypatch.context() as patch:
        patch.setattr(Clusters, "accuracy", accuracy)
        return run(digits, folder, settings, listener=listener)


@pytest.mark.parametrize(
    ("good_epochs", "warmup_epochs", "selected"),
    [
        ({1}, 0, 1),
        ({1, 2}, 0, 2),  # the later of two
        ({0, 2}, 1, 2),
        ({0, 3}, 0, 3),
        ({0, 1}, 3, 3),  # before λ = 1 none is selected
    ],
)
def test_the_best_epoch_on_held_out_labels_is_selected(
    digits, tmp_path, monkeypatch, good_epochs, warmup_epochs, selected
):
    trained = select(digits, tmp_path, monkeypatch, good_epochs, warmup_epochs=warmup_epochs)
    assert trained.selected_epoch == selected
    tensors, plain = load_checkpoint(tmp_path / BEST)
    assert plain["epoch"] == selected
    for name, value in trained.network.named_parameters():
        assert torch.equal(value, tensors[f"network.{name}"])


def test_the_selected_weights_are_those_from_before_that_epoch(digits, tmp_path, monkeypatch):
    trained = select(digits, tmp_path / "whole", monkeypatch, {1}, warmup_epochs=0)
    stop = StopAt("epoch", epoch=0)
    with pytest.raises(Interrupted):
        select(digits, tmp_path / "part", monkeypatch, {1}, warmup_epochs=0, listener=stop)
    means = averaged(tmp_path / "part")
    for name, value in trained.network.state_dict().items():
        assert torch.equal(value, means[name]), name


def test_the_best_epoch_is_remembered_over_a_stop(digits, tmp_path, monkeypatch):
    stop = StopAt("batch", epoch=2, n_done=1)
    with pytest.raises(Interrupted):
        select(digits, tmp_path, monkeypatch, {1}, warmup_epochs=0, listener=stop)
    assert select(digits, tmp_path, monkeypatch, {}, warmup_epochs=0).selected_epoch == 1
