"""Devices as processes of this host, each in a network namespace of its own, and namespaces for the
servers between them. All that is made here begins with the name of this run, and is gone afterwards."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

KITH = pathlib.Path(os.environ.get("KITH", ".build/debug/kith")).absolute()
# Without settings of the person who runs the tests.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("KITH")},
    "LC_ALL": "C.UTF-8"}
LIMIT = 30  # seconds
RUN = f"kithc-{os.getpid()}"


def wait_for(what, condition, limit=LIMIT):
    """Waits until the condition returns something true, and returns it."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit} s for {what}")
        time.sleep(0.05)


def shell(*words, status=0):
    """Runs a command of the host; returns what it printed."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120)
    if done.returncode != status:
        raise AssertionError(f"{' '.join(map(str, words))}: {done.returncode}: {done.stderr}")
    return done.stdout


class Namespace:
    """A network of its own: nothing but a loopback, until it is linked."""

    count = 0

    def __init__(self, name):
        self.name = f"{RUN}-{name}-{Namespace.count}"
        Namespace.count += 1
        shell("ip", "netns", "add", self.name)
        shell("ip", "-n", self.name, "link", "set", "lo", "up")
        # One that has two links must not join them.
        shell(*self.entering("sysctl", "-qw", "net.ipv4.ip_forward=0", "net.ipv6.conf.all.forwarding=0"))

    def entering(self, *words):
        """A command as it is run inside. It keeps the host's mounts."""
        return ["nsenter", f"--net=/run/netns/{self.name}", "--", *map(str, words)]

    def link(self, other, subnet):
        """A cable to another namespace, which gets the address 10.94.SUBNET.1, and this one .2."""
        ends = [f"kc{os.getpid() % 100_000}n{subnet}{side}" for side in "ab"]
        shell("ip", "link", "add", ends[0], "netns", self.name, "type", "veth",
              "peer", "name", ends[1], "netns", other.name)
        for space, end, host in ((self, ends[0], 2), (other, ends[1], 1)):
            shell("ip", "-n", space.name, "addr", "add", f"10.94.{subnet}.{host}/24", "dev", end)
            shell("ip", "-n", space.name, "link", "set", end, "up")
        return f"10.94.{subnet}.1"

    def reaches(self, address):
        return subprocess.run(
            self.entering("ping", "-c", "1", "-W", "1", address), capture_output=True).returncode == 0

    @property
    def processes(self):
        """The processes inside, by their commands."""
        names = []
        for process in shell("ip", "netns", "pids", self.name).split():
            with contextlib.suppress(OSError):
                names.append(pathlib.Path(f"/proc/{process}/comm").read_text().strip())
        return sorted(names)

    def remove(self):
        shell("ip", "netns", "del", self.name)


class Program:
    """A process whose output goes to files. `stop` ends it, and returns its exit status."""

    def __init__(self, name, folder, words, environment=None):
        self.name = name
        self.outputs = folder / f"{name}.out", folder / f"{name}.err"
        with open(self.outputs[0], "w") as out, open(self.outputs[1], "w") as error:
            self.process = subprocess.Popen(
                [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=out, stderr=error,
                env=environment or ENVIRONMENT)

    @property
    def out(self):
        return self.outputs[0].read_text()

    @property
    def error(self):
        return self.outputs[1].read_text()

    def said(self, pattern, output=None):
        """Waits until it printed the pattern; returns the match."""
        def look():
            match = re.search(pattern, self.out + self.error, re.MULTILINE)
            if not match and self.process.poll() is not None:
                raise AssertionError(f"{self.name} ended too early: {self.error}")
            return match

        return wait_for(f"“{pattern}” from {self.name}", look)

    def kill(self):
        """Ends it without a chance to tidy up."""
        self.process.kill()
        self.process.wait()

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"{self.name} does not end after signal {number}") from None
        return self.process.returncode

    @property
    def resident(self):
        """The most resident memory it ever had, in MiB."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) / 1024


class Device:
    """A device: a directory, and a network of its own."""

    def __init__(self, name, rig, directory=None):
        self.name, self.rig = name, rig
        self.directory = directory or rig.folder / name
        self.space = rig.namespace(name)
        self.node = None
        self.added = None
        self.starts = 0

    def run(self, *words, text=None):
        """Runs a command in the directory; returns the completed process."""
        return subprocess.run(
            self.space.entering(KITH, *words), input=text, capture_output=True, text=True,
            timeout=200, env={**ENVIRONMENT, "KITH_DIRECTORY": str(self.directory)})

    def kith(self, *words, text=None, status=0):
        """Runs a command, and returns what it printed."""
        done = self.run(*words, text=text)
        if done.returncode != status:
            raise AssertionError(
                f"{self.name}: kith {' '.join(map(str, words))} ended with {done.returncode}, "
                f"not {status}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self):
        self.starts += 1
        self.node = Program(
            f"{self.directory.name}-node{self.starts}", self.rig.folder,
            self.space.entering(KITH, "run", "--directory", self.directory, "--listen", "127.0.0.1",
                                "--port", "0", "--no-discovery", "--log-level", "info"))
        self.rig.programs.append(self.node)
        self.node.said("ready")
        return self

    def stop(self):
        node, self.node = self.node, None
        self.rig.programs.remove(node)
        status = node.stop()
        if status != 0:
            raise AssertionError(f"{node.name} ended with {status}: {node.error}")

    @contextlib.contextmanager
    def on(self):
        """The device is on for a moment."""
        self.start()
        yield self
        self.stop()

    def moment(self, *writes):
        """On for a moment: reads what lies on the carriers, and puts what they lack."""
        with self.on():
            for write in writes:
                self.kith(*write)
            self.sync()

    def sync(self, status=0, timeout=LIMIT, attempts=3, is_told=True):
        """Publishes, and waits until the carriers hold all of it."""
        for left in reversed(range(attempts)):
            done = self.run("sync", "--timeout", timeout / attempts)
            if done.returncode == status:
                return done.stdout
            if left and is_told:
                print(f"    ({self.name}: kith sync has to be called again: {done.stderr.strip()})")
        raise AssertionError(
            f"{self.name}: kith sync ended with {done.returncode}, not {status}: {done.stdout}"
            f"{done.stderr}; {self.kith('carrier', 'list')}")

    def add(self, *words, text=None):
        self.added = words, text
        if text is not None:
            words = ("--credentials-file", "-", *words)
        self.kith("carrier", "add", "--only-here", *words, text=text)

    @property
    def status(self):
        return json.loads(self.kith("status", "--json"))

    @property
    def carrier(self):
        return json.loads(self.kith("carrier", "list", "--json"))["carriers"][0]

    @property
    def export(self):
        return self.kith("export")

    @property
    def values(self):
        return json.loads(self.export)

    def get(self, key):
        """A key's value as it is printed; nil if there is none."""
        done = self.run("get", key)
        return done.stdout.rstrip("\n") if done.returncode == 0 else None

    def has(self, key, value=None):
        wait_for(f"{self.name} to show {key}",
                 lambda: (got := self.get(key)) is not None and value in (None, got))

    def write(self, values):
        """Many values at once."""
        self.kith("import", "--store", "default", "--create", "-", text=json.dumps(values))

    def copy(self, name):
        """A copy of the directory, as another device of this host uses it; no node runs on this one."""
        shutil.copytree(self.directory, self.rig.folder / name,
                        ignore=lambda folder, names: [each for each in names if each == "control"])
        return type(self)(self.name, self.rig, self.rig.folder / name)


class Rig(unittest.TestCase):
    """The base of the tests: what they made is gone afterwards, and failures explain themselves."""

    device = Device

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{RUN}-", dir="/tmp"))
        self.programs, self.spaces, self.mounts = [], [], []
        self.addCleanup(self.end)

    def end(self):
        if not self._wasFine():
            self.explain()
        for program in reversed(self.programs):
            with contextlib.suppress(AssertionError):
                program.stop()
        for mount in list(self.mounts):
            self.unmount(mount)
        for space in self.spaces:
            space.remove()
        shutil.rmtree(self.folder)

    def _wasFine(self):
        result = self._outcome.result
        return not any(test is self for test, _ in result.failures + result.errors)

    def explain(self):
        for path in sorted(self.folder.glob("*.err")):
            if text := path.read_text().strip():
                print(f"-- {path.stem}:\n{text[-3000:]}")

    def say(self, text):
        """A line for a person who reads along."""
        print(f"    {text}")

    # ------------------------------------------------------------------------ making

    def namespace(self, name):
        space = Namespace(name)
        self.spaces.append(space)
        return space

    def program(self, name, words, space=None, environment=None):
        words = space.entering(*words) if space else words
        program = Program(name, self.folder, words, environment)
        self.programs.append(program)
        return program

    def finish(self, program):
        self.programs.remove(program)
        return program.stop()

    def mount(self, name, kilobytes):
        """A small file system."""
        path = self.folder / name
        path.mkdir(exist_ok=True)
        shell("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=700", "tmpfs", path)
        self.mounts.append(path)
        return path

    def unmount(self, path):
        shell("umount", path)
        self.mounts.remove(path)

    def account(self, *names):
        """Devices of one account, which met once to be paired and then nevermore."""
        first = self.device(names[0], self)
        made = first.kith("account", "create", "--name", names[0], "--json")
        first.account = json.loads(made)["account"]
        return [first] + [self.join(first, name) for name in names[1:]]

    def join(self, inviter, name):
        """Pairs over the inviter's loopback."""
        device = self.device(name, self)
        invitation = self.program(
            f"invite-{name}",
            [KITH, "invite", "--directory", inviter.directory, "--token", "--yes", "--no-qr",
             "--quiet", "--address", "127.0.0.1"], inviter.space)
        token = invitation.said(r"^kith1-\w+$")[0]
        home, device.space = device.space, inviter.space
        device.kith("join", "-", "--name", name, "--yes", text=token + "\n")
        device.space = home
        if invitation.process.wait(LIMIT) != 0:
            raise AssertionError(f"kith invite failed: {invitation.error}")
        self.programs.remove(invitation)
        return device

    def shared_folder(self, *devices, name="folder"):
        """A folder that all devices use as their carrier."""
        path = self.folder / name
        path.mkdir(exist_ok=True)
        for device in devices:
            device.add("folder", path)
        return path

    def place(self, folder):
        """The directory of the objects."""
        [place] = (folder / "kith1").iterdir()
        return place

    def objects(self, folder):
        """All objects, by name."""
        return {path.name: path.read_bytes() for path in sorted(self.place(folder).iterdir())
                if path.is_file() and not path.name.endswith(".tmp")}
