"""Two Syncthings that share a folder. A key is a file; a set replaces it."""
import os
import re
import shutil
import subprocess
import time
import urllib.request

from .system import KEYS, System, eventually, free_port


class Syncthing(System):
    id, name, durability, program = "syncthing", "Syncthing", "fsync (default)", "syncthing"
    remark = "By default, Syncthing waits 10 s for further changes of a folder before it sends any."
    rounds, changes, settle, catch_ups = 2, 1, 3.0, 2
    # The program writes a file; nobody answers.
    answers_sets = False

    def __init__(self, place, network):
        super().__init__(place, network)
        self.ports = {"first": free_port(), "second": free_port()}
        self.api = f"http://127.0.0.1:{free_port()}/rest"
        self.addresses = {"first": network.near, "second": network.far}
        self.identities = {name: self.generate(name) for name in self.ports}
        for name in self.ports:
            self.configure(name)
        self.start_device("first", far=False)
        self.start_device("second", far=True)
        eventually("Syncthing", lambda: self.is_connected(), 90)
        self.scan()

    @classmethod
    def lacks(cls):
        return None if shutil.which("syncthing") else "syncthing is not installed"

    @classmethod
    def version(cls):
        text = subprocess.run(["syncthing", "--version"], check=True, capture_output=True, text=True).stdout
        return text.split()[1].removeprefix("v")

    def home(self, name):
        return os.path.join(self.place, f"home-{name}")

    def generate(self, name):
        os.makedirs(os.path.join(self.place, name, ".stfolder"))
        run = lambda *words: subprocess.run(
            ["syncthing", *words, f"--home={self.home(name)}"], check=True, capture_output=True, text=True)
        run("generate", "--no-default-folder", "--skip-port-probing")
        return run("--device-id").stdout.strip()

    def configure(self, name):
        """All is as by default, but for addresses in the place of searching, and reports. A folder that
        is configured by hand needs the defaults of one that is added in the browser."""
        devices = "".join(
            f'<device id="{identity}" name="{other}"><address>tcp://{self.addresses[other]}:'
            f"{self.ports[other]}</address></device>" for other, identity in self.identities.items())
        shares = "".join(f'<device id="{identity}"/>' for identity in self.identities.values())
        gui = self.api.split("/")[2]
        with open(os.path.join(self.home(name), "config.xml"), "w") as file:
            file.write(f"""<configuration version="35">
<folder id="keys" path="{self.place}/{name}" rescanIntervalS="3600" fsWatcherEnabled="true"
  fsWatcherDelayS="10">{shares}</folder>{devices}
<gui enabled="{str(name == 'first').lower()}"><address>{gui}</address><apikey>key</apikey></gui>
<options><listenAddress>tcp://{self.addresses[name]}:{self.ports[name]}</listenAddress>
<globalAnnounceEnabled>false</globalAnnounceEnabled><localAnnounceEnabled>false</localAnnounceEnabled>
<relaysEnabled>false</relaysEnabled><natEnabled>false</natEnabled><urAccepted>-1</urAccepted>
<crashReportingEnabled>false</crashReportingEnabled><startBrowser>false</startBrowser>
<autoUpgradeIntervalH>0</autoUpgradeIntervalH></options></configuration>""")

    def start_device(self, name, far):
        process = self.start(
            "syncthing", "serve", "--no-browser", "--no-upgrade", f"--home={self.home(name)}", far=far)
        if far:
            self.second = process

    def rest(self, path, post=False):
        request = urllib.request.Request(
            f"{self.api}/{path}", headers={"X-API-Key": "key"}, method="POST" if post else "GET")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode()

    def is_connected(self):
        try:
            return re.search(r'"connected":\s*true', self.rest("system/connections")) is not None
        except OSError:
            return False

    def scan(self):
        """Returns once the folder is scanned."""
        self.rest("db/scan?folder=keys", post=True)

    def put(self, key, text):
        # Renamed, so that no half of it is sent; hidden from the folder until then.
        new = os.path.join(self.place, f"{key}.new")
        with open(new, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.rename(new, os.path.join(self.place, "first", key))

    def text(self, key):
        try:
            with open(os.path.join(self.place, "second", key)) as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def seen(self, number):
        while not self.text(KEYS[0]).startswith(f"{number} "):
            time.sleep(0.001)

    def fill(self, tag):
        super().fill(tag)
        self.scan()

    def caught_up(self, tag):
        # Files come in no order that is promised.
        for key in KEYS:
            while not self.text(key).startswith(f"{tag} "):
                time.sleep(0.001)
        return time.perf_counter()

    def leave(self):
        self.end(self.second)

    def come_back(self):
        self.start_device("second", far=True)


class ScannedSyncthing(Syncthing):
    """Told to scan at each set, as a program can that knows Syncthing."""

    id, durability = "syncthing-scan", "fsync, scanned"
    rounds, changes, catch_ups = 20, 3, 1
    remark = "Scanned: told to scan its folder at each set."

    def set(self, number):
        super().set(number)
        self.scan()
