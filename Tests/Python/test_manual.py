"""The code of Docs/Python.md, and the example."""
import asyncio
import os
import pathlib
import queue
import re
import subprocess
import sys
import threading

import kith

root = pathlib.Path(__file__).parents[2]
blocks = re.findall(r"```python\n(.*?)```", (root / "Docs" / "Python.md").read_text(), re.S)


def test_the_first_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KITH_DIRECTORY", str(tmp_path))
    assert len(blocks[0].splitlines()) <= 8
    exec(blocks[0], {})
    assert capsys.readouterr().out == "dark 13\ntheme dark\nwindow {'isOpen': True, 'width': 800}\n"


def test_transactions(store):
    spend, bought = next((one, two) for one, two in zip(blocks, blocks[1:]) if "def spend" in one)
    store["credits"] = 7
    names = {"store": store, "kith": kith}
    exec(spend, names)
    assert names["left"] == store["credits"] == 2
    exec(bought, names)
    assert store.snapshot() == {"bought": True, "credits": 7}


def test_changes(pair):
    laptop, desktop = pair
    (block,) = [block for block in blocks if "async for" in block]
    printed = []

    async def main():
        def end(*words):
            printed.append(words)
            watching.cancel()

        names = {"print": end}
        exec(block, names)
        watching = asyncio.create_task(names["watch"](desktop))
        await asyncio.sleep(0)
        laptop["theme"] = "dark"
        await asyncio.wait([watching], timeout=30)

    asyncio.run(main())
    assert printed == [(kith.Reason.EXTERNAL_CHANGE, ("theme",), "dark")]


def test_the_example(tmp_path, pair):
    laptop, desktop = pair
    peers = " ".join(desktop.accounts.status()["listening"])
    laptop.close()  # the example opens it

    def command(*arguments):
        return [sys.executable, root / "Examples/python/editor.py", *arguments]

    watching = subprocess.Popen(
        command(tmp_path / "desktop", "watch", "theme"), stdout=subprocess.PIPE, text=True)
    try:
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in watching.stdout]).start()
        assert lines.get(timeout=30) == "watching: None\n"
        said = subprocess.run(
            command(tmp_path / "laptop", "set", "theme", '"dark"'), env=dict(os.environ, PEERS=peers),
            stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
        assert said == "1 other devices have it\n"
        assert lines.get(timeout=30) == "externalChange: dark\n"
        for count in (1, 2):
            said = subprocess.check_output(command(tmp_path / "desktop", "count"), text=True, timeout=60)
            assert said == f"count: {count}\n"
    finally:
        watching.terminate()
        watching.wait()
