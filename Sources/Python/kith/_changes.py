"""The changes of a store, for a loop of one's own or for asyncio."""
from __future__ import annotations

import asyncio
import ctypes
import enum
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from ctypes import byref, c_size_t, c_void_p
from dataclasses import dataclass, field
from typing import Optional

from ._arguments import waiting
from ._errors import check
from ._library import Owner, lib
from ._values import Value, read

# A blocking wait ends this often, so that Python sees signals.
_SLICE_SECONDS = 0.2
_OWN_WRITES = 1


class Reason(enum.Enum):
    """Why a store's values changed."""

    OWN_WRITE = "ownWrite"
    """This program wrote; only with `own_writes=True`."""
    EXTERNAL_CHANGE = "externalChange"
    """Another device or program wrote."""
    INITIAL_SYNC_CHANGE = "initialSyncChange"
    """Joining or signing in brought the account's data."""
    QUOTA_VIOLATION_CHANGE = "quotaViolationChange"
    """The quota changed the shown values, or refused a write: see `Store.refusals()`."""
    ACCOUNT_CHANGE = "accountChange"
    """The store belongs to another account now."""


_REASONS = [None, *Reason]


@dataclass(frozen=True)
class Change:
    """A change of the values that a store shows."""

    reason: Reason
    keys: tuple[str, ...]
    """The changed keys, in order."""
    old: dict[str, Value] = field(hash=False)
    """The values before, without keys that showed none."""
    new: dict[str, Value] = field(hash=False)
    """The values since, without keys that show none."""
    superseded: tuple[str, ...]
    """The keys of this program's writes that lost."""
    is_joined: bool
    """Whether changes were joined because the consumer was slow."""


def _read(change: int) -> Change:
    reason = _REASONS[lib.kith_change_reason(change)]
    assert reason is not None
    keys: list[str] = []
    old: dict[str, Value] = {}
    new: dict[str, Value] = {}
    length = c_size_t()
    for index in range(lib.kith_change_count(change)):
        pointer = lib.kith_change_key(change, index, length)
        key = ctypes.string_at(pointer, length.value).decode()
        keys.append(key)
        if (before := lib.kith_change_old(change, index)) is not None:
            old[key] = read(before)
        if (since := lib.kith_change_new(change, index)) is not None:
            new[key] = read(since)
    superseded = lib.kith_change_superseded(change)
    lost = tuple(map(str, read(superseded))) if superseded is not None else ()  # type: ignore[arg-type]
    return Change(reason, tuple(keys), old, new, lost, lib.kith_change_is_joined(change))


class Changes(Owner, Iterator[Change], AsyncIterator[Change]):
    """The changes of a store from its making on; see `Store.changes()`.

    For one consumer: `async for`, `for`, which blocks, or `wait()`. It ends when it or the accounts are
    closed. `fileno()` is readable while there is something to take, for other event loops.
    """

    def __init__(self, store: object, handle: int, own_writes: bool) -> None:
        error = c_void_p()
        made = lib.kith_store_changes(handle, _OWN_WRITES if own_writes else 0, byref(error))
        check(error)
        super().__init__(made)
        self._store = store  # open for as long as somebody listens
        # Guards the following: any thread may close it.
        self._lock = threading.RLock()
        self._is_closed = False
        self._waiter: Optional[asyncio.Future[None]] = None

    def fileno(self) -> int:
        """The descriptor to poll; -1 once it is closed. Never read or close it."""
        return int(lib.kith_changes_fd(self._handle))

    def close(self) -> None:
        """Ends the changes, also for a consumer that waits."""
        with self._lock:
            self._is_closed = True
            if self._waiter is not None:
                with suppress(RuntimeError):  # its loop was closed
                    self._waiter.get_loop().call_soon_threadsafe(_wake, self._waiter)
                    return  # the waiting task frees it, once the loop polls no more
            self._free()

    def __enter__(self) -> Changes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, seconds: float = 0) -> Optional[Change]:
        change = lib.kith_changes_next(self._handle, round(seconds * 1000))
        if change is None:
            return None
        try:
            return _read(change)
        finally:
            lib.kith_free(change)

    @property
    def _has_ended(self) -> bool:
        return self._is_closed or bool(lib.kith_changes_have_ended(self._handle))

    def wait(self, timeout: Optional[float] = None) -> Optional[Change]:
        """Blocks for the next change; None if none comes within so many seconds, or it has ended."""
        deadline = None if timeout is None else time.monotonic() + waiting(timeout)
        while True:
            left = _SLICE_SECONDS if deadline is None else max(0, deadline - time.monotonic())
            if change := self._take(min(left, _SLICE_SECONDS)):
                return change
            if self._has_ended or left == 0:
                return None

    def __iter__(self) -> Changes:
        return self

    def __next__(self) -> Change:
        if change := self.wait():
            return change
        raise StopIteration

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Change:
        while (change := self._take()) is None:
            if self._has_ended:
                raise StopAsyncIteration
            await self._readable()
        return change

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        with self._lock:
            if self._is_closed:
                return
            if self._waiter is not None:
                raise RuntimeError("two tasks wait for the same changes: give each its own")
            descriptor = self.fileno()
            loop.add_reader(descriptor, _wake, waiter)
            self._waiter = waiter
        try:
            await waiter
        finally:
            with self._lock:
                loop.remove_reader(descriptor)
                self._waiter = None
                if self._is_closed:
                    self._free()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
