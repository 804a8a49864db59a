"""What a notebook shows of a result: the answer, and the new categories with what is in them.

It is one piece of HTML without script or links. Names, ids and texts were written by other people,
so every one of them is escaped. The report has all of it and more; this must stay small, because it
is stored in the notebook.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from newfound.data.pictures import PictureError, read_picture, square_pixels
from newfound.errors import MissingExtraError, require
from newfound.words import first_few, plural, things

if TYPE_CHECKING:
    from newfound.result.result import Result

#: Most new categories, and most items of each.
MAX_CATEGORIES = 24
N_EXAMPLES = 6

#: Most characters of all thumbnails together; categories after that are shown by their ids.
MAX_CHARACTERS = 700_000

_SIZE = 80
_MAX_TEXT = 160


def show_result(result: Result) -> str:
    """The result as a piece of HTML, at most about a megabyte.

    Parameters
    ----------
    result : Result
        What was found.

    Returns
    -------
    str
        The answer, how far to trust it, warnings, the new categories (the largest first) with up to
        six items each, and the known ones in one line.
    """
    sizes, kind = result.profiles.sizes, result.collection.kind
    novel = sorted(range(result.n_known, len(result.names)), key=lambda code: -sizes[code])
    lines = [f'<p style="font-size:1.25em;margin:0 0 .4em"><b>{escape(result.answer)}</b></p>']
    texts = (result.trust, *result.record.warnings)
    lines += [f'<p style="margin:0 0 .4em">{escape(text)}</p>' for text in texts if text]
    room = MAX_CHARACTERS
    for code in novel[:MAX_CATEGORIES]:
        examples = _examples(result, result.profiles.exemplars[code][:N_EXAMPLES].tolist(), room)
        room -= len(examples) if "data:image" in examples else 0
        size = int(sizes[code])
        count = f"{size:,} {things(kind, size)}"
        lines.append(
            f'<div style="margin:.7em 0 0"><div><b>{escape(result.names[code])}</b> '
            f'<span style="opacity:.7">{count}</span></div>{examples}</div>'
        )
    if len(novel) > MAX_CATEGORIES:
        more = plural(len(novel) - MAX_CATEGORIES, "more new category", "more new categories")
        lines.append(f"<p>{more}: see <code>result.categories</code>.</p>")
    if result.n_known:
        known = first_few(result.names[: result.n_known], 30)
        lines.append(f'<p style="margin:.9em 0 0;opacity:.7">Known: {escape(known)}.</p>')
    return "\n".join(["<div>", *lines, "</div>"])


def _examples(result: Result, rows: Sequence[int], room: int) -> str:
    """Some items of a category: thumbnails, texts or ids."""
    collection = result.collection
    if collection.texts is not None:
        texts = [_shorten(collection.texts[row]) for row in rows]
        lines = [f'<li style="margin:0">{escape(text)}</li>' for text in texts]
        return f'<ul style="margin:.15em 0 0">{"".join(lines)}</ul>'
    if collection.paths is not None:
        pictures = "".join(_thumbnail(collection.paths[row], collection.ids[row]) for row in rows)
        if pictures and len(pictures) <= room:
            return f"<div>{pictures}</div>"
    ids = ", ".join(escape(collection.ids[row]) for row in rows)
    return f'<div style="font-family:monospace;font-size:.9em">{ids}</div>'


def _thumbnail(path: Path, name: str) -> str:
    """An image element, empty if the picture cannot be read any more."""
    try:
        pixels = square_pixels(read_picture(path, at_least=_SIZE), _SIZE)
        picture = require("PIL.Image", "train").fromarray(pixels)
    except (PictureError, MissingExtraError):
        return ""
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=72)
    uri = base64.b64encode(buffer.getvalue()).decode("ascii")
    words = escape(name, quote=True)
    style = "display:inline-block;margin:.15em .25em 0 0;border-radius:4px"
    return (
        f'<img src="data:image/jpeg;base64,{uri}" width="{_SIZE}" height="{_SIZE}" '
        f'alt="{words}" title="{words}" style="{style}">'
    )


def _shorten(text: str) -> str:
    """The beginning of a text, up to the last whole word."""
    words = " ".join(text[: 2 * _MAX_TEXT].split()) or "(empty text)"
    return words if len(words) <= _MAX_TEXT else words[:_MAX_TEXT].rsplit(" ", 1)[0] + " …"
