#!/usr/bin/env python3
"""Computes the worked examples of Protocol.md, independently of the Swift code.

    python3 -m venv venv && venv/bin/pip install pynacl cryptography
    venv/bin/python Protocol-examples.py
"""

import hashlib
import hmac
import struct

import nacl.bindings as sodium
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305


# ------------------------------------------------------------------------------- primitives

def blake2b(data, size=32, key=b""):
    return hashlib.blake2b(data, digest_size=size, key=key).digest()


def kdf(master, number, context):
    """crypto_kdf_derive_from_key."""
    salt = struct.pack("<Q", number) + bytes(8)
    return hashlib.blake2b(
        b"", digest_size=32, key=master, salt=salt, person=context + bytes(8)).digest()


def varint(n):
    out = b""
    while n > 0x7F:
        out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
    return out + bytes([n])


def number(field, value):
    """A varint field; proto3 leaves zero out."""
    return varint(field << 3) + varint(value) if value else b""


def fixed(field, value):
    """A fixed64 field; proto3 leaves zero out."""
    return varint(field << 3 | 1) + struct.pack("<Q", value) if value else b""


def data(field, value):
    """A length-delimited field, written even if empty."""
    return varint(field << 3 | 2) + varint(len(value)) + value


def crockford(raw):
    bits = int.from_bytes(raw, "big")
    length = (len(raw) * 8 + 4) // 5
    bits <<= length * 5 - len(raw) * 8
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    return "".join(alphabet[bits >> 5 * i & 31] for i in reversed(range(length)))


def groups(text):
    return "-".join(text[i:i + 4] for i in range(0, len(text), 4))


def show(title, *pairs):
    print(f"\n## {title}")
    for name, value in pairs:
        print(f"{name}: {value.hex() if isinstance(value, bytes) else value}")


# ----------------------------------------------------------------------------------- values

# Of a Value the tag is written even where the number is zero: it is part of a oneof.
def integer(n):
    return b"\x10" + varint(((n << 1) ^ (n >> 63)) & (1 << 64) - 1)


def string(text):
    return data(4, text.encode())


def array(*values):
    return data(7, b"".join(data(1, value) for value in values))


def dictionary(members):
    body = b""
    for key, value in sorted((key.encode(), value) for key, value in members.items()):
        body += data(1, (data(1, key) if key else b"") + data(2, value))
    return data(8, body)


show(
    "Values",
    ("bool(false)", b"\x08\x00"),
    ("integer(-3)", integer(-3)),
    ("double(1.5)", b"\x19" + struct.pack("<d", 1.5)),
    ("string(\"\")", string("")),
    ("date(2001-01-01T00:00:01Z)", b"\x29" + struct.pack("<d", 1)),
    ("{b: [1, \"x\"], a: true}",
     dictionary({"b": array(integer(1), string("x")), "a": b"\x08\x01"})))

# --------------------------------------------------------------------- keys, account, epoch

seed = lambda byte: bytes([byte]) * 32
device, signing = sodium.crypto_sign_seed_keypair(seed(0x01))
box_public, box_secret = sodium.crypto_box_seed_keypair(seed(0x02))
transport_secret = seed(0x03)
transport_public = sodium.crypto_scalarmult_base(transport_secret)

recovery_seed = seed(0x04)
recovery_public, recovery_signing = sodium.crypto_sign_seed_keypair(
    kdf(recovery_seed, 1, b"KithReco"))
recovery_box, _ = sodium.crypto_box_seed_keypair(kdf(recovery_seed, 2, b"KithReco"))

certificate = (data(1, device) + data(2, box_public) + data(3, transport_public)
               + data(4, b"laptop") + number(5, 1_700_000_000_000))
body = data(1, data(1, recovery_public) + data(2, recovery_box) + data(3, certificate))
account = blake2b(body)
signed = b"kith record v1\0" + bytes(32) + body
genesis_signature = sodium.crypto_sign(signed, signing)[:64]

epoch_secret = seed(0x05)
epoch_box, _ = sodium.crypto_box_seed_keypair(kdf(epoch_secret, 1, b"KithEpo1"))
psk = kdf(epoch_secret, 2, b"KithEpo1")
epoch = blake2b(epoch_box)
store_tag = blake2b(b"com.example.App", 16, kdf(epoch_secret, 3, b"KithEpo1"))

show("Genesis and epoch", ("device", device), ("box key", box_public),
     ("transport key", transport_public), ("recovery signing key", recovery_public),
     ("recovery box key", recovery_box), ("genesis body", body), ("account", account),
     ("first device's signature", genesis_signature), ("epoch box key", epoch_box),
     ("epoch", epoch), ("psk", psk), ("store tag", store_tag))

# ------------------------------------------------------------------------------- change set

clock = 1_700_000_000_000 << 16
incarnation = 0x1122334455667788
value = string("dark")
stamp = fixed(1, clock) + data(2, device)
claim = fixed(1, clock + 1) + data(2, device)  # group 0 is left out
entry = data(1, b"theme") + data(2, stamp) + data(3, value) + data(5, claim)
prefix = bytes(range(20))
shared = sodium.crypto_box_beforenm(epoch_box, box_secret)
box = sodium.crypto_box_easy_afternm(entry, prefix + struct.pack(">I", 0), shared)
header = (number(1, 1) + data(2, store_tag) + data(3, epoch) + data(4, device)
          + fixed(5, incarnation) + number(6, 1) + fixed(7, clock + 1) + data(8, prefix)
          + data(9, blake2b(box)))
signature = sodium.crypto_sign(b"kith change set v1\0" + account + header, signing)[:64]
change_set = data(1, header) + data(2, signature) + data(3, data(2, box))  # index 0 left out
digest = blake2b(struct.pack(">I", 5) + b"theme" + blake2b(entry))

show("Change set", ("entry", entry), ("entry digest", blake2b(entry)), ("box", box),
     ("header", header), ("signature", signature), ("change set's bytes", len(change_set)),
     ("state digest", digest))

# -------------------------------------------------------------------------------- handshake


class Noise:
    """Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b; both roles see the same symmetric state."""

    def __init__(self, prologue, psk):
        name = b"Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b"
        self.hash = self.chain = name + bytes(64 - len(name))
        self.mix_hash(prologue)
        self.chain, mixed, self.key = self.hkdf(psk, 3)
        self.mix_hash(mixed)
        self.nonce = 0

    def mix_hash(self, part):
        self.hash = hashlib.blake2b(self.hash + part).digest()

    def hkdf(self, material, count):
        mac = lambda key, part: hmac.new(key, part, hashlib.blake2b).digest()
        temporary, outputs = mac(self.chain, material), [b""]
        for index in range(count):
            outputs.append(mac(temporary, outputs[-1] + bytes([index + 1])))
        return outputs[1:]

    def mix_key(self, material):
        self.chain, self.key = self.hkdf(material, 2)
        self.nonce = 0

    def ephemeral(self, public):
        self.mix_hash(public)
        self.mix_key(public)
        return public

    def seal(self, plaintext):
        sealed = encrypt(self.key, self.nonce, plaintext, self.hash)
        self.nonce += 1
        self.mix_hash(sealed)
        return sealed


def encrypt(key, nonce, plaintext, additional=b""):
    return ChaCha20Poly1305(key[:32]).encrypt(
        bytes(4) + struct.pack("<Q", nonce), plaintext, additional)


def handshake(prologue, psk, dialler, listener, payloads):
    """Each side is (static private key, ephemeral private key)."""
    public, dh = sodium.crypto_scalarmult_base, sodium.crypto_scalarmult
    (s_i, e_i), (s_r, e_r) = dialler, listener
    noise = Noise(prologue, psk)
    first = noise.ephemeral(public(e_i)) + noise.seal(payloads[0])
    second = noise.ephemeral(public(e_r))
    noise.mix_key(dh(e_i, public(e_r)))
    second += noise.seal(public(s_r))
    noise.mix_key(dh(e_i, public(s_r)))
    second += noise.seal(payloads[1])
    third = noise.seal(public(s_i))
    noise.mix_key(dh(s_i, public(e_r)))
    third += noise.seal(payloads[2])
    return first, second, third, noise.hash, [key[:32] for key in noise.hkdf(b"", 2)]


def hello(clock, process, port):
    return (number(1, 1) + fixed(2, clock) + number(3, 1) + data(4, process)
            + data(5, seed(0x0A)) + number(6, port))


def frame(message):
    return struct.pack(">H", len(message)) + message


# ---------------------------------------------------------------------- the code exchange

# ristretto255 as RFC 9496 says it, with Python's numbers: plain, slow, and in no constant time.
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


def magnitude(x):
    """The one of x and -x that is even."""
    x %= P
    return P - x if x & 1 else x


def sqrt_ratio(u, v):
    """Whether u/v is a square, and the square root of it, or of u/v times that of -1."""
    root = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * root * root % P
    if check in (-u % P, -u * SQRT_M1 % P):
        root = root * SQRT_M1 % P
    return check in (u % P, -u % P), magnitude(root)


# Of these two roots the RFC takes the odd one and the even one.
SQRT_AD_MINUS_ONE = P - sqrt_ratio(-D - 1, 1)[1]
INVSQRT_A_MINUS_D = sqrt_ratio(1, -1 - D)[1]


def add(one, other):
    (x1, y1, z1, t1), (x2, y2, z2, t2) = one, other
    a, b = (y1 - x1) * (y2 - x2), (y1 + x1) * (y2 + x2)
    c, d = 2 * D * t1 * t2, 2 * z1 * z2
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(scalar, point):
    product = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            product = add(product, point)
        point, scalar = add(point, point), scalar >> 1
    return product


def elligator(half):
    t = int.from_bytes(half, "little") & (1 << 255) - 1
    r = SQRT_M1 * t * t % P
    u, v = (r + 1) * (1 - D * D) % P, (-1 - r * D) * (r + D) % P
    is_square, s = sqrt_ratio(u, v)
    c = P - 1 if is_square else r
    s = s if is_square else -magnitude(s * t) % P
    n = c * (r - 1) * (D - 1) ** 2 - v
    w0, w1, w2, w3 = 2 * s * v, n * SQRT_AD_MINUS_ONE, 1 - s * s, 1 + s * s
    return w0 * w3 % P, w2 * w1 % P, w1 * w3 % P, w0 * w2 % P


def element(digest):
    return add(elligator(digest[:32]), elligator(digest[32:]))


def encode_element(point):
    x, y, z, t = point
    u1, u2 = (z + y) * (z - y) % P, x * y % P
    root = sqrt_ratio(1, u1 * u2 * u2 % P)[1]
    den1, den2 = root * u1 % P, root * u2 % P
    z_inverse = den1 * den2 * t % P
    den = den2
    if t * z_inverse % P & 1:
        x, y, den = y * SQRT_M1, x * SQRT_M1, den1 * INVSQRT_A_MINUS_D
    if x * z_inverse % P & 1:
        y = -y
    return magnitude(den * (z - y)).to_bytes(32, "little")


def decode_element(raw):
    s = int.from_bytes(raw, "little")
    u1, u2 = (1 - s * s) % P, (1 + s * s) % P
    v = (-D * u1 * u1 - u2 * u2) % P
    is_square, root = sqrt_ratio(1, v * u2 * u2 % P)
    x, y = magnitude(2 * s * root * u2), u1 * root * root * u2 * v % P
    assert s < P and s & 1 == 0 and is_square and y != 0 and x * y % P & 1 == 0
    return x, y, 1, x * y % P


def prefixed(*parts):
    """Each behind its length (lv_cat); all are shorter than 128 bytes."""
    return b"".join(bytes([len(part)]) + part for part in parts)


def generator(password, channel, session):
    domain = b"CPaceRistretto255"
    padding = bytes(max(0, 128 - 1 - len(prefixed(domain, password))))
    text = prefixed(domain, password, padding, channel, session)
    return element(hashlib.sha512(text).digest())


def isk(session, point, initiators, responders):
    """The shares stand there with associated data, which is empty."""
    text = prefixed(b"CPaceRistretto255_ISK", session, point)
    return hashlib.sha512(text + prefixed(initiators, b"", responders, b"")).digest()


def code_exchange(code, inviter, joiner):
    """Each side is (16 random bytes, 64 random bytes that its scalar is made of)."""
    session = inviter[0] + joiner[0]
    base = generator(code, prefixed(b"kith-pair-1", b"inviter", b"joiner"), session)
    scalars = [int.from_bytes(side[1], "little") % ORDER for side in (inviter, joiner)]
    shares = [encode_element(times(scalar, base)) for scalar in scalars]
    point = encode_element(times(scalars[0], decode_element(shares[1])))
    assert point == encode_element(times(scalars[1], decode_element(shares[0])))
    key = isk(session, point, *shares)
    text = b"kith-pair-1\x01" + session + shares[0] + shares[1]
    proof, confirmation = (blake2b(who + text, key=key) for who in (
        b"joiner proof", b"inviter proof"))
    return (b"\x01" + joiner[0], inviter[0] + shares[0], shares[1] + proof, confirmation, key,
            blake2b(b"noise psk" + text, key=key), text + proof + confirmation)


if __name__ == "__main__":
    offer = data(1, b"\x01")  # a packed list of one version
    hellos = (hello(clock, bytes([0x0B]) * 16, 4114), hello(clock, bytes([0x0C]) * 16, 0))
    first, second, third, name, keys = handshake(
        b"Kith/1", psk, (transport_secret, seed(0x06)), (seed(0x07), seed(0x08)),
        (offer, *hellos))
    show("Handshake", ("offer", offer), ("listener's hello", hellos[0]),
         ("dialler's hello", hellos[1]), ("frame 1", frame(first)), ("frame 2", frame(second)),
         ("frame 3", frame(third)), ("handshake hash", name),
         ("dialler's sending key", keys[0]), ("listener's sending key", keys[1]))

    # Have 1, whole, all, provisional, no stores: the first message of a new device.
    message = data(2, number(1, 1) + number(2, 1) + number(3, 1) + number(4, 1))
    plaintext = struct.pack(">I", len(message)) + message
    plaintext += bytes(-len(plaintext) % 64)
    show("First message frame", ("message", message), ("plaintext", plaintext),
         ("frame", frame(encrypt(keys[0], 0, plaintext))))

    show("Code exchange", *zip(
        ("hello", "offer", "proof", "confirmation", "ISK", "psk", "prologue"),
        code_exchange(b"40713352", (b"\x0f" * 16, b"\x0d" * 64), (b"\x10" * 16, b"\x0e" * 64))))

    # ---------------------------------------------------------------------------------- text

    checksum = blake2b(b"kith recovery key v1\0" + recovery_seed)[:3]
    content = (b"\x01" + seed(0x09) + struct.pack(">H", 4115) + b"\x01"
               + bytes([len("192.0.2.1")]) + b"192.0.2.1")
    token = content + blake2b(b"kith invitation v1\0" + content)[:4]
    show("Text",
         ("fingerprint",
          groups(crockford(blake2b(b"kith device fingerprint\0" + device)[:10]))),
         ("recovery key", groups(crockford(recovery_seed + checksum))),
         ("invitation", "kith1-" + crockford(token).lower()),
         ("pairing psk", kdf(seed(0x09), 1, b"KithPair")))
