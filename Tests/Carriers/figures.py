"""What carriers cost: requests, bytes, times. Prints a table and writes nothing else."""

import collections
import concurrent.futures
import json
import pathlib
import random
import statistics
import subprocess
import sys
import threading
import time

import rig
from clock import Clock
from rig import Rig, wait_for
from servers import CountedMoto, CountedRclone

HERE = pathlib.Path(__file__).absolute().parent


class FolderCount:
    """A folder that notes every new object, as the proxy notes requests."""

    def __init__(self, rig, *devices):
        self.folder = rig.folder / "folder"
        self.folder.mkdir()
        self.seen, self.notes, self.ended = set(), [], threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def add(self, device):
        device.add("folder", self.folder)
        if not self.thread.is_alive():
            self.thread.start()

    def look(self):
        while not self.ended.wait(0.1):
            for path in self.folder.glob("kith1/*/" + "[0-9a-f]" * 32):
                if path.name not in self.seen:
                    self.seen.add(path.name)
                    self.notes.append((time.time(), "", "PUT", 201, path.stat().st_size, 0))

    def requests(self, since=0.0):
        return [note for note in self.notes if note[0] >= since]


STORAGES = {"webdav": CountedRclone, "s3": CountedMoto, "folder": FolderCount}


class Measured(Rig):
    def runTest(self):
        pass

    def _wasFine(self):
        return self.fine

    def begin(self, count, storage):
        """Devices that are on, with one carrier."""
        self.fine = False
        # Else a device on a host whose clock nobody sets publishes only after ten minutes.
        Clock(self, is_synchronised=True)
        devices = self.account(*(f"d{index}" for index in range(count)))
        self.storage = STORAGES[storage](self, *devices)
        for device in devices:
            self.storage.add(device)
        return devices

    def start(self, devices):
        for device in devices:
            device.start()

    def until_all(self, devices, key, value, limit=600):
        for device in devices:
            wait_for(f"{device.name} to show {key}", lambda: device.get(key) == value, limit)

    def count(self, since, until=None):
        """Requests and bytes of each method."""
        rows = collections.defaultdict(lambda: [0, 0])
        for at, _, method, _, up, down in self.storage.requests(since):
            if until is None or at < until:
                rows[method][0] += 1
                rows[method][1] += up + down
        return rows


def told(rows):
    return ", ".join(f"{rows[method][0]} {method}" for method in sorted(rows))


def total(rows):
    return sum(count for count, _ in rows.values()), sum(size for _, size in rows.values())


def quiet(storage, count, settle, watch=600):
    """One change among devices that are all on, and ten minutes after it."""
    it = Measured()
    it.setUp()
    try:
        devices = it.begin(count, storage)
        it.start(devices)
        devices[0].kith("set", "first", "1")
        it.until_all(devices, "first", "1")
        time.sleep(settle)
        before = it.count(time.time() - 60)
        since = time.time()
        devices[-1].kith("set", "second", "2")
        it.until_all(devices, "second", "2")
        seen = time.time() - since
        first = it.count(since)
        time.sleep(max(0, watch - (time.time() - since)))
        rows = it.count(since)
        memory = max(device.node.resident for device in devices)
        it.fine = True
        requests, size = total(rows)
        objects = sum(1 for each in it.storage.requests() if each[2] == "PUT")
        lists = rows["LIST" if storage == "s3" else "PROPFIND"]
        idle = []
        if lists[0]:
            idle = [("an hour in which nothing changes", storage, count, f"{12 * count} requests",
                     f"{12 * count * lists[1] // lists[0]} bytes",
                     "scaled: a listing every 5 min by the schedule, and the bytes of the listings of the "
                     f"line above, with {objects} objects")]
        return [
            (f"one change, until all {count} show it", storage, count, f"{total(first)[0]} requests",
             f"{total(first)[1]} bytes", f"{told(first)}; after {seen:.0f} s"),
            (f"one change, and {watch // 60} min after it", storage, count, f"{requests} requests",
             f"{size} bytes",
             f"{told(rows)}; bytes: " + ", ".join(f"{name} {each[1]}" for name, each in sorted(
                 rows.items()))
             + f"; {objects} objects put in all; {memory:.0f} MiB resident at most; in the minute "
             f"before: {told(before) or 'nothing'}"),
            *idle,
        ]
    finally:
        it.doCleanups()


def day(storage="webdav", changes=50):
    """A day's changes on three devices, one after the other as fast as they spread."""
    it = Measured()
    it.setUp()
    try:
        devices = it.begin(3, storage)
        it.start(devices)
        devices[0].kith("set", "first", "1")
        it.until_all(devices, "first", "1")
        time.sleep(60)
        since = time.time()
        for index in range(changes):
            devices[index % 3].kith("set", f"key{index % 10}", f"value {index}")
            it.until_all(devices, f"key{index % 10}", f"value {index}")
        took = time.time() - since
        rows = it.count(since)
        it.fine = True
        return [(f"{changes} changes, each after the one before was seen", storage, 3,
                 f"{total(rows)[0]} requests", f"{total(rows)[1]} bytes",
                 f"{told(rows)}; bytes: " + ", ".join(f"{name} {each[1]}" for name, each in sorted(
                     rows.items())) + f"; in {took:.0f} s")]
    finally:
        it.doCleanups()


def latency(storage, times=20):
    """From set on one device to seen on another, both on, while turns are short."""
    it = Measured()
    it.setUp()
    try:
        one, other = devices = it.begin(2, storage)
        it.start(devices)
        one.kith("set", "warm", "0")
        it.until_all(devices, "warm", "0")
        watch = subprocess.Popen(
            other.space.entering(rig.KITH, "watch", "--directory", other.directory, "probe"),
            stdout=subprocess.PIPE, text=True, env=rig.ENVIRONMENT)
        time.sleep(1)
        results = []
        chance = random.Random(1)
        for index in range(times):
            began = time.monotonic()
            one.kith("set", "probe", str(index))
            watch.stdout.readline()
            results.append(time.monotonic() - began)
            time.sleep(chance.uniform(0.5, 5))
        watch.terminate()
        watch.wait()
        it.fine = True
        return [("from set to seen elsewhere", storage, 2, "", "",
                 f"median {statistics.median(results):.1f} s, least {min(results):.1f}, most "
                 f"{max(results):.1f}, of {times}")]
    finally:
        it.doCleanups()


def newcomer(storage):
    """A device that comes to a full store: 1,024 keys of 900 bytes."""
    it = Measured()
    it.setUp()
    try:
        one, other = it.begin(2, storage)
        one.start()
        since = time.time()
        one.write({f"key.{index:04}": f"{index:04}" + "v" * 896 for index in range(1024)})
        one.sync(timeout=120)
        written, put = it.count(since), time.time() - since
        since = time.time()
        other.start()
        wait_for("the last key", lambda: other.get("key.1023"), 120)
        took = time.time() - since
        wait_for("all keys", lambda: len(other.values) == 1024, 120)
        time.sleep(3)
        rows = it.count(since)
        memory = other.node.resident
        it.fine = True
        return [("a full store, put", storage, 2, f"{total(written)[0]} requests",
                 f"{total(written)[1]} bytes", f"{told(written)}; {put:.1f} s"),
                ("a full store, got by a device without it", storage, 2,
                 f"{total(rows)[0]} requests", f"{total(rows)[1]} bytes",
                 f"{told(rows)}; {took:.1f} s; {memory:.0f} MiB resident")]
    finally:
        it.doCleanups()


SCENARIOS = {
    "newcomer-webdav": lambda: newcomer("webdav"),
    "newcomer-s3": lambda: newcomer("s3"),
    "newcomer-folder": lambda: newcomer("folder"),
    "latency-webdav": lambda: latency("webdav"),
    "latency-folder": lambda: latency("folder"),
    "latency-s3": lambda: latency("s3"),
    "day-webdav": lambda: day("webdav"),
    "day-folder": lambda: day("folder"),
    # A device puts what it covers alone at most once in two minutes for each member.
    "quiet-webdav-2": lambda: quiet("webdav", 2, 270),
    "quiet-webdav-3": lambda: quiet("webdav", 3, 390),
    "quiet-folder-2": lambda: quiet("folder", 2, 270),
    "quiet-s3-2": lambda: quiet("s3", 2, 270),
    "quiet-webdav-8": lambda: quiet("webdav", 8, 120),
    "quiet-webdav-32": lambda: quiet("webdav", 32, 120),
}


def main(only):
    if only in SCENARIOS:
        print(json.dumps(SCENARIOS[only]()))
        return 0
    chosen = [name for name in SCENARIOS if only in name]

    def run(name):
        done = subprocess.run(
            [sys.executable, "-B", str(HERE / "run.py"), "--figures", "--only", name],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            return json.loads(done.stdout.splitlines()[-1])
        except (ValueError, IndexError):
            return [(f"{name} failed", "", "", "", "", done.stdout[-2000:])]

    # They wait most of the time.
    with concurrent.futures.ThreadPoolExecutor(len(chosen)) as pool:
        rows = [row for result in pool.map(run, chosen) for row in result]
    print("| what | storage | devices | requests | bytes | of these |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
    return any("failed" in row[0] for row in rows)
