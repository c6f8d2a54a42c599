"""What happens after an hour, with clocks that are told so."""

import objects
from clock import Clock
from kithmember import Member
from rig import Device, Rig

HOUR = 3600


class Patient(Device):
    """Waits of a process last too long once its clock is ahead of the kernel's, so it is asked often."""

    def sync(self, status=0, timeout=15, attempts=10, is_told=False):
        return super().sync(status, timeout, attempts, is_told)


class Hours(Rig):
    device = Patient

    def setUp(self):
        super().setUp()
        self.clock = Clock(self)

    def test_wiped(self):
        """a carrier that was wiped is filled again"""
        laptop, desktop, third = self.account("laptop", "desktop", "third")
        folder = self.shared_folder(laptop, desktop, third)
        laptop.moment(("set", "first", "1"))
        desktop.moment(("set", "second", "2"))
        laptop.moment()
        for path in self.place(folder).iterdir():
            path.unlink()
        with desktop.on():
            desktop.sync(status=5, timeout=2, attempts=1)
        self.assertIsNone(third.get("first"))
        self.clock.pass_time(HOUR + 60)
        with desktop.on():
            desktop.sync()
            self.assertIn("heldSinceMilliseconds", desktop.carrier)
            remarks = desktop.kith("carrier", "list").splitlines()[1]
        third.moment(("set", "third", "3"))
        laptop.moment()
        self.assertEqual((third.get("first"), third.get("second")), ("1", "2"))
        self.assertEqual(laptop.export, third.export)
        self.assertIn("vanished", remarks)
        self.say("an hour later the one device that is on puts everything again; a third one, which had "
                 f"nothing, gets it; the list says “{remarks.split('KiB')[-1].strip()}”")

    def test_overwritten(self):
        """objects that somebody overwrote are put again"""
        laptop, third = self.account("laptop", "third")
        folder = self.shared_folder(laptop, third)
        laptop.moment(("set", "first", "1"))
        laptop.moment(("set", "second", "2"))
        for path in self.place(folder).iterdir():
            # Of the same size: nobody who knows it reads it again.
            data = bytearray(path.read_bytes())
            data[1000] ^= 1
            path.write_bytes(data)
        third.moment()
        self.assertIsNone(third.get("first"))
        self.assertGreater(third.carrier["unreadable"], 0)
        # It deletes them, the writer misses them, and puts them again: an hour each.
        for _ in range(3):
            self.clock.pass_time(HOUR + 60)
            for device in (third, laptop):
                with device.on():
                    device.run("sync", "--timeout", "2")
        third.moment()
        self.assertEqual(third.export, laptop.export)
        self.assertEqual(third.get("second"), "2")
        self.say("bits flipped in all objects: within three hours a new device has everything")

    def test_old_epoch(self):
        """objects of an old epoch go away"""
        laptop, desktop, gone = self.account("laptop", "desktop", "gone")
        folder = self.shared_folder(laptop, desktop, gone)
        laptop.moment(("set", "first", "1"))
        gone.moment(("set", "gone", "2"))
        desktop.moment()
        laptop.kith("devices", "revoke", "gone", "--yes")
        laptop.moment(("set", "later", "3"))
        desktop.moment()
        before = len(self.objects(folder))
        for _ in range(2):
            self.clock.pass_time(HOUR + 60)
            laptop.moment()
            desktop.moment()
        member = Member.of_directory(str(desktop.directory))
        left = self.objects(folder)
        epochs = {objects.open_outer(data, member)[0] for data in left.values()}
        self.assertEqual(epochs, {member.current.id})
        self.assertEqual(laptop.export, desktop.export)
        self.assertEqual(laptop.get("gone"), "2")
        late = self.join(laptop, "late")
        late.add("folder", folder)
        late.moment()
        self.assertEqual(late.export, laptop.export)
        self.say(f"{before} objects became {len(left)}: of the old epoch none is left; what the "
                 "revoked device had written stays")

    def test_levels(self):
        """larger objects replace smaller ones"""
        laptop, desktop, third = self.account("laptop", "desktop", "third")
        folder = self.shared_folder(laptop, desktop, third)
        laptop.start()
        for index in range(10):
            # The same keys again and again.
            laptop.write({f"key{each}": f"{index}{each}" + "z" * 60_000 for each in range(5)})
            laptop.sync()
        old = self.objects(folder)
        sizes = [len(old), sum(map(len, old.values()))]
        laptop.stop()
        desktop.start()
        desktop.sync()
        self.clock.pass_time(HOUR + 60)
        for _ in range(2):
            desktop.run("sync", "--timeout", "3")
        desktop.stop()
        after = [len(self.objects(folder)), sum(map(len, self.objects(folder).values()))]
        self.assertLess(after[0], sizes[0])
        self.assertLess(after[1], sizes[1] / 3)
        for device in (third, laptop, desktop, third):
            device.moment(("set", f"by.{device.name}", "1"))
        self.assertEqual(third.get("key0")[:2], "90")
        laptop.moment()
        self.assertEqual(laptop.export, third.export)
        laptop.moment(("rm", "key1"), ("set", "key2", "new"))
        # Somebody puts the old objects back: nobody takes them for news.
        for name, data in old.items():
            (self.place(folder) / name).write_bytes(data)
        late = self.join(laptop, "late")
        late.add("folder", folder)
        for device in (desktop, late, third, laptop):
            device.moment()
        self.assertEqual({device.export for device in (laptop, desktop, third, late)}, {laptop.export})
        self.assertEqual((laptop.get("key1"), laptop.get("key2")), (None, "new"))
        self.say(f"{sizes[0]} objects of {sizes[1]} bytes became {after[0]} of {after[1]}; a device "
                 "that had read none of them has everything; the old ones, put back, have no effect")
