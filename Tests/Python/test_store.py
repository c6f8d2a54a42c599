import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import kith


def test_a_store_is_a_mapping(store):
    assert len(store) == 0 and list(store) == [] and "theme" not in store
    store["theme"] = "dark"
    store["size"] = 13
    assert list(store) == ["size", "theme"] and len(store) == 2 and "theme" in store
    assert dict(store) == store.snapshot() == {"size": 13, "theme": "dark"}
    assert store.get("none", 5) == 5 and store.pop("size") == 13
    assert store.setdefault("theme", "light") == "dark"
    store.update({"a.x": 1}, b=[2])
    store.update([("a.y", 3)])
    assert store.snapshot("a.") == {"a.x": 1, "a.y": 3}
    del store["b"]
    for remove in (lambda: store["b"], lambda: store.__delitem__("b")):
        with pytest.raises(KeyError):
            remove()
    store.clear()
    assert store.snapshot() == {}


def test_containers_are_copies(store):
    store["list"] = [1]
    store["list"].append(2)
    assert store["list"] == [1]


def test_values_last(tmp_path):
    with kith.open("com.example.Test", tmp_path, sync=False) as store:
        store["theme"] = "dark"
        store.flush()
    with kith.open("com.example.Test", tmp_path, sync=False) as store:
        assert store["theme"] == "dark"


def test_errors_have_codes(store):
    with pytest.raises(kith.KithError) as raised:
        store["big"] = "x" * 2_000_000
    assert raised.value.code == "valueTooLarge" and raised.value.key == "big"
    assert not isinstance(raised.value, kith.Conflict) and len(str(raised.value)) > 20
    assert "big" not in store


def test_a_policy_limits(tmp_path):
    with kith.open("com.example.Test", tmp_path, policy=kith.Policy(keys=2), sync=False) as store:
        assert store.usage()["policy"]["keys"] == 2
        with pytest.raises(kith.KithError) as raised:
            store.update(a=1, b=2, c=3)
        assert raised.value.code == "quotaExceeded" and raised.value.key == "c"
        assert store.snapshot() == {"a": 1, "b": 2}
        with pytest.raises(kith.KithError) as raised:
            store.commit(lambda t: t.update(a=2, c=3))
        assert raised.value.code == "quotaExceeded" and store["a"] == 1
        with pytest.raises(kith.KithError) as raised:
            store.accounts.store("com.example.Test")
        assert raised.value.code == "invalidPolicy"


def test_closed(tmp_path):
    store = kith.open("com.example.Test", tmp_path)
    store["theme"] = "dark"
    changes = store.changes()
    begun = kith.Transaction(store)
    store.close()
    store.close()
    assert store["theme"] == begun["theme"] == "dark"
    assert list(changes) == []
    for call in (
        lambda: store.__setitem__("theme", "light"), lambda: store.update(theme="light"),
        lambda: store.commit(lambda t: None), store.clear, lambda: store.transaction().__enter__(), store.flush,
        store.changes, store.usage, store.hidden_entries, store.refusals, store.take_refusals, store.history,
        lambda: store.undo("theme"), lambda: store.undo_transaction(1), store.sync_report,
        store.wait_until_synced, store.accounts.store, store.accounts.known, store.accounts.status,
        lambda: store.accounts.signed_in, store.accounts.sign_out, begun._commit,
    ):
        with pytest.raises(kith.KithError) as raised:
            call()
        assert raised.value.code == "closed"
    assert dict(store) == {"theme": "dark"}


def test_a_directory_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(kith.KithError) as raised:
        kith.open(directory=tmp_path / "file")
    assert raised.value.path and str(tmp_path) in str(raised.value)


def test_the_usual_store(tmp_path, monkeypatch):
    monkeypatch.delenv("KITH_STORE_IDENTIFIER", raising=False)
    monkeypatch.setenv("KITH_DIRECTORY", str(tmp_path))
    with kith.open(sync=False) as store:
        assert store.identifier == "default"
    monkeypatch.setenv("KITH_STORE_IDENTIFIER", "com.example.Other")
    with kith.open(sync=False) as store:
        assert store.identifier == "com.example.Other"


def test_history(store):
    store["theme"] = "dark"
    store["theme"] = "light"
    assert [past["value"] for past in store.history("theme", 1)] == ["dark"]
    assert store.undo("theme")["value"] == "dark"
    assert store["theme"] == "dark"
    assert store.undo("none") is None
    with store.transaction() as changes:
        changes["theme"], changes["size"] = "blue", 3
    assert len(store.undo_transaction(store.history("size", 1)[0]["transaction"])) == 2
    assert "size" not in store
    assert store.refusals() == store.take_refusals() == store.hidden_entries() == []


# Transactions.


def test_a_transaction_is_written_whole(store):
    store["count"] = 1
    with store.transaction() as t:
        t["count"] = t["count"] + 1
        t["list"] = [t["count"]]
        assert dict(t) == {"count": 2, "list": [2]} and len(t) == 2 and "list" in t
        assert store["count"] == 1
        del t["list"]
        assert "list" not in t
        t["other"] = True
    assert store.snapshot() == {"count": 2, "other": True}


def test_an_exception_drops_it(store):
    def fail(t):
        t["count"] = 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.commit(fail)
    with pytest.raises(ZeroDivisionError):
        with store.transaction() as t:
            fail(t)
    assert len(store) == 0


@pytest.mark.parametrize("read", [
    lambda t: t.get("count"), lambda t: "count" in t, lambda t: t.snapshot("c"), len,
    lambda t: t.expect("count", 1),
])
def test_a_conflict_is_raised(store, read):
    store["count"] = 1
    with pytest.raises(kith.Conflict) as raised:
        with store.transaction() as t:
            read(t)
            store["count"] = 2
            t["other"] = 1
    assert raised.value.code == "conflict"
    assert store.snapshot() == {"count": 2}


def test_what_was_not_read_is_no_conflict(store):
    with store.transaction() as t:
        store["count"] = 2
        t["count"] = 3
    assert store["count"] == 3


def test_commit_repeats_the_body(store):
    seen = []

    def body(t):
        seen.append(t.get("count"))
        if len(seen) == 1:
            store["count"] = 5
        t["count"] = t.get("count", 0) + 1
        return t["count"]

    assert store.commit(body) == 6
    assert seen == [None, 5] and store["count"] == 6


def test_a_conflict_of_another_transaction_is_the_bodys_own(store):
    seen = []

    def body(t):
        seen.append(1)
        raise kith.Conflict("conflict", "Another one.")

    with pytest.raises(kith.Conflict, match="Another one"):
        store.commit(body)
    assert seen == [1]


def test_commit_gives_up(store, monkeypatch):
    monkeypatch.setattr("kith._store._TRIES", 5)
    seen = []

    def body(t):
        seen.append(t.get("count"))
        store["count"] = len(seen)
        t["other"] = 1

    with pytest.raises(kith.Conflict):
        store.commit(body)
    assert seen == [None, 1, 2, 3, 4] and "other" not in store


def test_a_commit_within_a_body(store):
    """Both are tried again, on one thread."""
    def body(t):
        if t.get("outer", 0) < 3:
            store.commit(lambda inner: inner.__setitem__("outer", inner.get("outer", 0) + 1))
        t["last"] = t.get("outer", 0)

    store.commit(body)
    assert store.snapshot() == {"outer": 3, "last": 3}


def test_bodies_that_commit_to_each_others_store(store):
    """Each had its turn to try again, and waited for the other's for ever."""
    met = threading.Barrier(2)

    def write(one, two):
        runs = []

        def inner(t):
            if t.get("inner") is None:
                two["inner"] = 1
            t["last"] = 1

        def outer(t):
            runs.append(t.get("outer"))
            if len(runs) == 1:
                one["outer"] = 1
            else:
                met.wait(30)
                two.commit(inner)
            t["first"] = 1

        one.commit(outer)

    other = store.accounts.store("com.example.Other")
    threads = [threading.Thread(target=write, args=pair, daemon=True) for pair in ((store, other), (other, store))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert store.snapshot() == other.snapshot() == {"first": 1, "inner": 1, "last": 1, "outer": 1}


def test_update_converts_first(store):
    for wrong in ({"b": None}, {"\ud800": 1}):
        with pytest.raises(kith.KithError):
            store.update({"a": 1, **wrong})
    with pytest.raises(TypeError):
        store.update({"a": 1, 2: 3})
    assert store.snapshot() == {}


def test_setdefault_and_pop_give_one_caller_the_key(store):
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            key = f"race{number}"
            shown = list(pool.map(lambda caller: store.setdefault(key, caller), range(8)))
            assert set(shown) == {store[key]}
            taken = list(pool.map(lambda _: store.pop(key, None), range(8)))
            assert [value for value in taken if value is not None] == [shown[0]]
        store.update({f"k{number}": number for number in range(8)})
        items = list(pool.map(lambda _: store.popitem(), range(8)))
        assert sorted(items) == [(f"k{number}", number) for number in range(8)]
    for remove in (lambda: store.pop("none"), store.popitem):
        with pytest.raises(KeyError):
            remove()


def test_expect(store):
    store["owner"] = "laptop"
    with pytest.raises(kith.KithError) as raised:
        store.commit(lambda t: t.expect("owner", None))
    assert raised.value.code == "unexpectedValue"
    store.commit(lambda t: t.expect("owner", "laptop"))


def test_no_update_of_several_threads_is_lost(store):
    def count():
        for _ in range(20):
            store.commit(lambda t: t.__setitem__("count", t.get("count", 0) + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store["count"] == 80


# The process.


def test_a_forked_child_is_told(store):
    store["theme"] = "dark"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            store["theme"]
        except RuntimeError as error:
            status = 0 if "spawn" in str(error) else 2
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store["theme"] == "dark"


@pytest.mark.parametrize("sync", [False, True])
def test_a_forked_child_that_exits_leaves_the_store_to_its_parent(tmp_path, sync):
    """The child ends by sys.exit, which runs the finalizers of all that the parent made. The parent is
    killed later, so that only its log has what it wrote."""
    program = """
import os, sys, kith
store = kith.open("com.example.Test", sys.argv[1], sync=sys.argv[2] == "True", discovery=False,
                  hosts=["127.0.0.1"], port=0)
changes = store.changes()
store["before"] = "x" * 1000
store.flush()
child = os.fork()
if child == 0:
    sys.exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
for number in range(50):
    store[f"after.{number}"] = number
    store.flush()
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program, tmp_path / "device", str(sync)], check=True, timeout=60)
    with kith.open("com.example.Test", tmp_path / "device", sync=False) as store:
        assert store.snapshot("after.") == {f"after.{number}": number for number in range(50)}
        assert store["before"] == "x" * 1000


def test_nothing_is_kept(tmp_path):
    """A value, an error, a transaction or a change that is not freed stays in the library."""
    def use(store, changes):
        store["value"] = {"list": [1, "two", bytes(10_000)]}
        store["value"]
        changes.wait(0)
        with pytest.raises(kith.KithError):
            store["value"] = [bytes(10_000), object()]
        with pytest.raises(kith.KithError):
            store[""] = 1
        with pytest.raises(kith.KithError):
            store.commit(lambda t: t.expect("a\0", bytes(10_000)))
        with pytest.raises(kith.KithError):
            store.update({"a": bytes(10_000), "b": None})
        with pytest.raises(ValueError):
            with store.transaction() as t:
                t["value"] = bytes(10_000)
                raise ValueError
        store.changes().close()

    with kith.open("com.example.Test", tmp_path, history=False, sync=False) as store, \
            store.changes(own_writes=True) as changes:
        for _ in range(100):
            use(store, changes)
        gc.collect()
        before = resident()
        for _ in range(500):
            use(store, changes)
        gc.collect()
        assert resident() - before < 1 << 20


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_program_that_just_ends_loses_nothing(tmp_path):
    program = (
        "import kith, sys\n"
        "store = kith.open('com.example.Test', sys.argv[1])\n"
        "changes = store.changes()\n"
        "for n in range(100): store['count'] = n\n")
    subprocess.run([sys.executable, "-c", program, tmp_path], check=True, timeout=60)
    with kith.open("com.example.Test", tmp_path, sync=False) as store:
        assert store["count"] == 99
