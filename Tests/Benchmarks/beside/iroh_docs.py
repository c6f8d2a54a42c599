"""Two nodes of iroh-docs, each in a Python program, because iroh-docs is a library."""
import json
import os
import subprocess
import time

from .system import System, free_port

REQUIREMENT = "iroh==0.35.0"


class IrohDocs(System):
    id, name, durability = "iroh-docs", "iroh-docs", "no fsync (default)"
    remark = "iroh-docs is a library: its memory includes that of the Python program around it."
    # The environment that has it; see --install.
    python = ""

    def __init__(self, place, network):
        super().__init__(place, network)
        self.port, self.second_port = free_port(), free_port()
        self.writer = self.worker("first", f"{network.near}:{self.port}", far=False)
        self.ticket = json.loads(self.writer.stdout.readline())
        self.come_back()
        self.is_met()

    @classmethod
    def lacks(cls):
        if not os.path.exists(cls.python):
            return "no environment with iroh; --install makes it"
        found = subprocess.run([cls.python, "-c", "import iroh"], capture_output=True).returncode == 0
        return None if found else f"iroh cannot be imported by {cls.python}"

    @classmethod
    def version(cls):
        return subprocess.run(
            [cls.python, "-c", "from importlib.metadata import version; print(version('iroh'))"], check=True,
            capture_output=True, text=True).stdout.strip()

    def worker(self, name, address, *ticket, far):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "iroh_worker.py")
        return self.start(
            self.python, script, os.path.join(self.place, name), address, *ticket, far=far,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def is_met(self):
        """Nodes that have just met may still exchange by reconciliation: set until one is seen at once."""
        self.set(-1)
        self.seen(-1)

    def put(self, key, text):
        self.writer.stdin.write(json.dumps([key, text]).encode() + b"\n")
        self.writer.stdin.flush()
        assert json.loads(self.writer.stdout.readline()) == "set"

    def receive(self):
        line = self.watcher.stdout.readline()
        self.arrived = time.perf_counter()
        return [json.loads(line)]

    def leave(self):
        self.end(self.watcher)

    def come_back(self):
        self.watcher = self.worker(
            "second", f"{self.network.far}:{self.second_port}", self.ticket, far=True)
        self.watcher.stdout.readline()
