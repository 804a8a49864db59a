"""What the tests of the encoders share: pictures of digits, and a machine without a hub."""

from collections import Counter

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from newfound.encode import pictures as picture_files


def digit(i):
    """One of scikit-learn's digits: 8 × 8 pixels, grey."""
    return np.uint8(load_digits().images[i] * 15)


@pytest.fixture
def pictures(tmp_path):
    """Twelve digits as files."""
    (tmp_path / "pictures").mkdir()
    paths = [tmp_path / "pictures" / f"{i:02d}.png" for i in range(12)]
    for i, path in enumerate(paths):
        Image.fromarray(digit(i)).save(path)
    return paths


@pytest.fixture
def read(monkeypatch):
    """How often each file was decoded."""
    counts = Counter()
    plain = picture_files.read_picture

    def counted(path, at_least=None):
        counts[path.name] += 1
        return plain(path, at_least)

    monkeypatch.setattr(picture_files, "read_picture", counted)
    return counts


@pytest.fixture
def no_hub(monkeypatch, tmp_path):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    return torch
