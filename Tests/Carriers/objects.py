"""The objects on a carrier, read and made with a member's keys, along Docs/Protocol/carriers.md."""

import ctypes
import os
import pathlib
import struct

import kithwire
from kithmember import wall_clock
from kithwire import blake2b, kdf, open_secret, sign, verifies

PARCEL, HANDOVER = 1, 2
_PROTO = pathlib.Path(__file__).resolve().parents[2] / "Sources/KithCore/Wire/kith.proto"


def _schema():
    if "Parcel" in kithwire.schema.messages:
        return kithwire.schema
    return kithwire.Schema("```proto\n" + _PROTO.read_text() + "\n```")


schema = _schema()
encode, decode = schema.encode, schema.decode


def carrier_key(epoch):
    return kdf(epoch.secret, 5, b"KithEpo1")


def mark(random, kind, epoch):
    """The half of a name that follows from the other."""
    return blake2b(random + bytes([kind]), 16, kdf(epoch.secret, 6, b"KithEpo1"))[:8]


def new_name(kind, epoch):
    random = os.urandom(8)
    return random + mark(random, kind, epoch)


def kind_of(name, epoch):
    """What an epoch's key says of a name; nil if it is not of this epoch."""
    for kind in (PARCEL, HANDOVER):
        if mark(name[:8], kind, epoch) == name[8:]:
            return kind
    return None


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


def seal(key, plaintext):
    size = len(plaintext) + 40
    return secretbox(key, plaintext + bytes(padded_size(size) - size))


def signed(body, name, epoch_id, account):
    return b"kith parcel v1\0" + account + epoch_id + name + body


def seal_parcel(member, body, name, epoch, signature=None):
    """A parcel's object; the signature is the member's, unless one is given."""
    signature = signature or sign(
        member.private, signed(body, name, epoch.id, member.roster.account))
    return seal(carrier_key(epoch), struct.pack(">I", len(body)) + signature + body)


def seal_handover(older, newest, boxes, parcel):
    body = encode("Handover", epoch=newest.id, boxes=boxes, parcel=parcel)
    return seal(carrier_key(older), struct.pack(">I", len(body)) + body)


def unpad(plaintext, header):
    size = struct.unpack(">I", plaintext[:4])[0]
    body, rest = plaintext[header:header + size], plaintext[header + size:]
    if len(body) != size or any(rest):
        raise ValueError("padding that is not zero")
    return body


def open_parcel(sealed, name, epoch, account):
    """The decoded parcel; nil if this epoch's key did not seal it. ValueError if it is not signed by
    its author."""
    plaintext = secretbox_open(carrier_key(epoch), sealed)
    if plaintext is None:
        return None
    body = unpad(plaintext, 68)
    parcel = decode("Parcel", body)
    if not verifies(parcel["device"], signed(body, name, epoch.id, account), plaintext[4:68]):
        raise ValueError("not signed by its author")
    return parcel


def open_handover(sealed, epoch):
    """nil if this epoch's key did not seal it."""
    plaintext = secretbox_open(carrier_key(epoch), sealed)
    return plaintext and decode("Handover", unpad(plaintext, 4))


def opened_boxes(handover, member):
    """The secrets in a handover that a member's key opens."""
    return [secret for box in handover["boxes"]
            if (secret := open_secret(box, member.box_public, member.box_private))]


def parcel_with(member, store, policy, change_sets, vector, above=(), digest=b"", records=None,
                **parts):
    """A parcel's body that brings change sets."""
    clock = member.tick()
    messages = [encode("Message", have={
        "whole": True, "clock": clock, "synchronised": True, "stores": [
            {"store": store, "policy": policy, "digest": digest, "vector": list(vector)}]})]
    if records:
        messages.append(encode("Message", records={"records": records}))
    messages.append(encode("Message", batch={"store": store, "change_sets": change_sets}))
    return encode("Parcel", **{
        "device": member.id, "clock": clock, "carried": [{"store": store, "above": list(above)}],
        "group": os.urandom(8), "parts": 1, "messages": messages,
        "roster_digest": member.roster.digest() if records else None, **parts})


def entry_of(device, incarnation, sequence):
    return {"device": device, "incarnation": incarnation, "sequence": sequence}
