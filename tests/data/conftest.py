"""Files as people have them: folders of pictures and tables."""

import sys
from types import SimpleNamespace

import pandas as pd
import pytest
from PIL import Image, PpmImagePlugin

from newfound.data import pictures


@pytest.fixture
def place():
    def place(folder, *names):
        """Files that look like pictures; nothing is opened while they are listed."""
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(b"not opened here")
        return folder

    return place


@pytest.fixture
def folder(tmp_path, place):
    return place(tmp_path / "pictures", "a.jpg", "b.PNG", "birds/c.jpeg", "birds/deep/d.webp")


@pytest.fixture
def table():
    def table(tmp_path, text, name="labels.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return table


@pytest.fixture
def parquet():
    def parquet(tmp_path, **columns):
        pd.DataFrame(columns).to_parquet(tmp_path / "f.parquet")
        return tmp_path / "f.parquet"

    return parquet


@pytest.fixture
def no_heic(monkeypatch):
    """A machine without the extra ``heic``."""
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    pictures._register_heic.cache_clear()
    yield
    pictures._register_heic.cache_clear()


@pytest.fixture
def heic_plugin(monkeypatch):
    """A machine with the extra ``heic``: a stand-in, for which "HEIC" is PPM behind a header."""
    registered = []

    class Photo(PpmImagePlugin.PpmImageFile):
        format = "HEIF"

        def _open(self):
            self.fp.read(12)
            super()._open()

    def register_heif_opener():
        registered.append("HEIF")
        Image.register_open("HEIF", Photo, lambda start: start[4:12] == b"ftypheic")

    plugin = SimpleNamespace(register_heif_opener=register_heif_opener)
    monkeypatch.setitem(sys.modules, "pillow_heif", plugin)
    pictures._register_heic.cache_clear()
    yield registered
    pictures._register_heic.cache_clear()
    Image.OPEN.pop("HEIF", None)
    Image.ID[:] = [name for name in Image.ID if name != "HEIF"]
