#!/usr/bin/env python3
"""Computes the worked examples of Protocol.md and its sub-pages, independently of the Swift code.

    Protocol-examples.py            prints them as the pages have them
    Protocol-examples.py --check    compares them with the pages; status 1 if one differs

Needs Python's standard library and libsodium; what it shares with the device that is written along the
page stands in Tests/Member. Without libsodium its status is 77.
"""

import hashlib
import pathlib
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Tests" / "Member"))
try:
    from kithwire import (
        PAGES, Frames, Noise, blake2b, box, box_key, box_pair, crockford, encode, frame, groups, kdf,
        seal_secret, sign, signing_pair, transport_public)
except ImportError as error:
    print(f"Protocol-examples.py: {error}", file=sys.stderr)
    sys.exit(77)


def seed(byte):
    return bytes([byte]) * 32


CLOCK = 1 << 56 | 1_700_000_000_000 << 12
ISSUED = 1_700_000_000_000
STORE = "com.example.App"


class Device:
    """The keys of three seeds."""

    def __init__(self, signing, box, transport):
        self.id, self.signing = signing_pair(seed(signing))
        self.box_public, self.box_private = box_pair(seed(box))
        self.transport = seed(transport)

    def certificate(self, name):
        return {
            "device": self.id, "box_key": self.box_public,
            "transport_key": transport_public(self.transport), "name": name, "issued": ISSUED}


laptop, phone = Device(0x01, 0x02, 0x03), Device(0x11, 0x12, 0x13)


# ----------------------------------------------------------------------------------- values

def integer(n):
    return encode("Value", integer=n)


def string(text):
    return encode("Value", string=text)


def values():
    members = {"b": encode("Value", array={"values": [integer(1), string("x")]}),
               "a": encode("Value", bool=True)}
    # Of a Value alone the empty key is left out, as it is here of every message.
    dictionary = encode("Value", dictionary={"members": [
        {"key": key, "value": value} for key, value in sorted(members.items())]})
    return [
        ("bool(false)", encode("Value", bool=False)), ("integer(-3)", integer(-3)),
        ("double(1.5)", encode("Value", double=1.5)), ('string("")', string("")),
        ("date, 1 s after 2001", encode("Value", date=1.0)),
        ('{"b": [1, "x"], "a": true}', dictionary)]


# --------------------------------------------------------------------- keys, account, records

recovery_seed = seed(0x04)
recovery_public, recovery_private = signing_pair(kdf(recovery_seed, 1, b"KithReco"))
recovery_box, _ = box_pair(kdf(recovery_seed, 2, b"KithReco"))
genesis_body = encode("RecordBody", genesis={
    "recovery_signing_key": recovery_public, "recovery_box_key": recovery_box,
    "first_device": laptop.certificate("laptop")})
account = blake2b(genesis_body)

epoch_secret = seed(0x05)
epoch_box, _ = box_pair(kdf(epoch_secret, 1, b"KithEpo1"))
epoch_id = blake2b(epoch_box)
store_tag = blake2b(STORE.encode(), 16, kdf(epoch_secret, 3, b"KithEpo1"))


def record_signature(private, body):
    root = bytes(32) if body == genesis_body else account
    return sign(private, b"kith record v1\0" + root + body)


def genesis():
    return [
        ("device", laptop.id), ("box key", laptop.box_public),
        ("transport key", transport_public(laptop.transport)),
        ("recovery signing key", recovery_public), ("recovery box key", recovery_box),
        ("genesis body", genesis_body), ("account", account),
        ("first device's signature", record_signature(laptop.signing, genesis_body)),
        ("epoch box key", epoch_box), ("epoch", epoch_id),
        ("psk", kdf(epoch_secret, 2, b"KithEpo1")), ("store tag", store_tag)]


def roster_digest():
    ephemeral = lambda byte: box_pair(seed(byte))[1]
    epoch = encode("RecordBody", epoch={
        "generation": 1, "box_public_key": epoch_box,
        "recipients": [{"device": laptop.id, "box": seal_secret(
            epoch_secret, laptop.box_public, ephemeral(0x14))}],
        "recovery_secret": seal_secret(epoch_secret, recovery_box, ephemeral(0x15))})
    certificate = encode("RecordBody", certificate=phone.certificate("phone"))
    rename = encode("RecordBody", rename={"device": laptop.id, "name": "desk", "issued": ISSUED + 1})
    records = [
        (genesis_body, [recovery_private, laptop.signing]), (epoch, [laptop.signing]),
        (certificate, [laptop.signing, phone.signing]), (rename, [laptop.signing])]
    text = b"kith roster v1\0" + account
    for body, signers in sorted(records, key=lambda record: blake2b(record[0])):
        # The second half of an Ed25519 private key is its public key.
        signatures = sorted((signer[32:], record_signature(signer, body)) for signer in signers)
        text += blake2b(body) + bytes([len(signatures)])
        text += b"".join(signer + signature for signer, signature in signatures)
    return [
        ("epoch's body", epoch), ("certificate's body", certificate),
        ("rename's body", rename), ("roster digest", blake2b(text))]


# -------------------------------------------------------------------------------- change sets

def stamp(after, device=laptop):
    return {"clock": CLOCK + after, "device": device.id}


def claim(after, device=laptop, group=0):
    return {**stamp(after, device), "group": group}


INCARNATION = 0x1122334455667788
dark = encode("Entry", key="theme", stamp=stamp(0), value=string("dark"), claim=claim(1))
prefix = bytes(range(20))
shared = box_key(epoch_box, laptop.box_private)
dark_box = box(dark, prefix + struct.pack(">I", 0), shared)
header = encode(
    "ChangeSetHeader", format=1, store_tag=store_tag, epoch=epoch_id, device=laptop.id,
    incarnation=INCARNATION, sequence=1, clock=CLOCK + 1, nonce_prefix=prefix,
    entry_digests=[blake2b(dark_box)])
header_signature = sign(laptop.signing, b"kith change set v1\0" + account + header)


def state_digest(kept):
    """Of (key, newest, runner-up or None), each an encoded entry."""
    text = b""
    for key, *entries in sorted(kept):
        for entry in filter(None, entries):
            text += struct.pack(">I", len(key)) + key.encode() + blake2b(entry)
    return blake2b(text)


def change_set():
    return [
        ("entry", dark), ("entry digest", blake2b(dark)), ("box", dark_box), ("header", header),
        ("signature", header_signature), ("state digest", state_digest([("theme", dark, None)]))]


def admitted(limit, offers):
    """Section 8, of offers by key: [(claim, value)], least wanted first; one step a group here."""
    shown, done = {}, set()
    steps = sorted(
        (each["clock"], each["device"], key, number)
        for key, offer in offers.items() for number, (each, _) in enumerate(offer))
    while True:
        for step in steps:
            _, _, key, number = step
            size = len(offers[key][number][1])
            others = sum(len(offers[k][n][1]) for k, n in shown.items() if k != key)
            if step in done or others + size > limit:
                continue
            done.add(step)
            shown[key] = max(shown.get(key, 0), number)
            break
        else:
            return {key: offers[key][number][1] for key, number in shown.items()}


def admission():
    text = lambda letter, count: string(letter * count)
    first = encode("Entry", key="a", stamp=stamp(1), value=text("a", 8), claim=claim(1))
    other = encode("Entry", key="b", stamp=stamp(2), value=text("b", 12), claim=claim(2))
    fallback = {"value": text("a", 8), "claim": claim(1)}
    runner_up = encode(
        "Entry", key="a", stamp=stamp(3, phone), value=text("c", 14), claim=claim(3, phone),
        replaced=stamp(1), fallback=fallback)
    newest = encode(
        "Entry", key="a", stamp=stamp(4), value=text("d", 18), claim=claim(4),
        replaced=stamp(1), fallback=fallback)
    shown = admitted(30, {
        "a": [(claim(1), text("a", 8)), (claim(3, phone), text("c", 14)),
              (claim(4), text("d", 18))],
        "b": [(claim(2), text("b", 12))]})
    return [
        ("first a, digest", blake2b(first)), ("b, digest", blake2b(other)),
        ("runner-up", runner_up), ("newest", newest),
        ("shown of a", shown["a"]), ("shown of b", shown["b"]),
        ("state digest", state_digest([("a", newest, runner_up), ("b", other, None)]))]


def replaced_draft():
    return [("entry", encode(
        "Entry", key="theme", stamp=stamp(1_500 << 12), value=string("dim"), claim=claim(1),
        replaced=stamp(0)))]


# ---------------------------------------------------------------------- words and answers

def vector_digest(vector):
    return blake2b(b"".join(
        device + struct.pack(">QQ", incarnation, sequence)
        for device, incarnation, sequence in sorted(vector)))


def entry_of_vector(device, incarnation, sequence):
    return {"device": device, "incarnation": incarnation, "sequence": sequence}


def word():
    vector = [(laptop.id, INCARNATION, 1), (phone.id, 0x42, 3)]
    digest = vector_digest(vector)
    content = encode("WordContent", stores=[{
        "store": STORE, "digest": digest[:16],
        "latest": [entry_of_vector(*entry) for entry in sorted(vector)]}])
    process, number = int.from_bytes(8 * b"\x0b", "big"), 1_800_000_000_000
    version = struct.pack(">QQ", process, number)
    signature = sign(laptop.signing, b"kith word v1\0" + account + laptop.id + version + content)
    message = encode("Message", have={
        "clock": CLOCK, "synchronised": True,
        "words": [{"content": content, "said": [{
            "device": int.from_bytes(laptop.id[:8], "big"), "process": process, "number": number,
            "signature": signature}]}]})
    return [
        ("vector digest", digest[:16]), ("content", content), ("signature", signature),
        ("digest of the words kept", blake2b(laptop.id + version)[:16]), ("message", message)]


def answer():
    cover = lambda device, incarnation, below, through: {
        "device": device, "incarnation": incarnation, "from": below, "through": through}
    return [("message", encode("Message", batch={
        "store": STORE, "answers": 1,
        "change_sets": [{"header": header, "signature": header_signature, "entries": [
            {"index": 0, "box": dark_box}]}],
        "covers": sorted(
            [cover(laptop.id, INCARNATION, 0, 1), cover(phone.id, 0x42, 2, 3)],
            key=lambda each: each["device"])}))]


# --------------------------------------------------------------------------------- carriers

def carrier_digest(domain):
    return blake2b(domain + b"\0" + recovery_box)


def object_name(random):
    return random + blake2b(random, 16, carrier_digest(b"kith names v1"))[:8]


def padded_size(size):
    """4 KiB, or Padmé."""
    if size <= 4_096:
        return 4_096
    exponent = size.bit_length() - 1
    free = (1 << max(0, exponent - exponent.bit_length())) - 1
    return size + free & ~free


def object_body():
    """The change set above, by its author, to readers that cover nothing."""
    have = encode("Message", have={
        "whole": True, "clock": CLOCK, "synchronised": True, "stores": [{
            "store": STORE, "vector": [entry_of_vector(laptop.id, INCARNATION, 1)],
            "digest": state_digest([("theme", dark, None)]),
            "policy": {
                "total_bytes": 1_048_576, "keys": 1_024, "key_bytes": 64,
                "value_bytes": 1_048_576}}]})
    batch = encode("Message", batch={
        "store": STORE, "change_sets": [{
            "header": header, "signature": header_signature,
            "entries": [{"index": 0, "box": dark_box}]}]})
    return encode(
        "ObjectBody", device=laptop.id, clock=CLOCK + 3, parts=[{"store": STORE}],
        messages=[have, batch])


def carrier():
    name, body = object_name(seed(0x16)[:8]), object_body()
    no_boxes = bytes(2)
    signature = sign(
        laptop.signing,
        b"kith object v1\0" + account + epoch_id + name + no_boxes + body)
    # The length word, the signature, nonce and tag of two boxes, the epoch and the number of boxes.
    size = padded_size(4 + 64 + len(body) + 2 * (24 + 16) + 32 + 2)
    return [
        ("place", "kith1/" + carrier_digest(b"kith place v1").hex()[:32]),
        ("name key", carrier_digest(b"kith names v1")),
        ("outer key", carrier_digest(b"kith outer v1")),
        ("carrier key", kdf(epoch_secret, 5, b"KithEpo1")), ("name", name),
        ("body", body), ("signature", signature), ("size of the object", str(size)),
        ("size of 4,097 bytes", str(padded_size(4_097))),
        ("size of 100,000 bytes", str(padded_size(100_000))),
        ("size of 5,000,000 bytes", str(padded_size(5_000_000)))]


# -------------------------------------------------------------------------------- handshake

def hello(process, port):
    return encode(
        "Hello", version=1, clock=CLOCK, synchronised=True, process_id=bytes([process]) * 16,
        roster_digest=seed(0x0A), port=port)


def handshake():
    psk = kdf(epoch_secret, 2, b"KithEpo1")
    dialler = Noise(laptop.transport, psk, ephemeral=seed(0x06))
    listener = Noise(seed(0x07), psk, ephemeral=seed(0x08))
    offer, hellos = encode("Offer", versions=[1]), (hello(0x0B, 4114), hello(0x0C, 0))
    first = dialler.write_first(offer)
    assert listener.read_first(first) == offer
    second = listener.write_second(hellos[0])
    assert dialler.read_second(second) == hellos[0]
    third = dialler.write_third(hellos[1])
    assert listener.read_third(third) == hellos[1] and listener.hash == dialler.hash
    keys = dialler.split()
    # Have 1, whole, all, no stores, and the time: the first message of a new device.
    message = encode("Message", have={
        "number": 1, "whole": True, "all": True, "clock": CLOCK, "synchronised": True})
    plaintext = struct.pack(">I", len(message)) + message
    return [
        ("offer", offer), ("listener's hello", hellos[0]), ("dialler's hello", hellos[1]),
        ("frame 1", frame(first)), ("frame 2", frame(second)), ("frame 3", frame(third)),
        ("handshake hash", dialler.hash), ("dialler's sending key", keys[0]),
        ("listener's sending key", keys[1]), ("message", message),
        ("plaintext", plaintext + bytes(-len(plaintext) % 64)),
        ("frame", Frames(keys[0]).seal(message))]


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


def exchange():
    return list(zip(
        ("hello", "offer", "proof", "confirmation", "ISK", "psk", "prologue"),
        code_exchange(b"40713352", (b"\x0f" * 16, b"\x0d" * 64), (b"\x10" * 16, b"\x0e" * 64))))


# -------------------------------------------------------------------------------------- texts

def texts():
    checksum = blake2b(b"kith recovery key v1\0" + recovery_seed)[:3]
    content = (b"\x01" + seed(0x09) + struct.pack(">H", 4115) + b"\x01"
               + bytes([len("192.0.2.1")]) + b"192.0.2.1")
    token = content + blake2b(b"kith invitation v1\0" + content)[:4]
    return [
        ("fingerprint",
         groups(crockford(blake2b(b"kith device fingerprint\0" + laptop.id)[:10]))),
        ("recovery key", groups(crockford(recovery_seed + checksum))),
        ("invitation", "kith1-" + crockford(token).lower()),
        ("pairing psk", kdf(seed(0x09), 1, b"KithPair"))]


# -------------------------------------------------------------------------------- the pages

EXAMPLES = {
    "values": values, "genesis and epoch": genesis, "a roster digest": roster_digest,
    "a change set": change_set, "admission with a runner-up and a fallback": admission,
    "a draft that a write replaces": replaced_draft, "a word": word,
    "an answer with covers": answer, "objects on a carrier": carrier,
    "a handshake and a message": handshake, "a code exchange": exchange, "texts": texts}


def computed():
    """By title and label, as texts."""
    return {
        title: {label: value.hex() if isinstance(value, bytes) else value for label, value in make()}
        for title, make in EXAMPLES.items()}


def printed():
    """The same out of the pages: below the heading of an example, a label is four spaces in, and its
    value follows it or is below it."""
    examples = {}
    for part in (part for page in PAGES for part in page.split("\n#### Example: ")[1:]):
        title, *lines = part.split("\n#", 1)[0].split("\n")
        found, label = examples.setdefault(title, {}), None
        for line in lines:
            begin = re.fullmatch(r"    (\S.*?)(?:  +(\S+))?", line)
            if begin:
                label = begin[1]
                found[label] = begin[2] or ""
            elif line.startswith("     ") and label is not None:
                found[label] += line.strip()
    return examples


def check():
    wrong = []
    right, pages = computed(), printed()
    for title in right.keys() | pages.keys():
        for label in right.get(title, {}).keys() | pages.get(title, {}).keys():
            one, other = right.get(title, {}).get(label), pages.get(title, {}).get(label)
            if one != other:
                wrong.append(f"{title}, {label}: the pages have {other}, computed is {one}")
    print("\n".join(wrong) or f"{sum(map(len, right.values()))} examples are as computed")
    return 1 if wrong else 0


def show():
    for title, examples in computed().items():
        print(f"\n#### Example: {title}\n")
        for label, value in examples.items():
            print(f"    {label}")
            for at in range(0, len(value), 88):
                print(f"      {value[at:at + 88]}")


if __name__ == "__main__":
    sys.exit(check() if sys.argv[1:] == ["--check"] else show())
