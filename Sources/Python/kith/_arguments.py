"""What a program hands over, as the library takes it. Everything may be wrong."""
from __future__ import annotations

import math
import os
from collections.abc import Iterable
from ctypes import c_char_p
from typing import Any, Optional, Union

from ._errors import KithError


def text(
    value: str, name: str, code: Optional[str] = None, *, has_length: bool = False
) -> bytes:
    """UTF-8 for a C string, or for one that is passed on with its length and may have zero bytes. Raises
    `ValueError`, or `KithError` with a code, if it cannot be one."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be str, not {type(value).__name__}")
    message = f"The {name} has a zero byte, which this interface cannot pass on."
    if has_length or "\0" not in value:
        try:
            return value.encode()
        except UnicodeEncodeError:
            message = f"The {name} is not UTF-8: it has a surrogate."
    raise KithError(code, message) if code else ValueError(message)


def path(value: Union[str, os.PathLike[str]], name: str) -> bytes:
    return text(os.fsdecode(value), name)


def texts(values: Iterable[str], name: str) -> Any:
    """An array of texts that ends with NULL; None if there are none."""
    if isinstance(values, str):
        raise TypeError(f"{name} must be a list of str, not one str")
    encoded = [text(value, name) for value in values]
    return (c_char_p * (len(encoded) + 1))(*encoded, None) if encoded else None


def fitting(value: int, kind: Any, name: str) -> int:
    """A number for a type of C, to which ctypes would cut it."""
    if kind(value).value != value:
        raise OverflowError(f"{name} is out of range: {value}")
    return value


def waiting(seconds: float) -> float:
    """The longest time of a wait."""
    if math.isnan(seconds):
        raise ValueError("timeout must be a number of seconds, not NaN")
    return max(seconds, 0)
