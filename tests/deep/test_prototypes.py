"""The space of the loss, and the prototypes in it."""

import numpy as np
import pytest
import torch

from newfound.deep.partition import Round, find_clusters
from newfound.deep.prototypes import principal_space, prototypes_from
from newfound.deep.settings import EStepSettings
from newfound.mixture.projection import unit_rows

WIDE = 9  # columns of the features


@pytest.fixture
def features(blobs):
    """Blobs in nine columns at unit length, as float32, as a network gives them."""
    rng = np.random.default_rng(1)
    turn = np.linalg.qr(rng.normal(size=(WIDE, WIDE)))[0][:4]
    Z = blobs.X @ turn + 0.1 * rng.normal(size=(200, WIDE)) + 1
    return unit_rows(Z.astype(np.float32))


def whole_step(features, codes, labels=None, **options):
    """The partition and the prototypes, by way of the principal directions, as in the loop."""
    settings = EStepSettings(**{"sizes": "alike", **options})
    z = torch.from_numpy(features)
    reduced = principal_space(z, WIDE if settings.pca == "off" else settings.n_directions)
    X = reduced.project(z).numpy()
    clusters = find_clusters(X, codes, labels, settings, Round(moves=labels is None, seed=0))
    return clusters, prototypes_from(z, codes, clusters, reduced, settings, 0.1)


@pytest.mark.parametrize("n_directions", [1, 3, 8])
def test_principal_directions_are_those_of_all_centred_rows(features, n_directions):
    z = torch.from_numpy(features)
    projected = principal_space(z, n_directions).project(z).numpy()
    centred = features.astype(np.float64) - features.mean(axis=0, dtype=np.float64)
    basis = np.linalg.svd(centred)[2][:n_directions].T
    expected = unit_rows(centred @ basis)
    assert projected.shape == (200, n_directions)
    np.testing.assert_allclose(projected @ projected.T, expected @ expected.T, atol=1e-3)


@pytest.mark.parametrize("n_directions", [WIDE, 100])
def test_as_many_directions_as_columns_leave_features_as_they_are(features, n_directions):
    z = torch.from_numpy(features)
    assert torch.equal(principal_space(z, n_directions).project(z), z)


def test_directions_of_many_rows_are_added_up_part_by_part():
    rng = np.random.default_rng(0)
    few = unit_rows(rng.normal(size=(300, 4)) * [4, 3, 2, 1] + 1)
    z = torch.from_numpy(few).float()
    many = z.repeat(60, 1)  # more than one part
    one, other = (principal_space(rows, 2).project(z) for rows in (z, many))
    torch.testing.assert_close(one @ one.T, other @ other.T, rtol=0, atol=1e-4)


# --- prototypes


def slow_means(rows, codes, clusters, known_rows="labelled"):
    """Mean of all rows of a component; of a known class of the labelled ones, if so asked."""
    means = []
    for component in range(clusters.n_components):
        if component < clusters.n_known and known_rows == "labelled":
            members = [i for i in range(len(rows)) if codes[i] == component]
        else:
            members = [i for i in range(len(rows)) if clusters.labels[i] == component]
        means.append(np.mean([rows[i].astype(np.float64) for i in members], axis=0))
    return np.array(means)


@pytest.fixture(params=["first", "carried"])
def start(request, blobs):
    """No partition yet, or one of the last epoch."""
    return None if request.param == "first" else blobs.truth


def test_prototypes_of_the_mixture_are_means_of_labelled_rows_or_of_all_rows(
    features, blobs, start
):
    clusters = find_clusters(features, blobs.y, start, EStepSettings(), Round(start is None, 0))
    means = slow_means(clusters.V, blobs.y, clusters)
    np.testing.assert_allclose(clusters.prototypes, means, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("known_rows", ["all", "labelled"])
@pytest.mark.parametrize("pca", ["off", "batch"])
def test_prototypes_are_means_of_features_where_there_are_no_common_directions(
    features, blobs, start, pca, known_rows
):
    options = {"pca": pca, "n_directions": 4, "known_rows": known_rows}
    clusters, ours = whole_step(features, blobs.y, start, **options)
    means = slow_means(features, blobs.y, clusters, known_rows)
    if pca == "off":
        means = unit_rows(means)  # the paper's own prototypes are not re-normalised
    np.testing.assert_allclose(ours.means.numpy(), means, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("n_directions", [4, 100])
def test_features_take_the_same_way_as_in_the_mixture(features, blobs, start, whiten, n_directions):
    options = {"whiten": whiten, "n_directions": n_directions, "known_rows": "labelled"}
    clusters, ours = whole_step(features, blobs.y, start, **options)
    v, mu = ours.project(torch.from_numpy(features))
    np.testing.assert_allclose(v.numpy(), clusters.V, atol=1e-4)
    np.testing.assert_allclose(mu.numpy(), unit_rows(clusters.prototypes), atol=1e-5)
    assert v.dtype == mu.dtype == torch.float32
    np.testing.assert_array_equal((v @ mu.T).argmax(dim=1).numpy(), clusters.labels)


def test_a_known_class_of_the_loss_is_the_mean_of_all_its_rows(features, blobs, start):
    clusters, ours = whole_step(features, blobs.y, start, known_rows="all")
    means = slow_means(clusters.V, blobs.y, clusters, "all")
    np.testing.assert_allclose(ours.means.numpy(), unit_rows(means), atol=1e-5)
    labelled = slow_means(clusters.V, blobs.y, clusters)
    assert np.abs(unit_rows(means) - unit_rows(labelled))[: clusters.n_known].max() > 0.01


def test_the_number_of_batch_directions_is_q(features, blobs):
    _, ours = whole_step(features, blobs.y, pca="batch", n_directions=3)
    z = features[:32]
    v, mu = ours.project(torch.from_numpy(z))
    assert v.shape == (32, 3)
    assert mu.shape == (5, 3)
    basis = np.linalg.svd(z.astype(np.float64))[2][:3].T
    np.testing.assert_allclose(
        (v @ mu.T).numpy(), z @ basis @ (ours.means.numpy() @ basis).T, atol=1e-5
    )


def test_without_directions_features_stay(features, blobs):
    _, ours = whole_step(features, blobs.y, pca="off")
    z = torch.from_numpy(features)
    v, mu = ours.project(z)
    assert torch.equal(v, z)
    torch.testing.assert_close(mu.norm(dim=1), torch.ones(5))


@pytest.mark.parametrize("pca", ["all", "batch", "off"])
def test_gradients_go_to_the_features_and_not_into_the_basis(features, blobs, pca):
    _, ours = whole_step(features, blobs.y, pca=pca, n_directions=3)
    z = torch.from_numpy(features)[:16].requires_grad_()
    v, mu = ours.project(z)
    assert v.requires_grad
    assert not mu.requires_grad
    v.sum().backward()
    assert torch.isfinite(z.grad).all()
    if pca == "batch":  # as if the basis were given
        basis = torch.linalg.svd(z.detach(), full_matrices=False).Vh[:3].T
        torch.testing.assert_close(z.grad, basis.sum(dim=1).expand(16, -1), rtol=1e-4, atol=1e-4)
