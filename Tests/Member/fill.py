#!/usr/bin/env python3
"""Malicious members: fill a node with large values in stores that they make.

    fill.py PORT STORES MEBIBYTES DIRECTORY…

Each DIRECTORY is what `kith join` made, and no node runs on it. One member after the other dials, makes
so many stores under the largest limits, and publishes so many MiB in each, in values of about a MiB.
It reads nothing of what it is sent but to throw it away. It prints `filled` in the end.
"""

import os
import sys

from kithmember import Member
from kithwire import decode, encode, varint

LARGEST_POLICY = {
    "total_bytes": 16 << 20, "keys": 65_536, "key_bytes": 1_024, "value_bytes": 2 << 20}
SIZE = 1_000_000
LAST = 1 << 20


def data_value(size):
    return b"\x32" + varint(size) + os.urandom(size)


def answers(session, seconds=0):
    """The numbers of the Haves that were answered since; all else that came is thrown away."""
    message = session.receive(seconds)
    while message is not None:
        yield (decode("Message", message).get("batch") or {}).get("answers")
        message = session.receive(0)


def fill(member, port, stores, mebibytes):
    session = member.dial("127.0.0.1", port)
    session.socket.settimeout(120)
    for number in range(stores):
        store = f"com.example.Fill{number}"
        session.send(have={"number": number + 1, "whole": True, "stores": [
            {"store": store, "policy": LARGEST_POLICY, "vector": []}]})
        for sequence in range(1, mebibytes + 1):
            clock = member.tick()
            entry = encode(
                "Entry", key=f"{member.id.hex()[:8]}.{sequence}",
                stamp={"clock": clock, "device": member.id}, value=data_value(SIZE),
                claim={"clock": clock, "device": member.id, "group": 0})
            session.send(batch={
                "store": store, "change_sets": [member.change_set(store, [entry], sequence, clock)],
                "covers": [{"device": member.id, "incarnation": member.incarnation,
                            "from": sequence - 1, "through": sequence}]})
            list(answers(session))
    # The answer shows that all before it was taken in.
    covered = {"device": member.id, "incarnation": member.incarnation, "sequence": mebibytes}
    session.send(have={"number": LAST, "whole": True, "stores": [
        {"store": store, "policy": LARGEST_POLICY, "vector": [covered], "awaited": True}]})
    while LAST not in answers(session, 120):
        pass
    session.close()


def main(port, stores, mebibytes, *directories):
    for directory in directories:
        fill(Member.of_directory(directory), int(port), int(stores), int(mebibytes))
    print("filled", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
