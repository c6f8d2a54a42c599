"""Two devices of one account, each with a directory of its own, on loopback."""
import concurrent.futures
import queue

import pytest

import kith

LOOPBACK = {"hosts": ["127.0.0.1"], "port": 0}


@pytest.fixture
def store(tmp_path):
    """A store of a device without an account, which is not synced."""
    with kith.open("com.example.Test", tmp_path / "device", sync=False) as store:
        yield store


@pytest.fixture
def pair(tmp_path):
    """The store of a laptop, and the same of a desktop."""
    with kith.Accounts(tmp_path / "laptop", **LOOPBACK) as laptop, \
            kith.Accounts(tmp_path / "desktop", **LOOPBACK) as desktop:
        laptop.create_account("laptop", lambda recovery_key: True)
        join(laptop, desktop, "desktop")
        yield laptop.store("com.example.Test"), desktop.store("com.example.Test")


def join(inviter, guest, name):
    tokens = queue.Queue()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        invited = pool.submit(
            inviter.invite, lambda invitation: tokens.put(invitation["token"]), lambda device: True,
            addresses=["127.0.0.1"])
        joined = guest.sign_in(tokens.get(timeout=30), name, lambda inviter, fingerprint: True)
        assert invited.result(timeout=30) == joined["device"]
    assert inviter.signed_in == guest.signed_in == joined["account"]
