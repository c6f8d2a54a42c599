"""Arguments that are wrong: each kind is refused alike, whatever call has it."""
import math
import os
from datetime import datetime, timedelta, timezone, tzinfo

import pytest

import kith


def accounts(tmp_path, **arguments):
    return kith.Accounts(**{"directory": tmp_path / "device", "sync": False, **arguments})


TEXTS = {
    "directory": lambda a, path, text: accounts(path, directory=f"{path}/{text}"),
    "hosts": lambda a, path, text: accounts(path, hosts=["127.0.0.1", text]),
    "peers": lambda a, path, text: accounts(path, peers=[text]),
    "passphrase": lambda a, path, text: accounts(path, passphrase=text),
    "name": lambda a, path, text: a.create_account(text, lambda key: True),
    "code": lambda a, path, text: a.sign_in(text, "laptop", lambda *_: True),
    "name to join": lambda a, path, text: a.sign_in("0000-0000", text, lambda *_: True),
    "address": lambda a, path, text: a.sign_in("0000-0000", "x", lambda *_: True, address=text),
    "account": lambda a, path, text: a.sign_in_to(text),
    "addresses": lambda a, path, text: a.invite(print, print, addresses=[text]),
}


@pytest.mark.parametrize("call", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("text, word", [("abc\0def", "zero byte"), ("abc\ud800", "surrogate")])
def test_text_is_taken_whole_or_refused(store, tmp_path, call, text, word):
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(ValueError, match=word):
        call(store.accounts, tmp_path, text)
    assert store.accounts.signed_in is None and sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("identifier", ["a\0b", "\ud800", "a\1b", "x" * 256])
def test_store_identifiers(store, identifier):
    with pytest.raises(kith.KithError) as raised:
        store.accounts.store(identifier)
    assert raised.value.code == "invalidStoreIdentifier"


@pytest.mark.parametrize("call", [
    lambda a, path: accounts(path, hosts="127.0.0.1"), lambda a, path: accounts(path, peers="a:1"),
    lambda a, path: a.invite(print, print, addresses="127.0.0.1"),
    lambda a, path: accounts(path, hosts=[1]), lambda a, path: accounts(path, directory=1),
    lambda a, path: accounts(path, passphrase=b"x"), lambda a, path: a.store(1),
    lambda a, path: accounts(path, port="4114"), lambda a, path: accounts(path, port=1.5),
])
def test_types(store, tmp_path, call):
    with pytest.raises(TypeError):
        call(store.accounts, tmp_path)


@pytest.mark.parametrize("call", [
    lambda s, path: accounts(path, port=2**32 + 4114), lambda s, path: accounts(path, port=65536),
    lambda s, path: accounts(path, port=-1),
    lambda s, path: s.accounts.store("other", kith.Policy(keys=2**64 + 5)),
    lambda s, path: s.accounts.store("other", kith.Policy(value_bytes=-(2**63) - 1)),
    lambda s, path: s.undo("a", 2**64), lambda s, path: s.undo_transaction(2**64 + 1),
    lambda s, path: s.history("a", -1), lambda s, path: s.take_refusals(-1),
    lambda s, path: s.wait_until_synced(0, -1), lambda s, path: s.wait_until_synced(0, 2**32),
])
def test_numbers_are_not_cut(store, tmp_path, call):
    store["a"] = 1
    store["a"] = 2
    with pytest.raises(OverflowError, match="out of range"):
        call(store, tmp_path)
    assert store["a"] == 2


def test_times_of_waits(store):
    with store.changes() as changes:
        for wait in (store.wait_until_synced, changes.wait):
            with pytest.raises(ValueError, match="NaN"):
                wait(math.nan)
        assert changes.wait(-1) is None and store.wait_until_synced(-math.inf)["isComplete"]
        store.wait_until_synced(math.inf)


class Nowhere(tzinfo):
    def utcoffset(self, when):
        return None


def test_a_time_zone_without_an_offset(store):
    with pytest.raises(kith.KithError, match="time zone"):
        store["date"] = datetime(2026, 11, 21, tzinfo=Nowhere())


def test_dates_between_1729_and_2273_keep_microseconds(store):
    for date in (datetime(1729, 1, 1, 0, 0, 0, 1, timezone.utc),
                 datetime(2272, 12, 31, 23, 59, 59, 999999, timezone.utc)):
        store["date"] = date
        assert store["date"] == date
    store["date"] = datetime(9999, 1, 1, 0, 0, 0, 1, timezone.utc)
    assert abs(store["date"] - datetime(9999, 1, 1, tzinfo=timezone.utc)) < timedelta(microseconds=50)


# Keys.


@pytest.mark.parametrize("key", [1, b"theme", None, ("a",)])
def test_a_key_is_text(store, key):
    def check(values):
        for call in (values.__getitem__, values.get, values.pop, values.__delitem__,
                     lambda key: values.__setitem__(key, 1), lambda key: values.setdefault(key, 1),
                     values.snapshot):
            with pytest.raises(TypeError, match="must be str, not"):
                call(key)
        assert key not in values

    check(store)
    store.commit(check)


@pytest.mark.parametrize("key", ["", "x" * 65, "\ud800", "\0" * 65])
def test_a_key_that_no_store_has_is_missing(store, key):
    store["theme"] = "dark"

    def check(values):
        assert key not in values and values.get(key) is None and values.pop(key, 5) == 5
        assert key == "" or values.snapshot(key) == {}
        for call in (values.__getitem__, values.pop, values.__delitem__):
            with pytest.raises(KeyError):
                call(key)

    check(store)
    store.commit(check)
    with pytest.raises(kith.KithError) as raised:
        store[key] = 1
    assert raised.value.code == "invalidKey" and store.snapshot() == {"theme": "dark"}


def test_a_key_with_a_zero_byte_is_as_any_other(store):
    """Only Swift programs could write one, and it could be neither set nor removed here."""
    key = "a\0b"
    store["a"] = 0
    for value in (True, 1, 2.5, "text", b"\0", [1]):
        store[key] = value
        assert store[key] == value and store["a"] == 0
    store.update({key: 1, "a\0c": 2})
    assert store.snapshot("a\0") == {key: 1, "a\0c": 2} and list(store) == ["a", key, "a\0c"]
    assert key in store and "a\0" not in store
    (past,) = store.history(key, 1)
    assert past["key"] == key and past["value"] == [1]
    assert store.undo(key)["key"] == key and store[key] == [1]

    def body(t):
        t.expect(key, [1])
        t[key] = [*t[key], 2]
        del t["a\0c"]
        assert t.snapshot("a\0") == {key: [1, 2]}

    store.commit(body)
    with store.changes(own_writes=True) as changes:
        assert store.pop(key) == [1, 2] and changes.wait(10).keys == (key,)
    assert store.setdefault(key, 5) == 5
    del store[key]
    with pytest.raises(KeyError):
        del store[key]
    store[key] = 1
    assert [store.popitem(), store.popitem()] == [("a", 0), (key, 1)]
    store[key] = 1
    store.clear()
    assert store.snapshot() == {}
    with pytest.raises(kith.KithError) as raised:
        store["x\0" * 40] = 1
    assert raised.value.code == "invalidKey" and raised.value.key == "x\0" * 40
