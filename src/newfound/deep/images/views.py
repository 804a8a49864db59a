"""Random views of images, made for a whole batch at once on the device.

torchvision's transforms apply one draw to all images of a tensor; here every image has its own
window and colours. The geometry of a view is one affine map (a window, rotated and mirrored,
sampled with bicubic interpolation); its colour is one affine map of RGB.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from newfound.arrays import Floats
from newfound.deep.settings import ViewSettings

if TYPE_CHECKING:
    from newfound.deep.network.backbone import Backbone

#: Weights of red, green and blue in a grey value.
_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
#: Random numbers that one view needs.
_N_DRAWS = 11


@dataclass(frozen=True)
class Views:
    """How a view is made of an image.

    Attributes
    ----------
    image_size : int
        Height and width of a view in pixels.
    mean, std : tuple of float
        Mean and standard deviation of each channel that the network was trained with.
    crop_min, crop_max : float
        Side of the window as a share of the image's side. If they differ, the aspect ratio of the
        window varies as well, between 3/4 and 4/3.
    padding : float
        How far the window may reach over the border, as a share of the side; outside is black.
    flip : bool
        Mirror half of the views left to right.
    rotation : float
        Largest rotation in degrees, to either side.
    color_jitter : float
        Strength of colour changes: 0.8 of it for brightness, contrast and saturation, 0.2 for
        hue. Four views in five are changed, and one in five is grey. With 0 colours stay.
    """

    image_size: int
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    crop_min: float = 0.875
    crop_max: float = 0.875
    padding: float = 0.0
    flip: bool = True
    rotation: float = 0.0
    color_jitter: float = 0.0

    def random(self, images: Tensor, draws: Floats) -> Tensor:
        """A random view of each image.

        Parameters
        ----------
        images : Tensor of uint8, shape (n, 3, s, s)
            Stored images.
        draws : ndarray of shape (n, 11)
            Uniform numbers between 0 and 1, from `draw`.

        Returns
        -------
        Tensor of float32, shape (n, 3, image_size, image_size)
            Normalised views.
        """
        stored_size = images.shape[-1]
        windows = _windows(self, draws, stored_size)
        border = math.ceil(self.padding * stored_size)
        if border:
            images = functional.pad(images, [border] * 4)
            windows *= stored_size / (stored_size + 2 * border)
        views = self._sample(images, _put(windows, images.device))
        if self.color_jitter > 0:
            views = _recolour(views, *_colours(self.color_jitter, draws))
        return self._normalise(views)

    def centre(self, images: Tensor) -> Tensor:
        """The view for features: the middle of each image, unchanged."""
        window = torch.zeros(len(images), 2, 3, device=images.device)
        window[:, 0, 0] = window[:, 1, 1] = self.crop_max
        return self._normalise(self._sample(images, window))

    def _sample(self, images: Tensor, windows: Tensor) -> Tensor:
        """Pixels inside the windows, between 0 and 1."""
        shape = [len(images), 3, self.image_size, self.image_size]
        grid = functional.affine_grid(windows, shape, align_corners=False)
        sampled = functional.grid_sample(
            images.float() / 255, grid, mode="bicubic", padding_mode="border", align_corners=False
        )
        return sampled.clamp_(0, 1)

    def _normalise(self, views: Tensor) -> Tensor:
        colours = _put(np.array([self.mean, self.std], dtype=np.float32), views.device)
        mean, std = colours[:, :, None, None]
        return views.sub_(mean).div_(std)


def views_for(backbone: Backbone, settings: ViewSettings) -> Views:
    """Views with the windows of the settings, and with the size and colours of a network.

    Parameters
    ----------
    backbone : Backbone
        The network that takes them.
    settings : ViewSettings
        Windows and colours.

    Returns
    -------
    Views
        How a view is made.
    """
    return Views(backbone.image_size, backbone.mean, backbone.std, **asdict(settings))


def _put(values: Floats, device: torch.device) -> Tensor:
    """Copy to the device, without waiting for its pending work."""
    return torch.from_numpy(values).to(device, non_blocking=True)


def draw(n_images: int, *, seed: int, epoch: int, batch: int, n_views: int = 2) -> Floats:
    """Random numbers for the views of each image of a batch, shape (n_views, n, 11)."""
    rng = np.random.default_rng([seed, epoch, batch])
    return rng.random((n_views, n_images, _N_DRAWS), dtype=np.float32)


def _windows(views: Views, draws: Floats, stored_size: int) -> Floats:
    """Affine maps (n, 2, 3) from a view's coordinates to the image's, both from -1 to 1."""
    u_side, u_aspect, u_x, u_y, u_flip, u_turn = draws[:, :6].T
    side = views.crop_min + u_side * (views.crop_max - views.crop_min)
    spread = math.log(4 / 3) if views.crop_max > views.crop_min else 0.0
    aspect = np.exp((u_aspect - 0.5) * spread)
    width, height = np.minimum(side * aspect, 1), np.minimum(side / aspect, 1)
    centres = []
    for u, extent in ((u_x, width), (u_y, height)):
        least, most = -views.padding, 1 - extent + views.padding
        offset = least + u * (most - least)
        # whole pixels: a window that is moved, but not scaled, then needs no interpolation
        offset = np.clip(np.round(offset * stored_size) / stored_size, least, most)
        centres.append(2 * offset + extent - 1)
    mirror = np.where(views.flip & (u_flip < 0.5), -1.0, 1.0)
    angle = np.radians(views.rotation) * (2 * u_turn - 1)
    cos, sin = np.cos(angle), np.sin(angle)
    rows = [
        [width * mirror * cos, -height * sin, centres[0]],
        [width * mirror * sin, height * cos, centres[1]],
    ]
    return np.moveaxis(np.array(rows, dtype=np.float32), -1, 0)


def _colours(strength: float, draws: Floats) -> tuple[Floats, Floats]:
    """Matrices of RGB (n, 3, 3) and contrasts (n,): x → contrast · M x + (1 - contrast) · grey."""
    u_bright, u_contrast, u_saturation, u_hue, u_which = draws[:, 6:].T
    changed = u_which < 0.8
    # from the same number, rescaled: being changed and being grey are independent
    grey = np.where(changed, u_which / 0.8, (u_which - 0.8) / 0.2) < 0.2

    def factor(u: Floats) -> Floats:
        spread = min(0.8 * strength, 1.0)
        return np.where(changed, 1 + spread * (2 * u - 1), 1).astype(np.float32)

    identity, to_grey = np.eye(3, dtype=np.float32), np.tile(_LUMA, (3, 1))
    saturation = np.where(grey, 0, factor(u_saturation)).astype(np.float32)[:, None, None]
    angle = np.where(changed, 0.2 * strength * 2 * np.pi * (2 * u_hue - 1), 0)
    colours = (saturation * identity + (1 - saturation) * to_grey) @ _turns_of_hue(angle)
    brightness = factor(u_bright)[:, None, None]
    return (brightness * colours).astype(np.float32), factor(u_contrast)


def _turns_of_hue(angle: Floats) -> Floats:
    """Rotations (n, 3, 3) of RGB around the grey axis."""
    cos, sin = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    cross = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)
    return cos * np.eye(3) + sin * cross + (1 - cos) / 3


def _recolour(views: Tensor, colours: Floats, contrast: Floats) -> Tensor:
    changed = torch.einsum("nij,njhw->nihw", _put(colours, views.device), views)
    luma = _put(_LUMA, views.device)
    grey = torch.einsum("j,njhw->n", luma, changed) / views.shape[-1] ** 2
    share = _put(contrast, views.device)
    changed = share[:, None, None, None] * changed + ((1 - share) * grey)[:, None, None, None]
    return changed.clamp_(0, 1)
