"""Files as people have them: folders of pictures and tables."""

import pandas as pd
import pytest


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
