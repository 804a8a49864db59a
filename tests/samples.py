"""Small collections that tests of several rooms share."""

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from newfound.data.collection import Collection

#: Settings of a training of a second or two, on digits.
SMALL_TRAINING = {
    "model": "test_resnet",
    "weights": "random",
    "image_size": 8,
    "crop_min": 1.0,
    "crop_max": 1.0,
    "epochs": 2,
    "n_labelled_per_batch": 16,
    "n_unlabelled_per_batch": 16,
    "learning_rate": 0.05,
    "warmup_epochs": 1,
    "n_directions": 8,
    "rehearse": False,
}


def objects(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def collection_of(X, y, ids=None, **changes):
    ids = [f"item {i:03d}" for i in range(len(X))] if ids is None else ids
    return Collection(ids=ids, y=objects(y), features=X, **changes)


class Digits:
    """scikit-learn's digits, with about half of the labels of five classes."""

    X, truth = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    half = np.random.default_rng(0).random(len(truth)) < 0.5
    is_labelled = (truth < 5) & half
    y = tuple(f"digit {t}" if known else None for t, known in zip(truth, is_labelled, strict=True))
    images = (X.reshape(-1, 8, 8) * 255 / 16).astype(np.uint8)

    @classmethod
    def write(cls, folder, rows, name_of="{:03d}.png".format):
        """Write digits as pictures."""
        for i in rows:
            path = folder / name_of(i)
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(cls.images[i]).save(path)

    @classmethod
    def write_labels(cls, path, rows):
        """Write the table of labels."""
        lines = [f"{i:03d}.png,{cls.y[i]}" for i in rows if cls.y[i] is not None]
        path.write_text("\n".join(["path,label", *lines]))


class Blobs:
    """Nine categories that lie far from each other, 30 items each, the first six known."""

    rng = np.random.default_rng(3)
    truth = np.tile(np.arange(9), 30)
    X = (10 * np.eye(9, 12)[truth] + rng.normal(size=(270, 12))).astype(np.float32)
    y = tuple(f"class {t}" if t < 6 and i % 2 else None for i, t in enumerate(truth))

    @classmethod
    def take(cls, rows, **changes):
        rows = np.asarray(rows)
        y = [cls.y[i] for i in rows]
        return collection_of(cls.X[rows], y, [f"item {i:03d}" for i in rows], **changes)

    @classmethod
    def without(cls, *classes):
        return cls.take(np.flatnonzero(~np.isin(cls.truth, classes)))


class Species:
    """Fourteen classes of 36 rows that overlap; the first eight are known, the last comes late."""

    rng = np.random.default_rng(8)
    truth = np.repeat(np.arange(14), 36)
    X = rng.normal(size=(14, 24))[truth] + 0.9 * rng.normal(size=(len(truth), 24))
    X = X.astype(np.float32)
    y = np.where((truth < 8) & (rng.random(len(truth)) < 0.5), truth, -1)
    is_late = (rng.random(len(truth)) < 0.15) & (y == -1)
    before = np.flatnonzero(~is_late & (truth < 13))
    late = np.flatnonzero(is_late & (truth < 13))
    hidden = np.flatnonzero(truth == 13)

    @classmethod
    def take(cls, rows):
        y = [None if cls.y[i] == -1 else f"class {cls.y[i]}" for i in rows]
        return collection_of(cls.X[rows], y, [f"item {i:03d}" for i in rows])
