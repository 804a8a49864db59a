import hashlib
import io
import pickle
import subprocess
import sys
import tarfile
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from newfound.bench.datasets import DATASETS, DataSet, dataset, download, load_dataset
from newfound.bench.datasets.download import Archive, fetch_archive
from newfound.bench.datasets.feature_file import is_feature_file
from newfound.bench.datasets.listing import read_ssb
from newfound.bench.datasets.long_tail import base_of
from newfound.bench.datasets.sources import SOURCES, first
from newfound.errors import InputError


@pytest.fixture
def expect(monkeypatch):
    """Make a data set small: so many classes and images."""

    def change(name, n_classes, n_images, **others):
        others = {"known": first(1), "n_labelled": None, "n_unlabelled": None} | others
        source = replace(SOURCES[name], n_classes=n_classes, n_images=n_images, **others)
        monkeypatch.setitem(SOURCES, name, source)

    return change


def touch(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def names_of(data):
    return [f"{path.parent.name}/{path.name}" for path in data.paths]


def classes_of(data):
    return [data.class_names[code] for code in data.truth]


# CIFAR


def write_cifar10(folder, labels, pixels):
    """Five batches, one record after the other."""
    folder.mkdir(parents=True)
    records = np.concatenate([labels[:, None], pixels.reshape(len(labels), -1)], axis=1)
    for number, part in enumerate(np.array_split(records, 5), start=1):
        part.astype(np.uint8).tofile(folder / f"data_batch_{number}.bin")
    (folder / "batches.meta.txt").write_text("airplane\nautomobile\nbird\n\n")


def test_cifar10_is_read_in_the_order_of_its_batches(tmp_path, expect):
    expect("cifar10", 3, 12, known=first(2), n_labelled=2, n_unlabelled=10)
    rng = np.random.default_rng(0)
    labels, pixels = np.arange(12) * 7 % 3, rng.integers(256, size=(12, 3, 32, 32))
    write_cifar10(tmp_path / "cifar10" / "cifar-10-batches-bin", labels, pixels)
    data = load_dataset("cifar10", tmp_path)
    np.testing.assert_array_equal(data.truth, labels)
    np.testing.assert_array_equal(data.array, pixels)
    assert data.truth.dtype == np.int64
    assert data.array.dtype == np.uint8
    assert data.class_names == ("airplane", "automobile", "bird")
    assert (data.known, data.n_labelled, data.n_unlabelled) == ((0, 1), 2, 10)
    assert data.complete
    assert data.layout == "official"
    assert not data.has_features


def test_cifar100_has_the_fine_labels(tmp_path, expect):
    expect("cifar100", 4, 4)
    folder = tmp_path / "cifar-100-binary"
    write(folder / "fine_label_names.txt", "apple\nbaby\nbear\nbed\n")
    records = np.full((4, 3074), 9, dtype=np.uint8)
    records[:, 0] = 1
    records[:, 1] = [3, 0, 2, 1]
    records.tofile(folder / "train.bin")
    data = load_dataset("cifar100", tmp_path)
    assert data.truth.tolist() == [3, 0, 2, 1]
    assert (data.array == 9).all()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "data_batch_3.bin").write_bytes(b"1234"), "truncated"),
        (lambda folder: (folder / "data_batch_4.bin").unlink(), "lacks data_batch_4.bin"),
        (lambda folder: (folder / "batches.meta.txt").write_text("airplane"), "names 1 classes"),
    ],
)
def test_damaged_cifar_files_are_named(tmp_path, expect, damage, message):
    expect("cifar10", 3, 12)
    folder = tmp_path / "cifar-10-batches-bin"
    write_cifar10(folder, np.arange(12) % 3, np.zeros((12, 3, 32, 32), int))
    damage(folder)
    with pytest.raises(InputError, match=message):
        load_dataset("cifar10", tmp_path)


def test_pickled_cifar_is_never_opened(tmp_path, expect):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the file was unpickled",))

    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    (folder / "data_batch_1").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(
        InputError, match=r"batches-py is a pickled version.*CIFAR-10 binary version"
    ):
        load_dataset("cifar10", tmp_path)
    expect("cifar10", 1, 1)
    touch(tmp_path / "cifar10" / "cat" / "a.png")  # of use, whatever lies beside
    assert len(load_dataset("cifar10", tmp_path)) == 1


def test_class_folders_that_are_numbers_are_in_the_order_of_the_numbers(tmp_path, expect):
    expect("cifar100", 3, 3)
    touch(*[tmp_path / "cifar100" / "train" / f"{number}" / "a.png" for number in (0, 2, 10)])
    assert load_dataset("cifar100", tmp_path).class_names == ("0", "2", "10")


# CUB


def write_cub(folder):
    """Five images in an order of their own; the fourth is for testing."""
    images = ["002.B/b_2.jpg", "001.A/a_9.jpg", "003.C/c_1.jpg", "003.C/c_0.jpg", "001.A/a_1.jpg"]
    write(folder / "images.txt", "".join(f"{i} {name}\n" for i, name in enumerate(images)))
    write(folder / "image_class_labels.txt", "0 2\n1 1\n2 3\n3 3\n4 1\n")
    write(folder / "train_test_split.txt", "0 1\n1 1\n2 1\n3 0\n4 1\n")
    touch(*[folder / "images" / name for name in images])


def test_cub_is_the_training_part_in_the_order_of_images_txt(tmp_path, expect):
    expect("cub", 3, 4)
    write_cub(tmp_path / "cub" / "CUB_200_2011")
    data = load_dataset("cub", tmp_path)
    assert names_of(data) == ["002.B/b_2.jpg", "001.A/a_9.jpg", "003.C/c_1.jpg", "001.A/a_1.jpg"]
    assert data.truth.tolist() == [1, 0, 2, 0]
    assert data.class_names == ("001.A", "002.B", "003.C")


def test_a_part_of_the_official_layout_is_an_error_that_names_the_rest(tmp_path):
    write_cub(tmp_path / "CUB_200_2011")
    (tmp_path / "CUB_200_2011" / "train_test_split.txt").unlink()
    with pytest.raises(InputError, match=r"CUB_200_2011 lacks train_test_split.txt"):
        load_dataset("cub", tmp_path)


def test_class_folders_of_cub_go_by_the_class_number(tmp_path, expect):
    expect("cub", 3, 4)
    folder = tmp_path / "cub" / "train"
    touch(folder / "10.Z" / "a.jpg", folder / "9.Y" / "b.jpg", folder / "9.Y" / "a.JPG")
    touch(folder / "100.A" / "a.jpg", folder / ".hidden" / "a.jpg", folder / "9.Y" / "notes.txt")
    data = load_dataset("cub", tmp_path)
    assert names_of(data) == ["9.Y/a.JPG", "9.Y/b.jpg", "10.Z/a.jpg", "100.A/a.jpg"]
    assert data.truth.tolist() == [0, 0, 1, 2]
    assert data.layout == "class folders"


@pytest.mark.parametrize("names", [["001.A", "B"], ["001.A", "001.B"]])
def test_class_folders_of_cub_without_a_number_are_refused(tmp_path, expect, names):
    expect("cub", 2, 2)
    touch(*[tmp_path / "cub" / name / "a.jpg" for name in names])
    with pytest.raises(InputError, match=r"cub: The name of each class folder must begin"):
        load_dataset("cub", tmp_path)


# Cars and Aircraft


def write_cars(folder, classes, names):
    """The annotations are a table of one row, as MATLAB writes arrays of structures."""
    kind = [("bbox_x1", object), ("class", object), ("fname", object)]
    rows = [(1, number, name) for number, name in zip(classes, names, strict=True)]
    (folder / "devkit").mkdir(parents=True)
    annotations = np.array([rows], dtype=kind)
    savemat(folder / "devkit" / "cars_train_annos.mat", {"annotations": annotations})
    touch(*[folder / "cars_train" / name for name in names])


def test_cars_are_in_the_order_of_the_annotations(tmp_path, expect):
    write_cars(tmp_path / "cars", [14, 3, 196], ["00001.jpg", "00002.jpg", "00003.jpg"])
    with pytest.raises(InputError, match="3 classes with images; expected 196"):
        load_dataset("cars", tmp_path)
    write_cars(tmp_path / "all" / "cars", range(196, 0, -1), [f"{i:05}.jpg" for i in range(196)])
    expect("cars", 196, 196)
    data = load_dataset("cars", tmp_path / "all")
    assert data.truth.tolist() == list(range(195, -1, -1))
    assert [path.name for path in data.paths][:2] == ["00000.jpg", "00001.jpg"]
    assert classes_of(data)[-6] == "Acura Integra Type R 2001"


@pytest.mark.parametrize("content", [b"", b"no mat file at all" * 20])
def test_damaged_annotations_are_named(tmp_path, content):
    write_cars(tmp_path, [1], ["00001.jpg"])
    (tmp_path / "devkit" / "cars_train_annos.mat").write_bytes(content)
    with pytest.raises(InputError, match=r"cars_train_annos.mat cannot be read"):
        load_dataset("cars", tmp_path)


def test_class_folders_of_cars_get_their_official_numbers(tmp_path, expect):
    expect("cars", 196, 196)
    official = read_ssb("cars", "classes")
    assert official != sorted(official)
    touch(*[tmp_path / "cars" / name.replace("/", "_") / "a.jpg" for name in official])
    data = load_dataset("cars", tmp_path)
    assert [path.parent.name.replace("_", "/") for path in data.paths] == official
    assert data.truth.tolist() == list(range(196))


def test_strange_class_folders_are_named(tmp_path):
    touch(tmp_path / "cars" / "train" / "Lada Niva 1977" / "a.jpg")
    with pytest.raises(InputError, match=r"1 of 1 class folders.*'Lada Niva 1977'.*'AM General"):
        load_dataset("cars", tmp_path)


def test_aircraft_are_in_the_order_of_trainval(tmp_path, expect):
    expect("aircraft", 3, 3)
    folder = tmp_path / "fgvc-aircraft-2013b" / "data"
    write(folder / "variants.txt", "F-16A/B\n707-320\nBAE 146-200\n")
    write(
        folder / "images_variant_trainval.txt",
        "0900 F-16A/B\n0034 BAE 146-200\n1025 707-320\n",
    )
    touch(*[folder / "images" / f"{number}.jpg" for number in ("0900", "0034", "1025", "7777")])
    data = load_dataset("aircraft", tmp_path)
    assert [path.stem for path in data.paths] == ["0900", "0034", "1025"]
    assert data.class_names == ("707-320", "BAE 146-200", "F-16A/B")
    assert data.truth.tolist() == [2, 1, 0]


# Published as class folders


def test_herbarium_has_the_order_of_the_fields_code(tmp_path, expect):
    known = SOURCES["herbarium"].known()
    drawn = np.random.RandomState(0).choice(683, 341, replace=False)
    assert set(known) == set(drawn.tolist())
    assert list(known) == sorted(known)
    expect("herbarium", 3, 3)
    touch(*[tmp_path / "small-train" / name / "a.jpg" for name in ("0", "10", "2")])
    assert load_dataset("herbarium", tmp_path).class_names == ("0", "10", "2")  # not by number


@pytest.mark.parametrize("place", ["ILSVRC/Data/CLS-LOC/train", "imagenet100/train", "imagenet100"])
def test_imagenet100_is_drawn_from_all_1000(tmp_path, place):
    wnids = [f"n{number:08}" for number in range(1000)]
    touch(*[tmp_path / place / wnid / f"{wnid}_1.JPEG" for wnid in wnids])
    data = load_dataset("imagenet100", tmp_path)
    drawn = sorted(np.random.RandomState(0).choice(1000, 100, replace=False))
    assert data.class_names == tuple(wnids[number] for number in drawn)
    assert classes_of(data) == [path.parent.name for path in data.paths]
    assert data.truth.tolist() == list(range(100))
    assert data.known == tuple(range(50))


def test_imagenet100_may_be_there_as_such_but_in_no_other_number(tmp_path):
    touch(*[tmp_path / "imagenet100" / f"n{number:08}" / "a.JPEG" for number in range(100)])
    assert load_dataset("imagenet100", tmp_path).n_classes == 100
    touch(tmp_path / "imagenet100" / "n00000100" / "a.JPEG")
    with pytest.raises(InputError, match="101 classes with images; expected 100"):
        load_dataset("imagenet100", tmp_path)


@pytest.mark.parametrize("inner", ["images/", ""])
def test_tiny_imagenet(tmp_path, expect, inner):
    expect("tiny-imagenet", 2, 3)
    train = tmp_path / "tiny-imagenet-200" / "train"
    touch(*[train / f"{name[:2]}/{inner}{name}.JPEG" for name in ("n2_0", "n1_0", "n1_10")])
    touch(train / "n1" / "n1_boxes.txt")
    data = load_dataset("tiny-imagenet", tmp_path)
    assert [path.stem for path in data.paths] == ["n1_0", "n1_10", "n2_0"]
    assert classes_of(data) == ["n1", "n1", "n2"]


# What must be there


@pytest.mark.parametrize("name", [name for name in DATASETS if "digits" not in name])
def test_what_is_missing_is_told_with_places_and_the_page(tmp_path, name):
    with pytest.raises(InputError) as caught:
        load_dataset(name, tmp_path)
    message, name = str(caught.value), base_of(name)
    assert SOURCES[name].page in message
    assert f"{tmp_path / name}/train/<class>/*" in message
    assert ("by hand" in message) == (name in ("imagenet100", "cars", "herbarium", "tiny-imagenet"))


def test_download_of_what_cannot_be_downloaded_says_so(tmp_path):
    with pytest.raises(InputError, match=r"Download it by hand from https://www\.kaggle"):
        load_dataset("herbarium", tmp_path, download=True)


def test_unknown_names_are_refused_with_a_list(tmp_path):
    with pytest.raises(InputError, match=r"no data set 'mnist'.*cifar10, cifar100"):
        load_dataset("mnist", tmp_path)


def test_a_wrong_number_of_images_is_an_error_or_on_record(tmp_path, expect):
    expect("tiny-imagenet", 1, 3)
    touch(*[tmp_path / "tiny-imagenet" / "n1" / f"{i}.JPEG" for i in range(2)])
    with pytest.raises(InputError, match=r"has 2 training images; expected 3\..*incomplete=True"):
        load_dataset("tiny-imagenet", tmp_path)
    assert not load_dataset("tiny-imagenet", tmp_path, incomplete=True).complete


def test_files_that_a_list_names_but_the_disk_lacks_are_reported_or_left_out(tmp_path, expect):
    expect("cub", 3, 4)
    write_cub(tmp_path / "CUB_200_2011")
    (tmp_path / "CUB_200_2011" / "images" / "001.A" / "a_9.jpg").unlink()
    with pytest.raises(InputError, match=r"1 of its files are missing: .*a_9\.jpg"):
        load_dataset("cub", tmp_path)
    data = load_dataset("cub", tmp_path, incomplete=True)
    assert names_of(data) == ["002.B/b_2.jpg", "003.C/c_1.jpg", "001.A/a_1.jpg"]
    assert data.truth.tolist() == [1, 2, 0]
    assert not data.complete


def test_missing_classes_are_an_error_in_any_case(tmp_path, expect):
    expect("cifar10", 3, 2)
    touch(*[tmp_path / "cifar10" / name / "a.png" for name in ("cat", "dog")])
    (tmp_path / "cifar10" / "frog").mkdir()
    with pytest.raises(InputError, match="2 classes with images; expected 3"):
        load_dataset("cifar10", tmp_path, incomplete=True)


def test_counts_and_sizes_of_the_field():
    sizes = {
        name: (source.n_classes, source.n_images, len(source.known()), source.n_labelled)
        for name, source in SOURCES.items()
    }
    assert sizes == {
        "cifar10": (10, 50_000, 5, 12_500),
        "cifar100": (100, 50_000, 80, 20_000),
        "imagenet100": (100, None, 50, None),
        "cub": (200, 5_994, 100, 1_498),
        "cars": (196, 8_144, 98, 2_000),
        "aircraft": (100, 6_667, 50, 1_666),
        "herbarium": (683, 34_225, 341, None),
        "tiny-imagenet": (200, 100_000, 100, None),
        "digits": (10, 1_797, 5, None),
    }
    for source in SOURCES.values():
        known = source.known()
        assert list(known) == sorted(set(known))
        assert 0 <= known[0] <= known[-1] < source.n_classes
        if source.n_labelled is not None:
            assert source.n_labelled + source.n_unlabelled == source.n_images


def test_names_of_the_semantic_shift_benchmark():
    assert len(set(read_ssb("cars", "classes"))) == 196
    aircraft = read_ssb("aircraft", "classes")
    assert len(set(aircraft)) == 100
    assert aircraft == sorted(aircraft)  # as read_aircraft sorts them


# Digits, and pixels


def test_digits_come_with_scikit_learn(tmp_path):
    data = load_dataset("digits", tmp_path / "nowhere")
    assert data.array.shape == (1797, 3, 8, 8)
    assert data.array.dtype == np.uint8
    assert (data.array.min(), data.array.max()) == (0, 255)
    assert data.known == (0, 1, 2, 3, 4)
    assert data.truth[:4].tolist() == [0, 1, 2, 3]
    assert data.pixels(8, tmp_path / "unused") is data.array
    assert not (tmp_path / "unused").exists()


def some_images(n=5, side=6):
    images = np.random.default_rng(1).integers(256, size=(n, 3, side, side), dtype=np.uint8)
    return DataSet("some", np.zeros(n, np.int64), ("a",), (0,), array=images)


def test_images_in_memory_are_resized_once(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "_CHUNK_ROWS", 2)
    data, told = some_images(), []
    pixels = data.pixels(9, tmp_path, lambda done, total: told.append((done, total)))
    for image, square in zip(data.array, pixels, strict=True):
        slow = Image.fromarray(image.transpose(1, 2, 0)).resize((9, 9), Image.Resampling.BICUBIC)
        np.testing.assert_array_equal(square.transpose(1, 2, 0), np.asarray(slow))
    assert told == [(2, 5), (4, 5), (5, 5)]
    monkeypatch.setattr(dataset, "square_pixels", lambda *_: pytest.fail("resized again"))
    np.testing.assert_array_equal(data.pixels(9, tmp_path), pixels)


def test_other_images_of_the_same_name_are_resized_anew(tmp_path):
    data = some_images()
    others = replace(data, array=255 - data.array)
    assert (data.pixels(9, tmp_path) != others.pixels(9, tmp_path)).any()


def test_an_interrupted_resizing_leaves_nothing_behind(tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        some_images().pixels(9, tmp_path, stop)
    assert list(tmp_path.iterdir()) == []


def write_pictures(folder, names):
    for value, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (value, 0, 0)).save(folder / name)


def test_files_are_decoded_in_the_order_of_the_rows(tmp_path, expect):
    expect("cifar10", 2, 3)
    write_pictures(tmp_path / "cifar10", ["dog/a.png", "cat/b.png", "cat/a.png"])
    pixels = load_dataset("cifar10", tmp_path).pixels(4, tmp_path / "cache")
    assert pixels.shape == (3, 3, 4, 4)
    assert pixels[:, 0, 0, 0].tolist() == [2, 1, 0]


def test_files_that_cannot_be_read_are_named(tmp_path, expect):
    expect("cifar10", 1, 3)
    write_pictures(tmp_path / "cifar10", ["cat/a.png", "cat/b.png", "cat/c.png"])
    (tmp_path / "cifar10" / "cat" / "b.png").write_bytes(b"no picture")
    message = r"1 of the 3 images of cifar10 .*\n.*b\.png: not a picture"
    with pytest.raises(InputError, match=message):
        load_dataset("cifar10", tmp_path).pixels(4, tmp_path / "cache")


def test_impossible_sizes_are_refused(tmp_path):
    with pytest.raises(InputError, match="at least 1 pixel; got 0"):
        some_images().pixels(0, tmp_path)


# Files of features


def save(tmp_path, **arrays):
    path = tmp_path / "bank.npz"
    np.savez(path, **arrays)
    return str(path)


def test_a_file_of_features(tmp_path):
    X = np.arange(10, dtype=np.float16).reshape(5, 2)
    data = load_dataset(save(tmp_path, X=X, y=[30, 4, 4, 100, 30]), tmp_path)
    assert (data.name, data.layout) == ("bank", "features")
    assert data.class_names == ("4", "30", "100")
    assert data.truth.tolist() == [1, 0, 0, 2, 1]
    assert data.known == (0,)  # half of three, rounded down
    assert data.has_features
    np.testing.assert_array_equal(data.array, X)
    with pytest.raises(InputError, match="not images"):
        data.pixels(8, tmp_path)


def test_known_classes_may_stand_in_the_file(tmp_path):
    y = np.array(["cat", "dog", "eel"])
    name = save(tmp_path, X=np.eye(3), y=y, known=["eel", "cat"])
    assert load_dataset(name, tmp_path).known == (0, 2)


def test_a_file_of_features_is_also_looked_for_under_the_root(tmp_path):
    save(tmp_path, X=np.eye(2), y=[0, 1])
    assert len(load_dataset("bank.npz", tmp_path)) == 2


@pytest.mark.parametrize(
    ("source", "expected"),
    [("a/b.npz", True), ("b.npy", True), ("A.NPZ", True), ("digits", False), ("npz", False)],
)
def test_a_feature_file_is_known_by_its_ending(source, expected):
    assert is_feature_file(source) is expected


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": [0, -1, 1]}, "1 of 3 rows without a class"),
        ({"y": ["a", "", "b"]}, "1 of 3 rows without a class"),
        ({"y": [0.5, 1.0, 2.0]}, "whole numbers or texts"),
        ({"y": [0, 1]}, r"X of shape \(3, 3\) and y of shape \(2,\)"),
        ({"y": [7, 7, 7]}, "has one class"),
        ({"y": [0, 1, 2], "known": [3]}, "known names 3, but y has the classes 0, 1, 2"),
        ({"y": [0, 1, 2], "known": np.array([], int)}, "known names no class"),
        ({"y": [0, 1, 2], "X": [[1.0], [np.nan], [2.0]]}, "finite numbers"),
    ],
)
def test_unfit_files_of_features_are_refused(tmp_path, arrays, message):
    with pytest.raises(InputError, match=message):
        load_dataset(save(tmp_path, **({"X": np.eye(3)} | arrays)), tmp_path)


# Downloads, from this disk


def pack(path, members):
    """A tar archive; a member is a text, or a TarInfo to be taken as it is."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                tar.addfile(content)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content.encode()))
    return path


def archive_of(path, md5=None):
    return Archive(path.as_uri(), "top", md5)


def test_an_archive_is_fetched_checked_and_put_in_place(tmp_path):
    packed = pack(tmp_path / "a.tgz", {"top/file.txt": "hello", "beside.txt": "not kept"})
    md5 = hashlib.md5(packed.read_bytes()).hexdigest()
    told = []
    folder = fetch_archive(
        archive_of(packed, md5), tmp_path / "into", lambda done, total: told.append((done, total))
    )
    assert folder == tmp_path / "into" / "top"
    assert (folder / "file.txt").read_text() == "hello"
    assert [path.name for path in (tmp_path / "into").iterdir()] == ["top"]
    assert told[-1] == (packed.stat().st_size, packed.stat().st_size)


def link(name, target):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


@pytest.mark.parametrize(
    "members",
    [
        {"top/file.txt": "good", "../../escaped.txt": "bad"},
        {"top/file.txt": "good", "link": link("top/link", "/etc")},
        {"top/file.txt": "good", "link": link("top/link", "../../..")},
    ],
)
def test_members_that_reach_outside_are_refused(tmp_path, members):
    packed = pack(tmp_path / "a.tgz", members)
    with pytest.raises(InputError, match="reaches outside its folder"):
        fetch_archive(archive_of(packed), tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    assert not list(tmp_path.rglob("escaped.txt"))


def test_a_wrong_checksum_unpacks_nothing(tmp_path):
    packed = pack(tmp_path / "a.tgz", {"top/file.txt": "hello"})
    with pytest.raises(InputError, match=r"has the MD5 checksum .*, not 0123"):
        fetch_archive(archive_of(packed, "0123"), tmp_path / "into")
    assert list((tmp_path / "into").iterdir()) == []


@pytest.mark.parametrize("content", [b"no tar", b""])
def test_what_is_no_archive_is_refused(tmp_path, content):
    (tmp_path / "a.tgz").write_bytes(content)
    with pytest.raises(InputError, match="not a readable tar archive"):
        fetch_archive(archive_of(tmp_path / "a.tgz"), tmp_path / "into")


def test_an_archive_that_is_cut_off_is_refused(tmp_path):
    noise = np.random.default_rng(0).integers(33, 126, 50_000).astype(np.uint8).tobytes().decode()
    packed = pack(tmp_path / "a.tgz", {"top/file.txt": noise})
    packed.write_bytes(packed.read_bytes()[:20_000])
    with pytest.raises(InputError, match="not a readable tar archive"):
        fetch_archive(archive_of(packed), tmp_path / "into")
    assert list((tmp_path / "into").iterdir()) == []


def test_another_archive_is_refused(tmp_path):
    packed = pack(tmp_path / "a.tgz", {"other/file.txt": "hello"})
    with pytest.raises(InputError, match="contains other, but no folder top"):
        fetch_archive(archive_of(packed), tmp_path / "into")


def test_what_is_there_already_is_left_alone(tmp_path):
    packed = pack(tmp_path / "a.tgz", {"top/file.txt": "new"})
    write(tmp_path / "into" / "top" / "file.txt", "old")
    with pytest.raises(InputError, match="exists, but is not a usable data set"):
        fetch_archive(archive_of(packed), tmp_path / "into")
    assert (tmp_path / "into" / "top" / "file.txt").read_text() == "old"


def test_an_archive_that_cannot_be_reached_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"gone\.tgz cannot be downloaded.*Check the network"):
        fetch_archive(archive_of(tmp_path / "gone.tgz"), tmp_path / "into")


class Response(io.BytesIO):
    """What a server answers."""

    def __init__(self, content, url, length):
        super().__init__(content)
        self.url, self.headers = url, {"Content-Length": str(length)}


@pytest.mark.parametrize(
    ("url", "length", "message"),
    [
        ("https://example.org/a.tgz", 9, "stopped after 3 of 9 bytes"),
        ("http://example.org/a.tgz", 3, "not encrypted"),
    ],
)
def test_servers_that_break_off_or_lead_astray(tmp_path, monkeypatch, url, length, message):
    answer = SimpleNamespace(urlopen=lambda *_, **__: Response(b"abc", url, length))
    monkeypatch.setattr(download.urllib, "request", answer)
    with pytest.raises(InputError, match=message):
        fetch_archive(Archive("https://example.org/a.tgz", "top"), tmp_path)


def test_an_old_python_is_reported(tmp_path, monkeypatch):
    packed = pack(tmp_path / "a.tgz", {"top/file.txt": "new"})
    monkeypatch.delattr(tarfile, "data_filter")
    with pytest.raises(InputError, match=r"Use Python 3\.10\.12"):
        fetch_archive(archive_of(packed), tmp_path / "into")


def test_a_data_set_is_downloaded_when_it_is_not_there(tmp_path, expect):
    write_cub(tmp_path / "elsewhere" / "CUB_200_2011")
    packed = tmp_path / "cub.tgz"
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(tmp_path / "elsewhere" / "CUB_200_2011", "CUB_200_2011")
    expect("cub", 3, 4, archive=Archive(packed.as_uri(), "CUB_200_2011"))
    with pytest.raises(InputError, match="download=True"):
        load_dataset("cub", tmp_path)
    assert len(load_dataset("cub", tmp_path, download=True)) == 4
    packed.unlink()
    assert len(load_dataset("cub", tmp_path, download=True)) == 4  # not fetched again


def test_every_archive_is_fetched_encrypted():
    archives = {name: source.archive for name, source in SOURCES.items() if source.archive}
    assert set(archives) == {"cifar10", "cifar100", "cub", "aircraft"}
    assert all(archive.url.startswith("https://") for archive in archives.values())
    assert all(archive.md5 for name, archive in archives.items() if name != "aircraft")


def test_torch_is_not_needed():
    code = "import sys, newfound.bench.splits; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
