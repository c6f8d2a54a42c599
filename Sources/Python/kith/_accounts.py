"""The accounts of a directory: opening them, signing in and out, inviting devices."""
from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from ctypes import byref, c_int64, c_uint16, c_void_p
from dataclasses import astuple, dataclass
from typing import Any, Optional, Union

from ._arguments import fitting, path, text, texts
from ._errors import KithError, check
from ._library import Limits, Options, Owner, lib
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


class Task(Owner):
    """Work that takes long, with its events. Its end cancels it."""

    @classmethod
    def begun(cls, function: Any, *arguments: object) -> Task:
        error = c_void_p()
        handle = function(*arguments, byref(error))
        check(error)
        return cls(handle)

    @property
    def is_done(self) -> bool:
        return bool(lib.kith_task_is_done(self._handle))

    def events(self) -> Iterator[dict[str, Any]]:
        """Until the task is done."""
        while True:
            done = self.is_done
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


class Accounts(Owner):
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

        Raises `KithError` with "network" if it is to sync and cannot listen on an address. If that shows
        later, such as after signing in, it is in `status()["problems"]`, and `invite()`,
        `Store.sync_report()` and `Store.wait_until_synced()` raise it.
        """
        flags = 0 if discovery else _NO_DISCOVERY
        if history is not None:
            flags |= _KEEP_HISTORY if history else _NO_HISTORY
        options = Options(
            ctypes.sizeof(Options), None if directory is None else path(directory, "directory"),
            texts(hosts, "hosts"), texts(peers, "peers"),
            0 if port is None else fitting(port, c_uint16, "port") or _ANY_PORT,
            flags | (_LOG if log else 0), None if passphrase is None else text(passphrase, "passphrase"))
        error = c_void_p()
        handle = lib.kith_accounts_open(byref(options), byref(error))
        check(error)
        super().__init__(handle)
        self._free.atexit = True
        self._is_closed = False
        # By store: held by the one thread that tries a transaction again.
        self._retries: dict[str, threading.RLock] = {}
        self._run: Optional[Task] = None
        if sync:
            try:
                self._run = self._begin(lib.kith_accounts_run)
            except BaseException:
                self._free()
                raise

    def _check_sync(self) -> None:
        """Raises the error for which nothing is exchanged any more."""
        if self._run is not None and self._run.is_done:
            self._run.finish()

    def _check_open(self) -> None:
        """For all but reading stores: raises if they were closed, or the program ends."""
        if self._is_closed or not self._free.alive:
            raise KithError("closed", "The accounts were closed. Open them again.")

    @property
    def _open(self) -> int:
        self._check_open()
        return self._handle

    def close(self) -> None:
        """Makes all writes durable, and ends the changes of all stores, which can still be read.

        Raises `KithError` with a storage code if something is not durable; closed it is nevertheless.
        """
        if not self._free.alive:
            return
        self._is_closed = True
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
                ctypes.sizeof(Limits), *(fitting(limit, c_int64, "a limit") for limit in astuple(policy))))
        name = text(identifier, "store identifier", "invalidStoreIdentifier")
        error = c_void_p()
        handle = lib.kith_accounts_store(self._open, name, limits, byref(error))
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
        status: dict[str, Any] = self._ask(lib.kith_accounts_status)
        try:
            self._check_sync()
        except KithError as error:
            status["problems"].append({"code": error.code, "message": error.message})
        return status

    # The following block: with asyncio, call them by asyncio.to_thread().

    def create_account(self, name: str, show: Callable[[str], bool]) -> dict[str, Any]:
        """Creates an account, and signs in to it; `name` is this device's, for people.

        show: gets the recovery key, which is stored nowhere. Show it to a person, and return
        whether to create the account. Returns "account", "device", "name" and "recoveryKey".
        """
        task = self._begin(lib.kith_accounts_create_account, text(name, "name"))
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

        After an error look at `signed_in`: the device has joined, and must not join again, if the
        inviting device or the stores did not follow in time ("timedOut"), or if the account does not
        take the writes made here while nobody was signed in.
        """
        task = self._begin(
            lib.kith_accounts_sign_in, text(code, "code"), text(name, "name"),
            None if address is None else text(address, "address"))
        for event in task.events():
            if event["event"] == "confirm":
                task.answer(confirm(event["inviter"], event["fingerprint"]))
        return task.finish()

    def sign_in_to(self, account: str) -> None:
        """Signs in to an account of `known()`."""
        self._begin(lib.kith_accounts_sign_in_to, text(account, "account")).finish()

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
        self._check_sync()
        task = self._begin(lib.kith_accounts_invite, texts(addresses, "addresses"))
        for event in task.events():
            if event["event"] == "invitation":
                show(event)
            elif event["event"] == "candidate":
                task.answer(confirm(event["device"]))
        device: str = task.finish()["device"]
        return device

    def _begin(self, function: Any, *arguments: object) -> Task:
        return Task.begun(function, self._open, *arguments)

    def _ask(self, function: Any) -> Any:
        error = c_void_p()
        return take(function(self._open, byref(error)), error)


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
