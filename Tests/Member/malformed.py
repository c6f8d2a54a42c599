#!/usr/bin/env python3
"""Joins an account by a token on standard input, and sends a node what Docs/Protocol.md calls malformed.

    kith invite --yes --token … | malformed.py PORT STORE

Each ends its session, and the next one is made as if nothing had been. An entry that is wrong inside
its box ends none. Prints how many it sent.
"""

import sys

from kithmember import Member, string_value
from kithwire import encode


def main(port, store):
    member = Member.join(sys.stdin.readline(), "python")
    session = member.dial("127.0.0.1", port)
    member.exchange(session, until=lambda: session.is_settled(store), seconds=60)
    session.close()
    policy, device = member.stores[store].policy, member.id

    def change_set(**header):
        clock = member.tick()
        plaintext = member.entry(store, "other", string_value("value"), clock)
        return member.change_set(store, [plaintext] * 2, **{
            "sequence": 1, "clock": member.tick(), "incarnation": 7, **header})

    def batch(*change_sets, **parts):
        return encode("Message", batch={
            "store": store, "change_sets": list(change_sets), **parts})

    def have(**parts):
        return encode("Message", have={"stores": [{"store": store, "policy": policy, **parts}]})

    def word(number=1, **parts):
        content = encode("WordContent", stores=[{"store": store, "digest": bytes(16), **parts}])
        return {"content": content, "said": [{
            "device": 1, "process": 1, "number": number, "signature": bytes(64)}]}

    def words(*each):
        return encode("Message", have={"words": list(each)})

    def cover(incarnation, below=0, through=1):
        return {"device": device, "incarnation": incarnation, "from": below, "through": through}

    def entry(incarnation, sequence=1, length=32):
        return {"device": device[:length], "incarnation": incarnation, "sequence": sequence}

    good = change_set()
    record = encode("Record", **member.signed_record(member.certificate("again")))
    messages = {
        "no body": b"", "no message": b"\xff", "half a message": batch(good)[:-1],
        "no store": encode("Message", batch={}),
        "a signature of 63 bytes": batch({**good, "signature": good["signature"][:-1]}),
        "entries in another order": batch({**good, "entries": good["entries"][::-1]}),
        "an entry without a digest": batch({**good, "entries": [
            {**good["entries"][0], "index": 2}]}),
        "sequence 0": batch(change_set(sequence=0)),
        "sequence 2^53 + 1": batch(change_set(sequence=(1 << 53) + 1)),
        "a short store tag": batch(change_set(store_tag=bytes(15))),
        "a short digest": batch(change_set(entry_digests=[bytes(31), bytes(32)])),
        "covers in another order": batch(covers=[cover(2), cover(1)]),
        "a chain covered twice": batch(covers=[cover(1), cover(1)]),
        "a cover of nothing": batch(covers=[cover(1, 1, 1)]),
        "covers before the last part": batch(covers=[cover(1)], more=True),
        "a vector in another order": have(vector=[entry(2), entry(1)]),
        "sequence 0 in a vector": have(vector=[entry(1, 0)]),
        "a device of 31 bytes": have(vector=[entry(1, 1, 31)]),
        "a digest of 31 bytes": have(digest=bytes(31)),
        "a policy of 2^63 bytes": have(policy={**policy, "total_bytes": 1 << 63}),
        "a store twice": encode("Message", have={
            "stores": [{"store": store, "policy": policy}] * 2}),
        "a digest of words of 15 bytes": encode("Message", have={"words_digest": bytes(15)}),
        "a vector's digest of 15 bytes": words(word(digest=bytes(15))),
        "a word's number 2^63": words(word(1 << 63)),
        "nine entries of a word": words(word(latest=[entry(each) for each in range(1, 10)])),
        "two words of a device": words(word(1), word(2)),
        "nine addresses": encode("Message", addresses={"devices": [
            {"device": device, "addresses": ["host:1"] * 9}]}),
        "a record's signer twice": encode("Message", records={"records": [
            record + encode("Record", body=None, signatures=member.signed_record(b"")["signatures"])]}),
    }
    for name, message in messages.items():
        session = member.dial("127.0.0.1", port)
        session.begin()
        assert session.receive(10) is not None, "no answer before " + name
        session.send_message(message)
        assert session.is_ended(10), name + " did not end the session"
    # The same change set as it must be, but for one entry with an unknown field in its box.
    session = member.dial("127.0.0.1", port)
    member.exchange(session, until=lambda: session.is_settled(store), seconds=60)
    clock = member.tick()
    right = member.entry(store, "right", string_value("value"), clock)
    wrong = member.entry(store, "wrong", string_value("value"), clock) + b"\x48\x01"
    publishing = member.tick()
    session.send_message(batch(
        member.change_set(store, [right, wrong], sequence=1, clock=publishing, incarnation=8),
        covers=[cover(8)]))
    chain = (device, 8)
    member.exchange(
        session, until=lambda: session.vectors.get(store, {}).get(chain) == 1, seconds=60)
    print("malformed", len(messages), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
