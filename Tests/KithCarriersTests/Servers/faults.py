"""A server that answers wrongly. The first part of the path names the fault.

    faults.py DIRECTORY PORTS
"""

import hashlib
import json
import re
import socket
import ssl
import sys
import threading
import time

RFC_EXAMPLE = "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"


def multistatus(*members):
    place = ("<D:response><D:href>/x/</D:href><D:propstat><D:prop><D:resourcetype><D:collection/>"
             "</D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>")
    return f'<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">{place}{"".join(members)}</D:multistatus>'


def answer(connection, status, body="", headers=()):
    body = body.encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    connection.sendall("\r\n".join(lines).encode() + body)


def digest(header, method, user, realm, password):
    """Whether the client's response is that of RFC 7616, section 3.4.1, with SHA-256."""
    fields = {name: value.strip('"') for name, value in re.findall(r'(\w+)=("[^"]*"|[^,\s]+)', header)}
    given = fields.get("response")
    return given is not None and fields.get("algorithm") == "SHA-256" and given == response(
        method, user, realm, password, *(fields[name] for name in ["uri", "nonce", "nc", "cnonce"]))


def response(method, user, realm, password, uri, nonce, count, cnonce):
    sha = lambda text: hashlib.sha256(text.encode()).hexdigest()
    return sha(f"{sha(f'{user}:{realm}:{password}')}:{nonce}:{count}:{cnonce}:auth:"
               f"{sha(f'{method}:{uri}')}")


# The example of RFC 7616, section 3.9.1.
assert response("GET", "Mufasa", "http-auth@example.org", "Circle of Life", "/dir/index.html",
                "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", "00000001",
                "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ") == RFC_EXAMPLE


def page(token):
    return ("<ListBucketResult><IsTruncated>true</IsTruncated>"
            f"<NextContinuationToken>{token}</NextContinuationToken></ListBucketResult>")


def forever(connection, chunk, pause=0.0):
    while True:
        connection.sendall(chunk)
        time.sleep(pause)


class Server:
    def __init__(self, port):
        self.port = port
        self.count = 0

    def handle(self, connection, method, path, headers, rest):
        self.count += 1
        fault = path.split("/")[1]
        host = headers.get("host", "")
        length = int(headers.get("content-length", 0))
        if fault == "cut-put" and method == "PUT":
            # Two thirds of the body never find a reader.
            read(connection, length // 3 - len(rest))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            return False
        read(connection, length - len(rest))
        match fault:
            case "wait-seconds": answer(connection, "429 Slow", "", ["Retry-After: 7"])
            case "wait-date":
                answer(connection, "503 Slow", "", ["Retry-After: Fri, 31 Dec 2199 23:59:59 GMT"])
            case "full": answer(connection, "507 Full")
            case "too-large": answer(connection, "413 Too Large")
            case "forbidden": answer(connection, "403 No")
            case "no-webdav": answer(connection, "405 No")
            case "page": answer(connection, "200 OK", "<html>Welcome</html>")
            case "unauthorized":
                answer(connection, "401 No", "", ['WWW-Authenticate: Basic realm="x"'])
            case "truncated":
                connection.sendall(b"HTTP/1.1 207 OK\r\nContent-Length: 100000\r\n\r\n"
                                   + multistatus().encode())
                return False
            case "truncated-chunks":
                text = multistatus().encode()
                connection.sendall(b"HTTP/1.1 207 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                   + f"{len(text):x}\r\n".encode() + text + b"\r\n")
                return False
            case "no-length":
                connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf an obj")
                return False
            case "half-xml": answer(connection, "207 OK", multistatus()[:-20])
            case "entities":
                answer(connection, "207 OK", '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
                       + multistatus().replace("/x/", "&b;"))
            case "too-long":
                # Says so, and sends nothing of it.
                connection.sendall(b"HTTP/1.1 207 X\r\nContent-Length: 99999999\r\n\r\n")
                time.sleep(60)
            case "endless":
                connection.sendall(b"HTTP/1.1 207 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                forever(connection, b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
            case "endless-headers":
                connection.sendall(b"HTTP/1.1 207 OK\r\n")
                forever(connection, b"X-A: " + b"x" * 1000 + b"\r\n")
            case "drip":
                connection.sendall(b"HTTP/1.1 207 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                forever(connection, b"1\r\nx\r\n", 0.02)
            case "silent":
                read(connection, 1 << 40)
            case "garbage":
                connection.sendall(b"\0\1\2\3 no HTTP at all\r\n\r\n")
                return False
            case "moved": answer(connection, "301 There", "", ["Location: /place" + path[6:]])
            case "moved-out":
                answer(connection, "302 There", "", [f"Location: http://localhost:{self.port}/place/"])
            case "moved-scheme":
                answer(connection, "302 There", "", [f"Location: https://{host}/place/"])
            case "moved-round": answer(connection, "302 There", "", [f"Location: {path}"])
            case "place": answer(connection, "207 OK", multistatus())
            case "digest":
                if digest(headers.get("authorization", ""), method, "kith", "r", "open sesame"):
                    answer(connection, "207 OK" if method == "PROPFIND" else "201 OK", multistatus())
                else:
                    challenge = 'Digest realm="r", qop="auth", algorithm=SHA-256, nonce="bm9uY2U"'
                    answer(connection, "401 No", "", [f"WWW-Authenticate: {challenge}"])
            case "basic":
                if headers.get("authorization", "").startswith("Basic "):
                    answer(connection, "207 OK", multistatus())
                else:
                    answer(connection, "401 No", "", ['WWW-Authenticate: Basic realm="x"'])
            case "token":
                known = headers.get("authorization") == "Bearer open-sesame"
                answer(connection, "207 OK" if known else "401 No", multistatus())
            case "s3-pages": answer(connection, "200 OK", page(self.count))
            case "s3-round": answer(connection, "200 OK", page("same"))
            case "s3-slow":
                answer(connection, "503 Slow", "<Error><Code>SlowDown</Code></Error>", ["Retry-After: 3"])
            case "s3-skewed":
                answer(connection, "403 No", "<Error><Code>RequestTimeTooSkewed</Code></Error>")
            case "s3-region":
                answer(connection, "301 There", "<Error><Code>PermanentRedirect</Code></Error>",
                       ["Location: http://localhost/"])
            case "count": answer(connection, "207 OK", multistatus())
            case _: answer(connection, "404 No")
        return True

    def serve(self, connection):
        try:
            data = b""
            while True:
                while b"\r\n\r\n" not in data:
                    more = connection.recv(65536)
                    if not more:
                        return
                    data += more
                    if data.startswith(b"\x16"):
                        # TLS begins so; as other servers do, it answers without.
                        return answer(connection, "400 No")
                head, _, data = data.partition(b"\r\n\r\n")
                lines = head.decode("latin-1").split("\r\n")
                method, path, _ = lines[0].split(" ")
                headers = {name.lower(): value.strip()
                           for name, _, value in (line.partition(":") for line in lines[1:])}
                if not self.handle(connection, method, path, headers, data):
                    return
                data = b""
        except OSError:
            pass
        finally:
            connection.close()


def read(connection, count):
    while count > 0:
        data = connection.recv(min(count, 65536))
        if not data:
            return
        count -= len(data)


def listen(port, context):
    server = Server(port)
    listener = socket.create_server(("127.0.0.1", port), backlog=64)

    def accept():
        while True:
            connection, _ = listener.accept()

            def begin(connection=connection):
                try:
                    secured = context.wrap_socket(connection, server_side=True) if context else connection
                except OSError:
                    return connection.close()
                server.serve(secured)
            threading.Thread(target=begin, daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()


directory, ports = sys.argv[1], json.loads(sys.argv[2])
for name, port in ports.items():
    context = None
    if name != "plain":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{directory}/{name}.pem", f"{directory}/{name}.key")
    listen(port, context)
threading.Event().wait()
