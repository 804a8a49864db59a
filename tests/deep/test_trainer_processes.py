"""Training in several processes."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from trainer_runs import SMALL

from newfound.deep.settings import Settings
from newfound.deep.trainer import train

# few pictures and few epochs: K is not what these tests are about
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")


SPREAD = """
import json, sys
from dataclasses import asdict
from pathlib import Path
import numpy as np, torch
from newfound.deep.settings import Settings
from newfound.deep.trainer import train

torch.set_num_threads(1)
data = np.load("data.npz")
trained = train(data["pixels"], data["y"], Settings(**eval(sys.argv[1])), Path("run"))
rank = torch.distributed.get_rank()
np.savez(f"rank{rank}.npz", features=trained.features, labels=trained.mixture.labels_)
"""


def run_processes(folder, settings, n_processes=2):
    (folder / "script.py").write_text(SPREAD)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc_per_node", str(n_processes), "script.py", repr(settings)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_two_and_three_processes_agree_with_one(digits, tmp_path):
    pixels, y = digits.pixels[:109], digits.y[:109]  # neither 2 nor 3 divides it: some have less
    settings = {
        **SMALL,
        "n_labelled_per_batch": 15,
        "n_unlabelled_per_batch": 15,
        "model": "test_vit",
        "image_size": 16,
        "learning_rate": 0.01,
        "contrastive_temperature": 0.5,
        "supervised_temperature": 0.5,
        "prototype_temperature": 0.5,
        "moves_every": 5,  # moves hang on the last bit of a feature, which is not the same
        # the end is selected, whose checkpoint is written by one process and read by both
        "warmup_epochs": 3,
    }
    alone = train(pixels, y, Settings(**settings), tmp_path / "alone")
    for n_processes in (2, 3):
        folder = tmp_path / str(n_processes)
        folder.mkdir()
        np.savez(folder / "data.npz", pixels=pixels, y=y)
        result = run_processes(folder, settings, n_processes)
        assert result.returncode == 0, result.stderr
        lines = (folder / "run" / "epochs.jsonl").read_text().splitlines()
        assert len(lines) == 3
        for record, one in zip(map(json.loads, lines), alone.history, strict=True):
            assert record["loss"] == pytest.approx(one.loss, abs=1e-5)
            assert record["n_components"] == one.n_components
            assert record["accuracy"] == one.accuracy
        first, *others = (np.load(folder / f"rank{rank}.npz") for rank in range(n_processes))
        for other in others:
            np.testing.assert_array_equal(first["features"], other["features"])
            np.testing.assert_array_equal(first["labels"], other["labels"])
        np.testing.assert_allclose(first["features"], alone.features, atol=1e-4)
