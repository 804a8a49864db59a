"""Every rival finds K where it is easy, and all refuse the same bad input."""

import numpy as np
import pytest

from newfound.bench.rivals import RIVALS
from newfound.errors import InputError

#: What these ask of the labels is their number of classes.
NEED_NO_LABEL = ["silhouette", "bic_mixture", "dirichlet_process", "deep_dpm_rule"]
NEED_LABELS = ["brent_search", "ward_labelled_score"]


def test_the_rivals_are_all_there():
    assert sorted(RIVALS) == sorted(NEED_NO_LABEL + NEED_LABELS)


@pytest.mark.parametrize("n_max", [None, 12])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", RIVALS)
def test_each_finds_the_number(name, seed, n_max, sphere):
    """Exactly; Brent within 1, for novel categories may merge or split and labels don't see it."""
    found = RIVALS[name](*sphere, n_max=n_max, random_state=seed)
    assert abs(found - 3) <= (1 if name == "brent_search" else 0)


@pytest.mark.parametrize("name", RIVALS)
def test_the_same_seed_gives_the_same_number_in_any_order_of_rows(name, blobs):
    order = np.random.default_rng(0).permutation(len(blobs.X))
    found = [
        RIVALS[name](X, y, random_state=3)
        for X, y in [
            (blobs.X, blobs.y),
            (blobs.X, blobs.y),
            (blobs.X[order], blobs.y[order]),
            (blobs.X, np.array(["no", "yes", "maybe", ""])[blobs.y]),
        ]
    ]
    assert len(set(found)) == 1
    assert isinstance(found[0], int)
    assert found[0] >= 0


@pytest.mark.parametrize("name", NEED_NO_LABEL)
def test_without_labels_all_categories_are_novel(name, sphere):
    assert RIVALS[name](sphere[0], None, n_max=12, random_state=0) == 6


@pytest.mark.parametrize("name", NEED_LABELS)
def test_a_score_on_labelled_rows_needs_one(name, sphere):
    with pytest.raises(InputError, match=f"{name} .* labels none of the 240 rows"):
        RIVALS[name](sphere[0], np.full(240, -1))


@pytest.mark.parametrize("name", RIVALS)
def test_few_rows(name):
    X = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    assert 0 <= RIVALS[name](X, [0, -1, -1, -1], random_state=0) <= 3


@pytest.mark.parametrize("name", RIVALS)
def test_equal_rows(name):
    assert RIVALS[name](np.ones((20, 3)), [0] * 10 + [-1] * 10, random_state=0) >= 0


@pytest.mark.parametrize("name", RIVALS)
def test_no_novel_category_is_a_possible_answer(name, sphere):
    X, y = sphere
    assert RIVALS[name](X, y, n_max=3, random_state=0) == 0


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize(
    ("y", "n_max", "message"),
    [
        ([0] * 239, None, "y has 239 labels, but X has 240 rows"),
        ([0.5] * 240, None, "which is not a class"),
        ([0, 1, 2] * 80, 2, "n_max=2, but y names 3 known classes"),
        ([0, 1, 2] * 80, 0, "n_max must be a whole number"),
        ([0, 1, 2] * 80, 2.5, "n_max must be a whole number"),
    ],
)
def test_bad_input(name, y, n_max, message, sphere):
    with pytest.raises(InputError, match=message):
        RIVALS[name](sphere[0], y, n_max=n_max)
