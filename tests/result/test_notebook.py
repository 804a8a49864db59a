"""What a notebook shows: the answer with pictures or texts, small and inert."""

from dataclasses import replace

import numpy as np
import pytest

from newfound.data.collection import Collection
from newfound.result import notebook
from newfound.result.notebook import show_result

HOSTILE = '"><script>alert(1)</script>'


def of_pictures(result, folder, name="{}.png"):
    pillow = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    paths = []
    for i in range(len(result)):
        paths.append(folder / f"{i}.png")
        noise = rng.integers(0, 256, (90, 90, 3), dtype=np.uint8)
        pillow.fromarray(noise).save(paths[-1], compress_level=0)
    ids = [name.format(i) for i in range(len(result))]
    return replace(result, collection=Collection(ids, result.collection.y, paths=paths))


@pytest.fixture
def pictures(blobs, fit, tmp_path):
    y = [None if code < 0 else f"c{code}" for code in blobs.y]
    return of_pictures(fit(y, blobs.X, 5), tmp_path)


def test_new_categories_are_shown_with_pictures(pictures):
    shown = pictures._repr_html_()
    assert pictures.answer in shown
    assert pictures.trust in shown
    assert shown.count('<img src="data:image/jpeg;base64,') == 2 * notebook.N_EXAMPLES
    assert "<b>new-001</b>" in shown
    assert "Known: c0, c1, c2." in shown
    assert "novel" not in shown
    first = pictures.collection.ids[pictures.profiles.exemplars[3][0]]
    assert f'title="{first}"' in shown
    assert "http" not in shown


def test_it_stays_small_and_survives_lost_pictures(pictures, monkeypatch):
    monkeypatch.setattr(notebook, "MAX_CHARACTERS", 60_000)
    shown = show_result(pictures)
    assert 0 < shown.count("<img") <= notebook.N_EXAMPLES
    assert len(shown) < 70_000
    for path in pictures.collection.paths:
        path.unlink()
    shown = show_result(pictures)
    assert "<img" not in shown
    assert pictures.collection.ids[pictures.profiles.exemplars[3][0]] in shown


def test_texts_show_their_text_and_run_nothing(pictures):
    texts = [f"{HOSTILE} text {i}" for i in range(len(pictures))]
    collection = Collection(pictures.collection.ids, pictures.collection.y, texts=texts)
    shown = show_result(replace(pictures, collection=collection))
    row = pictures.profiles.exemplars[3][0]
    assert f"text {row}</li>" in shown
    assert "<script" not in shown
    assert "<img" not in shown


def test_names_of_pictures_run_nothing(pictures, tmp_path):
    assert "<script" not in show_result(of_pictures(pictures, tmp_path, HOSTILE + "{}"))


def test_of_many_categories_the_largest_are_shown(pictures, monkeypatch):
    monkeypatch.setattr(notebook, "MAX_CATEGORIES", 1)
    shown = show_result(pictures)
    assert "new-002" not in shown
    assert "1 more new category: see" in shown


def test_tables_of_texts_hold_the_texts(pictures):
    texts = [f"text {i}" for i in range(len(pictures))]
    collection = Collection(pictures.collection.ids, pictures.collection.y, texts=texts)
    found = replace(pictures, collection=collection)
    assert found.table["text"].tolist() == texts
    assert list(found.table)[:2] == ["id", "text"]
    rows = found.profiles.exemplars[3]
    assert found.categories["exemplar_texts"][3] == "; ".join(f"text {row}" for row in rows)
    assert "text" not in pictures.table
