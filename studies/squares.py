"""Squares of 224 px from the pictures of a data set, as small as the published runs had them.

    python studies/squares.py data/cub squares/cub

Writes each picture as a JPEG of quality 92 with all of its colours (no subsampling), in the same
folders, and prints the checksum of the files that a run's record has; it is the same only with the
same versions of Pillow and its JPEG library. What is there already stays.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from multiprocessing import Pool
from pathlib import Path

from PIL import Image

from newfound.bench.datasets import load_dataset
from newfound.bench.provenance import files_checksum
from newfound.bench.splits import make_split
from newfound.data.pictures import read_picture, square_pixels
from newfound.files import whole_file

SIDE, QUALITY = 224, 92


def write_square(target: Path, source: Path, picture: Path) -> None:
    """The square of one picture, at the same place below another folder."""
    file = (target / picture.relative_to(source)).with_suffix(".jpg")
    if not file.exists():
        square = Image.fromarray(square_pixels(read_picture(picture, at_least=SIDE), SIDE))
        with whole_file(file) as unfinished:
            square.save(unfinished, "JPEG", quality=QUALITY, subsampling=0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path, help="its last part is the name of the data set")
    given = parser.parse_args()
    pictures = sorted(path for path in given.source.rglob("*") if path.is_file())
    with Pool(os.cpu_count()) as pool:
        work = partial(write_square, given.target, given.source)
        for done, _ in enumerate(pool.imap_unordered(work, pictures, chunksize=16), 1):
            if done % 500 == 0 or done == len(pictures):
                print(f"{done} of {len(pictures)}", flush=True)
    data = load_dataset(given.target.name, given.target.parent, incomplete=True)
    print(f"files {files_checksum(data, make_split(data))}")


if __name__ == "__main__":
    main()
