"""Pictures of a run lie below the folders that it was made from."""

import re
from pathlib import Path

import numpy as np
import pytest
from samples import Digits

from newfound.data.collection import Collection
from newfound.data.tables import read_parquet, write_parquet
from newfound.errors import InputError
from newfound.files import read_json, write_json
from newfound.result.roots import check_roots, roots_of
from newfound.result.store import read_result
from newfound.workflows.discover import discover
from newfound.workflows.update import update


def pictures(*paths, root=None):
    y = np.full(len(paths), None, dtype=object)
    return Collection(ids=list(map(str, paths)), y=y, paths=list(map(Path, paths)), root=root)


def test_the_folder_that_was_read_and_the_one_above_what_was_added():
    found = pictures("/a/b/1.png", "/a/b/c/2.png", "/x/y/3.png", "/x/z/4.png", root=Path("/a/b"))
    assert roots_of(found) == ["/a/b", "/x"]
    assert roots_of(pictures("/a/b/1.png", "/a/c/2.png")) == ["/a"]
    assert roots_of(Collection(ids=["1"], y=np.array([None]), features=np.zeros((1, 2)))) == []


@pytest.mark.parametrize("path", ["/a/b/../secret.png", "/a/bc/1.png", "/etc/passwd", "1.png"])
def test_a_path_outside_is_refused(path):
    with pytest.raises(InputError, match="Files from elsewhere are not read"):
        check_roots([Path("/a/b/1.png"), Path(path)], {"roots": ["/a/b"]}, Path("RUN"))


def test_runs_of_earlier_versions_have_their_source_as_root():
    check_roots([Path("/a/b/1.png")], {"source": "/a"}, Path("RUN"))
    check_roots([Path("/a/b/1.png")], {"source": None}, Path("RUN"))
    with pytest.raises(InputError, match="the run was made from /c"):
        check_roots([Path("/a/b/1.png")], {"source": "/c"}, Path("RUN"))


@pytest.mark.parametrize("roots", ["/", [1], {}])
def test_roots_of_another_kind_are_damage(roots):
    with pytest.raises(InputError, match="damaged"):
        check_roots([Path("/a/b/1.png")], {"roots": roots}, Path("RUN"))


def test_a_hostile_table_does_not_bring_files_from_elsewhere(tmp_path):
    Digits.write(tmp_path / "pictures", range(60))
    Digits.write(tmp_path / "more", range(60, 64))
    Digits.write(tmp_path / "private", range(64, 65))
    Digits.write_labels(tmp_path / "labels.csv", range(60))
    run = tmp_path / "run"
    discover(
        *(tmp_path / "pictures", tmp_path / "labels.csv"),
        out=run,
        encoder="pixels",
        n_categories=7,
        rehearse=False,
    )
    update(run, tmp_path / "more")
    assert read_json(run / "run.json")["roots"] == [f"{tmp_path}/pictures", f"{tmp_path}/more"]
    read_result(run)
    table = read_parquet(run / "assignments.parquet")
    table.loc[0, "path"] = str(tmp_path / "private" / "064.png")
    write_parquet(table, run / "assignments.parquet")
    record = read_json(run / "run.json")
    del record["digests"]  # whoever writes a run can leave them out
    (run / "digests.json").unlink()
    write_json(run / "run.json", record)
    with pytest.raises(InputError, match=re.escape(f"names pictures in {tmp_path}/private")):
        read_result(run)
