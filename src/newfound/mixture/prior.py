"""The Normal-Inverse-Wishart prior θ = (m, κ, ν, Ψ) and the marginal likelihood h(Z; θ).

This is the paper's parametrisation: its density has νΨ where most books write Ψ. Ψ is therefore on
the scale of one covariance, and so is Ψ* of the posterior (deviation D4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky
from scipy.special import multigammaln
from sklearn.covariance import shrunk_covariance
from threadpoolctl import threadpool_limits

from newfound.arrays import Doubles
from newfound.errors import InputError
from newfound.mixture.stats import GaussianStats


@dataclass(frozen=True)
class NIWPrior:
    """NIW(m, κ, ν, Ψ), or K of them stacked as `update` returns them.

    Attributes
    ----------
    m : ndarray of shape (..., d)
        Prior mean of the component means.
    kappa : ndarray of shape (...)
        Number of rows that the prior mean is worth, > 0.
    nu : ndarray of shape (...)
        Degrees of freedom, > d - 1.
    psi : ndarray of shape (..., d, d)
        Scale; E[Σ] = νΨ / (ν - d - 1).
    """

    m: Doubles
    kappa: Doubles
    nu: Doubles
    psi: Doubles

    def __post_init__(self) -> None:
        for name in ("m", "kappa", "nu", "psi"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if self.m.ndim == 1:
            self._check()

    def _check(self) -> None:
        d = len(self.m)
        if self.psi.shape != (d, d):
            raise InputError(
                f"psi must have shape ({d}, {d}) to go with m of length {d}; got {self.psi.shape}."
            )
        if not self.kappa > 0:
            raise InputError(f"kappa must be greater than 0; got {self.kappa}.")
        if not self.nu > d - 1:
            raise InputError(f"nu must be greater than d - 1 = {d - 1}; got {self.nu}.")
        if not (np.isfinite(self.m).all() and np.isfinite(self.psi).all()):
            raise InputError("m and psi must be finite; they hold NaN or inf.")
        if not np.allclose(self.psi, self.psi.T, rtol=1e-8, atol=0):
            raise InputError("psi must be symmetric; psi and its transpose differ.")
        try:
            cholesky(self.psi, lower=True)
        except np.linalg.LinAlgError:
            smallest = np.linalg.eigvalsh(self.psi)[0]
            raise InputError(
                f"psi must be positive definite; its smallest eigenvalue is {smallest:.3g}. "
                "Add a multiple of the identity."
            ) from None

    @property
    def n_features(self) -> int:
        """Dimension d."""
        return self.m.shape[-1]

    @classmethod
    def from_classes(cls, classes: GaussianStats, whole: GaussianStats) -> NIWPrior:
        """Fit the prior to the known classes by their moments.

        m is the mean of all rows. E[Σ] is the pooled within-class covariance, shrunk if the
        classes have few rows. κ makes Σ/κ the covariance of the class means. ν = d + 2 is the
        smallest whole number for which E[Σ] exists. The paper gives no values (deviation D3).

        Parameters
        ----------
        classes : GaussianStats
            Stacked statistics of the labelled classes.
        whole : GaussianStats
            Statistics of all rows, labelled or not.

        Returns
        -------
        NIWPrior
            The prior.
        """
        d = whole.n_features
        freedom = max(1.0, float((classes.count - 1).clip(min=0).sum()))
        within = classes.scatter.sum(axis=0) / freedom
        # the fewer degrees of freedom a covariance has, the more it is shrunk
        within = shrunk_covariance(within, shrinkage=d / (d + freedom))
        scale = np.trace(within) / d
        total = np.trace(whole.scatter) / d / max(1.0, float(whole.count))
        # directions without any variance would make Ψ singular
        floor = 1e-8 * total if total > 0 else 1.0
        within[np.diag_indices(d)] += max(floor, np.finfo(float).tiny)
        between = total - scale
        # class means that hardly differ do not determine κ
        kappa = scale / between if between > 0.01 * total else 1.0
        nu = d + 2.0
        return cls(whole.mean, np.clip(kappa, 1e-4, 1e4), np.asarray(nu), within / nu)

    def update(self, stats: GaussianStats) -> NIWPrior:
        r"""Posterior after seeing the rows of `stats`, as a prior of the same type.

        .. math::
            κ^* = κ + N, \quad m^* = (κ m + \textstyle\sum z) / κ^*, \quad ν^* = ν + N,

            Ψ^* = [νΨ + κ m m^T + \textstyle\sum z z^T - κ^* m^* m^{*T}] / ν^*

        computed from centred statistics, so that no digits cancel.
        """
        kappa, nu = self.kappa + stats.count, self.nu + stats.count
        share = (stats.count / kappa)[..., None]
        return NIWPrior(
            self.m + share * (stats.mean - self.m),
            kappa,
            nu,
            self._posterior_scatter(stats) / nu[..., None, None],
        )

    def _posterior_scatter(self, stats: GaussianStats) -> Doubles:
        """ν*Ψ* = νΨ + scatter + κN/(κ+N) (mean - m)(mean - m)ᵀ."""
        pull = self.kappa * stats.count / (self.kappa + stats.count)
        offset = stats.mean - self.m
        scatter: Doubles = (
            self.nu * self.psi
            + stats.scatter
            + pull[..., None, None] * (offset[..., :, None] * offset[..., None, :])
        )
        return scatter

    def log_marginal(self, stats: GaussianStats) -> Doubles:
        r"""Log of the marginal likelihood of the rows of `stats`.

        .. math::
            h(Z;θ) = π^{-Nd/2} \frac{Γ_d(ν^*/2)}{Γ_d(ν/2)}
            \frac{|νΨ|^{ν/2}}{|ν^*Ψ^*|^{ν^*/2}} \Big(\frac{κ}{κ^*}\Big)^{d/2}

        Parameters
        ----------
        stats : GaussianStats
            One set of rows or several stacked.

        Returns
        -------
        ndarray of shape (...)
            log h, 0 for no rows.
        """
        d = self.n_features
        kappa, nu = self.kappa + stats.count, self.nu + stats.count
        if stats.count.ndim:
            # one at a time, to avoid a second (K, d, d) array; in one thread, because the
            # matrices are so small that threads cost more than they save
            with threadpool_limits(1, user_api="blas"):
                log_determinants = np.array(
                    [_log_determinant(self._posterior_scatter(each)) for each in stats]
                )
        else:
            log_determinants = np.asarray(_log_determinant(self._posterior_scatter(stats)))
        log_h: Doubles = (
            -0.5 * stats.count * d * np.log(np.pi)
            + multigammaln(nu / 2, d)
            - multigammaln(self.nu / 2, d)
            + 0.5 * self.nu * _log_determinant(self.nu * self.psi)
            - 0.5 * nu * log_determinants
            + 0.5 * d * (np.log(self.kappa) - np.log(kappa))
        )
        return log_h

    def expected_covariance(self) -> Doubles:
        """E[Σ] = νΨ / (ν - d - 1); if it does not exist, the mode νΨ / (ν + d + 1)."""
        d = self.n_features
        divisor = np.where(self.nu > d + 1, self.nu - d - 1, self.nu + d + 1)
        covariance: Doubles = (self.nu / divisor)[..., None, None] * self.psi
        return covariance


def _log_determinant(matrix: Doubles) -> float:
    """Log determinant by Cholesky's factor; the determinant itself would under- or overflow."""
    factor = cholesky(matrix, lower=True, check_finite=False)
    return 2.0 * float(np.log(np.diagonal(factor)).sum())
