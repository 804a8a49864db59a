"""The cases of the study of K: which rows and labels a situation has."""

import numpy as np
import pytest

N_CLASSES, N_ROWS = 12, 60  # 60 rows of each class


@pytest.fixture
def cases(load_study):
    return load_study("find_k_cases")


@pytest.fixture
def source(cases, tmp_path):
    classes = np.repeat([f"class {k:02}" for k in range(N_CLASSES)], N_ROWS)
    X = np.arange(len(classes), dtype=np.float32)[:, None]  # a row is its own number
    np.savez(tmp_path / "rows.npz", X=X, y=classes)
    return cases.Source("rows", str(tmp_path / "rows.npz"), 6000)


@pytest.fixture
def draw(cases, source):
    def draw(name, permutation=0):
        situation = cases.SITUATIONS[name]
        share = situation.n_known / N_CLASSES if situation.n_known else situation.share
        rate = None if situation.quota else situation.rate
        case = cases.Case("rows", name, permutation, share, rate, "count")
        return cases.draw(source, case)

    return draw


def sizes_of(classes, chosen):
    return np.bincount(classes, minlength=N_CLASSES)[chosen]


def split(known):
    return known, np.setdiff1d(np.arange(N_CLASSES), known)


def test_labels_are_of_known_classes_and_every_known_class_has_one(draw, cases):
    for name in cases.SITUATIONS:
        X, classes, y, known = draw(name)
        assert np.array_equal(X[:, 0] // N_ROWS, classes)
        assert np.array_equal(np.unique(y[y != -1]), known), name
        assert np.array_equal(y[y != -1], classes[y != -1])
        assert len(np.unique(X[:, 0])) == len(X)


def test_a_draw_depends_on_the_permutation_alone(draw):
    first, again, other = draw("long tail over all"), draw("long tail over all"), draw("like sizes")
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(first[3], other[3])
    assert not np.array_equal(first[3], draw("like sizes", 1)[3])


@pytest.mark.parametrize(
    ("name", "n_known"),
    [
        ("like sizes", 6),
        ("80 % known", 10),
        ("20 % known", 2),
        ("nothing novel", 12),
        ("three known", 3),
        ("two known", 2),
    ],
)
def test_number_of_known_classes(draw, name, n_known):
    X, classes, _, known = draw(name)
    assert len(known) == n_known
    assert len(np.unique(classes)) == N_CLASSES
    assert len(X) == N_CLASSES * N_ROWS


@pytest.mark.parametrize(("name", "rate"), [("like sizes", 0.5), ("label rate 20 %", 0.2)])
def test_label_rate(draw, name, rate):
    _, classes, y, known = draw(name)
    assert np.mean(y[np.isin(classes, known)] != -1) == pytest.approx(rate, abs=0.08)


@pytest.mark.parametrize(
    ("name", "size_known", "size_novel"), [("novel a third", 60, 20), ("known a third", 20, 60)]
)
def test_a_third_of_the_rows(draw, name, size_known, size_novel):
    _, classes, _, known = draw(name)
    known, novel = split(known)
    assert set(sizes_of(classes, known)) == {size_known}
    assert set(sizes_of(classes, novel)) == {size_novel}


def test_long_tails(draw):
    tail = np.maximum(6, np.round(N_ROWS * np.arange(1, N_CLASSES + 1) ** -0.8))
    for name in ("long tail over all", "long tail, large known", "long tail, small known"):
        _, classes, _, known = draw(name)
        np.testing.assert_array_equal(np.sort(np.bincount(classes))[::-1], tail)
        known, novel = split(known)
        if name.endswith("large known"):
            assert sizes_of(classes, known).min() >= sizes_of(classes, novel).max()
        if name.endswith("small known"):
            assert sizes_of(classes, known).max() <= sizes_of(classes, novel).min()


@pytest.mark.parametrize(
    ("name", "quota"),
    [
        ("ten labels a class", 10),
        ("four labels a class", 4),
        ("three labels a class", 3),
        ("two labels a class", 2),
    ],
)
def test_quota_of_labels(draw, name, quota):
    _, _, y, known = draw(name)
    assert set(np.bincount(y[y != -1], minlength=N_CLASSES)[known]) == {quota}


def test_a_quarter_of_the_known_classes_has_no_unlabelled_row(draw):
    _, classes, y, known = draw("a quarter absent")
    free = sizes_of(classes[y == -1], known)
    assert np.sum(free == 0) == 1  # 6 // 4


def test_the_number_of_rows_is_cut_after_the_sizes(cases, source):
    case = cases.Case("rows", "novel a third", 0, 0.5, 0.5, "count")
    small = cases.Source(source.name, source.path, 100)
    X, classes, _, known = cases.draw(small, case)
    assert len(X) == 100
    # 360 rows of known and 120 of novel classes were there to draw from
    assert np.mean(np.isin(classes, known)) == pytest.approx(0.75, abs=0.12)


def test_known_classes_without_a_row_are_not_counted(cases, source):
    case = cases.Case("rows", "like sizes", 0, 0.5, 0.5, "count")
    _, classes, _, known = cases.draw(cases.Source(source.name, source.path, 5), case)
    assert set(known) <= set(classes)


def test_permutations_of_the_methods(cases, source):
    listed = cases.list_situation_cases([source], 2, 3, None)
    usual = [case for case in listed if case.scenario == "like sizes"]
    numbers = {}
    for case in usual:
        numbers.setdefault((case.method, case.init), []).append(case.permutation)
    assert numbers == {
        ("count", None): [0, 1, 2],
        ("given K", None): [0, 1],
        ("mixture", 20): [0, 1],
        ("mixture", 3): [0],
        ("mixture", 100): [0],
        ("brent_search", None): [0, 1],
        ("ward_labelled_score", None): [0, 1],
    }
    assert len({case.key for case in listed}) == len(listed)
    assert [case.set for case in listed if case.method == "1-NN"] == ["rows"]


def test_situations_have_other_names_than_the_special_cases(cases):
    assert not set(cases.SITUATIONS) & {"plain", *cases.SPECIAL}


def test_lines_without_a_code_are_of_the_present_one(cases):
    line = {"set": "a", "scenario": "plain", "permutation": 0, "share": 0.5, "rate": 0.5}
    line |= {"method": "count", "init": None}
    assert cases.code_of(line) == "now"
    assert cases.key_of(line) == cases.key_of(line | {"code": "now"})
    assert cases.key_of(line) != cases.key_of(line | {"code": "before"})
