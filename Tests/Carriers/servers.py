"""Servers between devices: WebDAV of rclone and of Apache, and a bucket of moto. Each is in a network
namespace of its own, to which the devices have a cable each; it forwards nothing."""

import os
import pathlib
import shutil
import subprocess
import unittest

from rig import ENVIRONMENT, shell, wait_for

PORT = 5443
SERVERS = pathlib.Path(os.environ.get("KITH_SERVERS", ".build/carrier-servers")).absolute()
MODULES = ["mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_basic", "ssl",
           "dav", "dav_fs", "dav_lock", "alias"]


class Server:
    """`links` are the namespaces of the devices that reach it."""

    name = None
    kind = "webdav"
    path = "/"

    def __init__(self, rig, *devices, user="anna", password="first"):
        self.rig, self.user, self.password = rig, user, password
        self.check()
        self.folder = rig.folder / f"server-{self.name}"
        self.folder.mkdir()
        self.data = self.folder / "data"
        self.data.mkdir()
        self.space = rig.namespace(self.name)
        self.hosts = {device.name: device.space.link(self.space, index + 1)
                      for index, device in enumerate(devices)}
        self.make_certificate()
        self.start()

    def check(self):
        """Skips the test in words if it cannot be had here."""

    def make_certificate(self):
        self.certificate, self.key = self.folder / "cert.pem", self.folder / "key.pem"
        names = ",".join(f"IP:{host}" for host in ["127.0.0.1", *self.hosts.values()])
        shell("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
              "-nodes", "-keyout", self.key, "-out", self.certificate, "-days", "2",
              "-subj", "/CN=kithc", "-addext", f"subjectAltName={names}")

    def start(self):
        self.program = self.rig.program(
            f"{self.name}{len(list(self.folder.iterdir()))}-{self.password}", self.words(), self.space,
            {**ENVIRONMENT, "HOME": str(self.folder)})
        wait_for(f"{self.name} to listen", self.answers)

    def answers(self, port=PORT):
        program = self.program if port == PORT else self.backend
        if program.process.poll() is not None:
            raise AssertionError(f"{self.name} ended: {program.error}")
        done = subprocess.run(
            self.space.entering("bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"),
            capture_output=True)
        return done.returncode == 0

    def stop(self):
        self.rig.programs.remove(self.program)
        self.program.stop()

    def kill(self):
        self.rig.programs.remove(self.program)
        self.program.kill()

    @property
    def processes(self):
        return self.space.processes

    @property
    def text(self):
        return f"{self.user}\n{self.password}\n"

    def address(self, device):
        return f"https://{self.hosts[device.name]}:{PORT}{self.path}"

    def add(self, device, text=None):
        device.add("--authority-file", self.certificate, self.kind, self.address(device),
                   text=text or self.text)


class Rclone(Server):
    name = "rclone"

    def check(self):
        if not shutil.which("rclone"):
            raise unittest.SkipTest("rclone cannot be installed here")

    def words(self):
        return ["rclone", "serve", "webdav", self.data, "--addr", f":{PORT}", "--cert",
                self.certificate, "--key", self.key, "--user", self.user, "--pass", self.password,
                "--dir-cache-time", "0s", "-v"]


class Apache(Server):
    name = "apache"
    path = "/dav"

    def check(self):
        self.modules = pathlib.Path("/usr/lib/apache2/modules")
        if not (self.modules / "mod_dav_fs.so").exists():
            raise unittest.SkipTest("apache2 cannot be installed here")

    def words(self):
        # Its workers are another user.
        self.rig.folder.chmod(0o711)
        for path in (self.folder, self.data):
            shutil.chown(path, "nobody", "nogroup")
        shell("htpasswd", "-bc", self.folder / "passwords", self.user, self.password)
        loads = "\n".join(f"LoadModule {name}_module {self.modules}/mod_{name}.so"
                          for name in MODULES)
        configuration = self.folder / "apache.conf"
        configuration.write_text(f"""
{loads}
ServerName kithc
ServerRoot {self.folder}
Listen {PORT}
User nobody
Group nogroup
PidFile {self.folder}/pid
Mutex file:{self.folder}
ErrorLog {self.folder}/error.log
DavLockDB {self.folder}/locks
SSLEngine on
SSLSessionCache none
SSLCertificateFile {self.certificate}
SSLCertificateKeyFile {self.key}
Alias /dav {self.data}
<Directory {self.data}>
  Dav On
  AuthType Basic
  AuthName kith
  AuthUserFile {self.folder}/passwords
  Require valid-user
</Directory>
""")
        return ["apache2", "-f", configuration, "-DFOREGROUND"]


class Moto(Server):
    """S3; it keeps its objects in memory."""

    name = "moto"
    kind = "s3"
    path = "/bucket/devices"

    def check(self):
        if not (SERVERS / "bin/moto_server").exists():
            raise unittest.SkipTest("moto cannot be installed from PyPI here")

    def words(self):
        return [SERVERS / "bin/moto_server", "-H", "0.0.0.0", "-p", PORT, "-c", self.certificate,
                "-k", self.key]

    def start(self):
        super().start()
        shell(*self.space.entering(
            "python3", "-c", "import ssl, urllib.request as r, sys\n"
            f"q = r.Request('https://127.0.0.1:{PORT}/bucket', method='PUT')\n"
            f"r.urlopen(q, context=ssl.create_default_context(cafile='{self.certificate}'))"))

    @property
    def text(self):
        return "AKIAIOSFODNN7EXAMPLE\nwJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n"


class Counted(Server):
    """A server behind a proxy that notes every request."""

    slow = ()

    def start(self):
        self.log = self.folder / "requests.log"
        self.log.touch()
        self.backend = self.rig.program(
            f"{self.name}-backend", self.backend_words(), self.space,
            {**ENVIRONMENT, "HOME": str(self.folder)})
        wait_for("the backend", lambda: self.answers(PORT + 1))
        self.program = self.rig.program(f"{self.name}-proxy", self.words(), self.space)
        wait_for("the proxy", self.answers)

    def words(self):
        return ["python3", "-B", pathlib.Path(__file__).with_name("proxy.py"), PORT, PORT + 1,
                self.certificate, self.key, self.log, *self.slow]

    def requests(self, since=0.0):
        """(seconds, device's name, method, status, bytes up, bytes down) of each."""
        names = {host[:-1] + "2": name for name, host in self.hosts.items()}
        result = []
        for line in self.log.read_text().splitlines():
            time, client, method, status, up, down = line.split()
            if float(time) >= since:
                result.append((float(time), names[client], method, int(status), int(up), int(down)))
        return result


class CountedRclone(Counted):
    name = "rclone"

    check = Rclone.check

    def backend_words(self):
        return ["rclone", "serve", "webdav", self.data, "--addr", f"127.0.0.1:{PORT + 1}",
                "--dir-cache-time", "0s"]


class CountedMoto(Counted):
    name = "moto"
    kind = Moto.kind
    path = Moto.path

    check = Moto.check
    text = Moto.text

    def backend_words(self):
        return [SERVERS / "bin/moto_server", "-H", "127.0.0.1", "-p", PORT + 1]

    def start(self):
        super().start()
        shell(*self.space.entering(
            "python3", "-c", "import urllib.request as r\n"
            f"r.urlopen(r.Request('http://127.0.0.1:{PORT + 1}/bucket', method='PUT'))"))
