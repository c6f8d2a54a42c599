"""The errors of calls."""
from __future__ import annotations

from ctypes import c_size_t, c_void_p, string_at

from ._library import lib


class KithError(Exception):
    """A refused or failed call; it has changed nothing, unless the code says so.

    `code` is a name such as "quotaExceeded"; kith.h describes all. The message has the reason and
    the remedy, and never a value. `key` is private: do not log it.
    """

    def __init__(
        self, code: str, message: str, *, key: str | None = None, path: str | None = None,
        tries_left: int | None = None,
    ) -> None:
        super().__init__(code, message)  # with which a pickled one is made again
        self.code = code
        self.message = message
        self.key = key
        self.path = path
        self.tries_left = tries_left

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Conflict(KithError):
    """Others changed what a transaction read, so it wrote nothing. Begin it again."""


def unsupported(message: str) -> KithError:
    return KithError("unsupportedValue", message)


def check(error: c_void_p) -> None:
    """Raises the error that a call stored, if it did, and frees it."""
    if not error.value:
        return
    handle = error.value
    code = lib.kith_error_name(handle).decode()
    length = c_size_t()
    key, path = lib.kith_error_key(handle, length), lib.kith_error_path(handle)
    tries = lib.kith_error_tries_left(handle)
    raised = (Conflict if code == "conflict" else KithError)(
        code, lib.kith_error_message(handle).decode(errors="replace"),
        key=None if key is None else string_at(key, length.value).decode(),
        path=None if path is None else path.decode(errors="replace"),
        tries_left=None if tries < 0 else tries)
    lib.kith_free(handle)
    raise raised
