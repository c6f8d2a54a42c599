"""Other programs and other users of the host get nothing from the page's server."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest

import peers
from attackers import Caller
from case import Case
from pages import KithPage


def listening(pid):
    """The addresses on which a process accepts connections, as /proc tells them, with ports."""
    sockets = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            match = re.match(r"socket:\[(\d+)\]", os.readlink(entry))
        except FileNotFoundError:
            continue
        if match:
            sockets.add(match[1])
    found = []
    for table in ("tcp", "tcp6"):
        path = pathlib.Path(f"/proc/{pid}/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            words = line.split()
            if words[3] == "0A" and words[9] in sockets:
                address, port = words[1].split(":")
                found.append((address, int(port, 16)))
    return found


class HostTests(Case):
    def test_loopback_only(self):
        """listens on loopback only"""
        peer = self.account()
        addresses = listening(peer.page.process.pid)
        # 127.0.0.1 as the kernel writes it on hosts of either byte order.
        loopback = socket.inet_aton("127.0.0.1")[::-1 if sys.byteorder == "little" else 1].hex()
        self.assertIn((loopback.upper(), peer.port), addresses)
        self.assertEqual({address for address, _ in addresses}, {loopback.upper()})
        others = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
        for other in ["127.0.0.2", "::1", *others]:
            with self.subTest(other), self.assertRaises(OSError):
                socket.create_connection((other, peer.port), timeout=2).close()

    def test_token(self):
        """the address works once"""
        peer = self.account()
        caller = Caller(peer)
        self.assertEqual(caller.status("GET", "/api/status"), 401)
        for token in ["", "0" * 64, peer.token[:-1], peer.token + "0", peer.token.upper() + " ", None]:
            with self.subTest(token):
                status = caller.status("POST", "/api/token", {"token": token})
                self.assertEqual(status, 400 if token is None else 401)
        self.assertEqual(caller.status("GET", f"/api/token?token={peer.token}"), 401)
        caller.begin()
        parts = [part.strip().lower() for part in caller.cookie_header.split(";")[1:]]
        self.assertIn("httponly", parts)
        self.assertIn("samesite=strict", parts)
        self.assertFalse([part for part in parts if part.startswith("domain")])
        self.assertEqual(caller.status("GET", "/api/status"), 200)
        self.assertEqual(Caller(peer).status("POST", "/api/token", {"token": peer.token}), 401)
        # The honest one goes on.
        self.assertEqual(caller.write(), 200)

    def test_half_a_session(self):
        """cookie and key open the page together only"""
        peer = self.account(theme="dark")
        honest, stranger = Caller(peer).begin(), Caller(self.account("other")).begin()
        name, cookie = honest.cookie.split("=")
        forged = {
            "no key": {"X_Kith_Key": None}, "no cookie": {"Cookie": None},
            "neither": {"X_Kith_Key": None, "Cookie": None}, "a guessed key": {"X_Kith_Key": "0" * 64},
            "the cookie as the key": {"X_Kith_Key": cookie},
            "exchanged": {"X_Kith_Key": cookie, "Cookie": f"{name}={honest.key}"},
            "another page's": {"X_Kith_Key": stranger.key, "Cookie": stranger.cookie},
            "another page's key": {"X_Kith_Key": stranger.key},
            "the token": {"X_Kith_Key": peer.token, "Cookie": f"{name}={peer.token}"},
        }
        for what, headers in forged.items():
            with self.subTest(what):
                for path in ("/api/status", "/api/events?store=default", "/api/export?store=default"):
                    status, _, text = honest.request("GET", path, **headers)
                    self.assertEqual((status, "dark" in text), (401, False))
                self.assertEqual(honest.write(**headers), 401)
        self.assertEqual(peer.values, {"theme": "dark"})

    def test_forged_headers(self):
        """a foreign host, origin or site is refused, with all secrets"""
        peer = self.account()
        caller = Caller(peer).begin()
        port = peer.port
        foreign = [
            {"Host": value} for value in (
                f"evil.example:{port}", "127.0.0.1", "localhost", f"127.0.0.1:{port + 1}", f"[::1]:{port}",
                f"127.0.0.1.evil.example:{port}", f"localhost.:{port}", f"127.1:{port}",
                f"2130706433:{port}")
        ] + [
            {"Origin": value} for value in (
                "null", "http://evil.example", f"http://evil.example:{port}", "http://127.0.0.1",
                f"http://127.0.0.1:{port + 1}", f"https://127.0.0.1:{port}", f"http://localhost:{port}",
                f"http://127.0.0.1:{port}.evil.example")
        ] + [{"Sec_Fetch_Site": value} for value in ("cross-site", "same-site", "none", "evil")]
        for headers in foreign:
            with self.subTest(headers):
                self.assertEqual(caller.status("GET", "/api/status", **headers), 403)
                self.assertEqual(caller.write(**headers), 403)
        for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
                     "text/plain; application/json", "application/jsonp"):
            with self.subTest(kind):
                self.assertEqual(caller.write(Content_Type=kind), 400)
        self.assertEqual(peer.values, {})
        own = f"http://127.0.0.1:{port}"
        self.assertEqual(caller.write(Origin=own, Sec_Fetch_Site="same-origin"), 200)

    def test_malformed(self):
        """malformed requests are refused, and the page goes on"""
        peer = self.account()
        caller = Caller(peer).begin()
        host = f"Host: 127.0.0.1:{peer.port}\r\n"
        secrets = f"Cookie: {caller.cookie}\r\nX-Kith-Key: {caller.key}\r\n"
        attempts = {
            "no host": f"GET /api/status HTTP/1.1\r\n{secrets}\r\n",
            "an old version": f"GET /api/status HTTP/1.0\r\n{secrets}\r\n",
            "two hosts": f"GET /api/status HTTP/1.1\r\nHost: evil.example\r\n{host}{secrets}\r\n",
            "a host in the address":
                f"GET http://evil.example/api/status HTTP/1.1\r\nHost: evil.example\r\n{secrets}\r\n",
            "two lengths": f"POST /api/write HTTP/1.1\r\n{host}{secrets}Content-Type: application/json\r\n"
                           "Content-Length: 2\r\nContent-Length: 9\r\n\r\n{}xxxxxxx",
            "noise": "\0\1\2\3" * 100,
            "a long line": f"GET /{'a' * 300_000} HTTP/1.1\r\n{host}\r\n",
            "many headers": f"GET / HTTP/1.1\r\n{host}" + "X-A: b\r\n" * 20_000 + "\r\n",
            "half a request": f"POST /api/write HTTP/1.1\r\n{host}{secrets}Content-Length: 9\r\n\r\n{{",
        }
        for what, text in attempts.items():
            with self.subTest(what):
                answer = caller.raw(text.encode())
                self.assertNotIn("HTTP/1.1 2", answer[:12])
                self.assertNotIn("listening", answer)
        for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/page.js/..", "//evil.example/"):
            with self.subTest(path):
                status, _, text = caller.request("GET", path)
                self.assertIn(status, (400, 404))
                self.assertNotIn("root:", text)
        for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"):
            with self.subTest(method):
                status, headers, _ = caller.request(method, "/api/write", {})
                self.assertGreaterEqual(status, 400)
                self.assertFalse([name for name in headers if name.startswith("Access-Control")])
        large = Caller(peer)
        self.assertIn(large.status("POST", "/api/token", {"token": "0" * 100_000}), (400, 413))
        self.assertEqual(caller.status("GET", "/api/status"), 200)

    def test_flood(self):
        """64 connections are open, and others wait"""
        peer = self.account()
        caller = Caller(peer).begin()
        open_ones = [socket.create_connection(("127.0.0.1", peer.port)) for _ in range(80)]
        with socket.create_connection(("127.0.0.1", peer.port)) as late:
            late.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{peer.port}\r\n\r\n".encode())
            late.settimeout(0.5)
            with self.assertRaises(TimeoutError):
                late.recv(100)
            for connection in open_ones:
                connection.close()
            late.settimeout(10)
            self.assertIn(b"200 OK", late.recv(100))
        self.assertEqual(caller.status("GET", "/api/status"), 200)

    @unittest.skipIf(os.getuid() != 0 or not shutil.which("setpriv"), "needs root and setpriv")
    def test_another_user(self):
        """another user of the host"""
        # The browser gets a file in place of the address. This one shows its arguments for a while.
        programs, runtime = self.folder / "bin", self.folder / "runtime"
        programs.mkdir()
        runtime.mkdir()
        opener = programs / "xdg-open"
        opener.write_text(
            f'#!/bin/sh\necho "$$ $1" >"{self.folder}/opened.part"\n'
            f'mv "{self.folder}/opened.part" "{self.folder}/opened"\nread line <"{self.folder}/wait"\n')
        opener.chmod(0o755)
        os.mkfifo(self.folder / "wait")
        self.folder.chmod(0o755)
        peer = self.peer("laptop")
        peer.create_account()
        peer.kith("set", "theme", "dark-as-night")
        peer.secrets.append("dark-as-night")
        environment = {**peers.ENVIRONMENT, "PATH": f"{programs}:{os.environ['PATH']}", "DISPLAY": ":99",
                       "XDG_RUNTIME_DIR": str(runtime)}
        peer.serve(options=["--open"], environment=environment)
        opened = self.folder / "opened"
        peers.wait_for("the browser's start", opened.exists)
        number, name = opened.read_text().split()
        self.addCleanup(os.kill, int(number), signal.SIGTERM)
        file = pathlib.Path(name)
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        self.assertIn(peer.token, file.read_text())

        script = f"""
import json, pathlib, urllib.request, urllib.error
def ask(path, headers={{}}, body=None):
    request = urllib.request.Request("http://127.0.0.1:{peer.port}" + path, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error: return error.code, error.read().decode()
def read(path):
    try: return pathlib.Path(path).read_bytes().decode(errors="replace")
    except OSError: return None
process = "/proc/{peer.page.process.pid}/"
page = {{path: ask(path) for path in ("/", "/page.js", "/api/status", "/api/export?store=default")}}
page["forged"] = ask("/api/status", {{"Cookie": "kith-page-{peer.port}=0", "X-Kith-Key": "0"}})
page["guessed"] = ask("/api/token", {{"Content-Type": "application/json"}}, b'{{"token":"0"}}')
everyone = [read(path / "cmdline") for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()]
print(json.dumps({{"page": page, "commands": [text for text in everyone if text],
    "environment": read(process + "environ"), "memory": read(process + "maps"),
    "file": read({str(file)!r}), "data": read({str(peer.directory)!r} + "/"),
    "names": [str(path) for path in pathlib.Path({str(runtime)!r}).iterdir()]}}))
"""
        nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--no-new-privs"]
        done = subprocess.run([*nobody, sys.executable, "-I", "-c", script], capture_output=True,
                              text=True, timeout=30, cwd="/")
        self.assertEqual(done.stderr, "")
        seen = json.loads(done.stdout)
        statuses = {path: status for path, (status, _) in seen["page"].items()}
        self.assertEqual(statuses, {
            "/": 200, "/page.js": 200, "/api/status": 401, "/api/export?store=default": 401,
            "forged": 401, "guessed": 401})
        for what in ("environment", "memory", "file", "data"):
            self.assertIsNone(seen[what], what)
        # The attack looked at both processes.
        self.assertTrue([text for text in seen["commands"] if str(peer.directory) in text])
        self.assertTrue([text for text in seen["commands"] if str(file) in text])
        for secret in peer.secrets:
            self.assertNotIn(secret, done.stdout)
        # A directory that only this user may enter.
        self.assertEqual(peer.directory.stat().st_mode & 0o077, 0)

        # The file still opens the page, in the browser of its own user.
        browser = self.browser()
        browser.open(f"file://{file}")
        browser.wait("the page", lambda: browser.run("return location.protocol") == "http:")
        page = KithPage(browser, peer)
        page.wait_value("theme", "dark-as-night")
        peers.wait_for("the file to go once it is worth nothing", lambda: not file.exists())
