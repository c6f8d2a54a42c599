"""Storage that fails: servers that stop, wrong credentials, full disks, sticks that are pulled out."""

import shutil
import threading
import time

from rig import Rig, shell, wait_for
from servers import CountedRclone, Rclone

BIG = "x" * 60_000


class Faults(Rig):
    def pair_on_server(self):
        laptop, desktop = self.account("laptop", "desktop")
        server = Rclone(self, laptop, desktop)
        for device in (laptop, desktop):
            server.add(device)
            device.start()
        return laptop, desktop, server

    def until_said(self, device, *words):
        """Waits until the list of carriers says what is wrong; returns it."""
        def look():
            device.run("sync", "--timeout", "0")
            problem = device.carrier.get("problem")
            return problem if problem and all(word in problem for word in words) else None

        problem = wait_for(f"{device.name} to say {words}", look)
        for command in (["carrier", "list"], ["status"]):
            self.assertIn(problem.rstrip("."), device.kith(*command))
        return problem

    def until_shown(self, writer, reader, key, value):
        """Asks both until what one wrote is on the other. A failed turn is followed by a wait."""
        def look():
            writer.run("sync", "--timeout", "1")
            reader.run("sync", "--timeout", "1")
            return reader.get(key) == value

        wait_for(f"{reader.name} to show {key}", look, 60)

    def test_server_stops(self):
        """a server that stops in the middle of a turn, and starts again"""
        laptop, desktop, server = self.pair_on_server()
        laptop.kith("set", "first", "1")
        self.until_shown(laptop, desktop, "first", "1")
        for index in range(3):
            # A turn of some size is under way when the server is killed.
            for name in range(4):
                laptop.write({f"round{index}.{name}": BIG})
            asked = threading.Thread(target=laptop.run, args=("sync", "--timeout", "1"))
            asked.start()
            wait_for("something to be put", lambda: any(
                path.stat().st_size > 0 for path in server.data.rglob("*") if path.is_file()))
            threading.Event().wait(0.02 * index)
            server.kill()
            asked.join()
            laptop.kith("set", f"while.off{index}", "kept")
            if index == 0:
                problem = self.until_said(laptop, "reached")
            server.start()
            self.until_shown(laptop, desktop, f"while.off{index}", "kept")
            self.assertEqual(laptop.export, desktop.export)
        self.say(f"killed three times: “{problem}”; nothing is lost")
        laptop.stop()
        desktop.stop()

    def test_credentials(self):
        """wrong credentials, which are said, and new ones"""
        laptop, desktop, server = self.pair_on_server()
        laptop.kith("set", "first", "1")
        self.until_shown(laptop, desktop, "first", "1")
        server.stop()
        server.password = "second"
        server.start()
        laptop.kith("set", "second", "2")
        problem = self.until_said(laptop, "credentials")
        self.assertNotIn("first", problem)
        wrong = laptop.run("carrier", "password", "--credentials-file", "-", text="anna\nthird\n")
        self.assertEqual(wrong.returncode, 5, wrong.stderr)
        self.assertIn("nothing has changed", wrong.stderr)
        for device in (laptop, desktop):
            device.kith("carrier", "password", "--credentials-file", "-", text=server.text)
        self.until_shown(laptop, desktop, "second", "2")
        self.assertIsNone(laptop.carrier.get("problem"))
        for text in (laptop.node.error, problem, wrong.stderr):
            for secret in ("second\n", "third"):
                self.assertNotIn(secret, text)
        self.say(f"“{problem}”; a wrong new password changes nothing, the right one is used at once")
        laptop.stop()
        desktop.stop()

    def test_wiped(self):
        """a carrier whose objects all vanish"""
        laptop, desktop = self.account("laptop", "desktop")
        folder = self.shared_folder(laptop, desktop)
        laptop.moment(("set", "old", "1"))
        desktop.moment()
        for path in self.place(folder).iterdir():
            path.unlink()
        with laptop.on():
            laptop.kith("set", "new", "2")
            # The object with the write brings all that objects of higher levels do not: here, all.
            laptop.sync()
            said = laptop.kith("carrier", "list").splitlines()[-1]
        desktop.moment()
        self.assertEqual((laptop.get("old"), laptop.get("new")), ("1", "2"))
        self.assertEqual(desktop.get("new"), "2")
        laptop.kith("carrier", "check")
        # The folder itself is gone: never taken for an empty one.
        shutil.rmtree(folder / "kith1")
        laptop.start()
        problem = self.until_said(laptop, "folder")
        self.assertFalse((folder / "kith1").exists())
        laptop.stop()
        self.say(f"after a wipe the next write brings everything; the list says "
                 f"“{' '.join(said.split())}” (without a write: see Hours); "
                 f"a folder that is gone is said: “{problem}”")

    def test_full(self):
        """a folder on a full disk"""
        laptop, desktop = self.account("laptop", "desktop")
        folder = self.mount("stick", 600)
        for device in (laptop, desktop):
            device.add("folder", folder)
            device.start()
        laptop.kith("set", "first", "1")
        self.until_shown(laptop, desktop, "first", "1")
        fill = folder / "film"
        with open(fill, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        laptop.write({"while.full": BIG})
        problem = self.until_said(laptop, "free space")
        laptop.kith("set", "small", "accepted")
        self.assertEqual(laptop.get("small"), "accepted")
        left = [path.name for path in self.place(folder).iterdir() if path.name.endswith(".tmp")]
        fill.unlink()
        self.until_shown(laptop, desktop, "while.full", BIG)
        self.until_shown(laptop, desktop, "small", "accepted")
        self.assertIsNone(laptop.carrier.get("problem"))
        self.say(f"“{problem}”; writes stay accepted, {len(left)} temporary files are left; "
                 "once there is room, everything arrives")
        laptop.stop()
        desktop.stop()

    def test_stick(self):
        """a stick that is pulled out, and put back"""
        laptop, desktop = self.account("laptop", "desktop")
        # The stick's content stays while it is out.
        image = self.mount("image", 4000)
        (image / "stick").mkdir()
        folder = self.folder / "mountpoint"
        folder.mkdir()

        def plug():
            shell("mount", "--bind", image / "stick", folder)
            self.mounts.append(folder)

        plug()
        for device in (laptop, desktop):
            device.add("folder", folder)
        laptop.start()
        laptop.kith("set", "first", "1")
        laptop.sync()
        self.unmount(folder)
        laptop.kith("set", "while.out", "2")
        problem = self.until_said(laptop, "mounted")
        self.assertEqual(list(folder.iterdir()), [])
        plug()
        wait_for("the stick to be used again", lambda: (
            laptop.run("sync", "--timeout", "1").returncode == 0))
        self.assertIsNone(laptop.carrier.get("problem"))
        laptop.stop()
        desktop.moment()
        self.assertEqual(desktop.export, laptop.export)
        self.assertEqual(desktop.get("while.out"), "2")
        self.say(f"“{problem}”; nothing is written below the mount point, and all is there again "
                 "once it is back")

    def test_restored(self):
        """a directory that is restored from a copy"""
        laptop, desktop = self.account("laptop", "desktop")
        self.shared_folder(laptop, desktop)
        laptop.moment(("set", "a", "1"))
        desktop.moment()
        backup = laptop.copy("backup")
        laptop.moment(("set", "a", "2"), ("set", "b", "after the backup"), ("rm", "a"))
        shutil.rmtree(laptop.directory)
        backup.directory.rename(laptop.directory)
        # Its chain was further already than it knows.
        laptop.kith("set", "c", "after the restore")
        laptop.moment()
        desktop.moment(("set", "d", "4"))
        laptop.moment()
        self.assertEqual(laptop.export, desktop.export)
        self.assertEqual(sorted(laptop.values), ["b", "c", "d"])
        counters = {name: count for device in (laptop, desktop)
                    for name, count in device.status["counters"].items() if count}
        self.say(f"what it wrote after the copy came back from the carrier, also the removal; "
                 f"counted: {counters or 'nothing'}")

    def test_two_accounts(self):
        """two accounts in one folder"""
        laptop, desktop = self.account("laptop", "desktop")
        other, another = self.account("other", "another")
        folder = self.shared_folder(laptop, desktop, other, another)
        for value in ("1", "2"):
            for device, next in ((laptop, desktop), (other, another)):
                device.moment(("set", "mine", f"{device.name} {value}"))
                next.moment()
                self.assertEqual(next.get("mine"), f"{device.name} {value}")
                self.assertEqual(next.carrier["waiting"], 0)
        self.assertEqual(len(list((folder / "kith1").iterdir())), 2)
        self.say("each has a place of its own, and sees nothing of the other's")

    def test_asked_in_between(self):
        """kith sync while a turn is under way"""
        laptop, desktop = self.account("laptop", "desktop")
        server = SlowRclone(self, laptop, desktop)
        server.add(laptop)
        laptop.kith("set", "early", "1")
        began = time.time() * 1000
        with laptop.on():
            # What it put since is the records: it publishes only if it is asked.
            wait_for("the listing", lambda: laptop.carrier.get("listedMilliseconds", 0) > began)
            laptop.kith("sync", "--timeout", "15")
        self.finish(server.program)
        self.say("the call counts for the next turn")


class SlowRclone(CountedRclone):
    slow = ("PUT:1.5",)
