"""DeepDPM's prior and its bound."""

import numpy as np

from newfound.bench.rivals import deep_dpm


def test_deep_dpm_has_its_own_prior_and_no_labels(sphere, monkeypatch):
    seen = {}

    class Spy(deep_dpm.SplitMergeMixture):
        def fit(self, X, y=None):
            seen.update(self.get_params(), y=y, V=None)
            super().fit(X, y)
            seen.update(V=self.projection_.transform(X))
            return self

    monkeypatch.setattr(deep_dpm, "SplitMergeMixture", Spy)
    deep_dpm.deep_dpm_rule(*sphere, random_state=0)
    prior = seen["prior"]
    assert (seen["y"], seen["acceptance"], seen["n_components_init"]) == (None, "literal", 10)
    assert (prior.kappa, prior.nu) == (1e-4, 8 + 2)
    np.testing.assert_allclose(prior.nu * prior.psi, 0.005 * np.eye(8), atol=1e-15)
    np.testing.assert_allclose(prior.m, seen["V"].mean(axis=0), atol=1e-12)


def test_the_largest_total_bounds_deep_dpm(sphere):
    assert deep_dpm.deep_dpm_rule(*sphere, n_max=4, random_state=0) == 1
