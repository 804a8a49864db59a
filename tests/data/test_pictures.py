import io
import os
import pickle
import struct
import subprocess
import sys
import threading
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from newfound.data.pictures import (
    PictureError,
    read_picture,
    square_pixels,
    upright_size,
)
from newfound.errors import InputError, MissingExtraError
from newfound.limits import max_pixels

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def quarters(width=8, height=4):
    """Red, green, blue and white, from the upper left in reading order: no two sides alike."""
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[: height // 2, : width // 2] = RED
    pixels[: height // 2, width // 2 :] = GREEN
    pixels[height // 2 :, : width // 2] = BLUE
    pixels[height // 2 :, width // 2 :] = WHITE
    return pixels


def saved(path, pixels, mode=None, **options):
    picture = Image.fromarray(pixels)
    (picture if mode is None else picture.convert(mode)).save(path, **options)
    return path


def read_pixels(path, **options):
    picture = read_picture(path, **options)
    assert picture.mode == "RGB"
    return np.asarray(picture)


def png_header(width, height):
    """A picture that claims a size and holds nothing."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [struct.pack(">I", 13), header, struct.pack(">I", zlib.crc32(header)), bytes(4)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + b"IDAT" + bytes(4)


@pytest.mark.parametrize("suffix", ["png", "bmp", "tiff", "ppm", "tga", "gif"])
def test_exact_formats_come_back_as_they_were(tmp_path, suffix):
    path = saved(tmp_path / f"a.{suffix}", quarters())
    np.testing.assert_array_equal(read_pixels(path), quarters())


def test_the_first_picture_of_a_process_may_be_of_a_rare_format(tmp_path):
    """Pillow learns its formats bit by bit, the rare ones when it is asked to."""
    path = saved(tmp_path / "a.tga", quarters())
    program = f"from newfound.data.pictures import *; print(read_picture(Path({str(path)!r})).size)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout == "(8, 4)\n", result.stderr


def test_content_decides_not_the_name(tmp_path):
    path = saved(tmp_path / "a.jpg", quarters(), format="PNG")
    np.testing.assert_array_equal(read_pixels(path), quarters())


@pytest.mark.parametrize("mode", ["1", "L"])
def test_grey_has_three_equal_channels(tmp_path, mode):
    grey = np.array([[0, 255], [255, 0]], np.uint8)
    path = saved(tmp_path / "a.png", grey, mode)
    np.testing.assert_array_equal(read_pixels(path), np.stack([grey] * 3, axis=2))


@pytest.mark.parametrize("suffix", ["png", "tiff", "pgm"])
def test_sixteen_bits_are_scaled_not_clipped(tmp_path, suffix):
    gradient = np.linspace(0, 65535, 64 * 64).astype(np.uint16).reshape(64, 64)
    pixels = read_pixels(saved(tmp_path / f"a.{suffix}", gradient))
    expected = np.round(gradient.astype(float) * 255 / 65535)
    np.testing.assert_array_equal(pixels[:, :, 0], expected)
    assert len(np.unique(pixels)) == 256


def test_a_dark_picture_of_sixteen_bits_stays_dark(tmp_path):
    path = saved(tmp_path / "a.png", np.array([[0, 257 * 3]], np.uint16))
    np.testing.assert_array_equal(read_pixels(path), [[(0, 0, 0), (3, 3, 3)]])


@pytest.mark.parametrize(
    "values",
    [
        np.array([[-1.0, 0.0, 3.0]], np.float32),
        np.array([[0.0, 0.25, 1.0]], np.float32),
        np.array([[-100, 0, 300]], np.int32),
        np.array([[-100_000, 0, 300_000]], np.int32),
        np.array([[0, 250_000, 1_000_000]], np.int32),
    ],
)
def test_values_without_a_scale_are_spread(tmp_path, values):
    path = saved(tmp_path / "a.tiff", values)
    np.testing.assert_array_equal(read_pixels(path)[0, :, 0], [0, 64, 255])


@pytest.mark.parametrize(
    ("values", "expected"),
    [([np.nan, 0.0, 1.0, np.inf], [0, 0, 255, 0]), ([5.0, 5.0], [0, 0]), ([np.nan], [0])],
)
def test_values_without_a_range_do_no_harm(tmp_path, values, expected):
    path = saved(tmp_path / "a.tiff", np.array([values], np.float32))
    np.testing.assert_array_equal(read_pixels(path)[0, :, 0], expected)


def test_cmyk_has_its_colours(tmp_path):
    path = saved(tmp_path / "a.jpg", quarters(64, 64), "CMYK", quality=95)
    with Image.open(path) as opened:
        assert opened.mode == "CMYK"
    pixels = read_pixels(path)
    assert np.abs(pixels[8:24, 8:24].astype(int) - RED).max() < 12
    assert np.abs(pixels[40:56, 8:24].astype(int) - BLUE).max() < 12


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["jpg", "png", "tiff", "webp"])
def test_turned_pictures_come_upright(tmp_path, orientation, suffix):
    """The camera's sensor is turned; the tag says how to turn it back."""
    upright = quarters(64, 32)
    laid_down = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright),
        7: np.rot90(upright.transpose(1, 0, 2), 2),
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(tmp_path / f"a.{suffix}", laid_down, exif=exif)
    pixels = read_pixels(path)
    assert pixels.shape == upright.shape
    corners = pixels[[4, 4, 28, 28], [4, 60, 4, 60]].astype(int)
    assert np.abs(corners - [RED, GREEN, BLUE, WHITE]).max() < 40


@pytest.mark.parametrize("mode", ["RGBA", "L", "RGB", "CMYK"])
def test_a_turned_tiff_in_every_mode(tmp_path, mode):
    """Pillow turns a TIFF while it loads it, and scrambles some that it maps into memory."""
    exif = Image.Exif()
    exif[0x0112] = 6
    path = saved(tmp_path / "a.tiff", np.rot90(quarters()), mode, exif=exif)
    expected = np.asarray(Image.fromarray(quarters()).convert(mode).convert("RGB"))
    np.testing.assert_array_equal(read_pixels(path), expected)


@pytest.mark.parametrize("exif", [b"XX garbage", b"II*\x00", b"II*\x00\x08\x00\x00\x00\xff"])
@pytest.mark.parametrize("suffix", ["png", "webp"])
def test_a_damaged_exif_tag_does_not_lose_the_picture(tmp_path, exif, suffix):
    options = {"lossless": True} if suffix == "webp" else {}
    path = saved(tmp_path / f"a.{suffix}", quarters(), exif=b"Exif\x00\x00" + exif, **options)
    np.testing.assert_array_equal(read_pixels(path), quarters())


@pytest.mark.parametrize("suffix", ["gif", "webp", "png", "tiff"])
def test_the_first_frame_of_several(tmp_path, suffix):
    frames = [Image.new("RGB", (16, 16), colour) for colour in (RED, GREEN, BLUE)]
    path = tmp_path / f"a.{suffix}"
    options = {"lossless": True} if suffix == "webp" else {}
    frames[0].save(path, save_all=True, append_images=frames[1:], **options)
    with Image.open(path) as opened:
        assert opened.n_frames == 3
    np.testing.assert_array_equal(read_pixels(path), np.full((16, 16, 3), RED))


def test_alpha_lies_over_white(tmp_path):
    pixels = np.array([[[0, 0, 0, 0], [0, 0, 0, 255], [255, 0, 0, 51]]], np.uint8)
    path = saved(tmp_path / "a.png", pixels)
    np.testing.assert_array_equal(read_pixels(path), [[WHITE, (0, 0, 0), (255, 204, 204)]])


def test_grey_with_alpha_lies_over_white(tmp_path):
    Image.merge("LA", [Image.new("L", (2, 2), 0), Image.new("L", (2, 2), 51)]).save(
        tmp_path / "a.png"
    )
    np.testing.assert_array_equal(read_pixels(tmp_path / "a.png"), np.full((2, 2, 3), 204))


@pytest.mark.parametrize(
    ("transparency", "expected"),
    [
        (0, [WHITE, GREEN, BLUE]),  # one colour of the palette
        (bytes([0, 255, 51]), [WHITE, GREEN, (204, 204, 255)]),  # a share for each
    ],
)
def test_palettes_with_transparency(tmp_path, transparency, expected):
    picture = Image.new("P", (3, 1))
    picture.putpalette([*RED, *GREEN, *BLUE])
    picture.putdata([0, 1, 2])
    picture.save(tmp_path / "a.png", transparency=transparency)
    np.testing.assert_array_equal(read_pixels(tmp_path / "a.png"), [expected])


def test_a_transparent_colour_of_a_picture_without_palette(tmp_path):
    path = saved(tmp_path / "a.png", np.array([[RED, GREEN]], np.uint8), transparency=RED)
    np.testing.assert_array_equal(read_pixels(path), [[WHITE, GREEN]])


def jpeg(width=256, height=256):
    ramp = np.add.outer(np.arange(height), np.arange(width)).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(np.stack([ramp] * 3, axis=2)).save(buffer, "JPEG")
    return buffer.getvalue()


def png():
    rng = np.random.default_rng(0)
    buffer = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"path,label\n", "not a picture"),
        (b"\xff\xd8\xff", "not a picture"),
        (jpeg()[: len(jpeg()) // 2], r"truncated or damaged \(image file is truncated"),
        (png()[: len(png()) // 2], r"truncated or damaged \(image file is truncated"),
        (png()[:200] + bytes(100) + png()[300:], r"truncated or damaged \(broken"),
        (png_header(20_000, 20_000), "more than 100 million pixels"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture"),
    ],
    ids=["empty", "text", "start", "half JPEG", "half PNG", "damaged", "huge", "PostScript"],
)
def test_bad_files_have_a_reason(tmp_path, content, reason):
    path = tmp_path / "a.jpg"
    path.write_bytes(content)
    with pytest.raises(PictureError, match=reason) as caught:
        read_picture(path)
    assert str(caught.value) == f"{path}: {caught.value.reason}"
    assert isinstance(caught.value, InputError)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(PictureError, match="cannot be read: No such file"):
        read_picture(tmp_path / "a.jpg")
    with pytest.raises(PictureError, match="is not a file"):
        read_picture(tmp_path)
    (tmp_path / "b.jpg").symlink_to(tmp_path / "a.jpg")
    with pytest.raises(PictureError, match="cannot be read: No such file"):
        read_picture(tmp_path / "b.jpg")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.jpg")
    with pytest.raises(PictureError, match="is not a file"):
        read_picture(tmp_path / "a.jpg")


def test_the_limit_is_the_number_of_pixels(tmp_path, monkeypatch):
    path = saved(tmp_path / "a.png", quarters(8, 4))
    monkeypatch.setenv("NEWFOUND_MAX_MEGAPIXELS", "32e-6")
    read_picture(path)
    monkeypatch.setenv("NEWFOUND_MAX_MEGAPIXELS", "31e-6")
    with pytest.raises(PictureError, match="MAX_MEGAPIXELS sets the limit"):
        read_picture(path)


def test_a_jpeg_may_be_larger_than_the_limit_before_it_is_reduced(tmp_path, monkeypatch):
    path = saved(tmp_path / "a.jpg", quarters(64, 64))
    monkeypatch.setenv("NEWFOUND_MAX_MEGAPIXELS", f"{64 * 64 / 2 / 1e6}")
    assert read_picture(path, at_least=8).size == (16, 16)
    with pytest.raises(PictureError, match="MAX_MEGAPIXELS"):
        read_picture(path)


def test_a_limit_that_is_no_number_is_an_error_and_not_a_bad_picture(tmp_path, monkeypatch):
    path = saved(tmp_path / "a.png", quarters())
    limit = Image.MAX_IMAGE_PIXELS
    monkeypatch.setenv("NEWFOUND_MAX_MEGAPIXELS", "many")
    with pytest.raises(InputError, match="a number above 0; got 'many'") as caught:
        read_picture(path)
    assert not isinstance(caught.value, PictureError)
    monkeypatch.delenv("NEWFOUND_MAX_MEGAPIXELS")
    read_picture(path)
    assert limit == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize(
    ("error", "reason"),
    [(MemoryError(), "too large for the free memory"), (ValueError(), "or damaged")],
)
def test_errors_without_words(tmp_path, monkeypatch, error, reason):
    def fail(pillow, picture):
        raise error

    monkeypatch.setattr("newfound.data.pictures._to_rgb", fail)
    with pytest.raises(PictureError, match=f": .*{reason}$"):
        read_picture(saved(tmp_path / "a.png", quarters()))


def test_the_limit_holds_where_pillow_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    (tmp_path / "a.png").write_bytes(png_header(max_pixels() + 1, 1))
    with pytest.raises(PictureError, match=f"{max_pixels() + 1} x 1"):
        read_picture(tmp_path / "a.png")


def test_errors_travel_between_processes(tmp_path):
    error = pickle.loads(pickle.dumps(PictureError(tmp_path, "the file is empty")))
    assert str(error) == f"{tmp_path}: the file is empty"


def test_large_pictures_do_not_warn(tmp_path, monkeypatch):
    """Pillow warns of pictures above a limit; here they are read, in silence."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    path = saved(tmp_path / "a.png", quarters())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_picture(path)
        assert caught == []
        warnings.warn("as before", stacklevel=1)
        assert len(caught) == 1


def test_warnings_are_back_after_many_threads(tmp_path, monkeypatch):
    path = saved(tmp_path / "a.png", quarters())
    first_is_in, second_is_in = threading.Event(), threading.Event()
    silence_lasts = []

    def check_file(path):
        """The first in leaves while the second is in: the order that catch_warnings can't take."""
        if not first_is_in.is_set():
            first_is_in.set()
            assert second_is_in.wait(60)
        else:
            second_is_in.set()
            first.join(60)
            silence_lasts.append(warnings.filters[0][0] == "ignore")

    monkeypatch.setattr("newfound.data.pictures._check_file", check_file)
    before = list(warnings.filters)
    first = threading.Thread(target=read_picture, args=(path,))
    first.start()
    assert first_is_in.wait(60)
    read_picture(path)
    assert silence_lasts == [True]
    assert warnings.filters == before


def test_without_pillow_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'newfound\[train\]'"):
        read_picture(Path("a.png"))


@pytest.mark.parametrize(
    ("at_least", "shape"), [(None, (250, 400)), (63, (250, 400)), (62, (125, 200)), (9, (32, 50))]
)
def test_large_jpegs_are_decoded_at_a_lower_scale(tmp_path, at_least, shape):
    (tmp_path / "a.jpg").write_bytes(jpeg(400, 250))
    (tmp_path / "b.jpg").write_bytes(jpeg(250, 400))
    assert read_pixels(tmp_path / "a.jpg", at_least=at_least).shape == (*shape, 3)
    assert read_pixels(tmp_path / "b.jpg", at_least=at_least).shape == (*shape[::-1], 3)


def test_the_lower_scale_hardly_shows(tmp_path):
    (tmp_path / "a.jpg").write_bytes(jpeg(128, 128))
    whole = square_pixels(read_picture(tmp_path / "a.jpg"), 16)
    quick = square_pixels(read_picture(tmp_path / "a.jpg", at_least=16), 16)
    assert np.abs(whole.astype(int) - quick).max() <= 4


@pytest.mark.parametrize("size", [5, 7])
def test_a_picture_of_the_size_is_copied(size):
    pixels = np.random.default_rng(0).integers(0, 256, (size, size, 3), dtype=np.uint8)
    square = square_pixels(Image.fromarray(pixels), size)
    np.testing.assert_array_equal(square, pixels)
    assert square.dtype == np.uint8
    square[:] = 0  # is a copy that may be written to


@pytest.mark.parametrize("shape", [(4, 9), (9, 4), (4, 4)])
def test_the_centre_is_cropped(shape):
    """With the shorter side at its size, nothing is scaled: the crop is exact."""
    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    top, left = (shape[0] - 4) // 2, (shape[1] - 4) // 2
    expected = pixels[top : top + 4, left : left + 4]
    np.testing.assert_array_equal(square_pixels(Image.fromarray(pixels), 4), expected)


@pytest.mark.parametrize("shape", [(96, 192), (192, 96), (96, 96)])
def test_the_shorter_side_is_scaled(shape):
    """As by the two steps in the order that is usually written: scale, then crop."""
    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    picture = Image.fromarray(pixels)
    scaled = picture.resize((shape[1] // 3, shape[0] // 3), Image.Resampling.BICUBIC)
    top, left = (scaled.height - 32) // 2, (scaled.width - 32) // 2
    expected = np.asarray(scaled.crop((left, top, left + 32, top + 32)))
    np.testing.assert_allclose(square_pixels(picture, 32), expected, atol=1)


def test_grey_pictures_get_three_channels():
    assert square_pixels(Image.new("L", (5, 5), 7), 4).tolist() == np.full((4, 4, 3), 7).tolist()


def test_small_pictures_grow():
    pixels = square_pixels(Image.new("RGB", (1, 7), RED), 4)
    np.testing.assert_array_equal(pixels, np.full((4, 4, 3), RED))


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("ending", ["jpg", "png", "tif", "webp"])
def test_sizes_are_those_of_upright_pictures(tmp_path, turn, ending):
    exif = Image.Exif()
    exif[0x0112] = turn
    Image.new("RGB", (12, 5)).save(tmp_path / f"x.{ending}", exif=exif)
    size = read_picture(tmp_path / f"x.{ending}").size
    assert upright_size(tmp_path / f"x.{ending}") == size


# ------------------------------------------------------------------------------------------- HEIC


def write_heic(path):
    """A file that begins like HEIC; the stand-in for the plugin reads the rest as PPM."""
    pixels = bytes(range(2 * 3 * 3))
    path.write_bytes(b"\0\0\0\x18ftypheic" + b"P6 3 2 255\n" + pixels)
    return path


def test_heic_is_read_by_its_extra(tmp_path, heic_plugin):
    path = write_heic(tmp_path / "IMG_1.HEIC")
    assert np.asarray(read_picture(path)).tolist() == np.arange(18).reshape(2, 3, 3).tolist()
    assert upright_size(path) == (3, 2)
    assert heic_plugin == ["HEIF"]  # registered once, and only when a picture is read


@pytest.mark.parametrize("name", ["IMG_1.HEIC", "named-wrongly.jpg"])
def test_heic_without_its_extra_names_the_pip_command(tmp_path, no_heic, name):
    path = write_heic(tmp_path / name)
    with pytest.raises(PictureError, match=r"a HEIC photo; .*pip install 'newfound\[heic\]'"):
        read_picture(path)
