"""The accounts of a directory: opening them, signing in and out, inviting devices."""
from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, c_void_p
from dataclasses import dataclass
from typing import Any, Optional, Union

from ._errors import KithError, check
from ._library import Limits, Options, free, lib, texts
from ._store import Store
from ._values import take

_NO_DISCOVERY, _KEEP_HISTORY, _NO_HISTORY, _LOG = 1, 2, 4, 8
_ANY_PORT = -1
# A blocking wait ends this often, so that Python sees signals.
_SLICE_MILLISECONDS = 200


@dataclass(frozen=True)
class Policy:
    """A store's limits, the same in all programs of the account; 0: the usual."""

    total_bytes: int = 0
    keys: int = 0
    key_bytes: int = 0
    value_bytes: int = 0


class Task:
    """Work that takes long, with its events. Its end cancels it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._free = weakref.finalize(self, free, handle)

    @classmethod
    def begun(cls, function: Any, *arguments: object) -> Task:
        error = c_void_p()
        handle = function(*arguments, byref(error))
        check(error)
        return cls(handle)

    def events(self) -> Iterator[dict[str, Any]]:
        """Until the task is done."""
        while True:
            done = lib.kith_task_is_done(self._handle)
            event = lib.kith_task_next(self._handle, 0 if done else _SLICE_MILLISECONDS)
            if event is not None:
                yield take(event, c_void_p())
            elif done:
                return

    def answer(self, yes: bool) -> None:
        error = c_void_p()
        lib.kith_task_answer(self._handle, yes, byref(error))
        check(error)

    def finish(self) -> dict[str, Any]:
        """Blocks for the result."""
        for _ in self.events():
            pass
        error = c_void_p()
        result: dict[str, Any] = take(lib.kith_task_finish(self._handle, byref(error)), error)
        return result


def _bytes(text: Union[str, os.PathLike[str], None]) -> Optional[bytes]:
    return None if text is None else os.fsencode(text)


class Accounts:
    """The stores of the account that is signed in on this host: one account, or none.

    Several programs may use one directory: the first opens it, the others attach to it.
    """

    def __init__(
        self, directory: Union[str, os.PathLike[str], None] = None, *, hosts: Sequence[str] = (),
        peers: Sequence[str] = (), port: Optional[int] = None, discovery: bool = True,
        history: Optional[bool] = None, log: bool = False, passphrase: Optional[str] = None,
        sync: bool = True,
    ) -> None:
        """Opens the accounts.

        directory: where they are, made if missing; None: that of `kith` and of the user's other programs.
        hosts: the addresses to listen on; none: all. peers: other devices to call, host or host:port.
        port: None: 4114, 0: any. discovery: whether to look for devices on the local network.
        history: whether to keep what keys showed before; None: as the directory has it.
        log: whether to log to standard error. sync: whether to exchange with other devices while open.
        """
        flags = 0 if discovery else _NO_DISCOVERY
        if history is not None:
            flags |= _KEEP_HISTORY if history else _NO_HISTORY
        options = Options(
            ctypes.sizeof(Options), _bytes(directory), texts(list(hosts)), texts(list(peers)),
            0 if port is None else port or _ANY_PORT, flags | (_LOG if log else 0), _bytes(passphrase))
        error = c_void_p()
        handle = lib.kith_accounts_open(byref(options), byref(error))
        check(error)
        self._handle: int = handle
        self._free = weakref.finalize(self, free, handle)
        self._run = Task.begun(lib.kith_accounts_run, handle) if sync else None

    def close(self) -> None:
        """Makes all writes durable, and ends the changes of all stores, which can still be read.

        Raises `KithError` with a storage code if something is not durable; closed it is nevertheless.
        """
        error = c_void_p()
        lib.kith_accounts_close(self._handle, byref(error))
        check(error)

    def __enter__(self) -> Accounts:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def store(self, identifier: str = "default", policy: Optional[Policy] = None) -> Store:
        """A store of the account, such as "com.example.Editor"; the first write creates it."""
        limits = None
        if policy is not None:
            limits = byref(Limits(
                ctypes.sizeof(Limits), policy.total_bytes, policy.keys, policy.key_bytes,
                policy.value_bytes))
        if "\0" in identifier:
            raise KithError("invalidStoreIdentifier", "A store identifier has no zero byte.")
        error = c_void_p()
        handle = lib.kith_accounts_store(self._handle, identifier.encode(), limits, byref(error))
        check(error)
        return Store(self, handle, identifier)

    @property
    def signed_in(self) -> Optional[str]:
        """The id of the account that is signed in; None: nobody is."""
        return self._ask(lib.kith_accounts_signed_in)  # type: ignore[no-any-return]

    def known(self) -> list[dict[str, Any]]:
        """The accounts that can be signed in here: "account", "directory" and "isSignedIn"."""
        return self._ask(lib.kith_accounts_known)  # type: ignore[no-any-return]

    def status(self) -> dict[str, Any]:
        """The state of the node, its devices and problems, as `kith status --json` prints it."""
        return self._ask(lib.kith_accounts_status)  # type: ignore[no-any-return]

    # The following block: with asyncio, call them by asyncio.to_thread().

    def create_account(self, name: str, show: Callable[[str], bool]) -> dict[str, Any]:
        """Creates an account, and signs in to it; `name` is this device's, for people.

        show: gets the recovery key, which is stored nowhere. Show it to a person, and return
        whether to create the account. Returns "account", "device", "name" and "recoveryKey".
        """
        task = self._begin(lib.kith_accounts_create_account, name.encode())
        for event in task.events():
            if event["event"] == "recoveryKey":
                task.answer(show(event["recoveryKey"]))
        return task.finish()

    def sign_in(
        self, code: str, name: str, confirm: Callable[[dict[str, Any], str], bool], *,
        address: Optional[str] = None,
    ) -> dict[str, Any]:
        """Joins an account by another device's short code or token, and signs in.

        confirm: gets the inviter ("id", "name", "fingerprint", "address") and this device's
        fingerprint. Have people compare both on both devices, and return whether to join; a token
        alone is proof enough for a program that trusts its source. Returns "account", "device", "name".
        """
        task = self._begin(
            lib.kith_accounts_sign_in, code.encode(), name.encode(), _bytes(address))
        for event in task.events():
            if event["event"] == "confirm":
                task.answer(confirm(event["inviter"], event["fingerprint"]))
        return task.finish()

    def sign_in_to(self, account: str) -> None:
        """Signs in to an account of `known()`."""
        self._begin(lib.kith_accounts_sign_in_to, account.encode()).finish()

    def sign_out(self) -> None:
        """Signs out: the stores show what is local to this host."""
        self._begin(lib.kith_accounts_sign_out).finish()

    def invite(
        self, show: Callable[[dict[str, Any]], object], confirm: Callable[[dict[str, Any]], bool],
        *, addresses: Sequence[str] = (),
    ) -> str:
        """Invites one device into the account, for at most ten minutes, and returns its id.

        show: gets the invitation: "code", "token" and "addresses". confirm: gets a device that asks
        ("id", "name", "fingerprint", "address"), and returns whether it is let in.
        addresses: those that the invitation names; none: this host's.
        """
        task = self._begin(lib.kith_accounts_invite, texts(list(addresses)))
        for event in task.events():
            if event["event"] == "invitation":
                show(event)
            elif event["event"] == "candidate":
                task.answer(confirm(event["device"]))
        device: str = task.finish()["device"]
        return device

    def _begin(self, function: Any, *arguments: object) -> Task:
        return Task.begun(function, self._handle, *arguments)

    def _ask(self, function: Any) -> Any:
        error = c_void_p()
        return take(function(self._handle, byref(error)), error)


def open(
    store: Optional[str] = None, directory: Union[str, os.PathLike[str], None] = None, *,
    policy: Optional[Policy] = None, hosts: Sequence[str] = (), peers: Sequence[str] = (),
    port: Optional[int] = None, discovery: bool = True, history: Optional[bool] = None,
    log: bool = False, passphrase: Optional[str] = None, sync: bool = True,
) -> Store:
    """Opens a store, and exchanges with the account's other devices while it is open.

    store: such as "com.example.Editor"; None: KITH_STORE_IDENTIFIER, or "default", as for `kith`.
    The other arguments are those of `Accounts` and `Accounts.store()`. `Store.close()` closes all.
    """
    accounts = Accounts(
        directory, hosts=hosts, peers=peers, port=port, discovery=discovery, history=history,
        log=log, passphrase=passphrase, sync=sync)
    try:
        return accounts.store(store or os.environ.get("KITH_STORE_IDENTIFIER") or "default", policy)
    except BaseException:
        accounts.close()
        raise
