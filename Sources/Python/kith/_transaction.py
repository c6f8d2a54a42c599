"""Transactions, and what they and a store have in common as mappings."""
from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from ctypes import byref, c_void_p
from typing import Any, Optional, TYPE_CHECKING

from ._errors import KithError, check
from ._library import Owner, lib
from ._values import Value, encoded_key, new, take

if TYPE_CHECKING:
    from ._store import Store


class Values(MutableMapping[str, Value]):
    """What a store and a transaction have in common."""

    def _get(self, name: bytes) -> Any:
        """The value of a key; None if there is none."""
        raise NotImplementedError

    def _set(self, name: bytes, value: Optional[int]) -> None:
        """Sets a key, or removes it, and frees the value."""
        raise NotImplementedError

    def _snapshot(self, prefix: bytes) -> dict[str, Value]:
        raise NotImplementedError

    def _find(self, key: str) -> Any:
        """The value of a key; None if there is none, also if no store can have it."""
        try:
            name = encoded_key(key)
        except KithError:
            return None
        return self._get(name)

    def snapshot(self, prefix: str = "") -> dict[str, Value]:
        """The values of the keys with a prefix, all of one moment, by their whole keys."""
        try:
            name = encoded_key(prefix)
        except KithError:
            return {}  # no key begins so
        return self._snapshot(name)

    def __getitem__(self, key: str) -> Value:
        value: Optional[Value] = self._find(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._find(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.snapshot())

    def __len__(self) -> int:
        return len(self.snapshot())

    def __delitem__(self, key: str) -> None:
        self[key]
        self._set(encoded_key(key), None)


class Transaction(Owner, Values):
    """Writes that are accepted together, or not at all.

    It reads the store as it was when it began, with its own writes applied, and notes what it reads:
    `len`, iteration and `snapshot` read all keys that they return. For one thread at a time.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        error = c_void_p()
        handle = lib.kith_store_begin(store._open, byref(error))
        check(error)
        super().__init__(handle)

    def _commit(self) -> None:
        self._store.accounts._check_open()
        error = c_void_p()
        lib.kith_transaction_commit(self._handle, byref(error))
        check(error)

    def _get(self, name: bytes) -> Any:
        error = c_void_p()
        return take(lib.kith_transaction_get(self._handle, name, len(name), byref(error)), error)

    def _snapshot(self, prefix: bytes) -> dict[str, Value]:
        error = c_void_p()
        values: dict[str, Value] = take(
            lib.kith_transaction_snapshot(self._handle, prefix, len(prefix), byref(error)), error)
        return values

    def _set(self, name: bytes, value: Optional[int]) -> None:
        error = c_void_p()
        lib.kith_transaction_set(self._handle, name, len(name), value, byref(error))
        lib.kith_free(value)
        check(error)

    def __setitem__(self, key: str, value: Value) -> None:
        name = encoded_key(key)
        self._set(name, new(value))

    def expect(self, key: str, value: Optional[Value]) -> None:
        """Raises `KithError` with "unexpectedValue" unless the key shows the value; None: shows none."""
        name, error = encoded_key(key), c_void_p()
        made = None if value is None else new(value)
        lib.kith_transaction_expect(self._handle, name, len(name), made, byref(error))
        lib.kith_free(made)
        check(error)

    def popitem(self) -> tuple[str, Value]:
        """Removes the first key, and returns it with its value."""
        for key, value in self.snapshot().items():
            self._set(encoded_key(key), None)
            return key, value
        raise KeyError("there is no key")

    def clear(self) -> None:
        """Removes all keys."""
        for key in list(self):
            self._set(encoded_key(key), None)
