"""Archives from the data sets' own pages: download, check, unpack, then move into place."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import tarfile
import tempfile
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newfound.bench.datasets.dataset import Progress
from newfound.errors import InputError
from newfound.files import disk_errors

_CHUNK_BYTES = 2**20
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Archive:
    """A tar file on the web.

    Attributes
    ----------
    url : str
        Its address.
    folder : str
        Its top folder, which is kept.
    md5 : str or None
        Checksum from the data set's page; None if the page has none.
    """

    url: str
    folder: str
    md5: str | None = None


def fetch_archive(archive: Archive, into: Path, progress: Progress | None = None) -> Path:
    """Download and unpack an archive. Its folder appears completely or not at all.

    Parameters
    ----------
    archive : Archive
        What to download.
    into : Path
        Folder to put it in; created if necessary.
    progress : callable, optional
        Called with the number of bytes so far and in total (0 if not known).

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InputError
        If the archive cannot be downloaded, has another checksum, reaches outside its folder or
        does not contain the folder, or if the folder already exists.
    """
    target = into / archive.folder
    if target.exists():
        raise InputError(
            f"{target} exists, but is not a usable data set. Move it away and run the same command "
            "again."
        )
    # without this filter an archive could write outside its folder
    if not hasattr(tarfile, "data_filter"):
        raise InputError(
            "This Python cannot unpack archives safely. Use Python 3.10.12, 3.11.4 or newer, or "
            f"unpack {archive.url} into {into} yourself."
        )
    with disk_errors(into):
        into.mkdir(parents=True, exist_ok=True)
        # in the target folder, so that the last step is a rename on the same disk
        with tempfile.TemporaryDirectory(prefix=".download-", dir=into) as temporary:
            packed, unpacked = Path(temporary) / "archive", Path(temporary) / "unpacked"
            _download(archive, packed, progress or (lambda done, total: None))
            _unpack(archive, packed, unpacked)
            os.replace(unpacked / archive.folder, target)
    return target


def _download(archive: Archive, path: Path, progress: Progress) -> None:
    """Write the archive to `path` and compare length and checksum."""
    # the pages publish MD5 only: it detects damage, not attacks
    digest = hashlib.md5(usedforsecurity=False)
    with _opened(archive) as response, path.open("wb") as file:
        total, done = int(response.headers.get("Content-Length") or 0), 0
        while chunk := _read(archive, response):
            file.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            progress(done, total)
    if total and done != total:
        raise InputError(
            f"The download of {archive.url} stopped after {done:,} of {total:,} bytes. Run the "
            "same command again."
        )
    if archive.md5 is not None and digest.hexdigest() != archive.md5:
        raise InputError(
            f"{archive.url} has the MD5 checksum {digest.hexdigest()}, not {archive.md5}. It is "
            "damaged or another file; nothing was unpacked. Run the same command again, or "
            "download it by hand."
        )


@contextmanager
def _opened(archive: Archive) -> Iterator[Any]:
    """The open response. A redirection from https to http is refused."""
    try:
        response = urllib.request.urlopen(archive.url, timeout=_TIMEOUT_SECONDS)
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(archive, error) from error
    with response:
        if archive.url.startswith("https:") and not response.url.startswith("https:"):
            raise InputError(
                f"{archive.url} redirects to {response.url}, which is not encrypted. Download it "
                "by hand."
            )
        yield response


def _read(archive: Archive, response: Any) -> bytes:
    try:
        return response.read(_CHUNK_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(archive, error) from error


def _unreachable(archive: Archive, error: Exception) -> InputError:
    return InputError(
        f"{archive.url} cannot be downloaded ({error}). Check the network, or download the archive "
        f"on another machine and unpack it so that the folder {archive.folder} is in the root."
    )


def _unpack(archive: Archive, packed: Path, unpacked: Path) -> None:
    """Unpack files and folders that stay inside `unpacked`, and nothing else."""
    try:
        with tarfile.open(packed) as tar:
            tar.extractall(unpacked, filter="data")
    except tarfile.FilterError as error:
        raise InputError(
            f"{archive.url} contains a member that reaches outside its folder or is not a plain "
            f"file ({error}). It was not unpacked, because it is not the data set."
        ) from error
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            f"{archive.url} is not a readable tar archive ({error}). Run the same command again, "
            "or download it by hand."
        ) from error
    if not (unpacked / archive.folder).is_dir():
        held = ", ".join(sorted(path.name for path in unpacked.glob("*"))[:5]) or "nothing"
        raise InputError(
            f"{archive.url} contains {held}, but no folder {archive.folder}, so it is not the data "
            "set."
        )
