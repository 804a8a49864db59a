import pytest

from newfound.result.export.names import distinct, safe_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Golden Retriever", "Golden Retriever"), ("St. Bernard", "St. Bernard"), ("..", "_"),
        ("a/b\\c", "a_b_c"), (".git", "_git"), ("aux.h", "_aux.h"), ("auxiliary", "auxiliary"),
        ("com10", "com10"), ("x. .", "x"), ("x" * 300, "x" * 120), ("é" * 99, "é" * 60),
    ],
)  # fmt: skip
def test_safe_names(text, name):
    assert safe_name(text) == name


def test_numbers_in_names_are_not_given_twice():
    parts = [("a", ".png"), ("a-2", ".png"), ("A", ".png"), ("a", ".PNG"), ("a", ".jpg")]
    assert distinct(parts) == ["a.png", "a-2.png", "A-3.png", "a-4.PNG", "a.jpg"]
    assert distinct([("a", "")] * 3, taken=["A"]) == ["a-2", "a-3", "a-4"]
