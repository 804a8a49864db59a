"""A data set of the benchmark: true classes, which of them are known, and images or features."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from newfound.array_files import read_array
from newfound.arrays import Ints
from newfound.data.pictures import square_pixels
from newfound.deep.images.cache import cache_pictures
from newfound.errors import InputError, require
from newfound.files import whole_file

Progress: TypeAlias = Callable[[int, int], object]

#: Number of images that are resized in memory before they are written.
_CHUNK_ROWS = 512


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows with their true classes, in the order in which labels are drawn.

    Attributes
    ----------
    name : str
        Id, as on the command line, or the name of a feature file without its ending.
    truth : ndarray of int64, shape (n,)
        Class of each row, as an index of `class_names`.
    class_names : tuple of str
        Names of all classes, in the official order where the field's class numbers need it.
    known : tuple of int
        The field's Old classes in ascending order.
    paths : list of Path or None
        Image files, one per row.
    array : ndarray or None
        Instead of files: images of uint8, shape (n, 3, s, s), or features, shape (n, d).
    layout : str
        How the data are stored, which decides the order of rows: "official", "class folders" or
        "features". The same images in another order give another draw of labels.
    complete : bool
        Whether no image is missing.
    side : int or None
        Side of the images as they are published, in pixels; None if they differ. Image files are
        never stored larger than that.
    n_labelled, n_unlabelled : int or None
        |D^l| and |D^u| of the field's split of the complete data set, if they are known.
    """

    name: str
    truth: Ints = field(repr=False)
    class_names: tuple[str, ...] = field(repr=False)
    known: tuple[int, ...] = field(repr=False)
    paths: list[Path] | None = field(default=None, repr=False)
    array: npt.NDArray[Any] | None = field(default=None, repr=False)
    layout: str = "official"
    complete: bool = True
    side: int | None = None
    n_labelled: int | None = None
    n_unlabelled: int | None = None

    def __len__(self) -> int:
        return len(self.truth)

    @property
    def n_classes(self) -> int:
        """K, known and novel together."""
        return len(self.class_names)

    @property
    def has_features(self) -> bool:
        """Whether the rows are finished features, not images."""
        return self.array is not None and self.array.ndim == 2

    def pixels(
        self, size: int, folder: Path, progress: Progress | None = None
    ) -> npt.NDArray[np.uint8]:
        """All images as squares: the shorter side is scaled (bicubic), then the centre is cropped.

        Parameters
        ----------
        size : int
            Side of the squares, in pixels.
        folder : Path
            Where the squares are stored for the next call; one folder per data set and size. It
            is not used if the images are in memory and already have this size.
        progress : callable, optional
            Called repeatedly with the number of finished images and of all images.

        Returns
        -------
        ndarray of uint8, shape (n, 3, size, size)
            Squares. If they had to be made, they are mapped from a file and read-only.

        Raises
        ------
        InputError
            If the rows are features, an image cannot be read, or the disk is full.
        """
        if size < 1:
            raise InputError(f"The side of the images must be at least 1 pixel; got {size}.")
        if self.paths is not None:
            return self._pixels_of_files(self.paths, size, folder, progress)
        assert self.array is not None
        if self.has_features:
            raise InputError(
                f"{self.name} holds features with {self.array.shape[1]} columns, not images. "
                "Choose a method that takes features, or a data set of images."
            )
        if self.array.shape[2:] == (size, size):
            return self.array
        return _resized(self.array, size, folder, self.name, progress or (lambda done, total: None))

    def _pixels_of_files(
        self, paths: list[Path], size: int, folder: Path, progress: Progress | None
    ) -> npt.NDArray[np.uint8]:
        # class folder and file name identify an image wherever the data set is stored
        ids = [f"{path.parent.name}/{path.name}" for path in paths]
        cache = cache_pictures(paths, size, folder, ids=ids, progress=progress)
        if cache.skipped:
            listed = "\n".join(f"  {paths[row]}: {reason}" for row, reason in cache.skipped[:5])
            raise InputError(
                f"{len(cache.skipped)} of the {len(paths)} images of {self.name} cannot be read:\n"
                f"{listed}\nThe benchmark needs all of them. Download these files again."
            )
        return cache.pixels


def _resized(
    images: npt.NDArray[np.uint8], size: int, folder: Path, name: str, progress: Progress
) -> npt.NDArray[np.uint8]:
    """Squares of another size, from a file that is made once for the same images."""
    digest = hashlib.blake2b(np.ascontiguousarray(images).data, digest_size=8).hexdigest()
    # the digest is part of the name, so that changed images are resized again
    path = folder / f"{name}-{size}-{digest}.npy"
    if not path.is_file():
        with whole_file(path) as file:
            _write_header(file, (len(images), 3, size, size))
            for done, chunk in _resized_chunks(images, size):
                file.write(chunk.tobytes())
                progress(done, len(images))
    return read_array(path, mapped=True)


def _resized_chunks(
    images: npt.NDArray[np.uint8], size: int
) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Chunks of shape (n, 3, size, size), each with the number of images finished so far."""
    pillow = require("PIL.Image", "train")
    for start in range(0, len(images), _CHUNK_ROWS):
        rows = np.ascontiguousarray(images[start : start + _CHUNK_ROWS].transpose(0, 2, 3, 1))
        squares = np.stack([square_pixels(pillow.fromarray(row), size) for row in rows])
        yield start + len(rows), np.ascontiguousarray(squares.transpose(0, 3, 1, 2))


def _write_header(file: IO[bytes], shape: tuple[int, ...]) -> None:
    """Write the header of an .npy file of uint8; the rows follow."""
    kind = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, kind)
