"""Training in several processes."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import trainer_processes
from trainer_processes import CASES, train_and_note

# few pictures and few epochs: K is not what these tests are about
pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")


def colours():
    """Pictures of eight colours, of which six are known by about half of their labels."""
    rng = np.random.default_rng(4)
    truth = np.repeat(np.arange(8), [26, 30, 34, 28, 32, 25, 30, 29])
    colour = 255 * np.array([[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)])[truth]
    noise = rng.normal(scale=8, size=(len(truth), 3, 16, 16))
    pixels = (0.8 * colour[:, :, None, None] + 25 + noise).clip(0, 255).astype(np.uint8)
    order = rng.permutation(len(truth))
    y = np.where((truth < 6) & (rng.random(len(truth)) < 0.5), truth, -1)
    return pixels[order], y[order]


@pytest.fixture(scope="module")
def data(digits):
    pixels, y = digits.pixels[:109], digits.y[:109]  # neither 2 nor 3 divides it: some have less
    others = colours()
    pictures = {name: (pixels, y) if name == "digits" else others for name in CASES}
    return {f"{name}.pixels": given[0] for name, given in pictures.items()} | {
        f"{name}.y": given[1] for name, given in pictures.items()
    }


@pytest.fixture(scope="module", params=[2, 3])
def folder(request, data, tmp_path_factory):
    """Where all cases were trained in several processes."""
    folder = tmp_path_factory.mktemp("processes")
    np.savez(folder / "data.npz", **data)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc_per_node", str(request.param), trainer_processes.__file__]
    result = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory):
    """All cases in one process."""
    return {name: train_and_note(name, data, tmp_path_factory.mktemp(name)) for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_two_and_three_processes_agree_with_one(alone, folder, name):
    trained, one, sent = alone[name]
    assert not any(sent)
    assert "excess.0" in one  # sizes are expected
    lines = (folder / name / "epochs.jsonl").read_text().splitlines()
    for record, epoch in zip(map(json.loads, lines), trained.history, strict=True):
        assert record["loss"] == pytest.approx(epoch.loss, abs=1e-5)
        assert record["n_components"] == epoch.n_components
        assert record["accuracy"] == epoch.accuracy
    first, *others = (dict(np.load(path)) for path in sorted(folder.glob(f"{name}.*.npz")))
    for other in others:
        for key, value in first.items():
            np.testing.assert_array_equal(value, other[key], err_msg=key)
    assert first.keys() == one.keys()
    for key, value in one.items():
        if key.startswith("labels."):
            np.testing.assert_array_equal(first[key], value, err_msg=key)
        elif key.startswith("means."):  # by their angles, because directions have no sign
            angles = [means @ means.T for means in (first[key], value)]
            np.testing.assert_allclose(*angles, atol=1e-4, err_msg=key)
        elif key != "labels":
            np.testing.assert_allclose(first[key], value, atol=1e-4, err_msg=key)


@pytest.mark.parametrize("name", CASES)
def test_features_stay_where_they_are(alone, folder, name):
    """Between moves, what is sent grows with the pictures by one whole number for each."""
    _, one, _ = alone[name]
    n_directions = one["means.0"].shape[1]
    lengths = {one["features"].shape[1], n_directions, n_directions + 1, len(one["means.0"])}
    for sent in (json.loads(path.read_text()) for path in folder.glob(f"{name}.*.json")):
        assert len(sent) == CASES[name]["epochs"] + 1
        for number, calls in enumerate(sent):
            with_rows = [call for call in calls if not set(call[2]) <= lengths]
            wanted = {("all_gather", "torch.int64", ())}
            objects = {"NoneType", "Projection"}
            if number % CASES[name]["moves_every"] == 0:
                # the mixture itself looks at all projected rows, in the first process
                wanted.add(("gather", "torch.float32", (n_directions,)))
                objects = {"NoneType", "Clusters", "ndarray"}
            assert {(sender, kind, tuple(shape[1:])) for sender, kind, shape in with_rows} == wanted
            assert {kind for sender, kind, _ in calls if "object" in sender} <= objects
            assert ("scatter_object_list" in {call[0] for call in calls}) == ("ndarray" in objects)
