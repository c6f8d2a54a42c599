"""A store, and its transactions."""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from ctypes import byref, c_char_p, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, Optional, TypedDict, TypeVar, Union, TYPE_CHECKING

from datetime import datetime

from ._arguments import fitting, waiting
from ._changes import Changes
from ._errors import Conflict, check
from ._library import Owner, lib
from ._transaction import Transaction, Values
from ._values import Value, encoded_key, encoded_text, integer, new, take

if TYPE_CHECKING:
    from ._accounts import Accounts

Result = TypeVar("Result")
# As Swift's Limits.commitTries.
_TRIES = 1000
_MISSING: Any = object()


class _Thread(threading.local):
    """What a thread does."""

    tries_again = False
    """Whether it tries a transaction again, while others wait for their turn."""


_thread = _Thread()


class Usage(TypedDict):
    """What a store uses, and its limits."""

    bytes: int
    keys: int
    policy: dict[str, int]


class HiddenEntry(TypedDict):
    """A write that the quota hides."""

    key: str
    value: Value
    bytes: int
    device: str
    written: datetime


class Refusal(TypedDict):
    """A transaction that was accepted offline and did not fit later."""

    number: int
    reason: str
    """"quota" or "initialSync"."""
    written: datetime
    writes: list[dict[str, Value]]
    """Each has "key", and "value" unless it removed the key."""


class SyncReport(TypedDict):
    """Who has this device's writes."""

    complete: list[str]
    incomplete: list[str]
    hasUnpublishedWrites: bool
    isComplete: bool


class Store(Owner, Values):
    """A key-value space of the account, shared by all its devices: a mapping of `str` to values.

    Reads come from memory. A write is visible at once and durable soon; `flush()` waits for that,
    and a commit is durable on return. Any thread may use it.
    """

    def __init__(self, accounts: Accounts, handle: int, identifier: str) -> None:
        self.accounts = accounts
        """The accounts that the store is of."""
        self.identifier = identifier
        super().__init__(handle)
        self._retries = accounts._retries.setdefault(identifier, threading.RLock())

    def __repr__(self) -> str:
        return f"<kith.Store {self.identifier!r}>"

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def close(self) -> None:
        """Closes the accounts, with all their stores; see `Accounts.close()`."""
        self.accounts.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _open(self) -> int:
        """The handle, for all but reading: unless the accounts are closed."""
        self.accounts._check_open()
        return self._handle

    # Reading.

    def _get(self, name: bytes) -> Any:
        error = c_void_p()
        return take(lib.kith_store_get(self._handle, name, len(name), byref(error)), error)

    def _snapshot(self, prefix: bytes) -> dict[str, Value]:
        error = c_void_p()
        values: dict[str, Value] = take(
            lib.kith_store_snapshot(self._handle, prefix, len(prefix), byref(error)), error)
        return values

    def _keys(self) -> list[str]:
        error = c_void_p()
        keys: list[str] = take(lib.kith_store_keys(self._handle, byref(error)), error)
        return keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    # Writing.

    def __setitem__(self, key: str, value: Value) -> None:
        name, handle, error = encoded_key(key), self._handle, c_void_p()
        if b"\0" in name:  # the others take no length
            self._set(name, new(value))
        elif isinstance(value, bool):
            lib.kith_store_set_bool(handle, name, value, byref(error))
        elif isinstance(value, int):
            lib.kith_store_set_integer(handle, name, integer(value), byref(error))
        elif isinstance(value, float):
            lib.kith_store_set_double(handle, name, value, byref(error))
        elif isinstance(value, str) and "\0" not in value:
            lib.kith_store_set_string(handle, name, encoded_text(value), byref(error))
        else:
            self._set(name, new(value))
        check(error)

    def _set(self, name: bytes, value: Optional[int]) -> None:
        error = c_void_p()
        lib.kith_store_set(self._handle, name, len(name), value, byref(error))
        lib.kith_free(value)
        check(error)

    def flush(self) -> None:
        """Blocks until all writes so far survive a crash."""
        error = c_void_p()
        lib.kith_store_flush(self._open, byref(error))
        check(error)

    # Transactions.

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction for `with`, which commits at its end, or drops the writes if that is left by an
        exception.

        If another task, program or device changes meanwhile what it read, it writes nothing and
        raises `Conflict`; `commit()` repeats itself then. Blocks until the writes are durable.
        """
        transaction = Transaction(self)
        try:
            yield transaction
            transaction._commit()
        finally:
            transaction._free()

    def commit(self, body: Callable[[Transaction], Result]) -> Result:
        """Calls `body` with a transaction, commits its writes, and returns what it returns.

        If others change meanwhile what it read, it is called again, at most 1,000 times: let it
        compute, and act on what `commit` returns. If it raises, nothing is written. Blocks until
        the writes are durable; with asyncio, use `asyncio.to_thread(store.commit, body)`.
        """
        conflict, result = self._try(body)
        if conflict:
            # One thread at a time tries again: many that met would keep each other from being accepted. A
            # commit within a body takes no turn: the thread that has it may wait for this one.
            is_inner = _thread.tries_again
            with nullcontext() if is_inner else self._retries:
                try:
                    _thread.tries_again = True
                    for _ in range(_TRIES - 1):
                        conflict, result = self._try(body)
                        if not conflict:
                            break
                finally:
                    _thread.tries_again = is_inner
        if conflict:
            raise conflict
        return result

    def _try(self, body: Callable[[Transaction], Result]) -> tuple[Optional[Conflict], Result]:
        transaction = Transaction(self)
        try:
            result = body(transaction)
            try:
                transaction._commit()
            except Conflict as conflict:
                return conflict, result
            return None, result
        finally:
            transaction._free()

    def update(  # type: ignore[override]
        self, other: Union[Mapping[str, Value], Iterable[tuple[str, Value]]] = (), /, **members: Value
    ) -> None:
        """Sets several keys. All are converted first: if one cannot be, such as None, nothing is set. Then
        each is set by itself: if some are refused, such as by the quota, the others are set, and it raises
        the error of the first. `commit()` writes all or none."""
        values = dict(other, **members)
        keys = [encoded_key(key) for key in values]
        made: list[int] = []
        error = c_void_p()
        try:
            for value in values.values():
                made.append(new(value))
            lib.kith_store_set_each(
                self._handle, len(keys), (c_char_p * len(keys))(*keys),
                (c_size_t * len(keys))(*map(len, keys)), (c_void_p * len(keys))(*made), byref(error))
        finally:
            for handle in made:
                lib.kith_free(handle)
        check(error)

    # A mapping's own ones read and write apart: another task or program may write in between.

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, which is set to the default if it has none. Durable on return."""
        return self.commit(lambda transaction: transaction.setdefault(key, default))

    def pop(self, key: str, default: Any = _MISSING) -> Any:
        """Removes a key, and returns its value: to one caller only. Without the key it returns the
        default, or raises `KeyError`. Durable on return."""

        def take_out(transaction: Transaction) -> Any:
            value = transaction._find(key)
            if value is not None:
                transaction._set(encoded_key(key), None)
            return value

        value = self.commit(take_out)
        if value is not None:
            return value
        if default is _MISSING:
            raise KeyError(key)
        return default

    def popitem(self) -> tuple[str, Value]:
        """As `Transaction.popitem()`: to one caller only. Durable on return."""
        return self.commit(lambda transaction: transaction.popitem())

    def clear(self) -> None:
        """Removes all keys, in one transaction."""
        self.commit(lambda transaction: transaction.clear())

    # Changes.

    def changes(self, *, own_writes: bool = False) -> Changes:
        """The changes of others from now on: `async for change in store.changes()`.

        Call it before you read, to miss none. At most 64 wait; then the newest are joined.
        """
        return Changes(self, self._open, own_writes)

    # What the node knows.

    def usage(self) -> Usage:
        """What the store uses, and its limits."""
        return self._ask(lib.kith_store_usage)  # type: ignore[no-any-return]

    def hidden_entries(self) -> list[HiddenEntry]:
        """The newest writes that the quota hides."""
        return self._ask(lib.kith_store_hidden_entries)  # type: ignore[no-any-return]

    def refusals(self) -> list[Refusal]:
        """The newest transactions that were accepted offline and did not fit later, until they are taken."""
        return self._ask(lib.kith_store_refusals)  # type: ignore[no-any-return]

    def take_refusals(self, through: int = 0) -> list[Refusal]:
        """Removes the refusals up to a number (0: all), and returns them."""
        number = fitting(through, c_uint64, "through")
        return self._ask(lib.kith_store_take_refusals, number)  # type: ignore[no-any-return]

    def history(self, key: Optional[str] = None, limit: int = 0) -> list[dict[str, Value]]:
        """What a key (None: every key) showed before on this device, newest first: dictionaries with
        "number", "transaction", "key", "value", "ended" and "endedBy", as kith.h has them."""
        name, limit = b"" if key is None else encoded_key(key), fitting(limit, c_size_t, "limit")
        return self._ask(  # type: ignore[no-any-return]
            lib.kith_store_history, None if key is None else name, len(name), limit)

    def undo(self, key: str, number: int = 0) -> Optional[dict[str, Value]]:
        """Makes a key show a past value again (0: the newest), and returns that; None if there is none."""
        name, number = encoded_key(key), fitting(number, c_uint64, "number")
        return self._ask(lib.kith_store_undo, name, len(name), number)  # type: ignore[no-any-return]

    def undo_transaction(self, transaction: int) -> list[dict[str, Value]]:
        """Makes all keys whose values ended together show those again, and returns them."""
        number = fitting(transaction, c_uint64, "transaction")
        return self._ask(lib.kith_store_undo_transaction, number)  # type: ignore[no-any-return]

    def sync_report(self) -> SyncReport:
        """Which devices have this device's writes."""
        self.accounts._check_sync()
        return self._ask(lib.kith_store_sync_report)  # type: ignore[no-any-return]

    def wait_until_synced(self, timeout: float = 5, devices: int = 0) -> SyncReport:
        """Blocks until so many other devices (0: all) have this device's writes, or the time is over."""
        from ._accounts import Task

        self.accounts._check_sync()
        task = Task.begun(
            lib.kith_store_wait_until_synced, self._open, round(min(waiting(timeout), 2_000_000) * 1000),
            fitting(devices, c_uint, "devices"))
        return task.finish()  # type: ignore[return-value]

    def _ask(self, function: Any, *arguments: object) -> Any:
        error = c_void_p()
        return take(function(self._open, *arguments, byref(error)), error)
