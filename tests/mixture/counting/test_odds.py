import numpy as np
import pytest

from newfound.mixture.counting import odds


def test_logistic_regression_is_at_its_optimum():
    """The gradient of the penalised log-likelihood, worked out by finite differences, is 0."""
    rng = np.random.default_rng(0)
    known, novel = rng.normal(1, 1, size=(50, 2)), rng.normal(0, 1, size=(80, 2))
    found = odds._fit_logistic(known, novel)

    def loss(b):
        p_known, p_novel = odds._score(b, known), odds._score(b, novel)
        likelihood = 0.5 * np.log(p_known).mean() + 0.5 * np.log(1 - p_novel).mean()
        return -likelihood + 0.5e-3 * (b[1:] @ b[1:])

    for i in range(3):
        step = 1e-4 * np.eye(3)[i]
        assert (loss(found + step) - loss(found - step)) / 2e-4 == pytest.approx(0, abs=1e-6)
