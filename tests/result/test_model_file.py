"""Models on disk: what comes back is what was saved, and nothing in a file is run."""

import json
import pickle
from dataclasses import asdict

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import newfound
from newfound import SplitMergeMixture
from newfound.errors import InputError
from newfound.mixture.counting.count import CategoryCount
from newfound.mixture.prior import NIWPrior
from newfound.result.model_file import load_mixture, save_mixture

ENCODER = {"kind": "features", "name": "features"}


def round_trip(mixture, folder):
    save_mixture(mixture, folder, encoder=ENCODER)
    return load_mixture(folder)[0]


def assert_same(first, second, name):
    if isinstance(first, np.ndarray):
        assert (first.dtype, first.shape) == (second.dtype, second.shape), name
        np.testing.assert_array_equal(first, second, name)
    elif isinstance(first, NIWPrior):
        for part in ("m", "kappa", "nu", "psi"):
            assert_same(getattr(first, part), getattr(second, part), name)
    elif type(first).__name__ == "Projection":
        assert first.get_params() == second.get_params()
        for part, value in vars(first).items():
            assert_same(value, getattr(second, part), f"projection {part}")
    elif isinstance(first, CategoryCount):
        assert repr(first) == repr(second), name  # as texts: NaN is NaN
    else:
        assert first == second, name
        assert type(first) is type(second) or isinstance(first, np.generic), name


SETTINGS = {
    "default": {},
    "soft": {"assign": "soft", "count_term": "factorial"},
    "literal": {"acceptance": "literal", "max_passes": 3},
    "whitened": {"whiten": True, "n_init": 2},
    "given number": {"n_components": 6, "n_directions": 3},
    "alike": {"sizes": "alike"},
    "ratio": {"sizes": 0.5},
    "no sizes": {"sizes": None},
    "given prior": {"prior": NIWPrior(np.zeros(4), 0.5, 9.0, 0.3 * np.eye(4))},
    "given count": {"count": CategoryCount(2.0, (1.0, 3.0), 0.9, 0.5, 0.4, 3, 0)},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore::newfound.errors.DiscoveryWarning")
def test_a_mixture_comes_back_the_same(blobs, tmp_path, name, dtype):
    X = blobs.X.astype(dtype)
    mixture = SplitMergeMixture(random_state=np.int64(3), **SETTINGS[name]).fit(X, blobs.y)
    again = round_trip(mixture, tmp_path / "model")
    others = np.random.default_rng(1).normal(size=(50, 4)).astype(dtype)
    for rows in (X, others):
        np.testing.assert_array_equal(again.predict(rows), mixture.predict(rows))
        np.testing.assert_array_equal(again.predict_proba(rows), mixture.predict_proba(rows))
        np.testing.assert_array_equal(again.score_samples(rows), mixture.score_samples(rows))
        np.testing.assert_array_equal(again.transform(rows), mixture.transform(rows))
    for attribute, value in vars(mixture).items():
        assert_same(value, getattr(again, attribute), attribute)


@pytest.mark.parametrize("kind", [str, int, bool])
@pytest.mark.filterwarnings("ignore::newfound.errors.DiscoveryWarning")
def test_classes_keep_their_type(blobs, tmp_path, kind):
    y = [None if code == -1 else kind(code) for code in np.minimum(blobs.y, 1)]
    mixture = SplitMergeMixture(random_state=0, n_components=5).fit(blobs.X, y)
    again = round_trip(mixture, tmp_path)
    assert_same(mixture.classes_, again.classes_, "classes_")
    assert again.category_names_.tolist() == mixture.category_names_.tolist()


@pytest.fixture
def rows():
    """Six known and two novel classes of 40 rows, which overlap."""
    return np.eye(8)[np.arange(320) % 8] + 0.3 * np.random.default_rng(0).normal(size=(320, 8))


@pytest.fixture
def sized(rows):
    """A mixture with borders shifted, so that components are of about one size."""
    n_labels = np.array([17, 23, 20, 16, 24, 20, 0, 0])  # as a draw may give them
    code = np.arange(320) % 8
    y = np.where(np.arange(320) // 8 < n_labels[code], code, -1)
    return SplitMergeMixture(n_components=8, sizes="alike", random_state=0).fit(rows, y)


def test_offsets_come_back(sized, tmp_path):
    again = round_trip(sized, tmp_path)
    assert (sized.offsets_ != 0).all()
    np.testing.assert_array_equal(again.offsets_, sized.offsets_)
    assert again.sizes == "alike"


@pytest.mark.parametrize(
    ("before", "now"), [(None, "unknown"), (True, "alike"), (False, None)], ids=str
)
def test_what_version_0_1_0_said_about_sizes_is_understood(sized, tmp_path, before, now):
    save_mixture(sized, tmp_path, encoder=ENCODER)
    words = json.loads((tmp_path / "mixture.json").read_text())
    del words["settings"]["sizes"]
    words["settings"]["expect_sizes"] = before
    (tmp_path / "mixture.json").write_text(json.dumps(words))
    again = load_mixture(tmp_path)[0]
    assert again.sizes == now
    np.testing.assert_array_equal(again.offsets_, sized.offsets_)


def test_a_file_from_before_there_were_offsets_has_none(rows, sized, tmp_path):
    save_mixture(sized, tmp_path, encoder=ENCODER)
    numbers = load_file(tmp_path / "mixture.safetensors")
    del numbers["offsets_"]
    save_file(numbers, tmp_path / "mixture.safetensors")
    words = json.loads((tmp_path / "mixture.json").read_text())
    del words["settings"]["sizes"]
    (tmp_path / "mixture.json").write_text(json.dumps(words))
    again = load_mixture(tmp_path)[0]
    assert again.sizes == "unknown"
    assert_same(again.offsets_, np.zeros(8), "offsets_")
    np.testing.assert_array_equal(again.predict(rows), again.transform(rows).argmin(axis=1))


@pytest.fixture
def saved(blobs, tmp_path):
    mixture = SplitMergeMixture(n_components=5, random_state=0).fit(blobs.X, blobs.y)
    save_mixture(mixture, tmp_path, encoder={"kind": "network", "name": "a net", "sha256": "0f"})
    return tmp_path


def test_where_the_features_came_from_is_kept(saved):
    assert load_mixture(saved)[1] == {"kind": "network", "name": "a net", "sha256": "0f"}


def test_the_version_is_written_down(saved):
    words = json.loads((saved / "mixture.json").read_text())
    assert words["version"] == newfound.__version__
    assert sorted(path.name for path in saved.iterdir()) == ["mixture.json", "mixture.safetensors"]


def test_what_no_file_can_hold_is_left_out(blobs, tmp_path):
    mixture = SplitMergeMixture(
        random_state=np.random.RandomState(0), n_init=1, callback=lambda done: None
    ).set_params(n_components=5)
    again = round_trip(mixture.fit(blobs.X, blobs.y), tmp_path)
    assert again.random_state is None
    assert again.callback is None


def test_a_loaded_mixture_can_be_fitted_again(blobs, saved):
    again = load_mixture(saved)[0]
    before = again.labels_.copy()
    np.testing.assert_array_equal(again.fit(blobs.X, blobs.y).labels_, before)


def test_the_history_has_its_moves(blobs, tmp_path):
    with pytest.warns(newfound.errors.DiscoveryWarning):
        mixture = SplitMergeMixture(random_state=0).fit(blobs.X, blobs.y)
    again = round_trip(mixture, tmp_path)
    assert mixture.history_[0].moves
    assert again.history_ == mixture.history_
    assert asdict(again.count_) == asdict(mixture.count_)


@pytest.mark.parametrize("name", ["mixture.json", "mixture.safetensors"])
def test_a_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(InputError, match=f"no model in .*: {name} is missing"):
        load_mixture(saved)


@pytest.mark.parametrize("name", ["mixture.json", "mixture.safetensors"])
def test_a_file_that_was_cut_short_is_told_of(saved, name):
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"(damaged|cannot be read) .*into a new folder"):
        load_mixture(saved)


@pytest.mark.parametrize("content", ['{"format": 99}', "{}"])
def test_another_format_is_refused(saved, content):
    (saved / "mixture.json").write_text(content)
    with pytest.raises(InputError, match=r"in a format that newfound .* does not read"):
        load_mixture(saved)


@pytest.mark.parametrize("key", ["settings", "classes", "values", "history", "encoder", "count"])
def test_a_part_that_is_missing_is_told_of(saved, key):
    words = json.loads((saved / "mixture.json").read_text())
    del words[key]
    (saved / "mixture.json").write_text(json.dumps(words))
    with pytest.raises(InputError, match=f"damaged .*{key}"):
        load_mixture(saved)


class Bomb:
    """Goes off when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("something was unpickled",))


def test_nothing_is_unpickled(saved):
    (saved / "mixture.safetensors").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(InputError, match="damaged"):
        load_mixture(saved)


@pytest.mark.filterwarnings("ignore:Only 3 classes are known")
def test_the_count_of_a_given_number_has_no_rate_and_is_saved(blobs, tmp_path):
    """Training with a given K counts nothing; the file once refused the NaN that stands for it."""
    given = CategoryCount(
        n_novel=2.0,
        interval=(2.0, 2.0),
        level=0.9,
        label_rate=np.nan,
        novel_share=np.nan,
        n_known=3,
        n_absent=0,
    )
    mixture = SplitMergeMixture(count=given, random_state=0).fit(blobs.X, blobs.y)
    again = round_trip(mixture, tmp_path)
    assert np.isnan(again.count_.label_rate)
    assert again.count_.interval == (2.0, 2.0)
