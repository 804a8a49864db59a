import pytest

from newfound.words import any_of, file_size, first_few, plural, things, times_as_large


@pytest.mark.parametrize(
    ("n", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1200, "1,200 files")]
)
def test_plural(n, text):
    assert plural(n, "file") == text


@pytest.mark.parametrize(
    ("n", "text"),
    [(1, "1 file was skipped"), (3, "3 files were skipped"), (0, "0 files were skipped")],
)
def test_the_verb_follows_the_number(n, text):
    assert plural(n, "file was skipped", "files were skipped") == text


@pytest.mark.parametrize(
    ("names", "text"),
    [([], ""), (["a"], "a"), ("abcde", "a, b, c, d, e"), ("abcdefg", "a, b, c, d, e and 2 more")],
)
def test_first_few(names, text):
    assert first_few(names) == text


def test_an_empty_name_is_shown():
    assert first_few(["", 3], n=1) == "(empty) and 1 more"


@pytest.mark.parametrize(("names", "text"), [("a", "a"), ("ab", "a or b"), ("abc", "a, b or c")])
def test_any_of(names, text):
    assert any_of(names) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        *[(0, "0 B"), (812, "812 B"), (1000, "1.0 kB"), (28_672, "28.7 kB"), (99_960, "100 kB")],
        *[(999_499, "999 kB"), (999_500, "1.0 MB"), (3_400_000_000, "3.4 GB")],
        (1_234_500_000_000_000, "1,234.5 TB"),
    ],
)
def test_sizes_of_files(n_bytes, text):
    assert file_size(n_bytes) == text


def test_things_are_called_what_they_are():
    assert [things(kind) for kind in ("pictures", "texts", "features")] == [
        *("pictures", "texts", "items")
    ]
    assert things("pictures", 1) == "picture"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.01, "less than a tenth as large"),
        (0.11, "about a tenth as large"),
        (0.35, "about a third as large"),
        (0.5, "about half as large"),
        (0.88, "about four fifths as large"),
        (0.95, "about as large"),
        (1.1, "about as large"),
        (1.52, "about 1.5 times as large"),
        (2.0, "about 2 times as large"),
        (12.4, "about 12 times as large"),
    ],
)
def test_a_ratio_of_sizes_in_words(ratio, text):
    assert times_as_large(ratio) == text
