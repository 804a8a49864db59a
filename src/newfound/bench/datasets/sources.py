"""The data sets of the field: their origin, their expected content and their known classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from newfound.bench.datasets.annotated import read_aircraft, read_cars, read_cub
from newfound.bench.datasets.cifar import read_cifar10, read_cifar100
from newfound.bench.datasets.download import Archive
from newfound.bench.datasets.listing import (
    ClassOrder,
    Listing,
    by_leading_number,
    by_name,
    by_name_or_number,
    by_official_names,
    read_class_folders,
    read_ssb,
)

_KRIZ = "https://www.cs.toronto.edu/~kriz"
_VGG = "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft"
_CALTECH = "https://data.caltech.edu/records/65de6-vp158"


@dataclass(frozen=True)
class Source:
    """Facts about a data set before it is read.

    Attributes
    ----------
    title : str
        Name in messages and titles.
    page : str
        Web page, and what to download there.
    n_classes : int
        Number of classes.
    n_images : int or None
        Number of training images; None if the field gives no exact number.
    known : callable
        Returns the field's Old classes.
    order : callable
        Puts class folders in the official order.
    published : callable, optional
        Reads the official layout from a folder; None if that layout is class folders.
    parts : tuple of str
        Files and folders of the official layout, for the message if nothing is found.
    folders : tuple of str
        Folders in the root that may contain published class folders.
    inner : str
        Sub-folder of the published class folders with the images.
    pickled : str
        Folder of a pickled version, which is never opened.
    archive : Archive or None
        Archive that can be downloaded without an account.
    side : int or None
        Side of the images, in pixels, if all are published at the same.
    n_labelled, n_unlabelled : int or None
        |D^l| and |D^u| of the field's split.
    """

    title: str
    page: str
    n_classes: int
    n_images: int | None
    known: Callable[[], tuple[int, ...]]
    order: ClassOrder = by_name
    published: Callable[[Path], Listing | None] | None = None
    parts: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    inner: str = ""
    pickled: str = ""
    archive: Archive | None = None
    side: int | None = None
    n_labelled: int | None = None
    n_unlabelled: int | None = None


def first(n: int) -> Callable[[], tuple[int, ...]]:
    """The first `n` classes are known."""
    return lambda: tuple(range(n))


def _in_ssb(name: str) -> Callable[[], tuple[int, ...]]:
    return lambda: tuple(read_ssb(name, "known"))


def _known_herbarium() -> tuple[int, ...]:
    """Half of the classes, drawn with seed 0 as in the field's code."""
    # RandomState, because the field's code uses it: other generators draw other classes
    return tuple(sorted(np.random.RandomState(0).choice(683, 341, replace=False).tolist()))


def _order_of(name: str) -> ClassOrder:
    return lambda names: by_official_names(read_ssb(name, "classes"))(names)


def _order_imagenet(names: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    """The field's 100 of 1,000 classes, drawn with seed 0; the others are left out."""
    # a folder with only the field's 100 classes is used as it is
    if len(names) != 1000:
        return by_name(names)
    chosen = sorted(np.random.RandomState(0).choice(1000, 100, replace=False).tolist())
    places = {number: place for place, number in enumerate(chosen)}
    return tuple(names[number] for number in chosen), [places.get(i, -1) for i in range(1000)]


def _read_digits(base: Path) -> Listing:
    """Scikit-learn's digits, 8 x 8 pixels with 17 grey levels, which come with the package."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    grey = np.rint(digits.images * (255 / 16)).astype(np.uint8)
    images = np.repeat(grey[:, None], 3, axis=1)
    return Listing(digits.target.astype(np.int64), tuple("0123456789"), base, array=images)


SOURCES: dict[str, Source] = {
    "cifar10": Source(
        title="CIFAR-10",
        page=f"{_KRIZ}/cifar.html (CIFAR-10 binary version)",
        n_classes=10,
        n_images=50_000,
        known=first(5),
        order=by_name_or_number,
        published=read_cifar10,
        pickled="cifar-10-batches-py",
        parts=tuple(f"cifar-10-batches-bin/data_batch_{i}.bin" for i in (1, 2, 3, 4, 5)),
        archive=Archive(
            f"{_KRIZ}/cifar-10-binary.tar.gz",
            "cifar-10-batches-bin",
            "c32a1d4ab5d03f1284b67883e8d87530",
        ),
        side=32,
        n_labelled=12_500,
        n_unlabelled=37_500,
    ),
    "cifar100": Source(
        title="CIFAR-100",
        page=f"{_KRIZ}/cifar.html (CIFAR-100 binary version)",
        n_classes=100,
        n_images=50_000,
        known=first(80),
        order=by_name_or_number,
        published=read_cifar100,
        pickled="cifar-100-python",
        parts=("cifar-100-binary/train.bin",),
        archive=Archive(
            f"{_KRIZ}/cifar-100-binary.tar.gz",
            "cifar-100-binary",
            "03b5dce01913d631647c71ecec9e9cb8",
        ),
        side=32,
        n_labelled=20_000,
        n_unlabelled=30_000,
    ),
    "imagenet100": Source(
        title="ImageNet-100",
        page="https://www.image-net.org/challenges/LSVRC/2012 or "
        "https://www.kaggle.com/c/imagenet-object-localization-challenge (training images)",
        n_classes=100,
        n_images=None,
        known=first(50),
        order=_order_imagenet,
        folders=("ILSVRC/Data/CLS-LOC/train",),
    ),
    "cub": Source(
        title="CUB-200-2011",
        page=f"{_CALTECH} (CUB_200_2011.tgz)",
        n_classes=200,
        n_images=5_994,
        known=_in_ssb("cub"),
        order=by_leading_number,
        published=read_cub,
        parts=tuple(
            f"CUB_200_2011/{name}"
            for name in ("images.txt", "image_class_labels.txt", "train_test_split.txt", "images")
        ),
        archive=Archive(
            f"{_CALTECH}/files/CUB_200_2011.tgz",
            "CUB_200_2011",
            "97eceeb196236b17998738112f37df78",
        ),
        n_labelled=1_498,
        n_unlabelled=4_496,
    ),
    "cars": Source(
        title="Stanford Cars",
        page="https://ai.stanford.edu/~jkrause/cars/car_dataset.html (cars_train.tgz and the "
        "devkit; if its links are dead, https://github.com/pytorch/vision/issues/7545 lists "
        "copies)",
        n_classes=196,
        n_images=8_144,
        known=_in_ssb("cars"),
        order=_order_of("cars"),
        published=read_cars,
        parts=("devkit/cars_train_annos.mat", "cars_train"),
        n_labelled=2_000,
        n_unlabelled=6_144,
    ),
    "aircraft": Source(
        title="FGVC-Aircraft",
        page=f"{_VGG}/ (fgvc-aircraft-2013b.tar.gz, training and validation)",
        n_classes=100,
        n_images=6_667,
        known=_in_ssb("aircraft"),
        order=_order_of("aircraft"),
        published=read_aircraft,
        parts=tuple(
            f"fgvc-aircraft-2013b/data/{name}"
            for name in ("images_variant_trainval.txt", "variants.txt", "images")
        ),
        # its page has no checksum
        archive=Archive(f"{_VGG}/archives/fgvc-aircraft-2013b.tar.gz", "fgvc-aircraft-2013b"),
        n_labelled=1_666,
        n_unlabelled=5_001,
    ),
    "herbarium": Source(
        title="Herbarium-19",
        page="https://www.kaggle.com/c/herbarium-2019-fgvc6 (small-train)",
        n_classes=683,
        n_images=34_225,
        known=_known_herbarium,
        folders=("small-train", "herbarium-challenge-2019-fgvc6/small-train"),
    ),
    "tiny-imagenet": Source(
        title="Tiny ImageNet",
        page="http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        n_classes=200,
        n_images=100_000,
        side=64,
        known=first(100),
        folders=("tiny-imagenet-200/train",),
        inner="images",
    ),
    "digits": Source(
        title="scikit-learn's digits",
        page="https://scikit-learn.org",
        n_classes=10,
        n_images=1_797,
        known=first(5),
        published=_read_digits,
    ),
}


def find_listing(name: str, source: Source, root: Path) -> Listing | None:
    """Read a data set from the first layout that exists; the published one comes first.

    Parameters
    ----------
    name : str
        Id of the data set, and the name that its folder in the root may have.
    source : Source
        What to look for.
    root : Path
        Where to look.
    """
    for base in (root / name, root):
        listing = source.published(base) if source.published is not None else None
        if listing is not None:
            return listing
    places = [base / folder for folder in source.folders for base in (root / name, root)]
    for folder in [*places, root / name / "train", root / name]:
        for inner in dict.fromkeys([source.inner, ""]):
            listing = read_class_folders(folder, source.order, inner)
            if listing is not None:
                return listing
    return None


def looked_for(name: str, source: Source, root: Path) -> str:
    """The places that `find_listing` searches, one per line."""
    bases = (root / name, root)
    inner = f"/{source.inner}" if source.inner else ""
    lines = [f"{base / part}" for base in bases for part in source.parts]
    lines += [f"{base / folder}/<class>{inner}/*" for folder in source.folders for base in bases]
    lines += [f"{folder}/<class>/*" for folder in (root / name / "train", root / name)]
    return "\n".join(f"  {line}" for line in lines)
