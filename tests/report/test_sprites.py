"""Thumbnails: each in its place, within the room there is, whatever the file."""

import base64
import io

import numpy as np
import pytest

from newfound.report.sprites import COLUMNS, draw_sprites, place_of

pillow = pytest.importorskip("PIL.Image")


def opened(uri):
    kind, _, content = uri.partition(";base64,")
    assert kind in ("data:image/webp", "data:image/jpeg")
    return np.asarray(pillow.open(io.BytesIO(base64.b64decode(content))).convert("RGB"), dtype=int)


def seen(sprites, tile):
    """The middle of a tile, found as CSS finds it: 100 % shows the last one."""
    sheet, x, y = place_of(tile, sprites)
    pixels = opened(sprites.sheets[sheet])
    top = round(y / 100 * (pixels.shape[0] - sprites.size))
    left = round(x / 100 * (pixels.shape[1] - sprites.size))
    half = sprites.size // 2
    return pixels[top + half, left + half]


def test_every_tile_is_found_where_css_looks_for_it(picture_paths):
    n = COLUMNS**2 + COLUMNS + 3
    paths = picture_paths(n)
    sprites = draw_sprites(paths, 16, max_bytes=10**7)
    assert (sprites.n_tiles, sprites.n_rows, len(sprites.sheets)) == (n, [COLUMNS, 2], 2)
    for tile in (0, 1, COLUMNS - 1, COLUMNS, COLUMNS**2 - 1, COLUMNS**2, n - 1):
        with pillow.open(paths[tile]) as picture:
            expected = np.array(picture.getpixel((5, 5)))
        assert np.abs(seen(sprites, tile) - expected).max() < 25, tile


def test_one_picture_is_one_row(picture_paths):
    sprites = draw_sprites(picture_paths(1), 16, max_bytes=10**7)
    assert place_of(0, sprites) == (0, 0.0, 0.0)
    assert opened(sprites.sheets[0]).shape == (16, 16 * COLUMNS, 3)


def test_unreadable_pictures_are_blank_and_listed(picture_paths, tmp_path):
    paths = picture_paths(4)
    paths[1].write_bytes(b"no picture")
    paths[2] = tmp_path / "gone.png"
    sprites = draw_sprites(paths, 16, max_bytes=10**7)
    assert sprites.unreadable == [1, 2]
    assert np.ptp(seen(sprites, 1)) < 12  # grey
    assert np.ptp(seen(sprites, 3)) > 50


def test_quality_gives_way_to_the_room_there_is(tmp_path):
    rng = np.random.default_rng(0)
    paths = [tmp_path / f"{i}.png" for i in range(48)]
    for path in paths:
        pillow.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(path)
    free = sum(map(len, draw_sprites(paths, 48, max_bytes=10**9).sheets))
    bound = sum(map(len, draw_sprites(paths, 48, max_bytes=free // 3).sheets))
    assert bound <= free // 3
    least = draw_sprites(paths, 48, max_bytes=1).sheets  # as small as it gets
    assert 0 < sum(map(len, least)) < bound


def test_progress_is_told(picture_paths):
    told = []
    draw_sprites(picture_paths(3), 16, max_bytes=10**7, progress=lambda *a: told.append(a))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_no_pictures_no_sheets():
    assert draw_sprites([], 16, max_bytes=10).sheets == []
