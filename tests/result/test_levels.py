"""`result.at(k)`, ``levels.json``, and the level that a person chooses."""

import json
import shutil

import pytest
from samples import Blobs

from newfound.errors import InputError
from newfound.result.levels import LEVELS, Levels
from newfound.result.store import read_result
from newfound.workflows.discover import discover
from newfound.workflows.update import update


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    out = tmp_path_factory.mktemp("levels") / "run"
    discover(Blobs.take(range(270)), out=out, rehearse=False)
    return out


@pytest.fixture
def run(original, tmp_path):
    return shutil.copytree(original, tmp_path / "run")


def categories(result):
    return result.table["category"].tolist()


def test_its_own_level_is_the_result(original):
    result = read_result(original)
    level = result.at(len(result.names))
    assert level.table["category"].tolist() == categories(result)
    assert level.names == result.names
    assert level.labels is result.assigned.labels


def test_the_run_keeps_its_tree_and_reads_it_back(original):
    result = read_result(original)
    assert result.levels is result.stored_levels
    again = Levels.from_json(json.loads(json.dumps(result.levels.as_json())))
    assert again.as_json() == result.levels.as_json()


def test_a_folder_without_levels_opens_and_grows_the_same_tree(run):
    stored = read_result(run).levels.as_json()
    (run / LEVELS).unlink()
    assert read_result(run).levels.as_json() == stored


def test_a_damaged_file_is_an_error(run):
    (run / LEVELS).write_text((run / LEVELS).read_text().replace("new-001", "new-009"))
    with pytest.raises(InputError, match="not what was written"):
        read_result(run)


def test_numbers_without_a_level_are_refused_with_the_range(original):
    result = read_result(original)
    with pytest.raises(InputError, match=r"no level with 6 categories; choose 7 to 12"):
        result.at(6)


@pytest.mark.parametrize("k", [7, 11])
def test_a_chosen_level_is_the_result_until_it_is_undone(run, k):
    before = read_result(run)
    chosen = before.at(k).table["category"].tolist()
    result, changes = update(run, granularity=k)
    assert categories(result) == chosen != categories(before)
    assert len(result.names) == k
    assert changes.as_dict() != {}
    # What was counted stays what was counted, and the way back stays open.
    assert result.record.n_novel_interval == before.record.n_novel_interval
    assert read_result(run).at(9).table["category"].tolist() == categories(before)
    read_result(run).undo("e1")
    assert categories(update(run)[0]) == categories(before)


def test_a_chosen_level_survives_more_items_and_more_decisions(run, tmp_path):
    chosen = categories(update(run, granularity=8)[0])
    more = Blobs.take(range(30))
    more.ids[:] = [f"again {name}" for name in more.ids]
    read_result(run).rename("new-001", "tern")
    result, _ = update(run, more, out=tmp_path / "next")
    assert categories(result)[:270] == [c.replace("new-001", "tern") for c in chosen]


def test_rows_above_must_be_obeyed_before_a_level_is_chosen(run):
    result = read_result(run)
    result.merge("new-001", "new-002")
    with pytest.raises(InputError, match="rows above have changed it"):
        result.granularity(8)
    with pytest.raises(InputError, match="already"):
        update(run, granularity=9)
    with pytest.raises(InputError, match="Add the items first"):
        update(run, Blobs.take([1]), granularity=8)


def test_a_veto_is_stronger_than_a_level(run):
    result = read_result(run)
    for other in ("new-002", "new-003"):
        result.different("new-001", other)
    result.different("new-002", "new-003")
    with pytest.raises(InputError, match="are different"):
        update(run, granularity=8)
    assert "granularity" not in (run / "edits.csv").read_text()
