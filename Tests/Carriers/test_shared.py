"""A carrier of the whole account, which one device adds and all use."""

import json
import shutil

from rig import Device, Rig, shell, wait_for
from servers import Rclone

AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


class Trusting(Device):
    """A device on a host whose authorities include the server's."""

    bundle = None

    def __init__(self, name, rig, directory=None):
        super().__init__(name, rig, directory)
        space, entering = self.space, self.space.entering

        def trusting(*words):
            if not self.bundle or "ping" in words:
                return entering(*words)
            return entering(
                "unshare", "--mount", "sh", "-ec",
                f'mount --bind "{self.bundle}" {AUTHORITIES}; exec "$@"', "sh", *words)

        space.entering = trusting


class Shared(Rig):
    device = Trusting

    def test_account(self):
        """a carrier that one device adds for all, its password, a revocation, its end"""
        laptop, desktop, thief = devices = self.account("laptop", "desktop", "thief")
        folder = self.shared_folder(*devices)
        server = OneAddress(self, *devices)
        bundle = self.folder / "authorities.pem"
        bundle.write_bytes(open(AUTHORITIES, "rb").read() + server.certificate.read_bytes())
        for device in devices:
            device.bundle = bundle
        laptop.start()
        laptop.kith("carrier", "add", "--credentials-file", "-", "webdav", server.address(laptop),
                    text=server.text)
        laptop.kith("set", "first", "1")
        laptop.sync()
        for device in (desktop, thief):
            device.start()
            wait_for(f"{device.name} to use it", lambda: any(
                each["kind"] == "webdav" and each.get("heldSinceMilliseconds")
                for each in self.carriers(device)))
        for device in devices:
            device.kith("carrier", "remove", "--yes", "folder")
        shutil.rmtree(folder)
        desktop.kith("set", "second", "2")
        desktop.sync()
        laptop.sync()
        laptop.has("second", "2")

        revoked = laptop.run("devices", "revoke", "thief", "--yes")
        self.assertEqual(revoked.returncode, 0, revoked.stderr)
        self.assertIn("5443", revoked.stdout + revoked.stderr)
        laptop.sync()
        desktop.sync()
        server.stop()
        server.password = "second"
        server.start()
        laptop.kith("carrier", "password", "--credentials-file", "-", text=server.text)
        laptop.kith("set", "third", "3")
        laptop.sync()
        desktop.run("sync", "--timeout", "1")
        problem = wait_for("the desktop to be refused", lambda: self.carriers(desktop)[0].get("problem"))
        desktop.kith("carrier", "password", "--credentials-file", "-", text=server.text)
        desktop.sync()
        desktop.has("third", "3")

        laptop.kith("carrier", "remove", "--yes")
        self.assertEqual(self.carriers(laptop), [])
        for device in devices:
            device.stop()
        self.say("all three learned it through a folder; the revocation names it; "
                 f"with a new password the other device says “{problem}” until it is told")

    def carriers(self, device):
        return json.loads(device.kith("carrier", "list", "--json"))["carriers"]


class OneAddress(Rclone):
    """Reached at one address by all."""

    def make_certificate(self):
        shell("ip", "-n", self.space.name, "addr", "add", "10.95.0.1/32", "dev", "lo")
        for name, host in self.hosts.items():
            [device] = [each for each in self.rig.spaces if f"-{name}-" in each.name]
            shell("ip", "-n", device.name, "route", "add", "10.95.0.1/32", "via", host)
        self.hosts = {name: "10.95.0.1" for name in self.hosts}
        super().make_certificate()
