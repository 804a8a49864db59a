"""Where a record comes from: the commit, and the files with their labels."""

from dataclasses import replace

import numpy as np
import pytest

from newfound.bench import provenance
from newfound.bench.datasets import DataSet
from newfound.bench.provenance import Commit, code_commit, files_checksum
from newfound.bench.splits import make_split


@pytest.fixture
def answers(monkeypatch):
    """What git answers to its first word; None if it fails."""
    monkeypatch.delenv(provenance.COMMIT_VARIABLE, raising=False)
    provenance._of_repository.cache_clear()
    known = {"ls-files": "_version.py", "rev-parse": "c0ffee", "status": ""}
    monkeypatch.setattr(provenance, "_git", lambda *words: known[words[0]])
    yield known
    provenance._of_repository.cache_clear()


def test_the_commit_is_that_of_the_repository(answers):
    assert code_commit() == Commit("c0ffee", clean=True)
    answers["status"] = "M a.py"
    assert code_commit() == Commit("c0ffee", clean=True)  # it was imported before the change
    provenance._of_repository.cache_clear()
    assert code_commit() == Commit("c0ffee", clean=False)


def test_without_a_repository_or_in_somebody_elses_the_commit_is_not_known(answers):
    answers["ls-files"] = None
    assert code_commit() == Commit("", None)


def test_a_commit_that_is_handed_in_counts_before_the_repository(answers, monkeypatch):
    monkeypatch.setenv(provenance.COMMIT_VARIABLE, "abc-dirty")
    assert code_commit() == Commit("abc", clean=False)
    assert code_commit("def") == Commit("def", clean=True)


def test_without_git_there_is_no_answer(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance._git("rev-parse", "HEAD") is None


@pytest.fixture
def birds(tmp_path):
    paths = [tmp_path / f"{number}.jpg" for number in range(8)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number] * 5))
    truth = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    return DataSet("cub", truth, ("a", "b"), (0,), paths=paths)


def test_the_checksum_knows_two_files_that_changed_places_where_classes_do_not(birds):
    split = make_split(birds)
    swapped = replace(birds, paths=[birds.paths[i] for i in (3, 2, 1, 0, 4, 5, 6, 7)])
    assert make_split(swapped).checksum == split.checksum
    assert files_checksum(swapped, split) != files_checksum(birds, split)


def test_the_checksum_knows_another_content_and_another_label(birds):
    split = make_split(birds)
    before = files_checksum(birds, split)
    other = replace(split, y=np.roll(split.y, 1))
    assert files_checksum(birds, other) != before
    birds.paths[7].write_bytes(b"longer than before")
    assert files_checksum(birds, split) != before


def test_the_checksum_of_an_array_knows_its_values(small_set):
    split = make_split(small_set)
    array = small_set.array.copy()
    assert files_checksum(replace(small_set, array=array), split) == files_checksum(
        small_set, split
    )
    array[0, 0, 0, 0] += 1
    assert files_checksum(replace(small_set, array=array), split) != files_checksum(
        small_set, split
    )
