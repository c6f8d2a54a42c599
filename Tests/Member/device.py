#!/usr/bin/env python3
"""Joins an account by a token on standard input, as a device of its own, and syncs a store with a node.

    kith invite --yes --token … | device.py PORT STORE

Joining pulls the store. It publishes `from` = "python" and `greeting` = "hallo", prints `published`, waits until
`after` is there, and prints the store's digest. Docs/Protocol.md is all that it was written from.
"""

import sys

from kithmember import Member, string_value


def main(port, store):
    member = Member.join(sys.stdin.readline(), "python")
    # Joining brought the data.
    held = member.stores[store]
    print("greeting", held.value("greeting").hex())
    session = member.dial("127.0.0.1", port)
    # The digest of the records that both have: nothing is sent of them.
    assert session.peer["roster_digest"] == member.roster.digest(), "roster digests differ"
    member.exchange(session, until=lambda: session.is_settled(store), seconds=60)
    member.publish([session], store, "from", string_value("python"))
    member.publish([session], store, "greeting", string_value("hallo"))
    print("published", flush=True)
    member.exchange(
        session, until=lambda: held.value("after") and session.is_settled(store), seconds=60)
    assert held.quarantined == 0, "entries that the node published are wrong"
    print("digest", held.digest().hex())


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
