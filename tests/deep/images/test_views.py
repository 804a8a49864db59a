"""Views of a whole batch against torchvision's functions on single pictures."""

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import interpolate

from newfound.deep.images.views import Views, draw, views_for
from newfound.deep.network.vision import v2
from newfound.deep.settings import ViewSettings

#: What the numbers of a view decide, in their order.
DRAWS = ["side", "aspect", "x", "y", "flip", "turn"]
DRAWS += ["brightness", "contrast", "saturation", "hue", "which"]

#: Values from 0 to 1 come out as they are.
PLAIN = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}


def draws_of(n_images, **values):
    """Draws that change nothing: the middle, not mirrored, colours moved by nothing."""
    draws = np.full((n_images, len(DRAWS)), 0.5, dtype=np.float32)
    draws[:, DRAWS.index("flip")] = 0.9
    for name, value in values.items():
        draws[:, DRAWS.index(name)] = value
    return draws


def random_draws(n_images, seed=0):
    return draw(n_images, seed=seed, epoch=0, batch=0)[0]


def whole(image_size=16, **options):
    """Views that show the whole picture."""
    return Views(image_size, crop_min=1.0, crop_max=1.0, **{**PLAIN, **options})


def ramps(size=128):
    """A picture whose red says how far right a pixel is, and its green how far down."""
    ramp = torch.arange(size).expand(size, size) * 2
    return torch.stack([ramp, ramp.T, torch.zeros_like(ramp)]).to(torch.uint8)[None]


def windows_on(view):
    """Left, top, width and height of the window, read off a view of `ramps()`."""
    red, green = view[0].mean(dim=0), view[1].mean(dim=1)
    inside = slice(4, -4)  # bicubic interpolation of a line is a line, apart from borders
    found = []
    for values in (red, green):
        n = len(values)
        at = (torch.arange(n) + 0.5) / n
        step = (values[inside][-1] - values[inside][0]) / (at[inside][-1] - at[inside][0])
        start = values[n // 2] - step * at[n // 2]
        found.append(((start * 255 / 2 + 0.5) / 128, step * 255 / 2 / 128))
    (left, width), (top, height) = found
    return float(left), float(top), float(width), float(height)


# --- geometry


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_window_that_is_only_moved_copies_pixels(photographs, mirrored):
    draws = random_draws(len(photographs))
    draws[:, DRAWS.index("flip")] = 0.1 if mirrored else 0.9
    views = Views(10, crop_min=0.625, crop_max=0.625, **PLAIN).random(photographs, draws)
    for image, view, row in zip(photographs, views, draws, strict=True):
        left, top = (round(float(row[DRAWS.index(name)]) * 6) for name in "xy")
        expected = v2.functional.crop(image, top, left, 10, 10) / 255
        if mirrored:
            expected = v2.functional.horizontal_flip(expected)
        torch.testing.assert_close(view, expected, rtol=0, atol=1e-5)


def test_over_the_border_it_is_black(photographs):
    draws = random_draws(len(photographs))
    draws[:, DRAWS.index("flip")] = 0.9
    views = whole(padding=0.25).random(photographs, draws)
    for image, view, row in zip(photographs, views, draws, strict=True):
        left, top = (round(float(row[DRAWS.index(name)]) * 8) for name in "xy")
        padded = v2.functional.pad(image, [4, 4, 4, 4])
        expected = v2.functional.crop(padded, top, left, 16, 16) / 255
        torch.testing.assert_close(view, expected, rtol=0, atol=1e-5)


def test_black_is_black_after_normalisation(photographs):
    views = whole(padding=0.5, mean=(0.1, 0.2, 0.3), std=(0.5, 0.4, 0.2))
    corner = views.random(photographs, draws_of(6, x=0.0, y=0.0))[:, :, :8, :8]
    expected = torch.tensor([-0.2, -0.5, -1.5])[:, None, None].expand_as(corner)
    torch.testing.assert_close(corner, expected)


@pytest.mark.parametrize("factor", [2, 3])
def test_a_small_window_is_enlarged_by_bicubic_interpolation(photographs, factor):
    large = interpolate(photographs / 255, scale_factor=factor, mode="bicubic").clamp(0, 1)
    views = Views(8 * factor, crop_min=0.5, crop_max=0.5, **PLAIN)
    for left in range(2, 7):  # two pixels from the border, which has a test of its own
        draws = draws_of(len(photographs), x=left / 8, y=0.5)
        expected = v2.functional.crop(large, 4 * factor, left * factor, 8 * factor, 8 * factor)
        torch.testing.assert_close(views.random(photographs, draws), expected, rtol=0, atol=1e-4)


def test_an_enlarged_picture_is_that_of_torchvision(photographs):
    expected = v2.functional.resize(
        photographs / 255, [32, 32], v2.InterpolationMode.BICUBIC, antialias=False
    )
    enlarged = whole(32).random(photographs, draws_of(len(photographs)))
    torch.testing.assert_close(enlarged, expected.clamp(0, 1), rtol=0, atol=1e-4)
    torch.testing.assert_close(whole(32).centre(photographs), enlarged, rtol=0, atol=1e-6)


@pytest.mark.parametrize("stored", [8, 9, 10, 13])
@pytest.mark.parametrize("crop_min", [0.3, 0.84, 1.0])
def test_without_padding_nothing_from_beyond_the_border_is_seen(stored, crop_min):
    white = torch.full((40, 3, stored, stored), 255, dtype=torch.uint8)
    for crop_max in {crop_min, 1.0}:
        views = Views(16, crop_min=crop_min, crop_max=crop_max, **PLAIN)
        torch.testing.assert_close(
            views.random(white, random_draws(40)), torch.ones(40, 3, 16, 16), rtol=0, atol=1e-5
        )


def test_windows_keep_to_their_sizes_and_to_the_picture():
    views = Views(64, crop_min=0.4, crop_max=0.8, flip=False, **PLAIN)
    draws = random_draws(200)
    seen = np.array(
        [windows_on(view) for view in views.random(ramps().expand(200, -1, -1, -1), draws)]
    )
    left, top, width, height = seen.T
    side = np.sqrt(width * height)
    assert side.min() == pytest.approx(0.4, abs=0.01)
    assert side.max() == pytest.approx(0.8, abs=0.01)
    assert (width / height).min() == pytest.approx(3 / 4, abs=0.02)
    assert (width / height).max() == pytest.approx(4 / 3, abs=0.02)
    for start, extent in ((left, width), (top, height)):
        assert start.min() >= -0.01
        assert (start + extent).max() <= 1.01
        room = start / (1 - extent)  # anywhere, as often here as there
        assert np.histogram(room, bins=4, range=(-0.02, 1.02))[0].min() > 30


def test_windows_of_one_size_are_square():
    views = Views(64, crop_min=0.6, crop_max=0.6, flip=False, **PLAIN)
    for view in views.random(ramps().expand(20, -1, -1, -1), random_draws(20)):
        assert windows_on(view)[2:] == pytest.approx((0.6, 0.6), abs=0.002)


def test_a_quarter_turn_to_either_side(photographs):
    views = whole(rotation=90.0)
    one_way = views.random(photographs, draws_of(6, turn=1.0))
    other_way = views.random(photographs, draws_of(6, turn=0.0))
    turns = [torch.rot90(photographs / 255, k, dims=(2, 3)) for k in (1, 3)]
    same = [torch.allclose(one_way, turn, atol=1e-4) for turn in turns]
    assert sorted(same) == [False, True]
    torch.testing.assert_close(other_way, turns[same.index(False)], rtol=0, atol=1e-4)
    straight = views.random(photographs, draws_of(6))
    torch.testing.assert_close(straight, photographs / 255, rtol=0, atol=1e-5)


def test_half_of_the_views_are_mirrored(photographs):
    draws = draws_of(1000)
    draws[:, DRAWS.index("flip")] = np.random.default_rng(0).random(1000)
    image = photographs[:1]
    views = whole().random(image.expand(1000, -1, -1, -1), draws)
    mirrored = torch.isclose(views, image.flip(-1) / 255, atol=1e-5).all(dim=(1, 2, 3))
    straight = torch.isclose(views, image / 255, atol=1e-5).all(dim=(1, 2, 3))
    assert (mirrored ^ straight).all()
    assert mirrored.float().mean() == pytest.approx(0.5, abs=0.05)


# --- the middle view


def test_the_middle_view_is_the_centre_crop(photographs):
    views = Views(14, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4))  # 0.875 of 16
    expected = v2.functional.normalize(
        v2.functional.center_crop(photographs, [14, 14]) / 255, views.mean, views.std
    )
    torch.testing.assert_close(views.centre(photographs), expected, rtol=0, atol=1e-5)


def test_the_middle_view_takes_the_largest_window_and_no_chance():
    plain = Views(64, crop_min=0.25, crop_max=0.5, **PLAIN)
    middle = plain.centre(ramps())
    assert windows_on(middle[0]) == pytest.approx((0.25, 0.25, 0.5, 0.5), abs=0.002)
    random = replace(plain, padding=0.3, rotation=30.0, color_jitter=1.0, flip=True)
    torch.testing.assert_close(random.centre(ramps()), middle, rtol=0, atol=0)


# --- colours


def factor(u, strength):
    return 1 + 0.8 * strength * (2 * u - 1)


@pytest.mark.parametrize("what", ["brightness", "contrast", "saturation"])
@pytest.mark.parametrize("u", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("strength", [0.3, 1.0])
def test_colours_change_as_in_torchvision(photographs, what, u, strength):
    views = whole(color_jitter=strength).random(photographs, draws_of(6, **{what: u}))
    adjust = getattr(v2.functional, f"adjust_{what}")
    for image, view in zip(photographs, views, strict=True):
        expected = adjust(image / 255, factor(u, strength))
        torch.testing.assert_close(view, expected, rtol=0, atol=5e-4)  # it has 0.2989 for red


def test_colours_in_the_middle_of_their_range_stay(photographs):
    views = whole(color_jitter=1.0).random(photographs, draws_of(6))
    torch.testing.assert_close(views, photographs / 255, rtol=0, atol=1e-5)


@pytest.mark.parametrize("which", [0.05, 0.81])
def test_a_grey_view_is_that_of_torchvision(photographs, which):
    views = whole(color_jitter=0.5).random(photographs, draws_of(6, which=which))
    expected = v2.functional.rgb_to_grayscale(photographs / 255, num_output_channels=3)
    torch.testing.assert_close(views, expected, rtol=0, atol=5e-4)


@pytest.mark.parametrize("u", [0.0, 0.2, 0.9])
def test_hue_keeps_grey_pixels_and_the_sum_of_the_channels(u):
    rng = np.random.default_rng(0)
    pale = torch.from_numpy(rng.integers(100, 150, size=(4, 3, 16, 16)).astype(np.uint8))
    views = whole(color_jitter=1.0).random(pale, draws_of(4, hue=u))
    torch.testing.assert_close(views.sum(dim=1), pale.sum(dim=1) / 255, rtol=0, atol=1e-4)
    torch.testing.assert_close(views.std(dim=1), (pale / 255).std(dim=1), rtol=0, atol=1e-4)
    assert (views - pale / 255).abs().max() > 0.02
    grey = pale[:, :1].expand(-1, 3, -1, -1)
    same = whole(color_jitter=1.0).random(grey, draws_of(4, hue=u))
    torch.testing.assert_close(same, grey / 255, rtol=0, atol=1e-5)


def test_a_third_of_the_circle_of_hues_makes_red_green_and_green_blue(photographs):
    third = 5 / 3  # 0.2 of it is a third
    views = whole(color_jitter=third).random(photographs, draws_of(6, hue=1.0))
    torch.testing.assert_close(views, photographs[:, [2, 0, 1]] / 255, rtol=0, atol=1e-4)


def test_four_views_of_five_change_and_one_of_five_is_grey():
    rng = np.random.default_rng(0)
    red = torch.tensor([200, 100, 50], dtype=torch.uint8)[None, :, None, None]
    draws = draws_of(2000, hue=0.6)
    draws[:, DRAWS.index("which")] = rng.random(2000)
    views = whole(4, color_jitter=1.0).random(red.expand(2000, 3, 4, 4), draws)[:, :, 0, 0]
    same = torch.isclose(views, red[:, :, 0, 0] / 255, atol=1e-4).all(dim=1)
    grey = torch.isclose(views, views[:, :1], atol=1e-4).all(dim=1)
    assert grey.float().mean() == pytest.approx(0.2, abs=0.03)
    assert same.float().mean() == pytest.approx(0.2 * 0.8, abs=0.03)  # neither changed nor grey
    assert len({round(float(view[0]), 3) for view in views[grey]}) == 2  # grey of either kind


def test_colours_stay_between_black_and_white(photographs):
    views = whole(color_jitter=2.0).random(photographs.repeat(20, 1, 1, 1), random_draws(120))
    assert views.min() >= 0
    assert views.max() <= 1


# --- batches and draws


def all_kinds(image_size=12):
    return Views(
        image_size,
        crop_min=0.5,
        crop_max=1.0,
        padding=0.1,
        rotation=20.0,
        color_jitter=0.8,
    )


def test_every_picture_has_a_draw_of_its_own(photographs):
    draws = random_draws(6)
    together = all_kinds().random(photographs, draws)
    assert together.shape == (6, 3, 12, 12)
    assert together.dtype == torch.float32
    for i in range(6):
        alone = all_kinds().random(photographs[i : i + 1], draws[i : i + 1])
        torch.testing.assert_close(together[i : i + 1], alone, rtol=0, atol=1e-5)
    one_picture = all_kinds().random(photographs[:1].expand(6, -1, -1, -1), draws)
    for i in range(6):
        for j in range(i):
            assert (one_picture[i] - one_picture[j]).abs().max() > 0.05


def test_the_same_draws_give_the_same_views(photographs):
    before = photographs.clone()
    views = all_kinds().random(photographs, random_draws(6))
    torch.manual_seed(1)
    assert torch.equal(all_kinds().random(photographs, random_draws(6)), views)
    assert torch.equal(photographs, before)


@pytest.mark.parametrize("name", DRAWS)
def test_every_number_of_a_draw_decides_something(photographs, name):
    draws = draws_of(6, x=0.3, y=0.4, side=0.4, which=0.7)
    views = all_kinds().random(photographs, draws)
    draws[:, DRAWS.index(name)] = 0.1
    assert (all_kinds().random(photographs, draws) - views).abs().max() > 0.01


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("image_size", 13),
        ("mean", (0.1, 0.2, 0.3)),
        ("std", (1.0, 0.5, 0.2)),
        ("crop_min", 0.9),
        ("crop_max", 0.6),
        ("padding", 0.4),
        ("flip", False),
        ("rotation", 90.0),
        ("color_jitter", 0.1),
    ],
)
def test_every_field_changes_something(photographs, name, value):
    assert name in {field.name for field in fields(Views)}
    draws = random_draws(6)
    before = all_kinds().random(photographs, draws)
    after = replace(all_kinds(), **{name: value}).random(photographs, draws)
    assert after.shape != before.shape or (after - before).abs().max() > 0.01


def test_no_field_is_without_a_test():
    marks = test_every_field_changes_something.pytestmark
    (cases,) = (mark.args[1] for mark in marks if mark.name == "parametrize")
    assert {name for name, _ in cases} == {field.name for field in fields(Views)}


def test_draws_are_keyed_by_seed_epoch_and_batch():
    first = draw(5, seed=1, epoch=2, batch=3)
    assert first.shape == (2, 5, len(DRAWS))
    assert first.dtype == np.float32
    assert first.min() >= 0
    assert first.max() < 1
    assert len(np.unique(first)) == first.size  # two views of an image differ
    np.testing.assert_array_equal(draw(5, seed=1, epoch=2, batch=3), first)
    for other in ((2, 2, 3), (1, 3, 3), (1, 2, 4), (3, 2, 1)):
        seed, epoch, batch = other
        assert (draw(5, seed=seed, epoch=epoch, batch=batch) != first).all()


def test_views_have_the_settings_of_their_names():
    changes = {
        "crop_min": 0.3,
        "crop_max": 0.7,
        "padding": 0.2,
        "flip": False,
        "rotation": 12.0,
        "color_jitter": 0.4,
    }
    colours = {"mean": (0.1, 0.2, 0.3), "std": (0.4, 0.5, 0.6)}
    backbone = SimpleNamespace(image_size=19, **colours)
    views = views_for(backbone, ViewSettings(**changes))
    given = {**changes, **colours, "image_size": 19}
    assert {field.name: getattr(views, field.name) for field in fields(views)} == given
