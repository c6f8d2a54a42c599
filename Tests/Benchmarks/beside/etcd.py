"""One etcd at `near`. Its clients speak the JSON of its gateway, so that no library is needed."""
import base64
import json
import shutil
import subprocess
import time

from .system import KEYS, System, eventually, free_port


def encoded(text):
    return base64.b64encode(text.encode()).decode()


# The range of all keys that begin with "key.".
_ALL = {"key": encoded("key."), "range_end": encoded("key/")}


class Etcd(System):
    id, name, durability, program = "etcd", "etcd", "fsync (default)", "etcd"
    remark = "Clients of etcd speak JSON through its gateway."

    def __init__(self, place, network):
        super().__init__(place, network)
        self.port = free_port()
        url = f"http://{network.near}:{self.port}"
        self.start(
            "etcd", "--data-dir", place, "--listen-client-urls", url, "--advertise-client-urls", url,
            "--listen-peer-urls", f"http://127.0.0.1:{free_port()}", "--log-level", "error")
        self.writer, self.answers = network.connect(network.near, self.port)
        eventually("etcd", lambda: self.post("/v3/kv/put", {"key": encoded("key."), "value": ""})[0])
        self.connect()
        self.watch()

    @classmethod
    def lacks(cls):
        return None if shutil.which("etcd") else "etcd-server is not installed"

    @classmethod
    def version(cls):
        text = subprocess.run(["etcd", "--version"], check=True, capture_output=True, text=True).stdout
        return text.split()[2]

    def connect(self):
        self.watcher, self.events = self.network.connect(self.network.near, self.port, far=True)
        self.unread = b""

    def watch(self, revision=0):
        request = {**_ALL, "start_revision": revision}
        self.send(self.watcher, "/v3/watch", {"create_request": request})
        while self.events.readline().strip():
            pass
        self.line()

    def send(self, connection, path, body):
        text = json.dumps(body).encode()
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)

    def post(self, path, body):
        """Whether the answer's status is 200, and its body."""
        self.send(self.writer, path, body)
        return self.answer(self.answers)

    def answer(self, lines):
        status, length = lines.readline(), None
        while line := lines.readline().strip():
            name, _, rest = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(rest)
        if length is not None:
            return b" 200 " in status, lines.read(length)
        parts = [self.chunk(lines)]
        while parts[-1]:
            parts.append(self.chunk(lines))
        return b" 200 " in status, b"".join(parts)

    def chunk(self, lines):
        data = lines.read(int(lines.readline(), 16))
        lines.readline()
        return data

    def line(self):
        """The watch's next line; a line may come in several chunks of HTTP."""
        parts = [self.unread]
        while b"\n" not in parts[-1]:
            parts.append(self.chunk(self.events))
        line, _, self.unread = b"".join(parts).partition(b"\n")
        return line

    def put(self, key, text):
        good, answer = self.post("/v3/kv/put", {"key": encoded(key), "value": encoded(text)})
        assert good, answer

    def receive(self):
        line = self.line()
        self.arrived = time.perf_counter()
        return self.pairs([event["kv"] for event in json.loads(line)["result"].get("events", [])])

    def pairs(self, entries):
        decoded = lambda entry, name: base64.b64decode(entry.get(name, "")).decode()
        return [(decoded(entry, "key"), decoded(entry, "value")) for entry in entries]

    def leave(self):
        self.watcher.close()
        self.events.close()

    def come_back(self):
        self.connect()

    def caught_up(self, tag):
        # Reads all, then watches from there: faster than to ask the watch for what was missed.
        self.send(self.watcher, "/v3/kv/range", _ALL)
        good, answer = self.answer(self.events)
        arrived = time.perf_counter()
        document = json.loads(answer)
        texts = dict(self.pairs(document["kvs"]))
        assert good and all(texts[key].startswith(f"{tag} ") for key in KEYS), "etcd lacks keys"
        self.watch(int(document["header"]["revision"]) + 1)
        return arrived
