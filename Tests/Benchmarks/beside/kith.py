"""Two devices of an account, each `kith run`; programs talk to them through `kith batch`."""
import json
import os
import subprocess
import time

from .system import System, free_port


class Kith(System):
    id, name, durability = "kith", "Kith", "fsync, signed, sealed"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}

    def __init__(self, place, network):
        super().__init__(place, network)
        self.kith = os.path.abspath(os.environ["KITH"])
        self.first, self.second = (os.path.join(place, name) for name in ("first", "second"))
        self.port, self.second_port = free_port(), free_port()
        subprocess.run(
            [self.kith, "account", "create", "--name", "first", "--directory", self.first], check=True,
            **self.quiet)
        self.start(
            self.kith, "run", "--directory", self.first, "--port", str(self.port), "--listen", network.near,
            "--no-discovery")
        network.connect(network.near, self.port)[0].close()
        self.pair()
        self.start_second()
        self.writer = self.batch(self.first, far=False)
        self.watch()
        self.set(-1)
        subprocess.run(
            [self.kith, "sync", "--directory", self.first, "--timeout", "20"], check=True, **self.quiet)

    @classmethod
    def version(cls):
        return subprocess.run(
            [os.environ["KITH"], "--version"], check=True, capture_output=True, text=True).stdout.strip()

    def pair(self):
        invitation = subprocess.Popen(
            [self.kith, "invite", "--token", "--yes", "--quiet", "--address", self.network.near,
             "--directory", self.first], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        token = invitation.stdout.readline()
        subprocess.run(
            [*self.network.command(True), self.kith, "join", "-", "--yes", "--name", "second",
             "--directory", self.second], input=token, check=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        invitation.wait()

    def start_second(self):
        self.node = self.start(
            self.kith, "run", "--directory", self.second, "--port", str(self.second_port), "--listen",
            self.network.far, "--no-discovery", "--peer", f"{self.network.near}:{self.port}", far=True)
        self.network.connect(self.network.far, self.second_port, far=True)[0].close()

    def batch(self, directory, far):
        process = self.start(self.kith, "batch", "--directory", directory, far=far, **self.pipes)
        process.stdout.readline()
        return process

    def watch(self):
        self.watcher = self.batch(self.second, far=True)
        self.request(self.watcher, {"do": "watch"})
        self.watcher.stdout.readline()

    def request(self, process, request):
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()

    def put(self, key, text):
        self.request(self.writer, {"do": "set", "key": key, "value": text})
        answer = json.loads(self.writer.stdout.readline())
        assert "set" in answer, answer

    def receive(self):
        line = self.watcher.stdout.readline()
        self.arrived = time.perf_counter()
        return [(change["key"], change.get("value", "")) for change in json.loads(line)["changes"]]

    def leave(self):
        self.end(self.watcher)
        self.end(self.node)

    def come_back(self):
        # The program watches before the devices can meet, so it sees each change as it is applied.
        self.network.cut()
        self.start_second()
        self.watch()
        self.network.join()
