#!/usr/bin/env python3
"""A store of Kith from Python. Docs/Python.md is the manual.

    editor.py DIRECTORY set KEY VALUE      the value as JSON
    editor.py DIRECTORY count              counts up in a transaction
    editor.py DIRECTORY watch KEY          prints each change by other devices and programs

PEERS, such as 127.0.0.1:4114, are devices to call.
"""
import asyncio
import json
import os
import sys

import kith


def count(transaction):
    transaction["count"] = transaction.get("count", 0) + 1
    return transaction["count"]


async def watch(store, key):
    # Before the value is read, so that no change is missed.
    with store.changes() as changes:
        print("watching:", store.get(key), flush=True)
        async for change in changes:
            if key in change.keys:
                print(f"{change.reason.value}: {change.new.get(key)}", flush=True)


def main(directory, command, *arguments):
    with kith.open(
        "com.example.Python", directory, hosts=["127.0.0.1"], port=0,
        peers=os.environ.get("PEERS", "").split(),
    ) as store:
        if command == "set":
            store[arguments[0]] = json.loads(arguments[1])
            if os.environ.get("PEERS"):
                report = store.wait_until_synced(10)
                print(len(report["complete"]), "other devices have it")
        elif command == "count":
            print("count:", store.commit(count))
        elif command == "watch":
            asyncio.run(watch(store, *arguments))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except kith.KithError as error:
        sys.exit(f"{error.code}: {error}")
