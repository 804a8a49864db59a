"""Embeddings on disk, so that the same content is never encoded twice.

Features are stored under a key, the SHA-256 of a file's content or of a text, in a folder for the
encoder that made them: its name, its weights and how items are prepared. A changed file therefore
has no stored features, and neither has another encoder.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from newfound.encode.encoder import Features
from newfound.files import write_atomically

#: Part of every key. Increase it when items are prepared differently: old features then expire.
_SCHEME = 1


class EmbeddingStore:
    """Features of one encoder: a folder with one file per batch.

    A file is written under another name and then renamed. It is either complete or absent, even if
    several processes write to the folder. It starts with the SHA-256 of the rest: two arrays in
    NumPy's format, the keys (n, 32) and the features (n, d). A damaged file is removed.

    Parameters
    ----------
    cache : Path
        Folder of the stores of all encoders.
    identity : dict
        What the features depend on, beside the items.
    """

    def __init__(self, cache: Path, identity: dict[str, Any]) -> None:
        text = json.dumps({"scheme": _SCHEME, **identity}, sort_keys=True, indent=1)
        self._folder = cache / hashlib.sha256(text.encode()).hexdigest()[:20]
        write_atomically(self._folder / "encoder.json", text.encode())

    def read(self) -> Iterator[tuple[list[bytes], Features]]:
        """Yield keys and features, one file at a time."""
        for path in sorted(self._folder.glob("*.rows")):
            try:
                content = path.read_bytes()
            except OSError:
                continue  # its items are encoded again
            if hashlib.sha256(content[32:]).digest() != content[:32]:
                path.unlink(missing_ok=True)
                continue
            file = io.BytesIO(content[32:])
            keys = np.load(file, allow_pickle=False)
            features = np.load(file, allow_pickle=False)
            yield [key.tobytes() for key in keys], features

    def write(self, keys: Sequence[bytes], features: Features) -> None:
        """Store features (n, d) under their keys (n)."""
        if not keys:
            return
        file = io.BytesIO()
        np.save(file, np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, 32))
        np.save(file, features)
        digest = hashlib.sha256(file.getvalue())
        write_atomically(
            self._folder / f"{digest.hexdigest()[:20]}.rows", digest.digest() + file.getvalue()
        )
