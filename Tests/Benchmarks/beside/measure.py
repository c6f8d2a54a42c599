"""The measurements: of one system after another, and of all at once."""
import os
import statistics
import threading
import time

from .system import Usage, memory


class Plan:
    """How long all that takes."""

    def __init__(self, quick):
        self.most_rounds = 20 if quick else 500
        self.set_seconds = 0.5 if quick else 2
        self.catch_ups = 1 if quick else 3
        self.settle_before_idling = 2 if quick else 5
        self.idle_seconds = 5 if quick else 45
        self.outages = [3] if quick else [4, 8, 16]
        self.outage_limit = 30
        self.alone_limit = 180


def bare_fsync(place):
    """The median of 100 appends of 4 KiB, each with its fsync, in milliseconds."""
    times = []
    with open(os.path.join(place, "bare"), "ab", buffering=0) as file:
        for _ in range(100):
            start = time.perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


class Alone:
    """What a system can do while no other one runs."""

    def __init__(self, system, network, plan):
        self.system, self.network, self.plan, self.number = system, network, plan, 0

    def measure(self):
        figures = {"bareFsyncMilliseconds": bare_fsync(self.system.place)}
        for _ in range(self.system.rounds // 25):
            self.set_to_seen()
        rounds = min(self.plan.most_rounds, self.system.rounds)
        figures["setToSeenMilliseconds"] = statistics.median(self.set_to_seen() for _ in range(rounds)) * 1000
        if self.system.answers_sets:
            figures["setsPerSecond"] = self.sets_per_second()
        if self.network.has_cable:
            time.sleep(self.system.settle)
            figures["wireBytesOfAChange"] = statistics.median(
                self.wire_bytes() for _ in range(self.system.changes))
            times = [self.catch_up(tag) for tag in range(min(self.plan.catch_ups, self.system.catch_ups))]
            figures["catchUpMilliseconds"] = statistics.median(times) * 1000
        else:
            self.system.fill("filled")
        figures["anonymousBytes"], figures["residentBytes"] = memory(self.system.measured_process)
        return figures

    def next(self):
        self.number += 1
        return self.number

    def set_to_seen(self):
        number = self.next()
        start = time.perf_counter()
        self.system.set(number)
        self.system.seen(number)
        return time.perf_counter() - start

    def sets_per_second(self):
        start, count = time.perf_counter(), 0
        while time.perf_counter() < start + self.plan.set_seconds:
            self.system.set(self.next())
            count += 1
        seconds = time.perf_counter() - start
        self.system.seen(self.number)
        return count / seconds

    def wire_bytes(self):
        """Bytes in both directions from a set until some time after it was seen."""
        before, number = self.network.bytes(), self.next()
        self.system.set(number)
        self.system.seen(number)
        time.sleep(self.system.settle)
        return self.network.bytes() - before

    def catch_up(self, tag):
        """Seconds from the returning peer's first packet until its program had all keys."""
        self.system.leave()
        self.system.fill(f"fill.{tag}")
        time.sleep(0.5)
        first = self.network.first_packet()
        self.system.come_back()
        arrived = self.system.caught_up(f"fill.{tag}")
        return arrived - first.time


class Together:
    """All systems, each with its peer in step, on the same two hosts and one cable."""

    def __init__(self, systems, network, plan):
        self.systems, self.network, self.plan = systems, network, plan
        self.lost = set()

    def measure(self):
        """Figures for each system's id."""
        figures = self.idle()
        if self.network.has_cable:
            seconds = [self.outage(number) for number in self.plan.outages]
            for system in self.systems:
                figures[system.id]["cable"] = [
                    {"outSeconds": out, "toSeenSeconds": times.get(system.id)}
                    for out, times in zip(self.plan.outages, seconds)]
        return figures

    def idle(self):
        time.sleep(self.plan.settle_before_idling)
        usages = lambda: {system.id: Usage(system.measured_process) for system in self.systems}
        before, start = usages(), time.perf_counter()
        time.sleep(self.plan.idle_seconds)
        after, seconds = usages(), time.perf_counter() - start
        figures = {}
        for name, usage in after.items():
            switches, nanoseconds = usage.since(before[name])
            figures[name] = {
                "idleSeconds": seconds, "idleSwitchesPerSecond": switches / seconds,
                "idleProcessorMillisecondsPerMinute": nanoseconds / 1e6 / seconds * 60}
        return figures

    def outage(self, seconds):
        """Cuts the cable, lets each system set at `near`, joins it again, and returns the seconds from
        then until the set was seen at `far`, by id; none for a system that needs longer than the limit."""
        number = 1_000_000 + seconds
        self.network.cut()
        time.sleep(1)
        waiting = [system for system in self.systems if system.id not in self.lost]
        for system in waiting:
            system.set(number)
        time.sleep(seconds - 1)
        start = time.perf_counter()
        self.network.join()
        times = {}

        def wait(system):
            system.seen(number)
            times[system.id] = time.perf_counter() - start

        threads = [threading.Thread(target=wait, args=[system], daemon=True) for system in waiting]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0, start + self.plan.outage_limit - time.perf_counter()))
        times = dict(times)
        self.lost |= {system.id for system in waiting if system.id not in times}
        return times
