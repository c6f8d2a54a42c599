"""The objects on a carrier, read and made with a member's keys, along Docs/Protocol/carriers.md."""

import ctypes
import os
import pathlib
import struct

import kithwire
from kithmember import wall_clock
from kithwire import blake2b, kdf, open_secret, sign, verifies

_PROTO = pathlib.Path(__file__).resolve().parents[2] / "Sources/KithCore/Wire/kith.proto"


def _schema():
    if "ObjectBody" in kithwire.schema.messages:
        return kithwire.schema
    return kithwire.Schema("```proto\n" + _PROTO.read_text() + "\n```")


schema = _schema()
encode, decode = schema.encode, schema.decode


def carrier_key(epoch):
    return kdf(epoch.secret, 5, b"KithEpo1")


def account_key(member, domain):
    """A key that all members, former ones too, derive from the genesis record."""
    genesis = member.roster.records[member.roster.account][2]
    return blake2b(domain + b"\0" + genesis["recovery_box_key"])


def mark(random, member):
    """The half of a name that follows from the other."""
    return blake2b(random, 16, account_key(member, b"kith names v1"))[:8]


def new_name(member):
    random = os.urandom(8)
    return random + mark(random, member)


def is_name(name, member):
    return mark(name[:8], member) == name[8:]


def secretbox_open(key, sealed):
    """nil if it does not open."""
    if len(sealed) < 40:
        return None
    try:
        return kithwire._call(
            "crypto_secretbox_open_easy", len(sealed) - 40, sealed[24:],
            ctypes.c_ulonglong(len(sealed) - 24), sealed[:24], key)
    except ValueError:
        return None


def secretbox(key, message):
    nonce = os.urandom(24)
    return nonce + kithwire._call(
        "crypto_secretbox_easy", len(message) + 16, message, ctypes.c_ulonglong(len(message)),
        nonce, key)


def padded_size(size):
    """4 KiB, then Padmé."""
    if size <= 4096:
        return 4096
    exponent = size.bit_length() - 1
    low = max(0, exponent - exponent.bit_length())
    return size + (1 << low) - 1 >> low << low


def signed(body, name, epoch_id, account, boxes=()):
    return (b"kith object v1\0" + account + epoch_id + name + struct.pack(">H", len(boxes))
            + b"".join(boxes) + body)


def seal_object(member, body, name, epoch, boxes=(), signature=None):
    """An object; the signature is the member's, unless one is given."""
    signature = signature or sign(
        member.private, signed(body, name, epoch.id, member.roster.account, boxes))
    head = epoch.id + struct.pack(">H", len(boxes)) + b"".join(boxes)
    size = len(head) + 80 + 68 + len(body)
    inner = struct.pack(">I", len(body)) + signature + body + bytes(padded_size(size) - size)
    return seal_outer(member, head + secretbox(carrier_key(epoch), inner))


def seal_outer(member, plaintext):
    return secretbox(account_key(member, b"kith outer v1"), plaintext)


def open_outer(sealed, member):
    """The epoch's id, the boxes, the inner layer; nil if the account's key did not seal it."""
    plaintext = secretbox_open(account_key(member, b"kith outer v1"), sealed)
    if plaintext is None:
        return None
    count = struct.unpack(">H", plaintext[32:34])[0]
    boxes = [plaintext[34 + 80 * each:114 + 80 * each] for each in range(count)]
    return plaintext[:32], boxes, plaintext[34 + 80 * count:]


def open_object(sealed, name, epoch, member):
    """The decoded body; nil if this epoch's key did not seal it. ValueError if it is not signed by
    its author."""
    _, boxes, inner = open_outer(sealed, member)
    plaintext = secretbox_open(carrier_key(epoch), inner)
    if plaintext is None:
        return None
    size = struct.unpack(">I", plaintext[:4])[0]
    encoded, rest = plaintext[68:68 + size], plaintext[68 + size:]
    if len(encoded) != size or any(rest):
        raise ValueError("padding that is not zero")
    body = decode("ObjectBody", encoded)
    if not verifies(body["device"], signed(encoded, name, epoch.id, member.roster.account, boxes),
                    plaintext[4:68]):
        raise ValueError("not signed by its author")
    return body


def opened_boxes(boxes, member):
    """The secrets in boxes that a member's key opens."""
    return [secret for box in boxes
            if (secret := open_secret(box, member.box_public, member.box_private))]


def body_with(member, store, policy, change_sets, vector, above=(), digest=b"", records=None,
              **parts):
    """A body that brings change sets."""
    clock = member.tick()
    messages = [encode("Message", have={
        "whole": True, "clock": clock, "synchronised": True, "stores": [
            {"store": store, "policy": policy, "digest": digest, "vector": list(vector)}]})]
    if records:
        messages.append(encode("Message", records={"records": records}))
    messages.append(encode("Message", batch={"store": store, "change_sets": change_sets}))
    return encode("ObjectBody", **{
        "device": member.id, "clock": clock, "parts": [{"store": store, "above": list(above)}],
        "messages": messages,
        "roster_digest": member.roster.digest() if records else None, **parts})


def entry_of(device, incarnation, sequence):
    return {"device": device, "incarnation": incarnation, "sequence": sequence}
