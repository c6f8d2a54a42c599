import asyncio
import subprocess
import sys
import threading
import time

import pytest

import kith

LIMIT = 30


def test_async_for_sees_the_other_device(pair):
    laptop, desktop = pair

    async def watch():
        with desktop.changes() as changes:
            laptop.commit(lambda t: t.update({"theme": "dark", "sizes": [1, 2.0]}))
            async for change in changes:
                return change

    change = asyncio.run(asyncio.wait_for(watch(), LIMIT))
    assert change.reason is kith.Reason.EXTERNAL_CHANGE
    assert change.keys == ("sizes", "theme") and change.superseded == () and not change.is_joined
    assert change.new == {"sizes": [1, 2.0], "theme": "dark"} and change.old == {}
    assert change in {change}
    assert desktop["theme"] == "dark"


def test_changes_in_a_plain_loop(pair):
    laptop, desktop = pair
    changes = desktop.changes()
    laptop["count"] = 1
    assert changes.wait(LIMIT).new == {"count": 1}
    laptop["count"] = 2
    for change in changes:
        assert (change.old, change.new) == ({"count": 1}, {"count": 2})
        break
    del laptop["count"]
    change = next(changes)
    assert (change.keys, change.old, change.new) == (("count",), {"count": 2}, {})
    assert changes.wait(0) is None


def test_own_writes_are_told_on_demand(store):
    with store.changes() as others, store.changes(own_writes=True) as all_changes:
        store["theme"] = "dark"
        assert all_changes.wait(LIMIT).reason is kith.Reason.OWN_WRITE
        assert others.wait(0) is None


def test_several_tasks_and_a_cancelled_one(store):
    async def first(changes):
        async for change in changes:
            return change.new

    async def main():
        one, other, third = (store.changes(own_writes=True) for _ in range(3))
        tasks = [asyncio.create_task(first(changes)) for changes in (one, other, third)]
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError):
            await first(one)
        tasks[2].cancel()
        store["theme"] = "dark"
        assert await asyncio.gather(*tasks[:2]) == [{"theme": "dark"}] * 2
        with pytest.raises(asyncio.CancelledError):
            await tasks[2]
        # What is not awaited is not polled, and a cancelled wait takes nothing.
        for changes in (one, other, third):
            assert not asyncio.get_running_loop().remove_reader(changes.fileno())
        assert await first(third) == {"theme": "dark"}

    asyncio.run(asyncio.wait_for(main(), LIMIT))


@pytest.mark.parametrize("close", [lambda store, changes: changes.close(), lambda store, changes: store.close()])
def test_closing_ends_a_loop_that_waits(tmp_path, close):
    store = kith.open("com.example.Test", tmp_path)

    async def consume(changes):
        return [change async for change in changes]

    async def main():
        changes = store.changes()
        task = asyncio.create_task(consume(changes))
        await asyncio.sleep(0)
        close(store, changes)
        assert await task == []

    asyncio.run(asyncio.wait_for(main(), LIMIT))
    store.close()


def test_closing_by_another_thread_ends_a_task_that_is_about_to_wait(store):
    """It waited for ever, or for descriptor -1, if the thread came between its look and its wait."""
    async def consume(changes):
        return [change async for change in changes]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(300):
            changes = store.changes()
            closing = threading.Thread(target=changes.close)
            if number == 0:
                changes.fileno = lambda: (closing.start(), time.sleep(0.05), kith.Changes.fileno(changes))[2]
            else:
                closing.start()
            assert asyncio.run(asyncio.wait_for(consume(changes), LIMIT)) == []
            closing.join()
            assert kith.Changes.fileno(changes) == -1
    finally:
        sys.setswitchinterval(interval)


def test_closing_after_the_loop_was_closed(store):
    changes = store.changes()
    loop = asyncio.new_event_loop()
    task = loop.create_task(changes.__anext__())
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()
    changes.close()
    assert not task.done() and changes.fileno() == -1
    task._log_destroy_pending = False


def test_closing_ends_a_thread_that_waits(store):
    changes = store.changes()
    seen = []
    thread = threading.Thread(target=lambda: seen.extend(changes))
    thread.start()
    changes.close()
    thread.join(LIMIT)
    assert not thread.is_alive() and seen == []


def test_signing_in_and_out(tmp_path):
    with kith.open("com.example.Test", tmp_path, hosts=["127.0.0.1"], port=0) as store:
        store["theme"] = "dark"
        accounts = store.accounts
        assert accounts.signed_in is None and accounts.known() == []
        with pytest.raises(kith.KithError) as raised:
            accounts.create_account("laptop", lambda key: False)
        assert raised.value.code == "declined" and accounts.signed_in is None
        keys = []
        made = accounts.create_account("laptop", lambda key: keys.append(key) or True)
        assert accounts.signed_in == made["account"] and made["recoveryKey"] == keys[0]
        assert store["theme"] == "dark"  # the account's first data
        changes = store.changes()
        accounts.sign_out()
        assert accounts.signed_in is None and "theme" not in store
        assert changes.wait(LIMIT).reason is kith.Reason.ACCOUNT_CHANGE
        accounts.sign_in_to(made["account"])
        assert store["theme"] == "dark"
        assert [known["isSignedIn"] for known in accounts.known()] == [True]
        assert accounts.status()
        with pytest.raises(kith.KithError):
            accounts.sign_in("0000-0000", "desktop", lambda *_: True, address="127.0.0.1:1")


@pytest.mark.parametrize("hosts", [["203.0.113.7"], ["127.0.0.1", "203.0.113.7"]])
def test_a_host_that_cannot_be_listened_on_is_an_error(tmp_path, hosts):
    """Nothing was exchanged, and nothing said so."""
    with kith.Accounts(tmp_path, sync=False) as accounts:
        accounts.create_account("laptop", lambda key: True)
    with pytest.raises(kith.KithError) as raised:
        kith.open("com.example.Test", tmp_path, port=0, hosts=hosts)
    assert raised.value.code == "network" and "203.0.113.7" in str(raised.value)
    with kith.open("com.example.Test", tmp_path, sync=False):
        pass


def test_a_host_that_cannot_be_listened_on_after_signing_in(tmp_path):
    with kith.open("com.example.Test", tmp_path, hosts=["203.0.113.7"], port=0) as store:
        assert store.accounts.status()["problems"] == []
        store.accounts.create_account("laptop", lambda key: True)
        began = time.monotonic()
        while not (problems := store.accounts.status()["problems"]):
            assert time.monotonic() - began < LIMIT
        assert problems[0]["code"] == "network" and "203.0.113.7" in problems[0]["message"]
        for wait in (store.wait_until_synced, store.sync_report, lambda: store.accounts.invite(print, print)):
            with pytest.raises(kith.KithError) as raised:
                wait()
            assert raised.value.code == "network"
        store["theme"] = "dark"
        assert store["theme"] == "dark"


def test_who_has_what(pair):
    laptop, desktop = pair
    laptop["theme"] = "dark"
    report = laptop.wait_until_synced(LIMIT)
    assert report["isComplete"] and len(report["complete"]) == 1
    assert desktop["theme"] == "dark"
    assert laptop.sync_report() == report


def test_joining_tells_which_writes_lost(tmp_path):
    from conftest import LOOPBACK, join

    with kith.Accounts(tmp_path / "laptop", **LOOPBACK) as laptop, \
            kith.Accounts(tmp_path / "desktop", **LOOPBACK) as desktop:
        laptop.create_account("laptop", lambda key: True)
        laptop.store("com.example.Test")["theme"] = "dark"
        store = desktop.store("com.example.Test")
        # Each key by itself: only the one that the account has is refused.
        store.update(theme="light", size=1)
        changes = store.changes()
        join(laptop, desktop, "desktop")
        reasons = {}
        while kith.Reason.INITIAL_SYNC_CHANGE not in reasons:
            change = changes.wait(LIMIT)
            reasons[change.reason] = change
        assert reasons[kith.Reason.INITIAL_SYNC_CHANGE].superseded == ("theme",)
        assert store.snapshot() == {"theme": "dark", "size": 1}


WRITER = """
import kith, sys
store = kith.open("com.example.Test", sys.argv[1])
for _ in range(100):
    store.commit(lambda t: t.__setitem__("count", t.get("count", 0) + 1))
"""


def test_two_programs_share_a_directory(tmp_path):
    with kith.open("com.example.Test", tmp_path) as store:
        store["count"] = 0
        changes = store.changes()
        other = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path])
        for _ in range(100):
            store.commit(lambda t: t.__setitem__("count", t["count"] + 1))
        assert other.wait(LIMIT) == 0
        assert store["count"] == 200
        assert changes.wait(LIMIT).reason is kith.Reason.EXTERNAL_CHANGE


def test_control_c_ends_a_loop_that_waits(tmp_path):
    program = (
        "import kith, sys\n"
        "changes = kith.open('com.example.Test', sys.argv[1]).changes()\n"
        "print('ready', flush=True)\n"
        "for change in changes: pass\n")
    process = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(2)
    began = time.monotonic()
    assert b"KeyboardInterrupt" in process.communicate(timeout=LIMIT)[1]
    assert time.monotonic() - began < 10
