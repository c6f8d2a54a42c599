"""More than one process: pickled and copied objects, forked children, signals, the end of a program."""
import copy
import os
import pickle
import signal
import socket
import subprocess
import sys
import time

import pytest

import kith

START = """
import atexit, os, sys, threading, time, kith
atexit.register(lambda: at_end())  # after all that Kith registers
at_end = lambda: None
store = kith.open("com.example.Test", sys.argv[1], discovery=False, hosts=["127.0.0.1"], port=0)
"""


def run(program, directory):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", START + program, directory], timeout=60,
        capture_output=True, text=True)


COPIES = [lambda o: pickle.loads(pickle.dumps(o)), copy.copy, copy.deepcopy]


@pytest.mark.parametrize("make", COPIES)
def test_what_has_a_handle_is_not_copied(store, make):
    """The handle's number names another object in another process, which then wrote to that."""
    with store.changes() as changes, store.transaction() as transaction:
        for owner in (store, store.accounts, changes, transaction):
            with pytest.raises(TypeError, match="cannot pickle or copy a"):
                make(owner)
    with pytest.raises(TypeError):
        pickle.dumps({"stores": [store]})


@pytest.mark.parametrize("make", COPIES)
@pytest.mark.parametrize("kind", [kith.KithError, kith.Conflict])
def test_errors_are_copied_whole(make, kind):
    """One that could not be read ended the threads of multiprocessing.Pool, which then waited for ever."""
    error = kind("passphrase", "It is wrong.", key="theme", path="/srv", tries_left=2)
    made = make(error)
    assert type(made) is kind and str(made) == str(error) == "/srv: It is wrong."
    assert vars(made) == vars(error) and made.tries_left == 2


# Forked children.


@pytest.mark.parametrize("block", [
    "with store:", "with store.accounts:", "with store.changes():", "with store.transaction() as t:",
    "def body(t):", "with store, store.changes(), store.transaction():",
])
def test_a_forked_child_leaves_blocks_by_its_own_exit(tmp_path, block):
    ended = run(f"""
store["a"] = 1
{block}
    child = os.fork()
    if child == 0:
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    store["b"] = 2
{"store.commit(body)" if "body" in block else ""}
""", tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    with kith.open("com.example.Test", tmp_path, sync=False) as store:
        assert store.snapshot() == {"a": 1, "b": 2}


@pytest.mark.parametrize("signed_in", [False, True])
def test_a_child_that_outlives_its_killed_parent_does_not_keep_the_directory(tmp_path, signed_in):
    with kith.Accounts(tmp_path / "device", sync=False) as accounts:
        if signed_in:
            accounts.create_account("laptop", lambda key: True)
    ended = run("""
import fcntl, pathlib
store["a"] = 1
store.flush()
read, write = os.pipe()
child = os.fork()
if child == 0:
    for descriptor in (1, 2, read, write):
        os.close(descriptor)
    time.sleep(60)
    os._exit(0)
os.close(write)
os.read(read, 1)
try:
    for lock in pathlib.Path(sys.argv[1]).rglob("lock"):
        fcntl.flock(lock.open(), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print(child, flush=True)  # the parent still has it
os.kill(os.getpid(), 9)
""", tmp_path / "device")
    assert ended.returncode == -9, ended.stderr
    try:
        with kith.open("com.example.Test", tmp_path / "device", sync=False) as store:
            assert store["a"] == 1
            store["b"] = 2
    finally:
        os.kill(int(ended.stdout), signal.SIGKILL)


def test_a_child_keeps_what_is_not_of_a_directory(tmp_path):
    def bound(path):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        return listener

    (tmp_path / "lock").write_text(f"pid {1:010}\n")
    descriptor = os.open(tmp_path, os.O_DIRECTORY)
    # As Kith binds it in a directory whose path is too long.
    long = bound(f"/proc/self/fd/{descriptor}/control")
    os.close(descriptor)
    (tmp_path / "control").unlink()
    with long, bound(tmp_path / "control") as other, (tmp_path / "lock").open() as lock, \
            socket.create_server(("127.0.0.1", 0)) as tcp:
        child = os.fork()
        if child == 0:
            kept = [os.path.exists(f"/proc/self/fd/{file.fileno()}") for file in (long, other, lock, tcp)]
            os._exit(0 if kept == [False, True, True, True] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_child_reads_little_of_what_is_named_as_kiths_files(tmp_path):
    """It read each file named lock whole, and waited for a pipe."""
    for name in ("large", "pipe"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / "lock")
    with (tmp_path / "large" / "lock").open("wb") as large, \
            open(os.open(tmp_path / "pipe" / "lock", os.O_RDONLY | os.O_NONBLOCK), "rb") as pipe:
        large.truncate(1 << 40)
        child = os.fork()
        if child == 0:
            os._exit(0 if all(os.path.exists(f"/proc/self/fd/{file.fileno()}") for file in (large, pipe)) else 1)
    deadline = time.monotonic() + 30
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended == (child, 0)


# Signals.


@pytest.mark.parametrize("is_second", [False, True])
def test_an_interrupted_commit_writes_all_or_nothing(store, is_second):
    """In a callback of ctypes the exception was lost, and a second one let half of it be written."""
    def body(t):
        t["one"] += 1
        if is_second:
            raise KeyboardInterrupt
        t["two"] = t["one"]

    def is_interrupted_at(line):
        def trace(frame, event, _):
            nonlocal line
            if event == "line" and frame.f_globals["__name__"].startswith("kith."):
                line -= 1
                if line == 0:
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            store.commit(body)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        return line <= 0

    store.update(one=0, two=0)
    line = 1
    while is_interrupted_at(line):
        assert store["one"] == store["two"] and (not is_second or store["one"] == 0)
        line += 1
    assert line > 20


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration])
def test_only_a_body_that_returns_commits(store, stop):
    def body(t):
        t["one"] = 1
        raise stop

    with pytest.raises(stop):
        store.commit(body)
    with pytest.raises(stop):
        with store.transaction() as t:
            body(t)
    assert store.snapshot() == {}


# The end of a program.


def test_threads_at_the_end_of_a_program_find_the_accounts_closed(tmp_path):
    ended = run("""
codes = []
def write():
    try:
        while True:
            store["a"] = store.commit(lambda t: t.get("a", 0)) + 1
    except kith.KithError as error:
        codes.append(error.code)

threads = [threading.Thread(target=write, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
def at_end():
    for thread in threads:
        thread.join()
    print(set(codes))

time.sleep(0.2)
""", tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "{'closed'}\n", "")
