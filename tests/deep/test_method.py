"""The loss that is minimised, put together from its parts."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

from newfound.deep.losses import (
    contrastive_loss,
    pcl_weight,
    prototype_loss,
    shares_of_other_view,
    size_loss,
    supervised_contrastive_loss,
)
from newfound.deep.method import Batch, Contrast, Method, PrototypicalContrast
from newfound.deep.prototypes import Prototypes, Space
from newfound.deep.settings import Settings
from newfound.deep.trainer import train

N_ROWS, N_FEATURES, N_PROTOTYPES = 8, 12, 4


def randn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def some_prototypes(n_batch_directions=0, excess=None):
    means = normalize(randn(N_PROTOTYPES, N_FEATURES, seed=9), dim=1)
    return Prototypes(means, Space(()), n_batch_directions, excess)


#: How much too large each component is.
EXCESS = torch.tensor([-1.0, 0.2, 1.3, 2.0])


def some_batch(**changes):
    values = {
        "z": normalize(randn(2, N_ROWS, N_FEATURES, seed=1), dim=-1),
        "h": randn(2, N_ROWS, 6, seed=2),
        "codes": torch.tensor([0, 1, 0, 1, -1, -1, -1, -1]),
        "assigned": torch.tensor([0, 1, 0, 1, 2, 3, 2, 0]),
        "prototypes": some_prototypes(),
        "epoch": 3,
    }
    return Batch(**{**values, **changes})


def loss_of(batch=None, method=PrototypicalContrast, **settings):
    return method(Settings(**settings)).loss(batch or some_batch()).item()


@pytest.mark.parametrize("epoch", [0, 3, 10, 30])
@pytest.mark.parametrize("share", [0.0, 0.35, 1.0])
@pytest.mark.parametrize("weight", [0.0, 1.0, 2.5])
def test_the_loss_is_the_sum_of_its_parts(epoch, share, weight):
    settings = Settings(
        supervised_weight=share,
        prototype_weight=weight,
        target_temperature=0.0,
        warmup_epochs=10,
        contrastive_temperature=0.3,
        supervised_temperature=0.2,
        prototype_temperature=0.4,
    )
    batch = some_batch(epoch=epoch)
    h_a, h_b = normalize(batch.h, dim=-1)
    contrast = (contrastive_loss(h_a, h_b, 0.3) + contrastive_loss(h_b, h_a, 0.3)) / 2
    supervised = supervised_contrastive_loss(h_a, h_b, batch.codes, 0.2)
    means = batch.prototypes.means
    prototypical = sum(prototype_loss(z, means, batch.assigned, 0.4) for z in batch.z) / 2
    expected = (1 - share) * contrast + share * supervised
    torch.testing.assert_close(Contrast(settings).loss(batch), expected)
    expected += weight * pcl_weight(epoch, 10) * prototypical
    torch.testing.assert_close(PrototypicalContrast(settings).loss(batch), expected)


@pytest.mark.parametrize("epoch", [0, 3, 30])
@pytest.mark.parametrize("target_temperature", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("with_sizes", [False, True])
def test_soft_targets_and_sizes_are_parts_of_the_loss(epoch, target_temperature, with_sizes):
    settings = Settings(
        prototype_weight=1.5,
        prototype_temperature=0.4,
        warmup_epochs=10,
        target_temperature=target_temperature,
    )
    prototypes = some_prototypes(excess=EXCESS if with_sizes else None)
    batch = some_batch(epoch=epoch, prototypes=prototypes)
    means, is_free = prototypes.means, batch.codes < 0
    z_a, z_b = batch.z
    both = torch.cat([z_a, z_b])
    targets = torch.cat([batch.assigned, batch.assigned])
    if target_temperature:
        targets = shares_of_other_view(both, means, batch.assigned, is_free, target_temperature)
    prototypical = (
        prototype_loss(z_a, means, targets[:N_ROWS], 0.4)
        + prototype_loss(z_b, means, targets[N_ROWS:], 0.4)
    ) / 2
    expected = Contrast(settings).loss(batch)
    weight = 1.5 * pcl_weight(epoch, 10)
    expected += weight * prototypical
    if with_sizes:
        sized = size_loss(both[is_free.repeat(2)], means, EXCESS, torch.ones(8).bool(), 0.4)
        expected += weight * sized
    torch.testing.assert_close(PrototypicalContrast(settings).loss(batch), expected)


def test_labelled_rows_are_drawn_to_their_class_and_others_to_their_other_view():
    batch = some_batch(assigned=torch.tensor([0, 1, 0, 1, 2, 3, 2, 0]))
    elsewhere = some_batch(assigned=torch.tensor([0, 1, 0, 1, 3, 2, 1, 1]))
    assert loss_of(elsewhere) == loss_of(batch)
    assert abs(loss_of(elsewhere, target_temperature=0.0) - loss_of(batch)) > 1e-3
    other_class = some_batch(assigned=torch.tensor([1, 1, 0, 1, 2, 3, 2, 0]))
    assert abs(loss_of(other_class) - loss_of(batch)) > 1e-3


def test_the_share_of_the_prototypes_rises_with_the_epochs():
    losses = [loss_of(some_batch(epoch=epoch), warmup_epochs=4) for epoch in range(7)]
    alone = loss_of(method=Contrast)
    shares = (np.array(losses) - alone) / (losses[-1] - alone)
    np.testing.assert_allclose(shares, [0, 0.25, 0.5, 0.75, 1, 1, 1], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("contrastive_temperature", 0.5),
        ("supervised_weight", 0.1),
        ("supervised_temperature", 0.5),
        ("prototype_temperature", 0.5),
        ("prototype_weight", 0.3),
        ("target_temperature", 0.3),
        ("warmup_epochs", 7),
    ],
)
def test_every_setting_of_the_loss_moves_it(name, value):
    batch = some_batch(prototypes=some_prototypes(excess=EXCESS))
    assert abs(loss_of(batch, **{name: value}) - loss_of(batch)) > 1e-3


@pytest.mark.parametrize("n_directions", [2 * N_ROWS, 100])
def test_as_many_directions_of_a_batch_as_rows_are_as_good_as_none(n_directions):
    n_features = 40  # more than there are rows
    means = normalize(randn(N_PROTOTYPES, n_features, seed=9), dim=1)
    z = normalize(randn(2, N_ROWS, n_features, seed=1), dim=-1)
    plain = Prototypes(means, Space(()))
    of_batch = Prototypes(means, Space(()), n_directions)
    without = loss_of(some_batch(z=z, prototypes=plain))
    assert loss_of(some_batch(z=z, prototypes=of_batch)) == pytest.approx(without, abs=1e-5)
    fewer = Prototypes(means, Space(()), 3)
    assert abs(loss_of(some_batch(z=z, prototypes=fewer)) - without) > 1e-3


@pytest.mark.parametrize("excess", [None, EXCESS], ids=["plain", "sized"])
def test_views_may_change_places(excess):
    batch = some_batch(prototypes=some_prototypes(excess=excess))
    swapped = replace(batch, z=batch.z.flip(0), h=batch.h.flip(0))
    assert loss_of(swapped) == pytest.approx(loss_of(batch), rel=1e-6)


def test_the_length_of_what_the_head_gives_does_not_matter():
    assert loss_of(some_batch(h=7 * some_batch().h)) == pytest.approx(loss_of(), rel=1e-6)


def test_half_precision_of_the_network_is_widened():
    narrow = some_batch().h.bfloat16()
    loss = Contrast(Settings()).loss(some_batch(h=narrow))
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, Contrast(Settings()).loss(some_batch(h=narrow.float())))


def test_without_prototypes_the_contrast_is_left():
    assert loss_of(some_batch(prototypes=None)) == loss_of(method=Contrast)


@pytest.mark.parametrize("pca", ["off", "batch"])
@pytest.mark.parametrize("excess", [None, EXCESS], ids=["plain", "sized"])
@pytest.mark.parametrize("codes", [[-1] * 8, [0] * 8, [0] + [-1] * 7])
def test_gradients_are_finite_with_all_some_or_no_rows_labelled(pca, excess, codes):
    z = normalize(randn(2, N_ROWS, N_FEATURES, seed=1), dim=-1).requires_grad_()
    h = randn(2, N_ROWS, 6, seed=2).requires_grad_()
    prototypes = some_prototypes(5 if pca == "batch" else 0, excess)
    batch = some_batch(z=z, h=h, codes=torch.tensor(codes), prototypes=prototypes)
    PrototypicalContrast(Settings()).loss(batch).backward()
    for tensor in (z, h):
        assert torch.isfinite(tensor.grad).all()
        assert (tensor.grad != 0).any()


@pytest.mark.parametrize("method", [PrototypicalContrast, Contrast])
def test_the_head_is_an_mlp_or_nothing(method):
    z = torch.ones(3, N_FEATURES)
    assert method(Settings()).head(N_FEATURES)(z).shape == (3, N_FEATURES)
    assert method(Settings()).head(768)(torch.ones(3, 768)).shape == (3, 256)
    assert method(Settings.paper()).head(N_FEATURES)(z) is z


def test_only_the_paper_s_method_has_e_steps():
    assert PrototypicalContrast(Settings()).uses_prototypes
    assert not Contrast(Settings()).uses_prototypes


def test_only_the_paper_s_method_expects_sizes():
    assert PrototypicalContrast(Settings()).expects_sizes
    assert not Contrast(Settings()).expects_sizes


class TowardsOnePoint(Method):
    """A method of someone else: all outputs of the head go to one point."""

    def __init__(self):
        self.batches, self.losses = [], []

    def head(self, n_features):
        return nn.Linear(n_features, 3)

    def loss(self, batch):
        loss = (batch.h - torch.tensor([1.0, -2.0, 3.0])).square().mean()
        self.batches.append(batch)
        self.losses.append(loss.item())
        return loss


def test_a_plugged_loss_is_what_is_minimised(digits, tmp_path):
    method = TowardsOnePoint()
    settings = Settings(
        model="test_resnet",
        weights="random",
        image_size=8,
        crop_max=1.0,
        epochs=6,
        n_labelled_per_batch=8,
        n_unlabelled_per_batch=8,
        selection="last",
    )
    trained = train(digits.pixels, digits.y, settings, tmp_path, method=method)
    n_steps = len(method.losses) // 6
    means = np.reshape(method.losses, (6, n_steps)).mean(axis=1)
    np.testing.assert_allclose([record.loss for record in trained.history], means, rtol=1e-5)
    assert means[-1] < 0.05 * means[0]
    assert isinstance(trained.network.head, nn.Linear)
    assert trained.mixture is None
    assert trained.history[-1].n_components is None
    batch = method.batches[0]
    assert batch.z.shape == (2, 16, 96)
    assert batch.h.shape == (2, 16, 3)
    torch.testing.assert_close(batch.z.norm(dim=-1), torch.ones(2, 16))
    assert (batch.codes[:8] >= 0).all()
    assert (batch.codes[8:] == -1).all()
    assert batch.prototypes is None
    assert [method.batches[i * n_steps].epoch for i in range(6)] == list(range(6))
