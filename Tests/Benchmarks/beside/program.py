"""Figures of the program `kith` as it is built, with budgets, in the form of `Tests/bench --json`."""
import os
import statistics
import subprocess
import tempfile
import time

from .kith import Kith
from .network import Loopback
from .system import Usage, memory

MIB = 1 << 20


class Figure:
    def __init__(self, name, title, value, unit, at_most=None):
        self.name, self.title, self.value, self.unit, self.at_most = name, title, value, unit, at_most

    @property
    def is_kept(self):
        return self.at_most is None or self.value <= self.at_most

    def text(self, value):
        return {
            "seconds": f"{value * 1000:,.3g} ms", "perSecond": f"{value:.3g}/s",
            "bytes": f"{value / MIB:.1f} MiB"}[self.unit]

    @property
    def document(self):
        document = {"name": self.name, "title": self.title, "unit": self.unit, "value": self.value}
        if self.at_most is not None:
            document |= {"budget": {"atMost": self.at_most}, "ok": self.is_kept, "required": False}
        return document


def document(figures, quick):
    return {
        "version": 1, "figures": [figure.document for figure in figures],
        "ok": all(figure.is_kept for figure in figures), "quick": quick}


def table(figures):
    rows = [("FIGURE", "MEASURED", "BUDGET", "")]
    for figure in figures:
        known = figure.at_most is not None
        rows.append((
            figure.title, figure.text(figure.value), f"≤ {figure.text(figure.at_most)}" if known else "",
            ("ok" if figure.is_kept else "miss") if known else ""))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in rows)


def elapsed(*command):
    """The seconds from a program's start to its end, without its output."""
    nowhere = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    start = time.perf_counter()
    process = os.posix_spawn(command[0], command, os.environ, file_actions=nowhere)
    _, status = os.waitpid(process, 0)
    seconds = time.perf_counter() - start
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}")
    return seconds


def median(rounds, *command):
    times = [elapsed(*command) for _ in range(rounds + 3)]
    return statistics.median(times[3:])


def stripped_bytes(program):
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["strip", "-o", file.name, program], check=True)
        # strip may replace the file.
        return os.path.getsize(file.name)


def switches_per_second(process, seconds):
    before, start = Usage(process), time.perf_counter()
    time.sleep(seconds)
    return Usage(process).since(before)[0] / (time.perf_counter() - start)


def resident_bytes(program, place):
    """Of a program that runs until it is ended, in a home of its own."""
    home = {name: place for name in (
        "HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")}
    process = subprocess.Popen(
        [program], env=os.environ | home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        time.sleep(2)
        if process.poll() is not None:
            raise RuntimeError(f"{program} ended at once")
        return memory(process.pid)[1]
    finally:
        process.kill()
        process.wait()


def measure(place, program, quick):
    """The figures of $KITH and of another program of the library."""
    kith, rounds = os.path.abspath(os.environ["KITH"]), 10 if quick else 50
    os.makedirs(os.path.join(place, "home"), mode=0o700)
    own = resident_bytes(program, os.path.join(place, "home"))
    figures = [
        Figure("kithStripped", "kith, stripped", stripped_bytes(kith), "bytes", 12e6),
        Figure("programStripped", "README's program, stripped", stripped_bytes(program), "bytes", 12e6),
        Figure("programResident", "README's program, signed out: VmRSS", own, "bytes", 25 * MIB),
        Figure("version", "kith --version", median(rounds, kith, "--version"), "seconds"),
    ]
    system = Kith.__new__(Kith)  # So that one that starts by half is stopped.
    try:
        system.__init__(place, Loopback())
        system.set(1)
        system.seen(1)
        get = [kith, "get", "key.0", "--directory", system.first]
        figures.append(
            Figure("get", "kith get beside a running node", median(rounds, *get), "seconds", 12e-3))
        system.fill("filled")
        time.sleep(2 if quick else 5)
        anonymous, resident = memory(system.measured_process)
        figures += [
            Figure("runResident", "kith run, full store: VmRSS", resident, "bytes", 25 * MIB),
            Figure("runAnonymous", "  of it private", anonymous, "bytes"),
        ]
        # Programs that are attached are not a part of an idle node.
        system.end(system.writer)
        system.end(system.watcher)
        time.sleep(2 if quick else 10)
        idle = switches_per_second(system.measured_process, 10 if quick else 60)
        figures.append(
            Figure("idleSwitches", "idle node with a peer, context switches", idle, "perSecond", 0.2))
    finally:
        system.stop()
    return figures
