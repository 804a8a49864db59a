"""Batch norm over all processes. `test_trainer_processes` has several of them."""

import copy

import pytest
import torch
from torch import distributed, nn

from newfound.deep.network.backbone import load_backbone
from newfound.deep.network.batch_norm import SharedBatchNorm, share_batch_norm


@pytest.fixture
def one_process():
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("affine", [True, False])
def test_with_one_process_it_is_torchs_batch_norm(momentum, affine):
    generator = torch.Generator().manual_seed(0)
    norm = nn.BatchNorm2d(5, momentum=momentum, affine=affine)
    shared = copy.deepcopy(norm)
    share_batch_norm(shared)
    for _ in range(3):
        drawn = 3 * torch.randn(4, 5, 3, 2, generator=generator) + 2
        images = [drawn.clone().requires_grad_() for _ in range(2)]
        outputs = [layer(x) for layer, x in zip((norm, shared), images, strict=True)]
        torch.testing.assert_close(outputs[1], outputs[0])
        for output in outputs:
            (output**3).sum().backward()
        torch.testing.assert_close(images[1].grad, images[0].grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(shared.state_dict(), norm.state_dict())
    for found, expected in zip(shared.parameters(), norm.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(shared.eval()(images[1]), norm.eval()(images[0]))


@pytest.mark.parametrize("model", ["test_resnet", "test_efficientnet"])
@pytest.mark.parametrize("trainable", ["last", "all"])
def test_a_network_stays_what_it_is(model, trainable):
    backbone = load_backbone(model, "random", image_size=32, trainable=trainable).eval()
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    modules, features = list(backbone.modules()), backbone(images)
    share_batch_norm(backbone)
    assert any(isinstance(module, SharedBatchNorm) for module in modules)
    assert list(backbone.modules()) == modules
    torch.testing.assert_close(backbone(images), features)
