#!/usr/bin/env python3
"""Makes noise-own.json with an independent implementation of Noise.

    python3 -m venv /tmp/noise && /tmp/noise/bin/pip install noiseprotocol==0.3.1
    /tmp/noise/bin/python make-noise-vectors.py > noise-own.json

Keys, prologue, psks and payloads are hashes of their names, so the output never changes.
"""

import hashlib
import json
import sys
import warnings

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from noise.connection import Keypair, NoiseConnection

warnings.simplefilter("ignore")

INTERACTIVE = ["NN", "NK", "NX", "KN", "KK", "KX", "XN", "XK", "XX", "IN", "IK", "IX"]
ONE_WAY = ["N", "K", "X"]
WITH_PSK = ["XXpsk0", "XXpsk1", "XXpsk2", "XXpsk3", "XXpsk0+psk3", "XXpsk0+psk1+psk2+psk3",
            "NNpsk0", "NNpsk2", "KKpsk0", "IKpsk1", "IKpsk2", "NKpsk0+psk2", "Npsk0", "Kpsk0",
            "Xpsk1"]


def seed(name):
    return hashlib.sha256(b"kith noise vector " + name.encode()).digest()


def public(private):
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def uses_static(pattern, initiator):
    if pattern in ONE_WAY:
        return pattern != "N" if initiator else True
    return pattern[0] != "N" if initiator else pattern[1] != "N"


def knows_remote(pattern, initiator):
    if pattern in ONE_WAY:
        return True if initiator else pattern == "K"
    return pattern[1] == "K" if initiator else pattern[0] == "K"


def make(full):
    pattern, _, modifiers = full.partition("psk")
    count = len(modifiers.split("+")) if modifiers else 0
    name = f"Noise_{full}_25519_ChaChaPoly_BLAKE2b"
    psks = [seed(f"{full} psk {i}") for i in range(count)]
    prologue = b"Kith/1" if full == "XXpsk0" else seed(f"{full} prologue")[:11]
    static = {r: seed(f"{r} static") for r in ("init", "resp")}
    ephemeral = {r: seed(f"{full} {r} ephemeral") for r in ("init", "resp")}
    vector = {"protocol_name": name, "source": "noiseprotocol 0.3.1"}
    sides = {}
    for role, other in (("init", "resp"), ("resp", "init")):
        initiator = role == "init"
        side = NoiseConnection.from_name(name.encode())
        side.set_as_initiator() if initiator else side.set_as_responder()
        side.set_prologue(prologue)
        vector[f"{role}_prologue"] = prologue.hex()
        side.set_keypair_from_private_bytes(Keypair.EPHEMERAL, ephemeral[role])
        vector[f"{role}_ephemeral"] = ephemeral[role].hex()
        if uses_static(pattern, initiator):
            side.set_keypair_from_private_bytes(Keypair.STATIC, static[role])
            vector[f"{role}_static"] = static[role].hex()
        if knows_remote(pattern, initiator):
            remote = public(static[other])
            side.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, remote)
            vector[f"{role}_remote_static"] = remote.hex()
        if psks:
            side.set_psks(psks=list(psks))
            vector[f"{role}_psks"] = [psk.hex() for psk in psks]
        side.start_handshake()
        sides[role] = side

    messages = []
    sender, receiver = sides["init"], sides["resp"]
    while not (sender.handshake_finished and receiver.handshake_finished):
        payload = seed(f"{full} payload {len(messages)}")[: 5 * len(messages)]
        ciphertext = bytes(sender.write_message(payload))
        assert receiver.read_message(ciphertext) == payload
        messages.append({"payload": payload.hex(), "ciphertext": ciphertext.hex()})
        sender, receiver = receiver, sender
    vector["handshake_hash"] = sides["init"].get_handshake_hash().hex()
    assert sides["resp"].get_handshake_hash().hex() == vector["handshake_hash"]
    for _ in range(4):
        if pattern in ONE_WAY:
            sender, receiver = sides["init"], sides["resp"]
        payload = seed(f"{full} payload {len(messages)}") * 3
        ciphertext = sender.encrypt(payload)
        assert receiver.decrypt(ciphertext) == payload
        messages.append({"payload": payload.hex(), "ciphertext": ciphertext.hex()})
        sender, receiver = receiver, sender
    vector["messages"] = messages
    return vector


vectors = [make(full) for full in ONE_WAY + INTERACTIVE + WITH_PSK]
json.dump({"vectors": vectors}, sys.stdout, indent=1)
print()
