"""Redis at `near` and its replica at `far`. A client watches the replica's keyspace events."""
import os
import shutil
import subprocess
import time

from .system import KEYS, System, eventually, free_port


class Redis(System):
    id, name, durability, program = "redis", "Redis", "no fsync (default)", "redis-server"
    options = ()

    def __init__(self, place, network):
        super().__init__(place, network)
        self.port, self.replica_port = free_port(), free_port()
        self.start(
            "redis-server", "--port", str(self.port), "--bind", network.near, "--dir", place,
            "--protected-mode", "no", *self.options)
        os.mkdir(os.path.join(place, "replica"))
        self.writer, self.answers = network.connect(network.near, self.port)
        self.start_replica()
        self.watch()

    @classmethod
    def lacks(cls):
        return None if shutil.which("redis-server") else "redis-server is not installed"

    @classmethod
    def version(cls):
        text = subprocess.run(["redis-server", "--version"], check=True, capture_output=True, text=True).stdout
        return text.split("v=")[1].split()[0]

    def start_replica(self):
        self.replica = self.start(
            "redis-server", "--port", str(self.replica_port), "--bind", self.network.far, "--protected-mode",
            "no", "--dir", os.path.join(self.place, "replica"), "--replicaof", self.network.near,
            str(self.port), "--notify-keyspace-events", "K$", far=True)
        self.reader, self.values = self.network.connect(self.network.far, self.replica_port, far=True)

    def watch(self):
        self.watcher, self.events = self.network.connect(self.network.far, self.replica_port, far=True)
        is_up = lambda: b"master_link_status:up" in self.ask_replica("INFO", "replication")
        eventually("the replica", is_up)
        self.command(self.watcher, self.events, "PSUBSCRIBE", "__keyspace@0__:*")

    def ask_replica(self, *words):
        return self.command(self.reader, self.values, *words)

    def command(self, connection, lines, *words):
        text = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        connection.sendall(text.encode())
        return self.reply(lines)

    def reply(self, lines):
        line = lines.readline().strip()
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            if int(rest) < 0:
                return b""
            data = lines.read(int(rest))
            lines.readline()
            return data
        if kind == b"*":
            return [self.reply(lines) for _ in range(int(rest))]
        return line

    def put(self, key, text):
        answer = self.command(self.writer, self.answers, "SET", key, text)
        assert answer == b"+OK", answer

    def receive(self):
        # The event has no value, so the client gets it.
        key = self.reply(self.events)[2].decode().partition(":")[2]
        text = self.ask_replica("GET", key).decode()
        self.arrived = time.perf_counter()
        return [(key, text)]

    def leave(self):
        for connection in (self.watcher, self.events, self.reader, self.values):
            connection.close()
        self.end(self.replica)

    def come_back(self):
        # The client asks before the two can meet, so it sees the values as soon as they are there.
        self.network.cut()
        self.start_replica()
        self.network.join()

    def caught_up(self, tag):
        # A replica that loads a snapshot tells no events, so the client asks. Writes keep their order.
        start = f"{tag} ".encode()
        while not self.ask_replica("GET", KEYS[-1]).startswith(start):
            time.sleep(0.0005)
        arrived = time.perf_counter()
        values = self.ask_replica("MGET", *KEYS)
        assert all(value.startswith(start) for value in values), "the replica lacks keys"
        self.watch()
        return arrived


class DurableRedis(Redis):
    id, durability, options = "redis-fsync", "fsync", ("--appendonly", "yes", "--appendfsync", "always")
