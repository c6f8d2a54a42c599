"""Values of a store as Python's, and the reverse."""
from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import byref, c_size_t, c_void_p
from datetime import datetime, timedelta, timezone
from typing import Any, Optional, Union

from ._arguments import text
from ._errors import KithError, check, unsupported
from ._library import lib

Value = Union[
    bool, int, float, str, bytes, datetime, list[Any], tuple["Value", ...], Mapping[str, "Value"]]
"""What a store holds. Containers that are read are copies: to change one, set it anew."""

BOOL, INTEGER, DOUBLE, STRING, DATE, DATA, ARRAY, DICTIONARY = range(1, 9)
# As Swift's PropertyListValue.maximumDepth.
_DEPTH = 64
_EPOCH = datetime(2001, 1, 1, tzinfo=timezone.utc)
_FIRST = datetime.min.replace(tzinfo=timezone.utc)
_LAST = datetime.max.replace(tzinfo=timezone.utc)


def encoded_key(key: str) -> bytes:
    """A key as the library takes it, with its length."""
    return text(key, "key", "invalidKey", has_length=True)


def encoded_text(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise unsupported("The text is not UTF-8: it has a surrogate.") from None


def seconds(date: datetime) -> float:
    """Since 2001."""
    if date.utcoffset() is None:
        raise unsupported("The date has no time zone: write datetime.now(timezone.utc).")
    return (date - _EPOCH).total_seconds()


def integer(value: int) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise unsupported("The integer needs more than 64 bits.")
    return value


def new(value: object, depth: int = 0) -> int:
    """Makes a value of the library, which the caller frees."""
    made: int | None
    if isinstance(value, bool):
        made = lib.kith_value_new_bool(value)
    elif isinstance(value, int):
        made = lib.kith_value_new_integer(integer(value))
    elif isinstance(value, float):
        made = lib.kith_value_new_double(value)
    elif isinstance(value, str):
        content = encoded_text(value)
        made = lib.kith_value_new_string(content, len(content))
    elif isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        made = lib.kith_value_new_data(data, len(data))
    elif isinstance(value, datetime):
        made = lib.kith_value_new_date(seconds(value))
    elif isinstance(value, Mapping):
        made = _new_dictionary(value, depth)
    elif isinstance(value, (list, tuple)):
        made = _new_array(value, depth)
    elif value is None:
        raise unsupported("A store holds no None: leave the value out, or delete the key.")
    else:
        raise unsupported(f"A store holds no {type(value).__name__}.")
    assert made is not None
    return made


def _enter(depth: int) -> None:
    if depth >= _DEPTH:
        raise unsupported(f"More than {_DEPTH} containers lie within each other.")


def _new_array(elements: Sequence[object], depth: int) -> int:
    _enter(depth)
    array: int = lib.kith_value_new_array()
    error = c_void_p()
    try:
        for element in elements:
            made = new(element, depth + 1)
            lib.kith_value_append(array, made, byref(error))
            lib.kith_free(made)
            check(error)
    except BaseException:
        lib.kith_free(array)
        raise
    return array


def _new_dictionary(members: Mapping[Any, object], depth: int) -> int:
    _enter(depth)
    dictionary: int = lib.kith_value_new_dictionary()
    error = c_void_p()
    try:
        for name, member in members.items():
            if not isinstance(name, str):
                raise unsupported(f"The names in a dictionary are str, not {type(name).__name__}.")
            encoded = encoded_text(name)
            made = new(member, depth + 1)
            lib.kith_value_put(dictionary, encoded, len(encoded), made, byref(error))
            lib.kith_free(made)
            check(error)
    except BaseException:
        lib.kith_free(dictionary)
        raise
    return dictionary


def _date(seconds_since_2001: float) -> datetime:
    """The first or last date that Python has stands in for those beyond."""
    try:
        return _EPOCH + timedelta(seconds=seconds_since_2001)
    except (OverflowError, ValueError):
        return _LAST if seconds_since_2001 > 0 else _FIRST


def _text(pointer: int, length: c_size_t) -> str:
    return ctypes.string_at(pointer, length.value).decode()


def read(value: int) -> Value:
    """A value of the library as Python's. It stays its owner's."""
    kind = lib.kith_value_type(value)
    if kind == STRING:
        length = c_size_t()
        return _text(lib.kith_value_get_string(value, length), length)
    if kind == INTEGER:
        return int(lib.kith_value_get_integer(value, 0))
    if kind == BOOL:
        return bool(lib.kith_value_get_bool(value, False))
    if kind == DOUBLE:
        return float(lib.kith_value_get_double(value, 0.0))
    if kind == DATE:
        return _date(lib.kith_value_get_date(value, 0.0))
    if kind == DATA:
        length = c_size_t()
        pointer = lib.kith_value_get_data(value, length)
        return ctypes.string_at(pointer, length.value) if length.value else b""
    count = lib.kith_value_count(value)
    if kind == ARRAY:
        return [read(lib.kith_value_at(value, index)) for index in range(count)]
    if kind != DICTIONARY:
        raise KithError("invalidArgument", "The library returned no value.")
    members: dict[str, Value] = {}
    length = c_size_t()
    for index in range(count):
        name = _text(lib.kith_value_name_at(value, index, length), length)
        members[name] = read(lib.kith_value_at(value, index))
    return members


def take(value: int | None, error: c_void_p) -> Any:
    """Raises the error, or returns what a call gave, freed; None if that is nothing."""
    check(error)
    if value is None:
        return None
    try:
        return read(value)
    finally:
        lib.kith_free(value)
