"""GCD, SimGCD, PIM and CMS against numbers that their authors' own code returned.

The JSON files beside this one name the repository, its commit and the function that was run, and
say where ours departs on purpose. The same inputs are made here from a seed, or from the digits of
scikit-learn. None of the authors' code is needed, or here.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.cluster import hierarchy
from sklearn.datasets import load_digits
from torch.nn import functional

from newfound.bench.classifier import CosineClassifier, entropy_gap, labelled_cross_entropy
from newfound.bench.methods import pim
from newfound.bench.methods.cms import mean_shift, shift, ward_cuts
from newfound.bench.methods.simgcd import SimGCDLearner, distillation_loss, teacher_temperature
from newfound.deep.losses import contrastive_loss, supervised_contrastive_loss
from newfound.deep.method import Batch, mixed_contrast
from newfound.deep.settings import Settings
from newfound.metrics import discovery_scores
from newfound.mixture.lloyd import PinnedRows, run_lloyd

torch.set_num_threads(1)

#: Number of known digits, and of all.
N_KNOWN, N_DIGITS = 5, 10


# --- inputs; the authors' code was given the same


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def random_views(seed, n=12, d=16):
    """Two views (2, n, d) of unit length, and codes (n,): known class or -1."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(n, d))
    views = unit(base + 0.5 * rng.normal(size=(2, n, d)))
    return views, rng.integers(-1, 3, size=n)


def digit_views(n=60):
    """Digits and the same moved by a pixel, (2, n, 64), and codes: half of five digits."""
    digits = load_digits()
    images = digits.images[:n]
    views = unit(np.stack([images, np.roll(images, 1, axis=2)]).reshape(2, n, 64))
    labelled = (digits.target[:n] < N_KNOWN) & (np.arange(n) % 2 == 0)
    return views, np.where(labelled, digits.target[:n], -1)


def digit_rows(n=600):
    """Unit-length digits (n, 64), their classes, and codes: half of five digits."""
    digits = load_digits()
    truth = digits.target[:n]
    codes = np.where((truth < N_KNOWN) & (np.arange(n) % 2 == 0), truth, -1)
    return unit(digits.data[:n]), truth, codes


def first_centres(Z, codes, seed):
    """Means of the labelled rows of each class, then unlabelled rows drawn at random."""
    known = [Z[codes == code].mean(axis=0) for code in range(N_KNOWN)]
    drawn = np.random.default_rng(seed).choice(
        np.flatnonzero(codes < 0), N_DIGITS - N_KNOWN, replace=False
    )
    return np.stack([*known, *Z[drawn]])


def clusters(seed, n_classes, n_clusters, n=400):
    """True classes and clusters that agree for about 60 % of the rows."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n)
    other = rng.integers(n_clusters, size=n)
    return truth, np.where(rng.random(n) < 0.6, (truth * 7 + 3) % n_clusters, other)


def classifier_outputs(seed, n=12, n_outputs=7):
    """Cosines with prototypes (2, n, K)."""
    rng = np.random.default_rng(seed)
    prototypes, views = unit(rng.normal(size=(n_outputs, 16))), random_views(seed, n)[0]
    return views @ prototypes.T


def head_outputs(seed, n=200, n_outputs=9):
    """Logits of a linear head (n, K), and codes: known class of half of the rows or -1."""
    rng = np.random.default_rng(seed)
    codes = np.where(rng.random(n) < 0.5, rng.integers(4, size=n), -1)
    return 3 * rng.normal(size=(n, n_outputs)), codes


def feature_views(name):
    return digit_views() if name == "digits" else random_views(int(name))


def tensors(*arrays):
    return tuple(torch.from_numpy(np.asarray(array)) for array in arrays)


# --- what the authors' code returned


def stored(rival, check):
    text = (Path(__file__).parent / f"{rival}.json").read_text(encoding="utf-8")
    return json.loads(text)["checks"][check]["values"]


def close(found, expected, **tolerance):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), **tolerance)
