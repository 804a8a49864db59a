import os
import sys
import unicodedata

import pytest

from newfound.data.collection import Skipped
from newfound.data.folders import folders_without_pictures
from newfound.data.pictures import NO_HEIC
from newfound.data.reading import read_collection
from newfound.errors import InputError

SOURCES = ["a.jpg", "b.PNG", "birds/c.jpeg", "birds/deep/d.webp"]


def by_id(collection):
    return dict(zip(collection.ids, collection.y.tolist(), strict=True))


def test_a_folder_and_a_csv(folder, tmp_path, table):
    labels = table(tmp_path, "path,label\nbirds/c.jpeg,owl\na.jpg,cat\nb.PNG,\n")
    collection = read_collection(folder, labels)
    assert collection.ids == SOURCES
    assert collection.y.dtype == object
    assert collection.y.tolist() == ["cat", None, "owl", None]
    assert collection.paths == [folder / name for name in SOURCES]
    assert collection.kind == "pictures"
    assert collection.root == folder
    assert collection.skipped == []
    assert collection.features is None
    assert collection.texts is None
    assert len(collection) == 4
    assert collection.is_labelled.tolist() == [True, False, True, False]


def test_back_slashes(folder, tmp_path, table):
    labels = table(tmp_path, "path,label\nbirds\\deep\\d.webp,owl\n.\\a.jpg,cat\n")
    assert read_collection(folder, labels).y.tolist() == ["cat", None, None, "owl"]


def test_a_back_slash_in_a_name_is_found_first(folder, tmp_path, place, table):
    place(folder, "birds\\c.jpeg")
    labels = table(tmp_path, "path,label\nbirds\\c.jpeg,owl\n")
    assert by_id(read_collection(folder, labels))["birds\\c.jpeg"] == "owl"
    assert by_id(read_collection(folder, labels))["birds/c.jpeg"] is None


@pytest.mark.parametrize("prefix", ["", "{folder}/"])
@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC")])
def test_accents_in_either_spelling(tmp_path, forms, prefix, place, table):
    on_disk, in_table = (unicodedata.normalize(form, "é.jpg") for form in forms)
    assert on_disk != in_table
    folder = place(tmp_path / "pictures", on_disk)
    path = prefix.format(folder=folder) + in_table
    collection = read_collection(folder, table(tmp_path, f"path,label\n{path},cat\n"))
    assert collection.ids == [on_disk]
    assert collection.y.tolist() == ["cat"]


def test_two_files_that_differ_in_the_spelling_of_accents(tmp_path, place, table):
    names = [unicodedata.normalize(form, "é.jpg") for form in ("NFC", "NFD")]
    folder = place(tmp_path / "pictures", *names)
    labels = table(tmp_path, f"path,label\n{names[0]},cat\n{names[1]},owl\n")
    assert by_id(read_collection(folder, labels)) == {names[0]: "cat", names[1]: "owl"}


def test_a_way_back_through_a_link(folder, tmp_path, place, table):
    """The folder above a link's target is not the folder above the link."""
    place(tmp_path / "store" / "pictures", "e.jpg")
    (tmp_path / "store" / "deep").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store" / "deep")
    labels = table(tmp_path, f"path,label\n{tmp_path}/store/pictures/e.jpg,cat\n")
    collection = read_collection(tmp_path / "link" / ".." / "pictures", labels)
    assert by_id(collection) == {"e.jpg": "cat"}
    assert collection.paths[0].is_file()


def test_hidden_and_other_files_are_left_out_unless_named(folder, tmp_path, place, table):
    place(folder, ".hidden.jpg", ".git/e.jpg", "notes.txt", "Thumbs.db", "scan.xyz")
    os.mkfifo(folder / "pipe.jpg")
    labels = table(tmp_path, "path,label\nscan.xyz,cat\n.hidden.jpg,owl\n", "labels.csv")
    named = read_collection(folder, labels)
    assert named.ids == sorted([*SOURCES, ".hidden.jpg", "scan.xyz"])
    assert [item.path for item in named.skipped] == ["notes.txt", "pipe.jpg"]
    unnamed = read_collection(folder, table(tmp_path, "path,label\n"))
    assert unnamed.ids == SOURCES
    assert [item.path for item in unnamed.skipped] == ["notes.txt", "pipe.jpg", "scan.xyz"]


NOT_READ = "not a picture format that newfound reads"


def test_every_file_that_is_not_used_is_listed(folder, place):
    """Photos of phones and cameras used to vanish: in no table, and in no list."""
    place(folder, "IMG_1.CR2", "IMG_2.nef", "IMG_3.MOV", "birds/notes.txt", ".DS_Store")
    place(folder, "birds/Thumbs.db", "birds/desktop.ini", "README")
    raw = f"a raw photo, {NOT_READ}; export it as JPEG"
    assert read_collection(folder).skipped == [
        Skipped("IMG_1.CR2", raw),
        Skipped("IMG_2.nef", raw),
        Skipped("IMG_3.MOV", NOT_READ),
        Skipped("README", NOT_READ),
        Skipped("birds/notes.txt", NOT_READ),
    ]


def test_the_table_of_labels_is_not_a_skipped_file(folder, table):
    labels = table(folder, "path,label\na.jpg,cat\n")
    assert read_collection(folder, labels).skipped == []


def test_heic_without_its_extra_is_listed_with_the_pip_command(folder, place, no_heic):
    place(folder, "IMG_1.HEIC", "birds/2.heif")
    assert read_collection(folder).skipped == [
        Skipped("IMG_1.HEIC", "a HEIC photo; to read it: pip install 'newfound[heic]'"),
        Skipped("birds/2.heif", "a HEIC photo; to read it: pip install 'newfound[heic]'"),
    ]


def test_a_broken_heic_extra_is_as_good_as_none(folder, place, heic_plugin, monkeypatch):
    """pillow-heif looks for its library when it is asked to register, not when it is imported."""

    def fail():
        raise ImportError("libheif.so.1: cannot open shared object file")

    monkeypatch.setattr(sys.modules["pillow_heif"], "register_heif_opener", fail)
    place(folder, "IMG_1.HEIC")
    (skipped,) = read_collection(folder).skipped
    assert skipped == Skipped("IMG_1.HEIC", NO_HEIC)


def test_heic_with_its_extra_is_a_picture(folder, place, heic_plugin):
    place(folder, "IMG_1.HEIC")
    assert "IMG_1.HEIC" in read_collection(folder).ids


def test_folders_without_pictures_are_found(tmp_path, place, no_heic):
    place(tmp_path, "owl/1.heic", "owl/deep/2.heic", "cat/3.jpg", "cat/4.heic", "docs/5.txt")
    assert folders_without_pictures(read_collection(tmp_path)) == ["docs", "owl"]


def test_absolute_paths_within_the_folder(folder, tmp_path, table):
    labels = table(tmp_path, f"path,label\n{folder}/a.jpg,cat\n")
    assert by_id(read_collection(folder, labels))["a.jpg"] == "cat"


def test_a_folder_that_is_a_link(folder, tmp_path, table):
    (tmp_path / "link").symlink_to(folder)
    text = f"path,label\n{tmp_path}/link/a.jpg,cat\n{folder}/b.PNG,cat\nbirds/c.jpeg,owl\n"
    collection = read_collection(tmp_path / "link", table(tmp_path, text))
    assert by_id(collection) == dict(zip(SOURCES, ["cat", "cat", "owl", None], strict=True))
    assert collection.skipped == []


@pytest.mark.parametrize(
    "path",
    [
        "../secret.jpg",
        "birds/../../secret.jpg",
        "..\\secret.jpg",
        "{tmp}/secret.jpg",
        "/etc/passwd",
        "C:\\pictures\\a.jpg",
        "\\\\server\\share\\a.jpg",
        "link.jpg",
        "linked/secret.jpg",
        "hop.jpg",
        "../pictures2/e.jpg",
        "..",
    ],
)
def test_paths_that_leave_the_folder(folder, tmp_path, path, place, table):
    place(tmp_path, "secret.jpg", "elsewhere/secret.jpg", "pictures2/e.jpg")
    (folder / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    (folder / "hop.jpg").symlink_to("link.jpg")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    labels = table(tmp_path, f"path,label\na.jpg,cat\n{path.format(tmp=tmp_path)},owl\n")
    with pytest.raises(InputError, match="names files outside of"):
        read_collection(folder, labels)


def test_links_in_the_folder(folder, tmp_path, place):
    place(tmp_path, "secret.jpg", "elsewhere/secret.jpg")
    (folder / "inside.jpg").symlink_to("birds/c.jpeg")
    (folder / "nothing.jpg").symlink_to("nothing at all")
    (folder / "outside.jpg").symlink_to(tmp_path / "secret.jpg")
    (folder / "ring.jpg").symlink_to("ring.jpg")
    (folder / "more").symlink_to(tmp_path / "elsewhere")
    (folder / "notes").symlink_to(tmp_path / "nothing at all")
    collection = read_collection(folder)
    assert collection.ids == sorted([*SOURCES, "inside.jpg"])
    assert collection.skipped == [
        Skipped("more", "a link to a folder, which is not followed; copy the folder"),
        Skipped("notes", "a link to a file that does not exist"),
        Skipped("nothing.jpg", "a link to a file that does not exist"),
        Skipped("outside.jpg", "a link that leads out of the folder; copy the file"),
        Skipped("ring.jpg", "a link to a file that does not exist"),
    ]


def test_a_name_that_is_not_utf_8(folder):
    name = os.fsdecode(b"caf\xe9.jpg")
    (folder / name).touch()
    collection = read_collection(folder)
    assert collection.ids == SOURCES
    assert collection.skipped == [Skipped("caf\\xe9.jpg", "its name is not UTF-8; rename it")]


def unreadable(monkeypatch, name):
    real_scandir = os.scandir

    def scandir(path):
        if os.path.basename(os.path.normpath(path)) == name:
            raise PermissionError(13, "Permission denied", str(path))
        return real_scandir(path)

    monkeypatch.setattr(os, "scandir", scandir)


def test_folders_without_permission(folder, monkeypatch):
    """Root may read all, so the operating system's answer is played."""
    unreadable(monkeypatch, "deep")
    collection = read_collection(folder)
    assert collection.ids == SOURCES[:3]
    assert collection.skipped == [
        Skipped("birds/deep/", "the folder cannot be read: Permission denied")
    ]
    unreadable(monkeypatch, "pictures")
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        read_collection(folder)


@pytest.mark.parametrize(("n", "end"), [(1, "gone0.jpg"), (5, "gone4.jpg"), (7, "and 2 more")])
def test_labels_for_files_that_do_not_exist(folder, tmp_path, n, end, table):
    names = "".join(f"gone{i}.jpg,cat\n" for i in range(n))
    labels = table(tmp_path, f"path,label\na.jpg,cat\n{names}")
    message = f"found for {n} of {n + 1} paths in {labels}: .*{end}. Paths are relative"
    with pytest.raises(InputError, match=message):
        read_collection(folder, labels)


def test_a_row_without_a_path(folder, tmp_path, table):
    with pytest.raises(InputError, match=r"1 of 2 paths in .*: \(empty\)"):
        read_collection(folder, table(tmp_path, "path,label\na.jpg,cat\n,owl\n"))


def test_a_folder_is_no_picture(folder, tmp_path, table):
    with pytest.raises(InputError, match=r"No file was found for 1 of 1 paths in .*: birds\."):
        read_collection(folder, table(tmp_path, "path,label\nbirds,owl\n"))


@pytest.mark.parametrize("path", ["pictures/birds/c.jpeg", "data\\pictures\\birds\\c.jpeg"])
def test_the_commonest_mistake_is_named(folder, tmp_path, path, table):
    message = rf"relative to {folder}\. Is .* meant to be birds/c.jpeg\?$"
    with pytest.raises(InputError, match=message):
        read_collection(folder, table(tmp_path, f"path,label\n{path},owl\n"))


def test_the_order_of_the_file_system_changes_nothing(folder, monkeypatch):
    expected = read_collection(folder)
    real_scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: reversed(list(real_scandir(path))))
    assert read_collection(folder).ids == expected.ids
    assert read_collection(folder).y.tolist() == expected.y.tolist()


@pytest.mark.parametrize("name", ["unlabelled", "unlabeled", "unknown", "Unlabelled"])
def test_class_folders(tmp_path, name, place):
    place(tmp_path, "cat/1.jpg", "cat/old/2.jpg", "owl/3.jpg", f"{name}/4.jpg", "5.jpg")
    (tmp_path / "empty").mkdir()
    collection = read_collection(tmp_path)
    assert by_id(collection) == {
        "cat/1.jpg": "cat",
        "cat/old/2.jpg": "cat",
        "owl/3.jpg": "owl",
        f"{name}/4.jpg": None,
        "5.jpg": None,
    }


def test_another_name_for_the_unlabelled(tmp_path, place):
    place(tmp_path, "ToDo/1.jpg", "cat/2.jpg", "unknown/3.jpg")
    collection = read_collection(tmp_path, unlabelled_folder="ToDo")
    assert collection.y.tolist() == [None, "cat", "unknown"]
    with pytest.raises(InputError, match="no folder 'other'"):
        read_collection(tmp_path, unlabelled_folder="other")


def test_a_table_wins_over_folders(folder, tmp_path, table):
    collection = read_collection(folder, table(tmp_path, "path,label\na.jpg,cat\n"))
    assert by_id(collection)["birds/c.jpeg"] is None
