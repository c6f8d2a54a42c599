"""Devices of an account, as processes of this host: each has a directory, a node and a page."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

PRODUCTS = pathlib.Path(os.environ.get("KITH_PRODUCTS", ".build/debug")).absolute()
KITH = PRODUCTS / "kith-web"
# Without settings of the person who runs the tests.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("KITH_")}
LIMIT = 20  # seconds


def wait_for(what, condition, limit=LIMIT):
    """Waits until the condition returns something true, and returns it."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit} s for {what}")
        time.sleep(0.02)


class Program:
    """A process whose output goes to files. `stop` ends it, and returns its exit status."""

    def __init__(self, name, folder, arguments, environment=None):
        self.name = name
        self.was_killed = False
        self.outputs = folder / f"{name}.out", folder / f"{name}.err"
        with open(self.outputs[0], "w") as out, open(self.outputs[1], "w") as error:
            self.process = subprocess.Popen(
                [str(word) for word in arguments], stdin=subprocess.DEVNULL, stdout=out,
                stderr=error, env=environment or ENVIRONMENT)

    @property
    def out(self):
        return self.outputs[0].read_text()

    @property
    def error(self):
        return self.outputs[1].read_text()

    def printed(self, pattern):
        """Waits until a line of standard output has the pattern; returns the match."""
        def look():
            match = re.search(pattern, self.out, re.MULTILINE)
            if not match and self.process.poll() is not None:
                raise AssertionError(f"{self.name} ended too early: {self.error}")
            return match

        return wait_for(f"“{pattern}” from {self.name}", look)

    def kill(self):
        """Ends it without a chance to tidy up."""
        self.was_killed = True
        self.stop(signal.SIGKILL)

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError(f"{self.name} does not end after signal {number}; its last "
                                     f"words: {self.error[-2_000:]}") from None
        return self.process.returncode


class Peer:
    """A device with a directory of its own; `serve` starts its page and its node."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self.directory = folder / name
        self.programs = []
        self.page = None
        # Texts that no message of a program may hold.
        self.secrets = []

    def kith(self, *arguments, text=None, status=0):
        """Runs a command in the directory, and returns what it printed."""
        done = subprocess.run(
            [KITH, *arguments], input=text, capture_output=True, text=True, timeout=60,
            env={**ENVIRONMENT, "KITH_DIRECTORY": str(self.directory)})
        if done.returncode != status:
            raise AssertionError(
                f"kith {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def create_account(self):
        made = json.loads(self.kith("account", "create", "--name", self.name, "--json"))
        self.secrets.append(made["recoveryKey"])

    def start(self, *arguments, program=KITH, environment=None):
        made = Program(f"{self.name}-{len(self.programs)}", self.folder,
                       [program, *arguments], environment)
        self.programs.append(made)
        return made

    def serve(self, *peers, options=("--no-open",), environment=None):
        """Starts the page, with a node that calls the nodes of the peers."""
        calls = [word for peer in peers for word in ("--peer", peer.node)]
        self.page = self.start(
            "web", "--directory", self.directory, "--web-port", "0", "--listen", "127.0.0.1",
            "--port", "0", "--no-discovery", *calls, *options, environment=environment)
        match = self.page.printed(r"^(http://127\.0\.0\.1:(\d+)/)#(\w+)$")
        self.root, self.port, self.token = match[1], int(match[2]), match[3]
        self.address = match[0]
        self.secrets.append(self.token)
        return self

    def run(self, *peers):
        """Starts a node without a page."""
        calls = [word for peer in peers for word in ("--peer", peer.node)]
        node = self.start("run", "--directory", self.directory, "--listen", "127.0.0.1",
                          "--port", "0", "--no-discovery", *calls)
        wait_for("the node", lambda: "listening on" in node.error)
        return node

    @property
    def status(self):
        return json.loads(self.kith("status", "--json"))

    @property
    def node(self):
        """The address of the running node."""
        return wait_for("the node to listen", lambda: self.status.get("listening"))[0]

    @property
    def values(self):
        """The shown values of the usual store, as `kith export` tells them."""
        return json.loads(self.kith("export", "--json"))["values"]

    def admit(self, joiner):
        """Pairs another device with this one, whose node runs, by a token."""
        invitation = self.start(
            "invite", "--directory", self.directory, "--token", "--yes", "--quiet")
        token = invitation.printed(r"^kith1-\w+$")[0]
        joiner.kith("join", "-", "--name", joiner.name, "--yes", text=token + "\n")
        if invitation.process.wait(LIMIT) != 0:
            raise AssertionError(f"kith invite failed: {invitation.error}")
        # The token is on the standard output of this program only.
        self.programs.remove(invitation)
        return joiner

    def stop(self):
        """Ends all programs; returns what went wrong with them."""
        wrong = []
        for program in reversed(self.programs):
            try:
                if not program.was_killed and program.stop() != 0:
                    wrong.append(f"{program.name} ended with status {program.process.returncode}")
            except AssertionError as error:
                wrong.append(str(error))
            for secret in self.secrets:
                if secret in program.error:
                    wrong.append(f"{program.name} printed a secret to standard error")
        return wrong
