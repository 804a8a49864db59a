"""Algorithm 1 as an estimator, on arrays of every layout and on paths."""

import numpy as np
import pytest
from PIL import Image
from samples import SMALL_TRAINING

from newfound.deep import GPC, Settings
from newfound.deep.gpc import as_pixels, stored_size
from newfound.deep.records import Listener
from newfound.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore:The count suggests")

SMALL = Settings(**SMALL_TRAINING, projection_head=False)
NAMES = ["zebra", "yak", "cat", "bee", "ant"]


@pytest.fixture(scope="module")
def grey(digits):
    return np.ascontiguousarray(digits.pixels[:, 0])


@pytest.fixture(scope="module")
def y(digits):
    """Labels as texts, in an order that is not that of the alphabet; None without a label."""
    return [None if code == -1 else NAMES[code] for code in digits.y]


@pytest.fixture(scope="module")
def fitted(grey, y):
    return GPC(SMALL).fit(grey, y)


@pytest.fixture(scope="module")
def paths(grey, tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    files = [folder / f"{i:03d}.png" for i in range(len(grey))]
    for file, pixels in zip(files, grey, strict=True):
        Image.fromarray(pixels).save(file)
    return files


# --- what a fit says


def test_labelled_images_have_the_class_that_was_given(fitted, y):
    names = fitted.category_names_[fitted.labels_]
    assert fitted.labels_.shape == (len(y),)
    for name, given in zip(names, y, strict=True):
        assert given is None or name == given


def test_classes_have_the_names_that_were_given(fitted):
    assert list(fitted.classes_) == sorted(NAMES)
    novel = [f"new-{i:03d}" for i in range(1, fitted.n_novel_ + 1)]
    assert list(fitted.category_names_) == [*sorted(NAMES), *novel]


def test_the_counts_agree(fitted):
    assert fitted.n_known_ == 5
    assert fitted.n_components_ == fitted.n_known_ + fitted.n_novel_
    assert set(fitted.labels_) == set(range(fitted.n_components_))
    low, high = fitted.n_novel_interval_
    assert 0 <= low <= high


def test_the_history_has_a_line_for_each_epoch(fitted):
    assert [record.epoch for record in fitted.history_] == [0, 1]


def test_numbers_as_labels_stay_numbers(grey, digits):
    gpc = GPC(SMALL, epochs=1).fit(grey, digits.y)
    assert gpc.classes_.tolist() == [0, 1, 2, 3, 4]
    labelled = digits.y != -1
    np.testing.assert_array_equal(gpc.labels_[labelled], digits.y[labelled])


# --- more images


def test_features_are_those_of_the_fit(fitted, grey):
    features = fitted.transform(grey)
    assert features.shape == (len(grey), 96)
    np.testing.assert_allclose(features, fitted.trained_.features, atol=1e-5)


def test_predictions_are_those_of_the_fitted_mixture(fitted, grey, y):
    predicted = fitted.predict(grey)
    np.testing.assert_array_equal(predicted, fitted.mixture_.predict(fitted.trained_.features))
    unlabelled = np.array([label is None for label in y])
    assert (predicted == fitted.labels_)[unlabelled].mean() > 0.9


def test_probabilities_agree_with_the_predictions(fitted, grey):
    probabilities = fitted.predict_proba(grey)
    assert probabilities.shape == (len(grey), fitted.n_components_)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(probabilities.argmax(axis=1), fitted.predict(grey))


def test_an_image_has_the_same_features_alone_and_among_others(fitted, grey):
    np.testing.assert_allclose(fitted.transform(grey[5:6]), fitted.transform(grey)[5:6], atol=1e-5)
    assert fitted.predict(grey[5:6]).shape == (1,)


# --- layouts


def layouts(grey):
    return {
        "(n, s, s, 3)": np.repeat(grey[..., None], 3, axis=3),
        "(n, 3, s, s)": np.repeat(grey[:, None], 3, axis=1),
    }


@pytest.mark.parametrize("layout", ["(n, s, s, 3)", "(n, 3, s, s)"])
def test_every_layout_gives_the_same_result(fitted, grey, y, layout):
    images = layouts(grey)[layout]
    again = GPC(SMALL).fit(images, y)
    np.testing.assert_array_equal(again.labels_, fitted.labels_)
    np.testing.assert_array_equal(again.trained_.features, fitted.trained_.features)
    np.testing.assert_array_equal(fitted.predict(images), fitted.predict(grey))


def test_paths_give_the_same_result(fitted, grey, y, paths):
    again = GPC(SMALL).fit(paths, y)
    np.testing.assert_array_equal(again.labels_, fitted.labels_)
    np.testing.assert_array_equal(again.trained_.features, fitted.trained_.features)
    np.testing.assert_array_equal(again.predict(paths[:9]), fitted.predict(grey[:9]))


@pytest.mark.parametrize("kind", [list, np.array, lambda x: np.array(x, dtype=object)])
def test_paths_may_be_texts(fitted, grey, paths, kind):
    texts = kind([str(path) for path in paths[:4]])
    np.testing.assert_array_equal(fitted.predict(texts), fitted.predict(grey[:4]))


def test_channels_keep_their_order():
    X = np.random.default_rng(0).integers(0, 256, size=(2, 5, 5, 3), dtype=np.uint8)
    expected = np.moveaxis(X, 3, 1)
    np.testing.assert_array_equal(as_pixels(X), expected)
    np.testing.assert_array_equal(as_pixels(expected), expected)
    for channel in range(3):
        np.testing.assert_array_equal(as_pixels(X[..., 0])[:, channel], X[..., 0])


def test_images_of_three_by_three_pixels_are_taken_with_their_channels_first():
    X = np.random.default_rng(0).integers(0, 256, size=(2, 3, 3, 3), dtype=np.uint8)
    np.testing.assert_array_equal(as_pixels(X), X)


@pytest.mark.parametrize(("crop_max", "side"), [(1.0, 224), (0.875, 256), (0.5, 448)])
def test_pictures_are_stored_so_large_that_a_window_fills_the_input(crop_max, side):
    assert stored_size(Settings(crop_min=0.25, crop_max=crop_max)) == side


# --- what cannot be used


@pytest.mark.parametrize("method", ["fit", "transform", "predict", "predict_proba"])
def test_images_of_floats_are_refused(fitted, grey, y, method):
    gpc = GPC(SMALL) if method == "fit" else fitted
    more = [y] if method == "fit" else []
    with pytest.raises(InputError, match="Images must be uint8 from 0 to 255; got float32"):
        getattr(gpc, method)(grey.astype(np.float32) / 255, *more)


@pytest.mark.parametrize(
    "shape", [(8, 8), (4, 8, 6), (4, 6, 8, 3), (4, 3, 8, 6), (4, 8, 8, 4), (4, 8, 8, 1)]
)
def test_other_shapes_are_refused(shape):
    with pytest.raises(InputError, match=r"Images must be square.* Pass paths"):
        as_pixels(np.zeros(shape, dtype=np.uint8))


@pytest.mark.parametrize(
    "shape",
    [
        (4, 3, 8, 6),
        (4, 8, 8, 4),
        pytest.param((4, 8, 6)),
        pytest.param((4, 6, 8, 3)),
    ],
)
def test_the_shape_that_was_given_is_named(shape):
    with pytest.raises(InputError) as caught:
        as_pixels(np.zeros(shape, dtype=np.uint8))
    assert f"got {shape}" in str(caught.value)


def test_paths_that_cannot_be_read_are_counted_and_the_first_is_named(fitted, paths, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")
    with pytest.raises(InputError) as caught:
        fitted.predict([*paths[:3], broken, tmp_path / "none.png"])
    message = str(caught.value)
    assert "2 of 5 pictures cannot be read" in message
    assert f"{broken}: not a picture in a format that can be read." in message
    assert "`newfound train`" in message


def test_as_many_labels_as_images(grey, y):
    with pytest.raises(InputError, match="111"):
        GPC(SMALL).fit(grey, y[:-1])


# --- settings


def test_settings_by_keyword_change_the_given_ones():
    assert GPC().settings == Settings()
    assert GPC(epochs=7).settings == Settings(epochs=7)
    assert GPC(SMALL, epochs=7).settings == SMALL.with_changes(epochs=7)
    assert SMALL.optimiser.epochs == 2


def test_an_unknown_setting_is_named():
    with pytest.raises(InputError, match=r"There is no setting epoch; there are .*epochs"):
        GPC(epoch=7)


def test_a_bad_value_is_named_before_any_training():
    with pytest.raises(InputError, match="epochs must be at least 1; got 0"):
        GPC(epochs=0)


# --- the folder of a run


class Starts(Listener):
    """Remembers where training began."""

    def __init__(self):
        self.first_epochs = []

    def start(self, n_epochs, first_epoch):
        self.first_epochs.append(first_epoch)


def test_a_second_fit_in_the_same_folder_goes_on(grey, y, fitted, tmp_path):
    starts = Starts()
    for _ in range(2):
        again = GPC(SMALL, out=tmp_path / "run", listener=starts).fit(grey, y)
        np.testing.assert_array_equal(again.labels_, fitted.labels_)
    assert starts.first_epochs == [0, 2]
    assert (tmp_path / "run" / "epochs.jsonl").exists()


def test_without_a_folder_nothing_is_left(grey, y, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    GPC(SMALL, epochs=1).fit(grey, y).transform(grey)
    assert list(tmp_path.iterdir()) == []


def test_other_images_in_the_folder_of_a_run_are_refused(grey, y, tmp_path):
    GPC(SMALL, epochs=1, out=tmp_path).fit(grey, y)
    with pytest.raises(InputError, match="holds a run with other data"):
        GPC(SMALL, epochs=1, out=tmp_path).fit(255 - grey, y)
