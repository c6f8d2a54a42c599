"""A server before a WebDAV server or a bucket that notes every request: whose, what, how many bytes.

    proxy.py PORT BACKEND-PORT CERTIFICATE KEY LOG [METHOD:SECONDS]

A line of the log is: seconds, client's address, method, status, bytes up, bytes down. Bytes are those of
HTTP, without TLS, TCP and IP. With METHOD:SECONDS the method takes so much longer."""

import http.client
import http.server
import ssl
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 120

    def handle_one_request(self):
        self.raw_requestline = self.rfile.readline(65_537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        up = len(self.raw_requestline) + len(str(self.headers)) + size
        if self.command in self.server.slow:
            time.sleep(self.server.slow[self.command])
        backend = http.client.HTTPConnection("127.0.0.1", self.server.backend, timeout=60)
        backend.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("expect", "connection"):
                backend.putheader(name, value)
        backend.endheaders(body or None)
        answer = backend.getresponse()
        data = answer.read()
        head = f"HTTP/1.1 {answer.status} {answer.reason}\r\n"
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                head += f"{name}: {value}\r\n"
        length = answer.headers.get("Content-Length") if self.command == "HEAD" else len(data)
        head += f"Content-Length: {length or 0}\r\n\r\n"
        # Before the answer: who has it may look at the log.
        method = "LIST" if "list-type=" in self.path else self.command
        print(f"{time.time():.3f} {self.client_address[0]} {method} {answer.status} {up} "
              f"{len(head) + len(data)}", file=self.server.log, flush=True)
        self.wfile.write(head.encode() + data)
        backend.close()


def main(port, backend, certificate, key, log, *slow):
    server = http.server.ThreadingHTTPServer(("0.0.0.0", int(port)), Handler)
    server.daemon_threads = True
    server.backend = int(backend)
    server.slow = {method: float(seconds) for method, seconds in (each.split(":") for each in slow)}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True,
                                        do_handshake_on_connect=False)
    with open(log, "a") as server.log:
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
