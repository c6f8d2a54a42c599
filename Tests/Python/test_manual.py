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


def test_changes(pair, capsys):
    laptop, desktop = pair
    (block,) = [block for block in blocks if "async for" in block]
    names = {"asyncio": asyncio, "store": desktop}
    body = "".join(f"    {line}\n" for line in block.splitlines())
    exec(f"async def main():\n{body}            return\n", names)

    async def both():
        watching = asyncio.create_task(names["main"]())
        await asyncio.sleep(0)
        laptop["theme"] = "dark"
        await watching

    asyncio.run(both())
    assert capsys.readouterr().out == "Reason.EXTERNAL_CHANGE ('theme',) dark\n"


def test_the_example(pair):
    laptop, desktop = pair
    listening = desktop.accounts.status()["listening"]
    directories = [known.accounts.known()[0]["directory"] for known in pair]
    laptop.close()
    environment = dict(os.environ, PEERS=" ".join(listening))

    def run(device, *arguments):
        return [sys.executable, root / "Examples/python/editor.py", device, *arguments]

    example = pathlib.Path(directories[0]).parents[1]
    lines = queue.Queue()
    watching = subprocess.Popen(
        run(desktop_directory(directories[1]), "watch", "theme"), stdout=subprocess.PIPE, text=True)
    threading.Thread(target=lambda: [lines.put(line) for line in watching.stdout]).start()
    assert lines.get(timeout=30) == "watching: None\n"
    subprocess.run(
        run(example, "set", "theme", '"dark"'), env=environment, check=True, timeout=60)
    assert lines.get(timeout=30) == "externalChange: dark\n"
    watching.terminate()
    watching.wait()


def desktop_directory(directory):
    return pathlib.Path(directory).parents[1]
