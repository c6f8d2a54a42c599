#!/usr/bin/env python3
"""A store of Kith from Python, over one `kith batch` process. Docs/Batch.md has the format.

    with Kith("--store", "com.example.Editor", "--create") as kith:
        kith.set("theme", "dark")

Any thread may call any method. Run as a program, it shows what the class does.
"""
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time


class KithError(Exception):
    """A refused or failed request: the words, code and exit status of the command line."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.code, self.status = error["code"], error["status"]


class Kith:
    """Options are those of `kith batch`; KITH names the program."""

    def __init__(self, *options):
        self._process = subprocess.Popen(
            [os.environ.get("KITH", "kith"), "batch", *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        greeting = self._process.stdout.readline()
        if not greeting or json.loads(greeting)["version"] != 1:
            self.close()
            raise ConnectionError("kith batch did not start, or has another version")
        self._lock = threading.Lock()
        self._answers = {}  # by id, a queue each
        self._last_id, self._has_ended = 0, False
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Returns once the process has ended; it answers all requests first."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def get(self, key, default=None):
        try:
            return self._wait(self._send("get", key=key))["value"]
        except KithError as error:
            if error.code != "notFound":
                raise
            return default

    def set(self, key, value):
        """Returns once the write survives a crash."""
        self._wait(self._send("set", key=key, value=value))

    def set_all(self, pairs):
        """Sets pairs one by one, without waiting for each: many times faster than `set`."""
        for request in [self._send("set", key=key, value=value) for key, value in pairs]:
            self._wait(request)

    def transaction(self, values, remove=()):
        """Writes all or nothing."""
        self._wait(self._send("transaction", set=values, remove=list(remove)))

    def watch(self, *keys):
        """Returns the values, and an endless iterator of (key, new value or None)."""
        request = self._send("watch", keys=keys)
        return self._wait(request, is_last=False)["values"], self._changes(request[1])

    def _changes(self, answers):
        while (answer := answers.get()) is not None:
            for change in answer["changes"]:
                yield change["key"], change.get("value")

    def _send(self, do, **members):
        with self._lock:
            if self._has_ended:
                raise ConnectionError("kith batch has ended")
            self._last_id += 1
            request = {"id": self._last_id, "do": do, **members}
            self._process.stdin.write(json.dumps(request, allow_nan=False) + "\n")
            answers = self._answers[self._last_id] = queue.SimpleQueue()
            return self._last_id, answers

    def _wait(self, request, is_last=True):
        with self._lock:
            self._process.stdin.flush()
        answer = request[1].get()
        if is_last:
            self._answers.pop(request[0], None)
        if answer is None:
            raise ConnectionError("kith batch has ended")
        if "error" in answer:
            raise KithError(answer["error"])
        return answer

    def _read(self):
        for line in self._process.stdout:
            answer = json.loads(line)
            if answers := self._answers.get(answer.get("id")):
                answers.put(answer)
        with self._lock:
            self._has_ended = True
            for answers in self._answers.values():
                answers.put(None)


def main():
    with Kith(*sys.argv[1:]) as kith:
        _, changes = kith.watch("theme")
        kith.set("theme", "dark")
        print("theme:", kith.get("theme"))
        print("watched:", *next(changes))
        kith.transaction({"width": 1280, "height": 800}, remove=["theme"])
        print("theme:", kith.get("theme", default="none"), "width:", kith.get("width"))
        try:
            kith.set("big", "x" * 2_000_000)
        except KithError as error:
            print(f"refused: {error.code}, {error.status}")
        start, count = time.monotonic(), 2_000
        kith.set_all((f"key {number % 100}", number) for number in range(count))
        print(f"{count} sets, {count / (time.monotonic() - start):,.0f} a second")


if __name__ == "__main__":
    main()
