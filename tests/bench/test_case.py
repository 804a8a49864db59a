"""Cases: the defaults, the key that tells two of them apart, and the name of weights."""

import pytest

from newfound.bench.case import Case, case_key
from newfound.deep.network.identity import weights_id
from newfound.errors import InputError


def test_the_plain_case_is_the_fields_main_setting():
    case = Case("gpc", "cub")
    assert (case.model, case.weights, case.pretraining) == (
        "vit_base_patch16_224.dino",
        "hub",
        "ImageNet",
    )
    assert (case.epochs, case.seed, case.k, case.pca) == (200, 0, "count", True)
    assert case.changes == {}
    assert case == Case("gpc", "cub")
    assert case.changes is not Case("gpc", "cub").changes


def test_a_key_leaves_out_what_may_differ():
    a, b = Case("gpc", "cub", seed=0), Case("gpc", "cub", seed=1)
    assert case_key(a) != case_key(b)
    assert case_key(a, without=("seed",)) == case_key(b, without=("seed",))


def test_weights_of_a_file_are_called_by_their_checksum(tmp_path):
    file = tmp_path / "w.safetensors"
    file.write_bytes(b"abc")
    assert weights_id(str(file)) == "ba7816bf8f01"  # sha256 of abc
    for name in ("hub", "offline", "random"):
        assert weights_id(name) == name
    with pytest.raises(InputError, match="no file of weights"):
        weights_id(str(tmp_path / "none.pt"))
    with pytest.raises(InputError, match="no file of weights"):
        weights_id(str(tmp_path))
