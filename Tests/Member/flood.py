#!/usr/bin/env python3
"""A malicious member: floods a node with one kind of message until it is ended.

    flood.py DIRECTORY PORT STORE KIND

DIRECTORY is what `kith join` made, and no node runs on it. It prints `begun` with the first message of
the flood, dials again whenever the session is ended, and reads nothing of what it is sent but to throw it
away. The kinds are those of `MemberFloodTests`.
"""

import os
import random
import select
import struct
import sys
import time

from kithmember import STANDARD_POLICY, Member, string_value
from kithwire import blake2b, encode, sign, varint


def renames(member, count):
    """Records that call the member something else, each another one."""
    return encode("Message", records={"records": [
        member.signed_record(encode("RecordBody", rename={
            "device": member.id, "name": "n", "issued": random.randrange(1 << 40)}))
        for _ in range(count)]})


def change_sets(member, store, count, value):
    """A batch of change sets of one entry each."""
    sets = []
    for number in range(count):
        clock = member.tick()
        member.sequence = getattr(member, "sequence", 0) + 1
        entry = encode(
            "Entry", key=f"flood.{number % 50}", stamp={"clock": clock, "device": member.id},
            value=value, claim={"clock": clock, "device": member.id, "group": 0})
        sets.append(member.change_set(store, [entry], member.sequence, clock))
    return encode("Message", batch={"store": store, "change_sets": sets})


def have(store, vector=()):
    """A Have that wants all of a store: its digest is wrong, and its vector is another."""
    return encode("Message", have={"number": 2, "whole": True, "stores": [
        {"store": store, "policy": STANDARD_POLICY, "vector": list(vector),
         "digest": blake2b(os.urandom(8)), "awaited": True}]})


def word(member, number):
    """What the member says that it covers, of as many stores as a word may have."""
    content = encode("WordContent", stores=[
        {"store": f"com.example.S{each:03}", "digest": os.urandom(16)} for each in range(256)])
    signed = (b"kith word v1\0" + member.roster.account + member.id
              + struct.pack(">QQ", 1, number) + content)
    return encode("Message", have={"words": [{"content": content, "said": [{
        "device": int.from_bytes(member.id[:8], "big"), "process": 1, "number": number,
        "signature": sign(member.private, signed)}]}]})


def addresses(member):
    return encode("Message", addresses={"devices": [
        {"device": device, "addresses": [
            f"10.{random.randrange(256)}.{random.randrange(256)}.{place}:4114" for place in range(8)]}
        for device in sorted(member.roster.members)]})


def data_value(size):
    return b"\x32" + varint(size) + os.urandom(size)


def messages(kind, member, store):
    """The flood, message by message."""
    if kind == "replays":
        batch = change_sets(member, store, 500, string_value("x"))
    number = 0
    while True:
        number += 1
        yield {
            "empty": lambda: encode("Message", records={}),
            "known": lambda: encode("Message", records={
                "records": [member.roster.encoded()[0]]}),
            "rename": lambda: renames(member, 1),
            "records": lambda: renames(member, 40),
            "haves": lambda: have(store),
            "vectors": lambda: have(store, sorted(
                ({"device": os.urandom(32), "incarnation": 1, "sequence": 1} for _ in range(4_000)),
                key=lambda entry: entry["device"])),
            "batches": lambda: change_sets(member, store, 100, string_value(str(number))),
            "writes": lambda: change_sets(member, store, 1, string_value(str(number))),
            "replays": lambda: batch,
            "words": lambda: word(member, number),
            "large": lambda: change_sets(member, store, 1, data_value(400_000)),
            "addresses": lambda: addresses(member),
            # By a device that was revoked, under the old key, with a static key that nobody knows.
            "revoked": lambda: renames(member, 40) if number % 2 else encode("Message", records={}),
        }[kind]()


def main(directory, port, store, kind):
    random.seed(1)
    member = Member.of_directory(directory)
    psk, name = member.current.psk, member.id
    while True:
        try:
            hello = {}
            if kind == "revoked":
                member.transport, hello = os.urandom(32), {"device": os.urandom(32)}
            session = member.dial("127.0.0.1", port, psk=psk, **hello)
            session.socket.settimeout(60)
            if kind != "revoked":
                session.send_message(have(store))
            if kind in ("empty", "known", "rename"):
                # So that the node holds back as many records as it may.
                for _ in range(125):
                    session.send_message(renames(member, 40))
            print("begun", flush=True)
            end = time.monotonic() + (4 if kind == "revoked" else 1e9)
            for message in messages(kind, member, store):
                session.send_message(message)
                while select.select([session.socket], [], [], 0)[0]:
                    if not session.socket.recv(1 << 20):
                        raise EOFError
                if time.monotonic() > end:
                    break
            session.close()
        except (OSError, EOFError, ValueError):
            time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
