"""The bytes of Kith, written along Docs/Protocol.md and its sub-pages alone: it shares no code with the package.

Primitives (section 1), encodings by the schema that the pages print (section 2), the Noise handshake
(section 12). Needs Python's standard library and libsodium.
"""

import ctypes
import ctypes.util
import hashlib
import hmac
import os
import pathlib
import re
import struct

DOCS = pathlib.Path(__file__).resolve().parents[2] / "Docs"
# The protocol's page, then its sub-pages.
PAGES = [path.read_text() for path in [DOCS / "Protocol.md", *sorted((DOCS / "Protocol").glob("*.md"))]]


def _load():
    for name in ("libsodium.so.26", "libsodium.so.23", ctypes.util.find_library("sodium")):
        try:
            library = ctypes.CDLL(name) if name else None
        except OSError:
            continue
        if library is not None and library.sodium_init() >= 0:
            return library
    raise ImportError("libsodium is not installed")


_sodium = _load()


# ------------------------------------------------------------------------------- primitives

def _call(name, size, *arguments):
    """Calls a function of libsodium that fills `size` bytes; ValueError if it fails."""
    out = ctypes.create_string_buffer(max(1, size))
    if getattr(_sodium, name)(out, *arguments) != 0:
        raise ValueError(name + " failed")
    return out.raw[:size]


def _length(data):
    return ctypes.c_ulonglong(len(data))


def blake2b(data, size=32, key=b""):
    return hashlib.blake2b(data, digest_size=size, key=key).digest()


def kdf(master, number, context):
    """crypto_kdf_derive_from_key."""
    salt = struct.pack("<Q", number) + bytes(8)
    return hashlib.blake2b(
        b"", digest_size=32, key=master, salt=salt, person=context + bytes(8)).digest()


def _pair(name, private_size, seed):
    public, private = ctypes.create_string_buffer(32), ctypes.create_string_buffer(private_size)
    if getattr(_sodium, name)(public, private, seed) != 0:
        raise ValueError(name + " failed")
    return public.raw, private.raw


def signing_pair(seed):
    """(public key, private key)."""
    return _pair("crypto_sign_seed_keypair", 64, seed)


def box_pair(seed):
    """(public key, private key)."""
    return _pair("crypto_box_seed_keypair", 32, seed)


def sign(private, message):
    return _call("crypto_sign_detached", 64, None, message, _length(message), private)


def verifies(public, message, signature):
    return len(signature) == 64 and _sodium.crypto_sign_verify_detached(
        signature, message, _length(message), public) == 0


def transport_public(private):
    return _call("crypto_scalarmult_base", 32, private)


def diffie_hellman(private, public):
    return _call("crypto_scalarmult", 32, private, public)


def box_key(public, private):
    return _call("crypto_box_beforenm", 32, public, private)


def box(message, nonce, key):
    return _call(
        "crypto_box_easy_afternm", len(message) + 16, message, _length(message), nonce, key)


def box_open(sealed, nonce, key):
    """None if it does not open."""
    try:
        return _call(
            "crypto_box_open_easy_afternm", len(sealed) - 16, sealed, _length(sealed), nonce, key)
    except ValueError:
        return None


def seal_secret(message, public, private):
    """crypto_box_seal under an ephemeral private key that the caller gives."""
    ephemeral = transport_public(private)
    nonce = blake2b(ephemeral + public, 24)
    return ephemeral + box(message, nonce, box_key(public, private))


def open_secret(sealed, public, private):
    """None if it does not open."""
    try:
        return _call(
            "crypto_box_seal_open", len(sealed) - 48, sealed, _length(sealed), public, private)
    except ValueError:
        return None


def open_secretbox(sealed, key):
    """`sealed` begins with its nonce; None if it does not open."""
    try:
        return _call(
            "crypto_secretbox_open_easy", len(sealed) - 40, sealed[24:], _length(sealed[24:]),
            sealed[:24], key)
    except ValueError:
        return None


def _aead_nonce(counter):
    return bytes(4) + struct.pack("<Q", counter)


def encrypt(key, counter, plaintext, additional=b""):
    return _call(
        "crypto_aead_chacha20poly1305_ietf_encrypt", len(plaintext) + 16, None, plaintext,
        _length(plaintext), additional, _length(additional), None, _aead_nonce(counter), key)


def decrypt(key, counter, sealed, additional=b""):
    """ValueError if it does not open."""
    if len(sealed) < 16:
        raise ValueError("a frame without a tag")
    return _call(
        "crypto_aead_chacha20poly1305_ietf_decrypt", len(sealed) - 16, None, None, sealed,
        _length(sealed), additional, _length(additional), _aead_nonce(counter), key)


# -------------------------------------------------------------------------------- encodings

def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


class Schema:
    """The messages that the pages print: their fields by number, and how each is written."""

    def __init__(self, text):
        self.messages = {}
        block = "".join(re.findall(r"```proto\n(.*?)```", text, re.DOTALL))
        for name, body in re.findall(r"message (\w+) \{((?:[^{}]|\{[^{}]*\})*)\}", block):
            chosen = "".join(re.findall(r"oneof \w+ \{([^{}]*)\}", body))
            self.messages[name] = {
                int(number): (field, kind, bool(repeated), f"{field} = {number};" in chosen)
                for repeated, kind, field, number in re.findall(
                    r"(repeated )?(\w+) (\w+) = (\d+);", body)}

    def encode(self, message, /, **values):
        """The message's bytes, canonically. A message inside stands as its bytes or as a dictionary;
        what is None is left out, and what is zero or empty unless it is of a oneof or a message."""
        out = b""
        for number, (name, kind, repeated, chosen) in sorted(self.messages[message].items()):
            value = values.pop(name, None)
            if repeated and kind not in self.messages and kind not in ("bytes", "string"):
                if value:
                    packed = b"".join(map(varint, value))
                    out += varint(number << 3 | 2) + varint(len(packed)) + packed
                continue
            for element in (value or []) if repeated else [] if value is None else [value]:
                kept = repeated or chosen or kind in self.messages or bool(element)
                out += self._field(number, kind, element) if kept else b""
        if values:
            raise TypeError(f"{message} has no {', '.join(values)}")
        return out

    def _field(self, number, kind, value):
        if kind in self.messages and isinstance(value, dict):
            value = self.encode(kind, **value)
        if isinstance(value, str):
            value = value.encode()
        if isinstance(value, bytes):
            return varint(number << 3 | 2) + varint(len(value)) + value
        if kind in ("fixed64", "double"):
            return varint(number << 3 | 1) + struct.pack("<Q" if kind == "fixed64" else "<d", value)
        if kind == "sint64":
            value = (value << 1 ^ value >> 63) & (1 << 64) - 1
        return varint(number << 3) + varint(int(value))

    def decode(self, message, data):
        """A dictionary of every field: a list if it is repeated, a dictionary or None if it is a
        message, None for a member of a oneof that is not there. Unknown fields are left out."""
        known = self.messages[message]
        values = {
            name: [] if repeated else None if chosen or kind in self.messages
            else {"bytes": b"", "string": "", "bool": False}.get(kind, 0)
            for name, kind, repeated, chosen in known.values()}
        at = 0

        def read_varint():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    return value

        while at < len(data):
            tag = read_varint()
            if tag & 7 == 0:
                value = read_varint()
            elif tag & 7 in (1, 5):
                size = 8 if tag & 7 == 1 else 4
                value = int.from_bytes(data[at:at + size], "little")
                at += size
            elif tag & 7 == 2:
                size = read_varint()
                value = data[at:at + size]
                at += size
            else:
                raise ValueError("groups are of no message")
            if at > len(data):
                raise ValueError("a field that ends behind its message")
            if tag >> 3 not in known:
                continue
            name, kind, repeated, _ = known[tag >> 3]
            if kind in self.messages:
                value = self.decode(kind, value)
            elif kind == "string":
                value = value.decode()
            elif kind == "bool":
                value = bool(value)
            elif repeated and kind != "bytes":
                value = list(value)  # packed numbers below 128: versions
                values[name] += value
                continue
            if repeated:
                values[name].append(value)
            else:
                values[name] = value
        return values


schema = Schema("".join(PAGES))
encode, decode = schema.encode, schema.decode


# ---------------------------------------------------------------------------------- handshake

class Noise:
    """One side of Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b: it writes and reads messages in turn."""

    def __init__(self, static, psk, prologue=b"Kith/1", ephemeral=None):
        name = b"Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b"
        self.static, self.ephemeral = static, ephemeral or os.urandom(32)
        self.other_static = self.other_ephemeral = None
        self.hash = self.chain = name + bytes(64 - len(name))
        self._mix_hash(prologue)
        self.chain, mixed, self.key = self._hkdf(psk, 3)
        self._mix_hash(mixed)
        self.counter = 0

    def _mix_hash(self, part):
        self.hash = hashlib.blake2b(self.hash + part).digest()

    def _hkdf(self, material, count):
        mac = lambda key, part: hmac.new(key, part, hashlib.blake2b).digest()
        temporary, outputs = mac(self.chain, material), [b""]
        for index in range(count):
            outputs.append(mac(temporary, outputs[-1] + bytes([index + 1])))
        return outputs[1:]

    def _mix_key(self, material):
        self.chain, self.key = self._hkdf(material, 2)
        self.counter = 0

    def _mix_ephemeral(self, public):
        self._mix_hash(public)
        self._mix_key(public)
        return public

    def _seal(self, plaintext):
        sealed = encrypt(self.key[:32], self.counter, plaintext, self.hash)
        self.counter += 1
        self._mix_hash(sealed)
        return sealed

    def _open(self, sealed):
        plaintext = decrypt(self.key[:32], self.counter, sealed, self.hash)
        self.counter += 1
        self._mix_hash(sealed)
        return plaintext

    def write_first(self, payload):
        return self._mix_ephemeral(transport_public(self.ephemeral)) + self._seal(payload)

    def read_first(self, message):
        self.other_ephemeral = self._mix_ephemeral(message[:32])
        return self._open(message[32:])

    def write_second(self, payload):
        message = self._mix_ephemeral(transport_public(self.ephemeral))
        self._mix_key(diffie_hellman(self.ephemeral, self.other_ephemeral))
        message += self._seal(transport_public(self.static))
        self._mix_key(diffie_hellman(self.static, self.other_ephemeral))
        return message + self._seal(payload)

    def read_second(self, message):
        self.other_ephemeral = self._mix_ephemeral(message[:32])
        self._mix_key(diffie_hellman(self.ephemeral, self.other_ephemeral))
        self.other_static = self._open(message[32:80])
        self._mix_key(diffie_hellman(self.ephemeral, self.other_static))
        return self._open(message[80:])

    def write_third(self, payload):
        message = self._seal(transport_public(self.static))
        self._mix_key(diffie_hellman(self.static, self.other_ephemeral))
        return message + self._seal(payload)

    def read_third(self, message):
        self.other_static = self._open(message[:48])
        self._mix_key(diffie_hellman(self.ephemeral, self.other_static))
        return self._open(message[48:])

    def split(self):
        """(the dialler's sending key, the listener's)."""
        return [key[:32] for key in self._hkdf(b"", 2)]


# ------------------------------------------------------------------------------------- frames

def frame(message):
    return struct.pack(">H", len(message)) + message


class Frames:
    """One direction of a session (section 13)."""

    PIECE = 65_519

    def __init__(self, key):
        self.key, self.counter = key, 0

    def seal(self, message):
        plaintext = struct.pack(">I", len(message)) + message
        plaintext += bytes(-len(plaintext) % 64)
        out = []
        for at in range(0, len(plaintext), self.PIECE):
            piece = plaintext[at:at + self.PIECE]
            out.append(frame(encrypt(self.key, self.counter, piece)))
            self.counter += 1
        return b"".join(out)

    def open(self, sealed):
        piece = decrypt(self.key, self.counter, sealed)
        self.counter += 1
        return piece


# -------------------------------------------------------------------------------------- texts

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def crockford(raw):
    bits = int.from_bytes(raw, "big")
    length = (len(raw) * 8 + 4) // 5
    bits <<= length * 5 - len(raw) * 8
    return "".join(ALPHABET[bits >> 5 * i & 31] for i in reversed(range(length)))


def uncrockford(text):
    bits = 0
    for character in text.upper().replace("I", "1").replace("L", "1").replace("O", "0"):
        bits = bits << 5 | ALPHABET.index(character)
    size = len(text) * 5 // 8
    return (bits >> len(text) * 5 - size * 8).to_bytes(size, "big")


def groups(text):
    return "-".join(text[i:i + 4] for i in range(0, len(text), 4))
