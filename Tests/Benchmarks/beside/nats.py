"""One NATS server at `near`, with a bucket of its KV, which is a stream of JetStream."""
import json
import os
import shutil
import subprocess
import tempfile
import time

from .system import System, free_port

_BUCKET = "$KV.b."


class Nats(System):
    id, name, durability, program = "nats", "NATS KV", "no fsync (default)", "nats-server"
    remark = "The far peer of etcd and of NATS is a client, with nothing on disk."
    options = ""

    def __init__(self, place, network):
        super().__init__(place, network)
        self.port = free_port()
        self.start("nats-server", "-c", self.configuration(place), "-p", str(self.port), "-a", network.near)
        self.writer, self.answers = self.client(far=False)
        self.writer.sendall(b"SUB answers 1\r\n")
        self.create_bucket()
        self.watcher, self.events = self.client(far=True)
        self.watcher.sendall(f"SUB {_BUCKET}> 1\r\n".encode())
        self.round_trip(self.watcher, self.events)

    @classmethod
    def configuration(cls, place):
        path = os.path.join(place, "nats.conf")
        with open(path, "w") as file:
            file.write(f'jetstream {{\nstore_dir: "{place}"\n{cls.options}\n}}\n')
        return path

    @classmethod
    def lacks(cls):
        if not shutil.which("nats-server"):
            return "nats-server is not installed"
        with tempfile.TemporaryDirectory() as place:
            check = ["nats-server", "-t", "-c", cls.configuration(place)]
            if subprocess.run(check, capture_output=True).returncode != 0:
                return f"nats-server {cls.version()} has no such option"
        return None

    @classmethod
    def version(cls):
        text = subprocess.run(["nats-server", "--version"], check=True, capture_output=True, text=True).stdout
        return text.split()[-1].removeprefix("v")

    def client(self, far):
        connection, lines = self.network.connect(self.network.near, self.port, far=far)
        lines.readline()
        connection.sendall(b'CONNECT {"verbose":false}\r\n')
        self.round_trip(connection, lines)
        return connection, lines

    def round_trip(self, connection, lines):
        connection.sendall(b"PING\r\n")
        while lines.readline() != b"PONG\r\n":
            pass

    def create_bucket(self):
        stream = {
            "name": "KV_b", "subjects": [f"{_BUCKET}>"], "max_msgs_per_subject": 1, "storage": "file",
            "allow_rollup_hdrs": True, "discard": "new", "retention": "limits"}
        answer = self.ask("$JS.API.STREAM.CREATE.KV_b", json.dumps(stream))
        assert b"error" not in answer, answer

    def message(self, connection, lines):
        """The next message's subject and data."""
        while True:
            words = lines.readline().split()
            if words[0] == b"MSG":
                data = lines.read(int(words[-1]))
                lines.readline()
                return words[1].decode(), data
            if words[0] == b"PING":
                connection.sendall(b"PONG\r\n")

    def ask(self, subject, text):
        self.writer.sendall(f"PUB {subject} answers {len(text)}\r\n{text}\r\n".encode())
        return self.message(self.writer, self.answers)[1]

    def put(self, key, text):
        answer = self.ask(_BUCKET + key, text)
        assert b'"seq"' in answer, answer

    def receive(self):
        while True:
            subject, data = self.message(self.watcher, self.events)
            self.arrived = time.perf_counter()
            if subject.startswith(_BUCKET):  # and not the answer about the consumer
                return [(subject.removeprefix(_BUCKET), data.decode())]

    def leave(self):
        self.watcher.close()
        self.events.close()

    def come_back(self):
        # As a client's `watch`: a consumer delivers the last value of each key, then changes.
        self.watcher, self.events = self.client(far=True)
        consumer = {
            "stream_name": "KV_b", "config": {
                "deliver_subject": "changes", "deliver_policy": "last_per_subject", "ack_policy": "none",
                "filter_subject": f"{_BUCKET}>", "mem_storage": True, "num_replicas": 1}}
        text = json.dumps(consumer)
        self.watcher.sendall(
            f"SUB changes 1\r\nSUB made 2\r\nPUB $JS.API.CONSUMER.CREATE.KV_b made {len(text)}\r\n{text}\r\n"
            .encode())


class DurableNats(Nats):
    id, durability, options = "nats-fsync", "fsync", "sync_interval: always"
