#!/usr/bin/env python3
"""Makes quota-own.json: cases of what a quota shows, worked out by a model of
Docs/Protocol/quota.md that is naive and written apart from the product's.
Usage: make-quota-vectors.py > quota-own.json"""
import itertools
import json
import random

DEVICES = "abcd"


def state(entries):
    """Section 7: of each key the newest entry, and the second newest while it counts."""
    kept = {}
    for key in {e["key"] for e in entries}:
        mine = sorted((e for e in entries if e["key"] == key), key=lambda e: e["stamp"], reverse=True)
        newest, second = mine[0], mine[1] if len(mine) > 1 else None
        if second is not None and newest["size"] is None:
            second = None
        if second is not None and newest["replaced"] is not None:
            if not newest["replaced"] < second["stamp"]:
                second = None
        kept[key] = (newest, second)
    return kept


def steps(newest, second):
    """Section 8: what one key offers, least wanted first, as (kind, size, claim)."""
    offered = []
    if second is not None:
        if second["size"] is not None:
            if second["fallback"]:
                offered.append(
                    ("runner-up's fallback", second["fallback"]["size"], second["fallback"]["claim"]))
            offered.append(("runner-up", second["size"], second["claim"]))
    elif newest["fallback"]:
        offered.append(("fallback", newest["fallback"]["size"], newest["fallback"]["claim"]))
    offered.append(("value", newest["size"], newest["claim"]))
    return offered


def admit(entries, max_bytes, max_keys):
    offers = {k: steps(n, s) for k, (n, s) in state(entries).items() if n["size"] is not None}
    newest = {k: o[-1] for k, o in offers.items()}
    if all(size <= max_bytes for _, size, _ in newest.values()) \
            and sum(size for _, size, _ in newest.values()) <= max_bytes and len(newest) <= max_keys:
        return {k: "value" for k in newest}, []
    groups = {}
    for key, offered in offers.items():
        for rank, (_, size, claim) in enumerate(offered):
            groups.setdefault(tuple(claim), []).append((key, rank, size))
    shows, admitted = {}, set()

    def after(group):
        result = dict(shows)
        for key, rank, _ in group:
            if rank > result.get(key, -1):
                result[key] = rank
        return result

    progress = True
    while progress:
        progress = False
        for claim in sorted(set(groups) - admitted):
            result = after(groups[claim])
            total = sum(offers[k][r][1] for k, r in result.items())
            if total <= max_bytes and len(result) <= max_keys:
                shows, progress = result, True
                admitted.add(claim)
                break
    shown = {k: offers[k][r][0] for k, r in sorted(shows.items())}
    return shown, sorted(k for k in offers if shown.get(k) != "value")


def random_case(number, rng):
    max_bytes, max_keys = rng.choice([100, 1000]), rng.choice([2, 4, 8])
    entries, claims = [], {}
    for key in [f"k{i}" for i in range(rng.randint(1, 9))]:
        stamps = rng.sample(range(10, 60), rng.randint(1, 3))
        for clock in sorted(stamps):
            device = rng.choice(DEVICES)
            size = None if rng.random() < 0.15 else rng.randint(0, max_bytes * 6 // 10)
            fallback = None
            claim = [clock, device, rng.randint(0, 1)]
            if claims and rng.random() < 0.35:
                claim = list(rng.choice(sorted(claims.values())))
            if size is not None and rng.random() < 0.4:
                fallback = {"size": rng.randint(0, max_bytes // 2),
                            "claim": [max(0, claim[0] - rng.randint(1, 9)), rng.choice(DEVICES), 0]}
            replaced = rng.choice([None, [clock - 1, "~"], [rng.randint(0, clock - 1), rng.choice(DEVICES)]])
            claims[(key, clock)] = claim
            entries.append({"key": key, "stamp": [clock, device], "size": size, "claim": claim,
                            "fallback": fallback, "replaced": replaced})
    rng.shuffle(entries)
    return case(f"random {number}", "made at random", max_bytes, max_keys, entries)


def case(name, why, max_bytes, max_keys, entries):
    shown, hidden = admit(entries, max_bytes, max_keys)
    return {"name": name, "why": why, "max_bytes": max_bytes, "max_keys": max_keys,
            "entries": entries, "shown": shown, "hidden": hidden}


def entry(key, clock, device, size, claim=None, fallback=None, replaced="before"):
    return {"key": key, "stamp": [clock, device], "size": size,
            "claim": claim or [clock, device, 0], "fallback": fallback,
            "replaced": [clock - 1, "~"] if replaced == "before" else replaced}


def main():
    cases = [
        case("zero bytes take a key", "an empty value is a value", 10, 1,
             [entry("a", 1, "a", 0), entry("b", 2, "a", 0)]),
        case("one too large for the store", "it is hidden, and its neighbours are not", 100, 8,
             [entry("a", 1, "a", 101), entry("b", 2, "a", 100)]),
        case("two writers keep one claim", "a runner-up and a newest of one claim are one group", 100, 8,
             [entry("x", 1, "c", 60), entry("k", 5, "a", 30, [0, "a", 0], None, [2, "a"]),
              entry("k", 6, "b", 35, [0, "a", 0], None, [2, "a"])]),
        case("a shrinking group frees room for an earlier one", "the earliest is looked at again", 100, 8,
             [entry("s", 9, "c", 1, [9, "c", 0], {"size": 80, "claim": [1, "c", 0]}),
              entry("y", 5, "b", 50), entry("z", 4, "d", 60)]),
        case("three writers", "only the second newest is remembered", 100, 8,
             [entry("x", 1, "a", 50), entry("k", 3, "b", 10, None, None, None),
              entry("k", 4, "c", 20, None, None, None), entry("k", 5, "d", 60, None, None, None)]),
    ]
    rng = random.Random(20261121)
    cases += [random_case(n, rng) for n in itertools.islice(itertools.count(1), 250)]
    print(json.dumps({
        "about": "Made by make-quota-vectors.py, a naive model of the protocol's section 8. Each case: "
                 "entries in any order, the limits, what each key shows and which keys are hidden.",
        "cases": cases}, separators=(",", ":")).replace('{"name"', '\n{"name"'))


main()
