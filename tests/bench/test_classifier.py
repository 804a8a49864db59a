"""What methods with a classifier share, against loops over rows."""

import math

import numpy as np
import pytest
import torch

from newfound.bench.classifier import CosineClassifier, entropy_gap, labelled_cross_entropy

torch.set_num_threads(1)


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def softmax(row):
    exps = [math.exp(float(value)) for value in row]
    return [value / sum(exps) for value in exps]


@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 4), (1, 1)])
def test_the_gap_of_the_entropy_is_its_equation(shape):
    rows = [softmax(row) for row in randn(*shape).reshape(-1, shape[-1])]
    mean = [sum(row[k] for row in rows) / len(rows) for k in range(shape[-1])]
    expected = math.log(shape[-1]) + sum(p * math.log(p) for p in mean)
    assert entropy_gap(randn(*shape).softmax(dim=-1)).item() == pytest.approx(expected, abs=1e-9)


def test_the_gap_of_the_entropy_is_0_where_all_classes_are_alike():
    assert entropy_gap(torch.eye(4)).item() == pytest.approx(0, abs=1e-6)
    one_class = torch.eye(4)[[0, 0, 0]].requires_grad_()
    gap = entropy_gap(one_class)
    assert gap.item() == pytest.approx(math.log(4))
    gap.backward()
    assert torch.isfinite(one_class.grad).all()


def test_cross_entropy_is_over_labelled_rows_of_all_views():
    logits, codes = randn(2, 3, 4), torch.tensor([3, -1, 0])
    picked = [-math.log(softmax(logits[v, i])[codes[i]]) for v in range(2) for i in (0, 2)]
    assert labelled_cross_entropy(logits, codes).item() == pytest.approx(np.mean(picked))
    one_view = labelled_cross_entropy(logits[0], codes).item()
    assert one_view == pytest.approx(np.mean(picked[:2]))


@pytest.mark.parametrize("codes", [[0, 1, -1, -1, 1], [-1] * 5, [0, 1, 1, 2, 0]])
def test_cross_entropy_is_torchs_over_the_labelled_rows(codes):
    logits, codes = randn(5, 4).requires_grad_(), torch.tensor(codes)
    rows = codes >= 0
    loss = labelled_cross_entropy(logits, codes)
    expected = 0.0
    if rows.any():
        expected = torch.nn.functional.cross_entropy(logits[rows], codes[rows]).item()
    assert loss.item() == pytest.approx(expected)
    loss.backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[~rows] == 0).all()


def test_outputs_out_of_use_leave_the_cross_entropy_finite():
    logits = randn(4, 5).requires_grad_()
    used = torch.tensor([False, True, True, True, False])
    codes = torch.tensor([1, -1, 2, -1])
    loss = labelled_cross_entropy(logits.masked_fill(~used, -torch.inf), codes)
    torch.testing.assert_close(
        loss, labelled_cross_entropy(logits[:, used], torch.tensor([0, -1, 1, -1]))
    )
    loss.backward()
    assert torch.isfinite(logits.grad).all()


def test_the_classifier_gives_cosines_in_full_precision():
    classifier = CosineClassifier(6, 3)
    features = 9 * randn(4, 6).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cosines = classifier(features)
    assert cosines.dtype == torch.float32
    for i in range(4):
        for k in range(3):
            prototype = classifier.prototypes[k]
            cosine = features[i] @ prototype / (features[i].norm() * prototype.norm())
            assert cosines[i, k].item() == pytest.approx(cosine.item(), abs=1e-6)
    assert CosineClassifier(6, 0)(features).shape == (4, 0)
