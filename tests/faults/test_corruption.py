"""Every file of a small run folder, damaged at random places: an error, or the same result."""

import contextlib
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from samples import Blobs

from newfound.errors import InputError
from newfound.result.store import read_result
from newfound.workflows.discover import discover

#: Trials for each file; `make faults` takes more.
N_TRIALS = 12 * int(os.environ.get("NEWFOUND_FAULTS", "1"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults") / "run"
    return discover(Blobs.without(8), out=folder, rehearse=False), folder


def damage(content, rng):
    """Content with a byte flipped, some zeroed, or the end cut off."""
    place = int(rng.integers(len(content)))
    how = int(rng.integers(3))
    if how == 0:
        return (
            content[:place]
            + bytes([content[place] ^ (1 << int(rng.integers(8)))])
            + (content[place + 1 :])
        )
    if how == 1:
        return content[:place] + bytes(min(16, len(content) - place)) + content[place + 16 :]
    return content[:place]


def test_no_damage_changes_a_result_without_a_word(run, tmp_path):
    result, folder = run
    rng = np.random.default_rng(0)
    copy = shutil.copytree(folder, tmp_path / "run")
    files = [path for path in sorted(copy.rglob("*")) if path.is_file() and path.name != ".lock"]
    n_noticed = 0
    for path in files:
        content = path.read_bytes()
        for _ in range(N_TRIALS if content else 0):
            path.write_bytes(damage(content, rng))
            n_noticed += 1
            with contextlib.suppress(InputError):  # and no other error
                found = read_result(copy)
                n_noticed -= 1
                pd.testing.assert_frame_equal(found.table, result.table)
                pd.testing.assert_frame_equal(found.categories, result.categories)
                np.testing.assert_array_equal(found.features, result.features)
        path.write_bytes(content)
    # What is not read back (tables for people, started.json) may be damaged.
    assert n_noticed >= N_TRIALS * 6
