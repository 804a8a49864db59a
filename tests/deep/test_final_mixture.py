"""The mixture that is fitted to the finished features keeps a given K."""

import warnings

import numpy as np
import pytest

from newfound.deep.final_mixture import Finished, fit_final_mixture
from newfound.deep.partition import known_count
from newfound.deep.settings import Settings
from newfound.errors import DiscoveryWarning

pytestmark = pytest.mark.filterwarnings("ignore:Only .* known")


def finished(n_distinct, n_lost, n_components, *, counted):
    """Features with equal rows, and a loop that has ended with too few components."""
    rng = np.random.default_rng(0)
    which = rng.integers(0, n_distinct, size=240)
    Z = rng.normal(size=(n_distinct, 8)).astype(np.float32)[which]
    codes = np.where((which < 6) & (rng.random(240) < 0.5), which, -1)
    names = [f"class {code}" for code in range(6)]
    labels = np.where(codes >= 0, codes, np.arange(240) % (n_components - n_lost))
    count = known_count(codes, n_components, float("nan")) if counted else None
    y = [None if code < 0 else names[code] for code in codes]
    return Finished(Z, y, labels, count, None)


@pytest.mark.parametrize("acceptance", ["literal", "calibrated"])
@pytest.mark.parametrize("n_lost", [0, 1, 5])
def test_a_given_k_is_kept_to_the_end(acceptance, n_lost):
    given = finished(60, n_lost, 30, counted=acceptance == "calibrated")
    settings = Settings(n_components=30, acceptance=acceptance, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DiscoveryWarning)
        warnings.filterwarnings("ignore", "Only .* known")
        mixture = fit_final_mixture(given, settings)
    assert mixture.n_components_ == 30
    assert set(mixture.labels_) == set(range(30))


@pytest.mark.parametrize("acceptance", ["literal", "calibrated"])
def test_a_k_that_cannot_be_kept_is_said_once(acceptance):
    given = finished(12, 3, 30, counted=acceptance == "calibrated")
    settings = Settings(n_components=30, acceptance=acceptance, seed=0)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        mixture = fit_final_mixture(given, settings)
    assert mixture.n_components_ == 12
    (text,) = (str(warning.message) for warning in heard)
    assert text.startswith("n_components=30, but there are only 12 components")
    assert "12 distinct values" in text
