"""The items of the page: all or a sample, with thumbnails."""

import re

import numpy as np
import pytest

from newfound.report import items as items_module
from newfound.report.items import MAX_TEXT
from newfound.report.page import write_report


def test_every_item_is_in_the_data(page_of, result_of):
    result = result_of()
    data = page_of(result).data()
    table = result.table.set_index("id")
    assert sorted(data["id"]) == sorted(table.index)
    for i, name in enumerate(data["id"]):
        row = table.loc[name]
        assert data["categories"][data["category"][i]]["name"] == row["category"]
        assert data["categories"][data["runner"][i]]["name"] == row["runner_up"]
        assert data["confidence"][i] == round(100 * row["confidence"])
        assert data["outlier"][i] == round(100 * row["outlier_score"])
        assert data["labelled"][i] == isinstance(row["given_label"], str)
    assert data["category"] == sorted(data["category"])
    assert len(data["x"]) == len(data["y"]) == 48
    assert data["small"] is None


def test_features_show_ids_and_long_texts_are_cut(page_of, result_of):
    page = page_of(result_of())
    assert len(page.with_class("chip")) > 20
    assert not page.with_class("tile")
    texts = ["word " * 400 for _ in range(48)]
    page = page_of(result_of(texts=texts))
    assert page.with_class("quote")
    assert all(len(text) <= MAX_TEXT + 2 for text in page.data()["text"])


def test_every_picture_has_a_thumbnail(page_of, result_of, picture_paths):
    told = []
    page = page_of(
        result_of(paths=picture_paths(48)), progress=lambda done, total: told.append((done, total))
    )
    data = page.data()
    assert (data["small"]["size"], data["small"]["rows"]) == (64, [2])
    sheets = re.findall(r'\.([sl]\d+)\{background-image:url\("data:', page.source)
    assert sheets == ["s0", "l0"]
    classes = {c for tile in page.with_class("tile") for c in tile["class"].split()}
    assert classes <= {"tile", *sheets}
    assert len(data["largeTile"]) == 36  # nine on each card
    assert sorted(data["largeTile"].values()) == list(range(36))
    assert told[0] == (1, 84)
    assert told[-1] == (84, 84)
    assert [e["href"] for e in page.find("a") if e.get("title")] == ["#c-2", "#c-3"]  # the mosaic


def test_a_large_collection_is_sampled(page_of, result_of, monkeypatch):
    monkeypatch.setitem(items_module.MAX_ITEMS, "features", 40)
    page = page_of(result_of())
    assert len(page.data()["id"]) == 40
    assert "40 of 48 items are drawn" in page.text()


def test_many_pictures_stay_light(result_of, picture_paths, tmp_path, no_tsne):
    pillow = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    paths = picture_paths(400)
    for path in paths:  # noise: the worst there is for a thumbnail
        pillow.fromarray(rng.integers(0, 256, (50, 50, 3), dtype=np.uint8)).save(path)
    write_report(result_of(n_per_category=100, paths=paths), tmp_path / "report.html")
    n_bytes = (tmp_path / "report.html").stat().st_size
    assert n_bytes < 400 * 10_000 + 400_000
    assert list(tmp_path.glob(".*")) == []


def test_sheets_share_twenty_megabytes():
    assert items_module._SMALL_BYTES + items_module._LARGE_BYTES < 17_000_000
