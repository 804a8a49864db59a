"""More items into the categories of a run."""

import numpy as np
import pytest
from samples import Blobs, Digits, collection_of

from newfound.errors import InputError
from newfound.workflows.discover import discover
from newfound.workflows.predict import predict
from newfound.workflows.update import update

N = 300


def test_more_pictures_are_predicted_without_refitting(pictures, finished):
    result, out = finished
    before = (out / "model" / "mixture.safetensors").read_bytes()
    table = predict(out, pictures / "more")
    assert list(table) == list(result.table)
    assert table["id"].tolist() == [f"{i:03d}.png" for i in range(N, 450)]
    X = (Digits.X[N:450] * 255 / 16).astype(np.uint8) / np.float32(255)
    names = result.categories["category"].to_numpy()
    assert table["category"].tolist() == names[result.mixture.predict(X)].tolist()
    assert table.attrs["skipped"] == [["empty.png", "the file is empty"]]
    assert (out / "model" / "mixture.safetensors").read_bytes() == before


def test_the_same_items_are_predicted_the_same(finished):
    result, out = finished
    table = predict(out, result.collection)
    free = result.table["given_label"].isna()
    for name in ("category", "runner_up"):
        assert table[name][free].tolist() == result.table[name][free].tolist()


def test_items_of_another_kind_are_refused(finished, digits_file):
    with pytest.raises(InputError, match="is on pictures, but these are features"):
        predict(finished[1], digits_file)
    with pytest.raises(InputError, match="is on pictures, but these are features"):
        update(finished[1], digits_file)


def test_an_empty_folder_of_more_is_refused(finished, tmp_path):
    with pytest.raises(InputError, match="There are no pictures in"):
        predict(finished[1], tmp_path)


def test_features_of_another_width_are_refused(tmp_path):
    discover(Blobs.without(8), out=tmp_path, rehearse=False)
    narrow = collection_of(np.zeros((3, 5), dtype=np.float32), [None] * 3)
    with pytest.raises(InputError, match=r"have 5 features, but the run in .* was made with 12"):
        predict(tmp_path, narrow)


def test_a_run_without_its_model_cannot_predict(finished, pictures, tmp_path):
    out = finished[1]
    copy = tmp_path / "run"
    copy.mkdir()
    for path in out.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    with pytest.raises(InputError, match="has no folder 'model'"):
        predict(copy, pictures / "more")


def test_predictions_below_the_confidence_of_the_run_are_marked(marked, finished, pictures):
    _, out = marked
    more = collection_of(Digits.X[N:450], [*[None] * 20, *Digits.y[N + 20 : 450]])
    table = predict(out, more)
    is_free = table["given_label"].isna()
    assert table["is_unsure"].tolist() == ((table["confidence"] < 0.9) & is_free).tolist()
    assert table["is_unsure"].any()
    strict = predict(out, more, min_confidence=1)
    assert strict["is_unsure"].tolist() == ((table["confidence"] < 1) & is_free).tolist()
    assert not predict(out, more, min_confidence=0)["is_unsure"].any()
    assert "is_unsure" not in predict(finished[1], pictures / "more")
    with pytest.raises(InputError, match="min_confidence must be"):
        predict(out, more, min_confidence=2)
