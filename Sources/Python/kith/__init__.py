"""Kith: a small key-value store on all of a person's devices, without a server.

    import kith
    with kith.open("com.example.Editor") as store:
        store["theme"] = "dark"
        print(store["theme"])
        store.commit(lambda t: t.update(unread=t.get("unread", 0) + 1))

Docs/Python.md has more, and kith.h the meaning of each call.
"""
from ._accounts import Accounts, Policy, open
from ._changes import Change, Changes, Reason
from ._errors import Conflict, KithError
from ._library import lib as _lib
from ._store import HiddenEntry, Refusal, Store, SyncReport, Usage
from ._transaction import Transaction
from ._values import Value

__version__: str = _lib.kith_version().decode()
__all__ = [
    "Accounts", "Change", "Changes", "Conflict", "HiddenEntry", "KithError", "Policy", "Reason",
    "Refusal", "Store", "SyncReport", "Transaction", "Usage", "Value", "open"]
