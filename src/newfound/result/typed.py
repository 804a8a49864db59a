"""Values from JSON, compared with the types of the dataclass that they are for."""

from __future__ import annotations

import types
from dataclasses import fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


def check_types(record: Any) -> None:
    """Refuse a dataclass that holds a value of another type than it declares.

    Parameters
    ----------
    record : dataclass instance
        Made from values of a file. Dataclasses within it are checked too.

    Raises
    ------
    TypeError
        Names the first value that does not fit.
    """
    hints = get_type_hints(type(record))
    for item in fields(record):
        value = getattr(record, item.name)
        if not fits(value, hints[item.name]):
            raise TypeError(f"{item.name} is {value!r:.80}, which is not of the type {item.type}")
        if hasattr(value, "__dataclass_fields__"):
            check_types(value)


def fits(value: object, hint: Any) -> bool:
    """Whether a value has a type: a class, a union, a literal, or a tuple or dict of such."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin is tuple:
        inner = parts[:1] * len(value) if isinstance(value, tuple) and ... in parts else parts
        return (
            isinstance(value, tuple)
            and len(value) == len(inner)
            and all(fits(one, part) for one, part in zip(value, inner, strict=True))
        )
    if origin is dict:
        return isinstance(value, dict) and all(
            fits(key, parts[0]) and fits(one, parts[1]) for key, one in value.items()
        )
    if isinstance(value, bool):
        return hint is bool
    return isinstance(value, (int, float) if hint is float else hint)
