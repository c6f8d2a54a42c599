"""What the measurements need of a system, and the processes of one."""
import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time

KEYS = [f"key.{index}" for index in range(1_024)]
FILL_BYTES, SET_BYTES = 900, 100


def value(tag, size):
    """A text of so many bytes that begins with the tag, and cannot be compressed much."""
    text = f"{tag} "
    return text + secrets.token_urlsafe(size)[: size - len(text)]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(what, condition, patience=20):
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {patience} s for {what}")
        time.sleep(0.02)


@contextlib.contextmanager
def limit(seconds):
    """Raises `TimeoutError` in the main thread's code that takes longer."""

    def end(*_):
        raise TimeoutError(f"took more than {seconds} s")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


class System:
    """One system under test. A subclass starts it in `__init__`, with a writing client at the host
    `near` and a watching one at `far`, and has `put`, `receive`, `leave` and `come_back`."""

    id = name = program = ""
    durability = ""  # of an answered set
    remark = ""  # a sentence that its figures need
    rounds = 500  # of set -> seen
    changes = 5  # for the bytes of one change
    settle = 1.0  # seconds after a change in which it may send more
    catch_ups = 3
    answers_sets = True

    def __init__(self, place, network):
        self.place, self.network, self.processes = place, network, []
        self.arrived = 0.0

    @classmethod
    def lacks(cls):
        """What is missing to run it, in words, or None."""
        return None

    @classmethod
    def version(cls):
        return ""

    def start(self, *command, far=False, **options):
        with open(os.path.join(self.place, "log"), "ab") as log:
            process = subprocess.Popen(
                [*self.network.command(far), *command], cwd=self.place,
                **{"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL, **options})
        self.processes.append(process)
        return process

    def end(self, process):
        self.processes.remove(process)
        process.terminate()
        process.wait(20)

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def put(self, key, text):
        """Returns once the write is answered."""
        raise NotImplementedError

    def receive(self):
        """Blocks for the watching client's next changes, as pairs of key and text. `arrived` is then
        the time at which their bytes were there."""
        raise NotImplementedError

    def leave(self):
        """Ends the peer at `far`."""
        raise NotImplementedError

    def come_back(self):
        """Starts that peer again; it may return before the peer is connected."""
        raise NotImplementedError

    @property
    def measured_process(self):
        """The server, or the near device, whose idling and memory count."""
        return self.processes[0].pid

    def set(self, number):
        self.put(KEYS[0], value(number, SET_BYTES))

    def seen(self, number):
        while not any(text.startswith(f"{number} ") for _, text in self.receive()):
            pass

    def fill(self, tag):
        for key in KEYS:
            self.put(key, value(tag, FILL_BYTES))

    def caught_up(self, tag):
        """The time at which the watching client had all keys with this tag."""
        missing = set(KEYS)
        while missing:
            missing -= {key for key, text in self.receive() if text.startswith(f"{tag} ")}
        return self.arrived


class Usage:
    """What a process and its children have used: per thread, context switches and nanoseconds."""

    def __init__(self, pid):
        self.threads = {}
        for process in _tree(pid):
            for thread in os.listdir(f"/proc/{process}/task"):
                folder = f"/proc/{process}/task/{thread}"
                switches = sum(
                    int(line.split()[1]) for line in _lines(f"{folder}/status") if "ctxt_switches" in line)
                self.threads[thread] = (switches, int(_lines(f"{folder}/schedstat")[0].split()[0]))

    def since(self, earlier):
        """Switches and nanoseconds. Those of threads that ended meanwhile are not known."""
        ended = (0, 0)
        pairs = [(now, earlier.threads.get(thread, ended)) for thread, now in self.threads.items()]
        return tuple(sum(now[part] - then[part] for now, then in pairs) for part in (0, 1))


def memory(pid):
    """RssAnon and VmRSS of a process and its children, in bytes."""
    sums = {"RssAnon": 0, "VmRSS": 0}
    for process in _tree(pid):
        for line in _lines(f"/proc/{process}/status"):
            name, _, rest = line.partition(":")
            if name in sums:
                sums[name] += int(rest.split()[0]) * 1024
    return sums["RssAnon"], sums["VmRSS"]


def _tree(pid):
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                pass
    found = [pid]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def _lines(path):
    try:
        with open(path) as file:
            return file.read().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return ["0 0 0"] if path.endswith("schedstat") else []
