"""The demonstration on scikit-learn's digits, with a single epoch."""

import csv

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

torch = pytest.importorskip("torch")

from newfound.result.store import read_result  # noqa: E402
from newfound.workflows import demo as demonstration  # noqa: E402
from newfound.workflows.demo import DIGITS, run_demo, write_digits  # noqa: E402

torch.set_num_threads(1)

DIGITS_TRUTH = load_digits().target


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def demo(folder):
    with pytest.MonkeyPatch.context() as patch:  # a rehearsal takes longer than everything else
        patch.setattr(demonstration, "DIGITS", DIGITS.with_changes(rehearse=False))
        return run_demo(folder, epochs=1)


def read_labels(path):
    with path.open(newline="", encoding="utf-8") as file:
        return {row["path"]: row["label"] for row in csv.DictReader(file)}


# --- pictures and labels


def test_the_pictures_are_the_digits(folder, demo):
    files = sorted((folder / "pictures").iterdir())
    assert [file.name for file in files] == [f"{i:04d}.png" for i in range(1797)]
    images = load_digits().images
    for i in (0, 700, 1796):
        with Image.open(files[i]) as picture:
            assert picture.size == (8, 8)
            np.testing.assert_allclose(np.asarray(picture) / 16, images[i], atol=0.1)


def test_about_half_of_the_labels_of_five_digits_are_kept(folder, demo):
    labels = read_labels(folder / "labels-0.csv")
    for name, label in labels.items():
        assert label == str(DIGITS_TRUTH[int(name[:4])])
    assert set(labels.values()) == {"0", "1", "2", "3", "4"}
    assert len(labels) / (DIGITS_TRUTH < 5).sum() == pytest.approx(0.5, abs=0.05)


def test_another_seed_keeps_other_labels_and_the_same_pictures(tmp_path):
    truth = write_digits(tmp_path, 3)
    np.testing.assert_array_equal(truth, DIGITS_TRUTH)
    picture = tmp_path / "pictures" / "0007.png"
    before = picture.stat().st_mtime_ns
    write_digits(tmp_path, 4)
    assert picture.stat().st_mtime_ns == before
    assert read_labels(tmp_path / "labels-3.csv") != read_labels(tmp_path / "labels-4.csv")


# --- the result


def test_the_run_is_a_finished_one_that_was_trained(folder, demo):
    assert demo.run == folder / "run-0-1"
    assert read_result(demo.run).record == demo.result.record
    assert demo.result.record.settings.train
    assert demo.result.record.settings.training["epochs"] == 1
    assert demo.result.encoder["kind"] == "trained"


def test_every_picture_is_in_a_category(demo):
    assert sum(category.size for category in demo.categories) == 1797
    assert all(category.size > 0 for category in demo.categories)


def test_known_digits_come_first_under_their_own_names(demo):
    known = [category.name for category in demo.categories if category.kind == "known"]
    assert known == ["0", "1", "2", "3", "4"]
    assert [category.name for category in demo.categories[:5]] == known


def test_novel_categories_are_numbered(demo):
    novel = [category.name for category in demo.categories if category.kind == "novel"]
    assert novel == [f"new-{i:03d}" for i in range(1, len(novel) + 1)]


def test_categories_are_compared_with_the_truth(demo):
    table = demo.result.table
    for category in demo.categories:
        ids = table["id"][table["category"] == category.name]
        digits = DIGITS_TRUTH[[int(name[:4]) for name in ids]]
        counts = np.bincount(digits, minlength=10)
        assert category.size == len(digits)
        assert category.mostly == f"digit {counts.argmax()}"
        assert category.share == pytest.approx(counts.max() / len(digits))


def test_known_categories_hold_mostly_their_own_digit(demo):
    for category in demo.categories[:5]:
        assert category.mostly == f"digit {category.name}"


def test_the_sentence_contains_the_numbers(demo):
    assert "There are really 5 new categories." in demo.sentence
    assert f"{demo.accuracy:.1%} of the unlabelled pictures" in demo.sentence
    assert 0.3 < demo.accuracy <= 1


def test_a_second_demo_resumes_the_finished_run(folder, demo):
    checkpoint = demo.run / "train" / "last.safetensors"
    before = checkpoint.stat().st_mtime_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demonstration, "DIGITS", DIGITS.with_changes(rehearse=False))
        again = run_demo(folder, epochs=1)
    assert checkpoint.stat().st_mtime_ns == before
    assert again.categories == demo.categories
    assert again.sentence == demo.sentence


@pytest.mark.parametrize("n_bytes", [0, 50])
def test_a_picture_of_which_a_kill_left_a_part_is_written_again(tmp_path, n_bytes):
    write_digits(tmp_path, 0)
    path = tmp_path / "pictures" / "0000.png"
    first = path.read_bytes()
    path.write_bytes(first[:n_bytes])
    write_digits(tmp_path, 0)
    assert path.read_bytes() == first
