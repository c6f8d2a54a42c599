"""What attacks a page: servers for pages of other origins, and requests that no browser would send."""

import http.client
import http.server
import json
import pathlib
import socket
import socketserver
import threading

HERE = pathlib.Path(__file__).parent


class Server:
    """A server on loopback, in a thread."""

    def __init__(self, handler, host="127.0.0.1", port=0, kind=http.server.ThreadingHTTPServer):
        self.server = kind((host, port), handler)
        self.server.daemon_threads = True
        self.server.owner = self
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def answer(self, kind, text):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        self.server.owner.requests.append(
            {"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body})
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text)


class AttackHandler(Handler):
    def do_GET(self):
        if self.path == "/attack.js":
            return self.answer("text/javascript", (HERE / "attack.js").read_bytes())
        self.answer("text/html", b'<!doctype html><title>evil</title><script src="/attack.js"></script>')


class Attacker(Server):
    """A foreign page; keeps the requests that it gets, with their cookies."""

    def __init__(self, **address):
        self.requests = []
        super().__init__(AttackHandler, **address)


class NaiveHandler(Handler):
    def do_GET(self):
        files = {"/page.js": "text/javascript", "/api.js": "text/javascript",
                 "/icon.svg": "image/svg+xml", "/page.css": "text/css"}
        if self.path in files:
            source = pathlib.Path("Sources/KithWeb/Page")
            return self.answer(files[self.path], (source / self.path[1:]).read_bytes())
        self.answer("application/json", b'"naive secret"')

    do_POST = do_GET


class Naive(Server):
    """A server that guards nothing. It shows that the attacks are real."""

    def __init__(self):
        self.requests = []
        super().__init__(NaiveHandler)

    def has(self, method, path):
        return any(request["method"] == method and request["path"].startswith(path)
                   for request in self.requests)


class RelayHandler(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            other = socket.create_connection(("127.0.0.1", self.server.owner.target))
        except OSError:
            return
        with other:
            back = threading.Thread(target=self.copy, args=(other, self.request), daemon=True)
            back.start()
            self.copy(self.request, other)
            back.join()

    @staticmethod
    def copy(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Name(Server):
    """A name's address that leads to `target`, a port of 127.0.0.1, and can be changed meanwhile.

    For a browser and the servers this is the same as a name that is resolved anew (DNS rebinding).
    """

    def __init__(self, port):
        self.target = None
        kind = type("Relay", (socketserver.ThreadingTCPServer,), {"allow_reuse_address": True})
        super().__init__(RelayHandler, "127.0.0.2", port, kind)


class Caller:
    """Requests to a page's server without a browser."""

    def __init__(self, peer):
        self.port = peer.port
        self.peer = peer
        self.cookie = self.key = None

    def request(self, method, path, body=None, **headers):
        """Returns the status, the headers and the body. A header of None is left out.

        Words of header names are joined by `_`. The own secrets and an honest Content-Type go along
        unless other headers are given.
        """
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        usual = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie, "X-Kith-Key": self.key}
        if body is not None:
            usual["Content-Type"] = "application/json"
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            usual["Content-Length"] = str(len(body))
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {**usual, **given}.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        # Streams of events do not end.
        is_stream = "event-stream" in (answer.getheader("Content-Type") or "")
        content = b"" if is_stream else answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), content.decode()

    def status(self, method, path, body=None, **headers):
        return self.request(method, path, body, **headers)[0]

    def begin(self):
        """Begins the session, as the page does."""
        status, headers, text = self.request("POST", "/api/token", {"token": self.peer.token})
        assert status == 200, text
        self.cookie_header = headers["Set-Cookie"]
        self.cookie = self.cookie_header.split(";")[0]
        self.key = json.loads(text)["key"]
        self.peer.secrets += [self.key, self.cookie.split("=")[1]]
        return self

    def write(self, value="1", **headers):
        body = {"store": "default", "create": True, "writes": [{"key": "attack", "json": value}]}
        return self.status("POST", "/api/write", body, **headers)

    def raw(self, data, seconds=5):
        """Sends bytes, and returns all that comes until the connection ends."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            answer = b""
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65536):
                    answer += part
            except (ConnectionError, TimeoutError):
                pass
            return answer.decode(errors="replace")
