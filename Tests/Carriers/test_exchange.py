"""Two devices that share no network and are never on together."""

from rig import Rig, shell
from servers import Apache, Moto, Rclone

BIG = "x" * 90_000


class Exchange(Rig):
    def live_apart(self, laptop, desktop, server=None):
        """Conflicting writes, an overfilled quota and a removal; each device is on twice, alone."""
        expected = set(server.processes) if server else set()

        def alone(device, *writes):
            """Nothing else runs before, during and after."""
            others = [space for space in self.spaces
                      if space is not device.space and not (server and space is server.space)]
            with device.on():
                for write in writes:
                    device.kith(*write)
                device.sync()
                self.assertEqual([space.processes for space in others], [[]] * len(others))
            self.assertEqual(device.space.processes, [])
            if server:
                self.assertEqual(set(server.processes), expected)

        # What only an own folder holds is published without knowledge of the other's.
        self.fill_apart(desktop)
        laptop.write({f"laptop.{index}": BIG for index in range(8)})
        alone(laptop, ("set", "both", "by the laptop", "kept", "1", "doomed", "2"))
        # The desktop has seen nothing of this when it writes.
        desktop.kith("set", "both", "by the desktop", "from", "desktop")
        alone(desktop)
        self.assertEqual(desktop.get("doomed"), "2")
        alone(laptop, ("rm", "doomed"), ("set", "from.laptop", "later"))
        self.assertEqual(laptop.get("from"), "desktop")
        alone(desktop)

        exports = [device.export for device in (laptop, desktop)]
        self.assertEqual(*exports)
        values = desktop.values
        self.assertNotIn("doomed", values)
        self.assertEqual((values["both"], values["from.laptop"]), ("by the desktop", "later"))
        hidden = [device.kith("unshown") for device in (laptop, desktop)]
        shown = [sum(key.startswith(name) for key in values) for name in ("laptop.", "desktop.")]
        self.assertLess(sum(shown), 16)
        self.assertNotEqual(hidden[0].strip(), "")
        self.assertEqual(*(len(text.splitlines()) for text in hidden))
        self.say(f"both export the same {len(exports[0])} bytes: {len(values)} keys, of the large ones "
                 f"{shown[0]} of 8 and {shown[1]} of 8; the later write won, the removal arrived")

    def fill_apart(self, device):
        """Most of the store, published for a folder that no other device uses."""
        own = self.folder / f"own-{device.name}"
        own.mkdir()
        device.write({f"{device.name}.{index}": BIG for index in range(8)})
        words, text = device.added
        device.kith("carrier", "remove", "--yes")
        device.add("folder", own)
        device.moment()
        device.kith("carrier", "remove", "--yes")
        device.add(*words, text=text)

    def test_folder(self):
        """through a folder, without any network"""
        laptop, desktop = self.account("laptop", "desktop")
        folder = self.shared_folder(laptop, desktop)
        links = shell(*laptop.space.entering("ip", "-brief", "link")).splitlines()
        self.assertEqual(len(links), 1)
        self.live_apart(laptop, desktop)
        objects = self.objects(folder)
        self.say(f"each device has a loopback only; {len(objects)} objects lie there, "
                 f"{sum(map(len, objects.values()))} bytes")

    def test_said(self):
        """what a device says of another's state, and since when"""
        laptop, desktop = self.account("laptop", "desktop")
        self.shared_folder(laptop, desktop)
        said = []

        def look(expected):
            with laptop.on():
                said.append(laptop.sync().splitlines()[0])
                devices = laptop.kith("devices")
            self.assertEqual(said[-1].split(), [*expected.split(), "desktop"], devices)

        laptop.kith("set", "a", "1")
        look("behind")
        look("behind")
        desktop.moment()
        # The desktop's word came through the folder, and it has not been on since.
        look("up to date")
        laptop.kith("set", "a", "2")
        look("behind")
        desktop.moment(("set", "b", "1"))
        look("up to date")
        self.say(f"laptop: {'; '.join(' '.join(each.split()) for each in said)}")

    def through(self, kind):
        laptop, desktop = self.account("laptop", "desktop")
        server = kind(self, laptop, desktop)
        for device, other in ((laptop, desktop), (desktop, laptop)):
            self.assertTrue(device.space.reaches(server.hosts[device.name]))
            # Neither the server's other side nor what is behind it.
            self.assertFalse(device.space.reaches(server.hosts[other.name][:-1] + "2"))
            server.add(device)
        self.live_apart(laptop, desktop, server)
        self.say(f"each device reaches {kind.__name__} alone; nothing but it ran in between: "
                 f"{', '.join(sorted(set(server.processes)))}")
        self.finish(server.program)

    def test_rclone(self):
        """through WebDAV, served by rclone"""
        self.through(Rclone)

    def test_apache(self):
        """through WebDAV, served by Apache"""
        self.through(Apache)

    def test_bucket(self):
        """through an S3 bucket, served by moto"""
        self.through(Moto)
