"""Somebody else who may write to the storage, and has no key."""

import os

from rig import Rig, wait_for

MIB = 1 << 20
NAMES = 16_384


class Outsiders(Rig):
    def exchange(self, laptop, desktop, value):
        """One write each way."""
        for one, other in ((laptop, desktop), (desktop, laptop)):
            one.kith("set", f"from.{one.name}", value)
            # Whether the carrier holds all is another question.
            one.run("sync", "--timeout", "2")
            other.run("sync", "--timeout", "0")
            other.has(f"from.{one.name}", value)

    def test_junk(self):
        """junk of every size and name disturbs nobody"""
        laptop, desktop = self.account("laptop", "desktop")
        folder = self.shared_folder(laptop, desktop)
        laptop.start()
        desktop.start()
        self.exchange(laptop, desktop, "first")
        place = self.place(folder)
        own = self.objects(folder)

        for index in range(40):
            (place / os.urandom(16).hex()).write_bytes(os.urandom(4096))
        (place / os.urandom(16).hex()).write_bytes(b"")
        (place / os.urandom(16).hex()).write_bytes(bytes(20 * MIB))
        # Names that cannot be one, a directory, a link, and a pipe.
        for name in ("README", "a" * 200, "ÄÖÜ", own_name(own).upper(), own_name(own) + "~"):
            (place / name).write_bytes(b"junk")
        (place / os.urandom(16).hex()).mkdir()
        (place / os.urandom(16).hex()).symlink_to("/etc/passwd")
        os.mkfifo(place / os.urandom(16).hex())
        self.exchange(laptop, desktop, "second")
        self.say(f"laptop knows {laptop.carrier['objects']} objects; both still exchange")

        # Names copied from real objects onto other places, where the content is another.
        names = sorted(own)
        sizes = [0, 1, 100, 4096, 16 * MIB + 1, 20 * MIB]
        for name, size in zip(names, sizes):
            (place / name).write_bytes(os.urandom(size))
        # And two whose contents are exchanged.
        others = [name for name in sorted(self.objects(folder)) if name not in own and
                  len(self.objects(folder)[name]) == 4096][:2]
        contents = [(place / name).read_bytes() for name in others]
        for name, data in zip(others, reversed(contents)):
            (place / name).write_bytes(data)
        self.exchange(laptop, desktop, "third")
        # A new device is the one that reads them.
        third = self.join_running(laptop, "third")
        third.add("folder", folder)
        third.start()
        third.run("sync", "--timeout", "5")
        self.exchange(laptop, desktop, "fourth")
        remarks = third.kith("carrier", "list").splitlines()[1].split("  ")[-1]
        memory = {device.name: device.node.resident for device in (laptop, desktop, third)}
        self.say(f"{len(sizes)} objects overwritten with 0 bytes to 20 MiB: a new device says "
                 f"“{remarks.strip()}”; at most {max(memory.values()):.0f} MiB resident")
        self.assertLess(max(memory.values()), 200)
        for device in (laptop, desktop, third):
            device.stop()

    def join_running(self, inviter, name):
        inviter.stop()
        device = self.join(inviter, name)
        inviter.start()
        return device

    def test_too_many_names(self):
        """more names than 16,384 are said, and over once they are gone"""
        laptop, desktop = self.account("laptop", "desktop")
        folder = self.shared_folder(laptop, desktop)
        laptop.start()
        desktop.start()
        self.exchange(laptop, desktop, "first")
        place = self.place(folder)
        junk = [place / os.urandom(16).hex() for _ in range(20_000)]
        for path in junk:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        laptop.kith("set", "while.full", "kept")
        done = laptop.run("sync", "--timeout", "5")
        self.assertEqual(done.returncode, 5)
        problem = wait_for("the problem", lambda: laptop.carrier.get("problem"))
        remarks = laptop.kith("status")
        self.assertIn(problem[:40], remarks)
        memory = laptop.node.resident
        for path in junk:
            path.unlink()
        self.exchange(laptop, desktop, "second")
        desktop.has("while.full", "kept")
        self.say(f"20,000 names: “{problem}”; {memory:.0f} MiB resident; once they are gone, it works")
        self.assertLess(memory, 200)
        self.assertIsNone(laptop.carrier.get("problem"))
        laptop.stop()
        desktop.stop()


def own_name(own):
    return sorted(own)[0]
