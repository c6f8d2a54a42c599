"""A typed program, which mypy --strict must accept. It is never run."""
import asyncio
import collections
import kith

def count(t: kith.Transaction) -> int:
    old = t.get("count", 0)
    assert isinstance(old, int)
    t["count"] = old + 1
    return old + 1

async def main() -> None:
    with kith.open("com.example.Typed", peers=["a:1"]) as store:
        store["list"] = [1, "two", {"three": 3.0}]
        names: list[str] = ["a"]
        store["names"] = names
        store["pair"] = ("a", {"b": names})
        store["range"] = range(3)  # type: ignore[assignment]  # only lists and tuples are arrays
        store["queue"] = collections.deque([1])  # type: ignore[assignment]
        store["none"] = None  # type: ignore[assignment]
        total: int = store.commit(count)
        with store.transaction() as t:
            t["x"] = b"y"
            t.expect("count", total)
        async for change in store.changes():
            reason: kith.Reason = change.reason
            print(reason, change.new.get("x"))
        report = store.sync_report()
        print(report["complete"][0].upper(), store.usage()["policy"]["keys"])
        store.update({"a": 1}, b=2)

asyncio.run(main())
