"""Algorithm 1 on pictures of digits: what a run leaves."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
import torch
from trainer_runs import N_STEPS, SMALL, assert_same_bits, assert_same_outcome, run, small

from newfound.deep import estep, method
from newfound.deep.checkpoint import BEST, LAST, load_checkpoint
from newfound.deep.pretrain import pretrain
from newfound.deep.settings import Settings
from newfound.errors import InputError

# few pictures and few epochs: K is not what these tests are about
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")


def test_the_loop_leaves_categories_history_and_files(digits, undisturbed):
    trained, folder, _ = undisturbed
    assert trained.features.shape == (112, 96)
    mixture = trained.mixture
    assert mixture.n_known_ == 5
    labelled = digits.y != -1
    np.testing.assert_array_equal(mixture.labels_[labelled], digits.y[labelled])
    assert [record.epoch for record in trained.history] == [0, 1, 2]
    for record in trained.history:
        assert math.isfinite(record.loss)
        assert record.n_components >= 5
        assert record.n_novel == record.n_components - 5
        assert 0 <= record.accuracy <= 1
        assert record.seconds >= record.e_step_seconds >= 0
        assert record.images_per_second > 0
    assert [record.pcl_weight for record in trained.history] == [0, 0.5, 1]
    assert sorted(path.name for path in folder.iterdir()) == [BEST, "epochs.jsonl", LAST]


def test_one_line_of_json_for_each_epoch(undisturbed):
    trained, folder, _ = undisturbed
    lines = (folder / "epochs.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [asdict(record) for record in trained.history]


def test_listeners_hear_of_every_batch_and_epoch(undisturbed):
    expected = [("start", 3, 0)]
    for epoch in range(3):
        expected += [("batch", epoch, i + 1, N_STEPS) for i in range(N_STEPS)]
        expected += [("epoch", epoch)]
    assert undisturbed[2] == [*expected, ("end",)]


def test_the_same_seed_gives_the_same_bits_and_another_one_others(digits, undisturbed, tmp_path):
    trained, folder, _ = undisturbed
    torch.manual_seed(7)
    np.random.seed(7)  # noqa: NPY002
    assert_same_outcome(run(digits, tmp_path / "a"), trained)
    assert_same_bits(tmp_path / "a", folder)
    other = run(digits, tmp_path / "b", small(seed=1))
    assert other.history[0].loss != trained.history[0].loss


def test_training_lowers_the_loss(digits, tmp_path):
    settings = small(epochs=5, supervised_weight=0.0, prototype_weight=0.0)
    losses = [record.loss for record in run(digits, tmp_path, settings).history]
    assert losses[-1] < losses[0] - 0.5


def test_the_learning_rate_is_that_of_the_cosine(undisturbed):
    rates = [record.learning_rate for record in undisturbed[0].history]
    assert rates == pytest.approx([0.05, 0.0375125, 0.0125375])


def test_k_stays_between_rounds_of_moves(digits, tmp_path):
    settings = small(epochs=5, moves_every=3)
    counts = [record.n_components for record in run(digits, tmp_path, settings).history]
    assert counts[0] == counts[1] == counts[2]
    assert counts[3] == counts[4]


def test_a_known_k_is_kept_from_the_first_epoch_to_the_last(digits, tmp_path):
    trained = run(digits, tmp_path, small(n_components=9))
    assert [record.n_components for record in trained.history] == [9, 9, 9]
    assert trained.mixture.n_components_ == 9


@pytest.mark.parametrize("pca", ["batch", "all", "off"])
def test_the_letter_of_the_paper_runs(digits, tmp_path, pca):
    changes = {**SMALL, "projection_head": False, "moves_every": 1, "pca": pca}
    trained = run(digits, tmp_path, Settings.paper(**changes))
    assert len(trained.history) == 3
    _, plain = load_checkpoint(tmp_path / LAST)
    assert plain["settings"]["acceptance"] == "literal"
    # the loop has brought K to where it is, and the end keeps it there
    assert trained.mixture.history_ == []
    if trained.selected_epoch == 3:
        assert trained.mixture.n_components_ == trained.history[-1].n_components


def test_the_paper_splits_and_merges_after_the_epoch(digits, tmp_path, monkeypatch):
    calls = []

    def watched(original):
        def watch(Z, codes, labels, settings, task):
            moves = getattr(task, "moves", False)  # without moves, rows are reassigned
            calls.append((None if labels is None else int(labels.max()) + 1, moves, Z.copy()))
            return original(Z, codes, labels, settings, task)

        return watch

    monkeypatch.setattr(method, "find_clusters", watched(method.find_clusters))
    monkeypatch.setattr(estep, "reassign", watched(estep.reassign))
    changes = {**SMALL, "projection_head": False, "moves_every": 1, "epochs": 2}
    trained = run(digits, tmp_path, Settings.paper(**changes))
    assert [moves for _, moves, _ in calls] == [False, True, False, True, False]
    for before, after in ((0, 1), (2, 3)):  # on the features from before the epoch, as printed
        np.testing.assert_array_equal(calls[before][2], calls[after][2])
    assert calls[0][0] is None
    assert calls[1][0] == 7  # K^l + K^l / 2
    assert [calls[2][0], calls[4][0]] == [record.n_components for record in trained.history]


def test_the_whole_of_the_default_settings_runs_with_a_head_and_a_rehearsal(digits, tmp_path):
    settings = small(epochs=1, projection_head=True, rehearse=True, color_jitter=0.5)
    trained = run(digits, tmp_path, settings)
    assert trained.network.head(torch.ones(1, 96)).shape == (1, 96)
    assert trained.rehearsal is not None


def test_only_the_last_part_of_a_network_is_trained_and_stored(digits, tmp_path):
    settings = small(model="test_vit", image_size=16, trainable="last", selection="last")
    trained = run(digits, tmp_path, settings)
    stored = {name for name in load_checkpoint(tmp_path / LAST)[0] if name.startswith("network.")}
    names = {
        f"network.{name}"
        for name, value in trained.network.named_parameters()
        if value.requires_grad
    }
    assert names <= stored
    assert len(names) < len(list(trained.network.parameters()))
    before = run(digits, tmp_path / "other", settings.with_changes(learning_rate=0.0, epochs=1))
    for (name, value), old in zip(
        trained.network.named_parameters(), before.network.parameters(), strict=True
    ):
        assert torch.equal(value, old) != value.requires_grad, name


def test_kept_inputs_change_no_bit(digits, tmp_path):
    settings = small(model="test_vit", image_size=16, trainable="last")
    outcomes = [
        run(digits, tmp_path / str(kept), settings.with_changes(token_cache=kept))
        for kept in (True, False)
    ]
    assert_same_outcome(*outcomes)


def test_pretraining_needs_no_label_and_finds_no_category(digits, tmp_path):
    habits = {name: SMALL[name] for name in ("model", "image_size", "n_labelled_per_batch")}
    settings = Settings.pretraining(
        **habits,
        n_unlabelled_per_batch=16,
        projection_head=False,
        learning_rate=0.1,
        epochs=6,
    )
    trained = pretrain(digits.pixels, settings, tmp_path)
    assert trained.mixture is None
    assert trained.features.shape == (112, 96)
    assert trained.history[-1].loss < trained.history[0].loss
    # nothing uses a mean of the weights: the result is that of the last step
    assert settings.optimiser.weight_average > 0
    tensors, _ = load_checkpoint(tmp_path / LAST)
    assert not [name for name in tensors if name.startswith("average.")]
    for name, value in trained.network.state_dict().items():
        assert torch.equal(value, tensors[f"network.{name}"]), name
    with pytest.raises(InputError, match="method was 'Contrast' and is 'PrototypicalContrast'"):
        run(digits, tmp_path, settings)
