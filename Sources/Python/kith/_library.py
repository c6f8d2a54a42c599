"""The shared library, with the types of its functions. kith.h is the reference of each."""
from __future__ import annotations

import ctypes
import os
import pathlib
import socket
import weakref
from contextlib import suppress
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint
from ctypes import c_uint32, c_uint64, c_void_p
from typing import Any, NoReturn

NAME = "libkith.so.0"


class Options(ctypes.Structure):
    """kith_options."""

    _fields_ = [
        ("size", c_size_t), ("directory", c_char_p), ("hosts", POINTER(c_char_p)),
        ("peers", POINTER(c_char_p)), ("port", c_int32), ("flags", c_uint32),
        ("passphrase", c_char_p)]


class Limits(ctypes.Structure):
    """kith_policy."""

    _fields_ = [
        ("size", c_size_t), ("total_bytes", c_int64), ("keys", c_int64), ("key_bytes", c_int64),
        ("value_bytes", c_int64)]


# Handles, and pointers to text with a length, are numbers here.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "kith_version": (c_char_p,),
    "kith_free": (c_bool, c_void_p),
    "kith_error_code": (c_int, c_void_p),
    "kith_error_name": (c_char_p, c_void_p),
    "kith_error_message": (c_char_p, c_void_p),
    "kith_error_key": (c_void_p, c_void_p, POINTER(c_size_t)),
    "kith_error_path": (c_char_p, c_void_p),
    "kith_error_tries_left": (c_int, c_void_p),
    "kith_value_new_bool": (c_void_p, c_bool),
    "kith_value_new_integer": (c_void_p, c_int64),
    "kith_value_new_double": (c_void_p, c_double),
    "kith_value_new_date": (c_void_p, c_double),
    "kith_value_new_string": (c_void_p, c_char_p, c_size_t),
    "kith_value_new_data": (c_void_p, c_char_p, c_size_t),
    "kith_value_new_array": (c_void_p,),
    "kith_value_new_dictionary": (c_void_p,),
    "kith_value_append": (c_bool, c_void_p, c_void_p, c_void_p),
    "kith_value_put": (c_bool, c_void_p, c_char_p, c_size_t, c_void_p, c_void_p),
    "kith_value_type": (c_int, c_void_p),
    "kith_value_get_bool": (c_bool, c_void_p, c_bool),
    "kith_value_get_integer": (c_int64, c_void_p, c_int64),
    "kith_value_get_double": (c_double, c_void_p, c_double),
    "kith_value_get_date": (c_double, c_void_p, c_double),
    "kith_value_get_string": (c_void_p, c_void_p, POINTER(c_size_t)),
    "kith_value_get_data": (c_void_p, c_void_p, POINTER(c_size_t)),
    "kith_value_count": (c_size_t, c_void_p),
    "kith_value_at": (c_void_p, c_void_p, c_size_t),
    "kith_value_name_at": (c_void_p, c_void_p, c_size_t, POINTER(c_size_t)),
    "kith_accounts_open": (c_void_p, POINTER(Options), c_void_p),
    "kith_accounts_run": (c_void_p, c_void_p, c_void_p),
    "kith_accounts_close": (c_bool, c_void_p, c_void_p),
    "kith_accounts_store": (c_void_p, c_void_p, c_char_p, POINTER(Limits), c_void_p),
    "kith_accounts_signed_in": (c_void_p, c_void_p, c_void_p),
    "kith_accounts_known": (c_void_p, c_void_p, c_void_p),
    "kith_accounts_status": (c_void_p, c_void_p, c_void_p),
    "kith_accounts_create_account": (c_void_p, c_void_p, c_char_p, c_void_p),
    "kith_accounts_sign_in": (c_void_p, c_void_p, c_char_p, c_char_p, c_char_p, c_void_p),
    "kith_accounts_sign_in_to": (c_void_p, c_void_p, c_char_p, c_void_p),
    "kith_accounts_sign_out": (c_void_p, c_void_p, c_void_p),
    "kith_accounts_invite": (c_void_p, c_void_p, POINTER(c_char_p), c_void_p),
    "kith_task_next": (c_void_p, c_void_p, c_int),
    "kith_task_answer": (c_bool, c_void_p, c_bool, c_void_p),
    "kith_task_cancel": (None, c_void_p),
    "kith_task_is_done": (c_bool, c_void_p),
    "kith_task_finish": (c_void_p, c_void_p, c_void_p),
    "kith_store_get": (c_void_p, c_void_p, c_char_p, c_size_t, c_void_p),
    "kith_store_keys": (c_void_p, c_void_p, c_void_p),
    "kith_store_snapshot": (c_void_p, c_void_p, c_char_p, c_size_t, c_void_p),
    "kith_store_set": (c_bool, c_void_p, c_char_p, c_size_t, c_void_p, c_void_p),
    "kith_store_set_bool": (c_bool, c_void_p, c_char_p, c_bool, c_void_p),
    "kith_store_set_integer": (c_bool, c_void_p, c_char_p, c_int64, c_void_p),
    "kith_store_set_double": (c_bool, c_void_p, c_char_p, c_double, c_void_p),
    "kith_store_set_string": (c_bool, c_void_p, c_char_p, c_char_p, c_void_p),
    "kith_store_set_each": (
        c_bool, c_void_p, c_size_t, POINTER(c_char_p), POINTER(c_size_t), POINTER(c_void_p), c_void_p),
    "kith_store_flush": (c_bool, c_void_p, c_void_p),
    "kith_store_usage": (c_void_p, c_void_p, c_void_p),
    "kith_store_hidden_entries": (c_void_p, c_void_p, c_void_p),
    "kith_store_refusals": (c_void_p, c_void_p, c_void_p),
    "kith_store_take_refusals": (c_void_p, c_void_p, c_uint64, c_void_p),
    "kith_store_history": (c_void_p, c_void_p, c_char_p, c_size_t, c_size_t, c_void_p),
    "kith_store_undo": (c_void_p, c_void_p, c_char_p, c_size_t, c_uint64, c_void_p),
    "kith_store_undo_transaction": (c_void_p, c_void_p, c_uint64, c_void_p),
    "kith_store_sync_report": (c_void_p, c_void_p, c_void_p),
    "kith_store_wait_until_synced": (c_void_p, c_void_p, c_int, c_uint, c_void_p),
    "kith_store_begin": (c_void_p, c_void_p, c_void_p),
    "kith_transaction_commit": (c_bool, c_void_p, c_void_p),
    "kith_transaction_get": (c_void_p, c_void_p, c_char_p, c_size_t, c_void_p),
    "kith_transaction_snapshot": (c_void_p, c_void_p, c_char_p, c_size_t, c_void_p),
    "kith_transaction_expect": (c_bool, c_void_p, c_char_p, c_size_t, c_void_p, c_void_p),
    "kith_transaction_set": (c_bool, c_void_p, c_char_p, c_size_t, c_void_p, c_void_p),
    "kith_store_changes": (c_void_p, c_void_p, c_uint32, c_void_p),
    "kith_changes_fd": (c_int, c_void_p),
    "kith_changes_next": (c_void_p, c_void_p, c_int),
    "kith_changes_have_ended": (c_bool, c_void_p),
    "kith_change_reason": (c_int, c_void_p),
    "kith_change_count": (c_size_t, c_void_p),
    "kith_change_key": (c_void_p, c_void_p, c_size_t, POINTER(c_size_t)),
    "kith_change_old": (c_void_p, c_void_p, c_size_t),
    "kith_change_new": (c_void_p, c_void_p, c_size_t),
    "kith_change_superseded": (c_void_p, c_void_p),
    "kith_change_is_joined": (c_bool, c_void_p),
}


def _load() -> ctypes.CDLL:
    """That of KITH_LIBRARY, or the one in the wheel, or the system's."""
    beside = pathlib.Path(__file__).with_name(NAME)
    path = os.environ.get("KITH_LIBRARY") or (str(beside) if beside.exists() else NAME)
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"kith needs {NAME}: install the Debian package libkith0 or a wheel that has it, or name "
            f"the file in KITH_LIBRARY ({error})") from error
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


lib = _load()


def _forked(*_: object) -> NoReturn:
    raise RuntimeError(
        "kith cannot be used after os.fork(): start processes with subprocess, or with "
        'multiprocessing.set_start_method("spawn")')


def _after_fork() -> None:
    """The library's threads stay behind in the parent, with its locks."""
    for name in _FUNCTIONS:
        setattr(lib, name, _forked)
    # The parent ends its handles itself.
    for name in ("kith_free", "kith_accounts_close"):
        setattr(lib, name, lambda *_: False)
    _close_directories()


def _close_directories() -> None:
    """Closes the locks and control sockets of the parent's directories. Otherwise they last as long as the
    child. The parent keeps its own: to close a lock does not release it (flock(2))."""
    owner = b"pid %010d\n" % _PROCESS
    for number in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):
            path = os.readlink(f"/proc/self/fd/{number}")
            if path.startswith("socket:"):
                with socket.socket(fileno=os.dup(number)) as copy:
                    path = str(copy.getsockname())
            if os.path.basename(path) not in ("lock", "control"):
                continue
            # A path too long for a socket leads through a descriptor, which is closed since.
            if path.startswith("/proc/self/fd/") or _begins(pathlib.Path(path).with_name("lock"), owner):
                os.close(number)


def _begins(path: pathlib.Path, text: bytes) -> bool:
    """Whether a file begins with a text. It reads no more, because any program may have a file of this
    name, and waits for no pipe."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        return os.read(file, len(text)) == text
    finally:
        os.close(file)


_PROCESS = os.getpid()
os.register_at_fork(after_in_child=_after_fork)


def free(handle: int) -> None:
    """Ends a handle, but not in a child of os.fork(): for finalizers, which outlive the fork and would
    keep the function that they were made with."""
    lib.kith_free(handle)


class Owner:
    """An object with a handle, which ends with it. The handle is a number of this process alone."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._free = weakref.finalize(self, free, handle)
        # At the end of the program the accounts end all that is theirs.
        self._free.atexit = False

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle or copy a {type(self).__name__}, which belongs to its process")
