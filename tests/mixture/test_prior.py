import numpy as np
import pytest
from scipy import stats
from scipy.special import multigammaln

from newfound.errors import InputError
from newfound.mixture.prior import NIWPrior
from newfound.mixture.stats import GaussianStats


def some_prior(d, seed=0, nu=None, kappa=0.7):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    psi = root @ root.T / d + 0.5 * np.eye(d)
    return NIWPrior(rng.normal(size=d), kappa, d + 2.5 if nu is None else nu, psi)


def slow_update(prior, X):
    """The paper's posterior, letter by letter, with uncentred sums."""
    n = len(X)
    kappa = prior.kappa + n
    m = (prior.kappa * prior.m + X.sum(axis=0)) / kappa
    nu = prior.nu + n
    psi = (
        prior.nu * prior.psi
        + prior.kappa * np.outer(prior.m, prior.m)
        + sum(np.outer(z, z) for z in X)
        - kappa * np.outer(m, m)
    ) / nu
    return kappa, m, nu, psi


@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 4), (3, 5), (30, 3)])
def test_update_is_the_papers_posterior(n, d):
    prior = some_prior(d)
    X = np.random.default_rng(1).normal(size=(n, d)) + 2
    posterior = prior.update(GaussianStats.from_points(X))
    kappa, m, nu, psi = slow_update(prior, X)
    assert posterior.kappa == pytest.approx(kappa)
    assert posterior.nu == pytest.approx(nu)
    np.testing.assert_allclose(posterior.m, m)
    np.testing.assert_allclose(posterior.psi, psi)


def test_updating_twice_is_updating_once():
    prior = some_prior(3)
    X = np.random.default_rng(2).normal(size=(10, 3))
    once = prior.update(GaussianStats.from_points(X))
    twice = prior.update(GaussianStats.from_points(X[:4])).update(GaussianStats.from_points(X[4:]))
    np.testing.assert_allclose(twice.psi, once.psi)
    np.testing.assert_allclose(twice.m, once.m)


def test_marginal_is_the_integral_in_one_dimension():
    prior = NIWPrior([0.3], 0.8, 3.0, [[0.6]])
    X = np.array([0.1, 0.9, -0.4])
    mu = np.linspace(-40, 40, 4001)[:, None]
    log_variance = np.linspace(-8, 10, 601)
    variance = np.exp(log_variance)
    density = stats.norm.pdf(mu, 0.3, np.sqrt(variance / 0.8))
    # in one dimension: an inverse Wishart of scale νΨ and ν degrees of freedom
    density = density * stats.invwishart.pdf(variance, df=3.0, scale=3.0 * 0.6)
    for x in X:
        density = density * stats.norm.pdf(x, mu, np.sqrt(variance))
    cell = (mu[1] - mu[0]) * (log_variance[1] - log_variance[0])
    expected = (density * variance).sum() * cell  # dσ² = σ² d log σ²
    found = prior.log_marginal(GaussianStats.from_points(X[:, None]))
    assert found == pytest.approx(np.log(expected.item()), abs=1e-3)


def test_marginal_is_the_integral_in_two_dimensions():
    """Σ = L Lᵀ with L = [[a, 0], [t·a, c]] on a grid of (log a, t, log c); μ in closed form."""
    prior = NIWPrior([0.2, -0.1], 0.9, 5.0, [[0.5, 0.1], [0.1, 0.4]])
    X = np.array([[0.4, 0.0], [-0.3, 0.5]])
    axes = np.linspace(-4, 4, 81), np.linspace(-12, 12, 401), np.linspace(-4, 4, 81)
    log_a, t, log_c = np.meshgrid(*axes, indexing="ij")
    a, c = np.exp(log_a), np.exp(log_c)
    log_det = 2 * (log_a + log_c)
    # given Σ, the two rows have mean m and covariance (I + 11ᵀ/κ) ⊗ Σ
    across = np.eye(2) + np.ones((2, 2)) / prior.kappa
    residual = X - prior.m
    rotated = np.linalg.inv(np.linalg.cholesky(across)) @ residual
    # L⁻¹(x, y) = (x / a, (y - t x) / c)
    quadratic = sum((x / a) ** 2 + ((y - t * x) / c) ** 2 for x, y in rotated)
    log_likelihood = (
        -2 * np.log(2 * np.pi) - np.linalg.slogdet(across)[1] - log_det - 0.5 * quadratic
    )
    scale = prior.nu * prior.psi
    columns = np.linalg.cholesky(scale).T
    trace = sum((x / a) ** 2 + ((y - t * x) / c) ** 2 for x, y in columns)
    log_prior = (
        prior.nu / 2 * np.linalg.slogdet(scale)[1]
        - prior.nu * np.log(2)
        - multigammaln(prior.nu / 2, 2)
        - (prior.nu + 3) / 2 * log_det
        - 0.5 * trace
    )
    # dΣ = 4 a² c da db dc with b = t·a, da = a d log a, dc = c d log c
    volume = 4 * a**4 * c**2
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    expected = np.log((np.exp(log_likelihood + log_prior) * volume).sum() * cell)
    found = prior.log_marginal(GaussianStats.from_points(X))
    assert found == pytest.approx(expected, abs=1e-3)


def posterior_predictive(prior):
    """The multivariate t that the next row follows."""
    d = prior.n_features
    freedom = prior.nu - d + 1
    shape = prior.nu * prior.psi * (prior.kappa + 1) / (prior.kappa * freedom)
    return stats.multivariate_t(prior.m, shape, df=freedom)


@pytest.mark.parametrize("n", [1, 3, 12])
def test_marginal_is_the_product_of_predictives(n):
    prior = some_prior(5)
    X = np.random.default_rng(3).normal(size=(n, 5))
    expected, posterior = 0.0, prior
    for row in X:
        expected += posterior_predictive(posterior).logpdf(row)
        posterior = posterior.update(GaussianStats.from_points(row[None]))
    assert prior.log_marginal(GaussianStats.from_points(X)) == pytest.approx(expected)


def test_marginal_of_a_union_needs_no_points():
    prior = some_prior(4)
    X = np.random.default_rng(4).normal(size=(20, 4))
    parts = GaussianStats.from_points(X[:7]) + GaussianStats.from_points(X[7:])
    assert prior.log_marginal(parts) == pytest.approx(
        prior.log_marginal(GaussianStats.from_points(X))
    )


def test_stacked_statistics_give_each_marginal():
    prior = some_prior(3)
    X = np.random.default_rng(5).normal(size=(30, 3))
    stacked = GaussianStats.from_labels(X, np.arange(30) % 4, 5)
    each = [float(prior.log_marginal(stacked[i])) for i in range(5)]
    np.testing.assert_allclose(prior.log_marginal(stacked), each)
    assert each[4] == pytest.approx(0)  # no rows, probability 1


@pytest.mark.parametrize("n", [1, 40, 900])
def test_768_dimensions_are_finite(n):
    d = 768
    prior = NIWPrior(np.zeros(d), 1e-3, d + 2, 1e-5 * np.eye(d))
    X = np.random.default_rng(6).normal(size=(n, d)) / np.sqrt(d)
    assert np.isfinite(prior.log_marginal(GaussianStats.from_points(X)))


def test_expected_covariance_is_the_mean_of_the_inverse_wishart():
    prior = some_prior(3, nu=9.0)
    expected = stats.invwishart(df=9.0, scale=9.0 * prior.psi).mean()
    np.testing.assert_allclose(prior.expected_covariance(), expected)


def test_prior_from_classes_recovers_their_moments():
    rng = np.random.default_rng(7)
    d, within = 3, np.diag([1.0, 2.0, 0.5])
    centres = rng.normal(scale=6.0, size=(40, d))
    X = np.concatenate([rng.multivariate_normal(c, within, size=200) for c in centres])
    labels = np.repeat(np.arange(40), 200)
    prior = NIWPrior.from_classes(
        GaussianStats.from_labels(X, labels, 40), GaussianStats.from_points(X)
    )
    np.testing.assert_allclose(prior.m, X.mean(axis=0))
    np.testing.assert_allclose(prior.expected_covariance(), within, atol=0.08)
    # Σ/κ is the covariance of the class means
    assert prior.kappa == pytest.approx(3.5 / 3 / centres.var(axis=0).mean(), rel=0.1)


@pytest.mark.parametrize(
    ("classes", "n"), [(np.zeros(1, int), 1), (np.zeros(4, int), 4), (np.arange(3), 3)]
)
def test_prior_from_few_or_equal_rows_is_proper(classes, n):
    X = np.ones((n, 5))
    prior = NIWPrior.from_classes(
        GaussianStats.from_labels(X, classes, classes.max() + 1), GaussianStats.from_points(X)
    )
    assert np.isfinite(prior.log_marginal(GaussianStats.from_points(X)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kappa": 0.0}, "kappa must be greater than 0"),
        ({"kappa": -1.0}, "kappa must be greater than 0"),
        ({"nu": 1.0}, "nu must be greater than d - 1 = 1"),
        ({"psi": np.diag([1.0, 0.0])}, "positive definite"),
        ({"psi": np.diag([1.0, -1.0])}, "smallest eigenvalue is -1"),
        ({"psi": np.array([[1.0, 0.5], [0.0, 1.0]])}, "symmetric"),
        ({"psi": np.eye(3)}, r"shape \(2, 2\)"),
        ({"m": np.array([np.nan, 0.0])}, "finite"),
    ],
)
def test_impossible_priors_are_refused(change, message):
    arguments = {"m": np.zeros(2), "kappa": 1.0, "nu": 4.0, "psi": np.eye(2)} | change
    with pytest.raises(InputError, match=message):
        NIWPrior(**arguments)
