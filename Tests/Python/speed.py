#!/usr/bin/env python3
"""Calls per second of the module, on a store in a directory of its own. `Tests/python speed` runs it."""
import subprocess
import sys
import tempfile
import time

import kith

ROUNDS = 5


def measure(name, calls, body):
    """Prints the median, the least and the most of some rounds."""
    rates = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        body(calls)
        rates.append(calls / (time.perf_counter() - began))
    rates.sort()
    print(f"{name:44} {rates[ROUNDS // 2]:>10,.0f} a second ({rates[0]:,.0f} to {rates[-1]:,.0f})")


def main():
    with tempfile.TemporaryDirectory() as directory, \
            kith.open("com.example.Speed", directory, hosts=["127.0.0.1"], port=0) as store:
        keys = [f"key.{number}" for number in range(100)]
        bookmarks = [{"url": f"https://example.com/{n}", "title": f"Page {n}"} for n in range(20)]
        store.update({key: number for number, key in enumerate(keys)}, text="dark", list=bookmarks)

        def repeat(body):
            def run(calls):
                for number in range(calls):
                    body(number)
            return run

        def setter(value):
            return repeat(lambda number: store.__setitem__(keys[number % 100], value(number)))

        measure("get an integer", 20_000, repeat(lambda number: store[keys[number % 100]]))
        measure("get a text", 20_000, repeat(lambda _: store["text"]))
        measure("get 20 dictionaries", 500, repeat(lambda _: store["list"]))
        measure("set an integer", 10_000, setter(lambda number: number))
        measure("set a text", 10_000, setter(lambda number: f"value {number}"))
        measure("set 20 dictionaries", 500, repeat(lambda _: store.__setitem__("list", bookmarks)))
        measure(
            "commit (read, add, write; durable)", 200,
            repeat(lambda _: store.commit(
                lambda t: t.__setitem__("count", t.get("count", 0) + 1))))
        store.flush()
    attached()


def attached():
    """The same, if another program has the directory open."""
    program = "import kith, sys; store = kith.open('x', sys.argv[1], port=0); print(); input()"
    with tempfile.TemporaryDirectory() as directory, subprocess.Popen(
        [sys.executable, "-c", program, directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:
        other.stdout.readline()
        with kith.open("com.example.Speed", directory) as store:
            store["count"] = 0

            def get(calls):
                for _ in range(calls):
                    store["count"]

            def put(calls):
                for number in range(calls):
                    store["count"] = number

            measure("get an integer, attached", 20_000, get)
            measure("set an integer, attached", 2_000, put)
        other.communicate(b"\n")


if __name__ == "__main__":
    sys.exit(main())
