"""Two hosts on one machine: network namespaces, at a switch, with cables that can be pulled.

The command runs in the namespace `near`; this module makes `far` and that of the switch, a bridge. All
end with their processes.
"""
import contextlib
import ctypes
import os
import socket
import struct
import subprocess
import threading
import time

_CLONE_NEWNET = 0x40000000
_ETH_P_IP = 0x0800
_SO_TIMESTAMPNS = 35


def namespace_command():
    """The command that runs another one in a network namespace of its own, or None if this host
    permits that neither to root nor to a user."""
    own = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    with contextlib.suppress(OSError):
        probe = [*own, "ip", "link", "add", "near", "type", "veth", "peer", "name", "far"]
        if subprocess.run(probe, capture_output=True).returncode == 0:
            return own
    return None


def connected(connection):
    """A socket without delay, and its buffered reader."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection, connection.makefile("rb")


class Loopback:
    """Both hosts are this one. Nothing can be cut, and no bytes can be told apart."""

    near = far = "127.0.0.1"
    has_cable = False

    def command(self, far):
        return []

    @contextlib.contextmanager
    def inside(self, far):
        yield

    def connect(self, address, port, far=False, patience=10):
        """A binary connection from one of the hosts, once something listens there."""
        end = time.monotonic() + patience
        while True:
            try:
                with self.inside(far):
                    return connected(socket.create_connection((address, port)))
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def close(self):
        pass


class _Namespace:
    """A network namespace that lives until it is closed, or this program ends."""

    def __init__(self):
        self.process = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        self.pid = self.process.pid
        self.path = f"/proc/{self.pid}/ns/net"
        self.enter = ["nsenter", f"--net={self.path}", "--"]
        while os.readlink(self.path) == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Cable(Loopback):
    near, far = "10.77.0.1", "10.77.0.2"
    has_cable = True

    def __init__(self):
        self.holders = {name: _Namespace() for name in ("switch", "far")}
        self.make_switch()
        self.make_host("near", self.near)
        self.make_host("far", self.far)

    def make_switch(self):
        self.ip("switch", "link", "add", "bridge", "type", "bridge")
        self.ip("switch", "link", "set", "bridge", "addrgenmode", "none", "up")

    def make_host(self, name, address):
        port = f"to-{name}"
        self.ip(name, "link", "add", name, "type", "veth", "peer", "name", port)
        self.ip(name, "link", "set", port, "netns", str(self.holders["switch"].pid))
        # Without IPv6 addresses, whose making sends packets.
        self.ip("switch", "link", "set", port, "addrgenmode", "none", "master", "bridge", "up")
        self.ip(name, "link", "set", name, "addrgenmode", "none", "up")
        self.ip(name, "addr", "add", f"{address}/24", "dev", name)
        self.ip(name, "link", "set", "lo", "up")

    def ip(self, space, *words):
        enter = self.holders[space].enter if space in self.holders else []
        subprocess.run([*enter, "ip", *words], check=True)

    def close(self):
        for holder in self.holders.values():
            holder.close()

    def command(self, far):
        return self.holders["far"].enter if far else []

    @contextlib.contextmanager
    def inside(self, far):
        """Sockets that this thread makes meanwhile belong to the host `far`, if it is meant."""
        if not far:
            yield
            return
        own, other = (os.open(path, os.O_RDONLY) for path in ("/proc/thread-self/ns/net", self.holders["far"].path))
        enter = ctypes.CDLL(None, use_errno=True).setns
        try:
            if enter(other, _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            yield
        finally:
            enter(own, _CLONE_NEWNET)
            os.close(own)
            os.close(other)

    def cut(self):
        """Pulls the cable of `far`, which loses its carrier. The switch stays, so `near` keeps its own."""
        self.ip("switch", "link", "set", "to-far", "down")

    def join(self):
        self.ip("switch", "link", "set", "to-far", "up")

    def bytes(self):
        """Bytes sent and received at the near end until now, with the headers of Ethernet."""
        with open("/proc/net/dev") as file:
            words = next(line for line in file if line.strip().startswith("near:")).split()
        return int(words[1]) + int(words[9])

    def first_packet(self):
        return FirstPacket(self.far)


class FirstPacket:
    """The time at which the first TCP or UDP packet from an address arrived at the near end, by the
    kernel's clock: this thread may be late."""

    def __init__(self, address):
        self.time, self.address = None, socket.inet_aton(address)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_IP))
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self.socket.bind(("near", _ETH_P_IP))
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while self.time is None:
            packet, control, *_ = self.socket.recvmsg(64, 256)
            protocol, source = struct.unpack("!9xB2x4s", packet[:16])
            if source == self.address and protocol in (socket.IPPROTO_TCP, socket.IPPROTO_UDP):
                seconds, nanoseconds = struct.unpack("@ll", control[0][2])
                age = time.time_ns() - (seconds * 1_000_000_000 + nanoseconds)
                self.time = time.perf_counter() - age / 1e9
        self.socket.close()
