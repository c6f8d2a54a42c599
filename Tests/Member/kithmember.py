"""A device of a Kith account, written along Docs/Protocol.md alone; see kithwire.py.

    member = Member.join(token, "python")            # or Member.of_directory("path")
    session = member.dial("127.0.0.1", 4114)
    member.exchange(session, until=lambda: session.is_settled("com.example.App"))
    member.publish([session], "com.example.App", "key", string_value("text"))

It keeps everything in memory, relays nothing, makes no words and expects a small, healthy account.
What a hostile member would send goes through `Session.send_message`, with any bytes.
"""

import os
import select
import socket
import sqlite3
import struct
import time

from kithwire import (
    Frames, Noise, blake2b, box, box_key, box_open, box_pair, decode, encode, frame, kdf,
    open_secret, open_secretbox, sign, signing_pair, transport_public, uncrockford, varint, verifies)

STANDARD_POLICY = {
    "total_bytes": 1 << 20, "keys": 1024, "key_bytes": 64, "value_bytes": 1 << 20}


def string_value(text):
    """The canonical bytes of a Value that is a string."""
    return b"\x22" + varint(len(text.encode())) + text.encode()


def wall_clock(latest=0):
    """The wall clock as a reading of the generation of the latest one, at least 1 (section 4)."""
    return max(1, latest >> 56) << 56 | int(time.time() * 1000) << 12


def claim_order(claim):
    return claim["clock"], claim["device"], claim["group"]


def stamp_order(stamp):
    return (stamp["clock"], stamp["device"]) if stamp else (-1, b"")


class Epoch:
    """The keys of an epoch's secret (section 11)."""

    def __init__(self, secret):
        self.secret = secret
        self.box_public, self.box_private = box_pair(kdf(secret, 1, b"KithEpo1"))
        self.psk = kdf(secret, 2, b"KithEpo1")
        self.tag_key = kdf(secret, 3, b"KithEpo1")
        self.beacon_key = kdf(secret, 4, b"KithEpo1")
        self.id = blake2b(self.box_public)

    def store_tag(self, store):
        return blake2b(store.encode(), 16, self.tag_key)


class Roster:
    """The records of an account, and what follows from them (section 11), without its bounds."""

    def __init__(self, account):
        self.account = account
        self.records = {}  # by id: body, kind, content, {signer: signature}

    def learn(self, record):
        """Takes in a decoded Record; whether it was news."""
        body = record["body"]
        identity = blake2b(body)
        kinds = [item for item in decode("RecordBody", body).items() if item[1] is not None]
        kind, content = kinds[0] if kinds else ("unknown", None)
        if kind == "genesis" and identity != self.account:
            return False
        signed = self.signed_bytes(body, kind == "genesis")
        valid = {
            each["signer"]: each["signature"] for each in record["signatures"]
            if verifies(each["signer"], signed, each["signature"])}
        if not valid:
            return False
        held = self.records.setdefault(identity, (body, kind, content, {}))[3]
        fresh = {
            signer: each for signer, each in valid.items()
            if signer not in held or each < held[signer]}
        held.update(fresh)
        if fresh:
            self._evaluate()
        return bool(fresh)

    def signed_bytes(self, body, is_genesis=False):
        return b"kith record v1\0" + (bytes(32) if is_genesis else self.account) + body

    def of_kind(self, kind):
        """(id, content, signers) of each record of a kind, by id."""
        return [
            (identity, content, set(signatures))
            for identity, (_, other, content, signatures) in sorted(self.records.items())
            if other == kind]

    def _evaluate(self):
        self.known, self.members, self.trusted, self.certificates = set(), set(), set(), {}
        self.revoked, self.recovery = set(), None
        if self.account not in self.records:
            return
        genesis = self.records[self.account][2]
        first, self.recovery = genesis["first_device"], genesis["recovery_signing_key"]
        certificates = [(None, first, {self.recovery})] + self.of_kind("certificate")
        self.known = {first["device"]}
        while True:
            more = {
                content["device"] for _, content, signers in certificates
                if (signers - {content["device"]}) & (self.known | {self.recovery})}
            if more <= self.known:
                break
            self.known |= more
        # The genesis' keys count before all, then those of the smallest id.
        for _, content, signers in certificates:
            if (signers - {content["device"]}) & (self.known | {self.recovery}):
                self.certificates.setdefault(content["device"], content)
        keeps = {}
        for _, content, signers in self.of_kind("revocation"):
            if content["device"] in self.known and signers & self.known:
                keeps.setdefault(content["device"], []).append(set(content["keeps"]))
        self.revoked = set(keeps)
        kept = {
            device: set.intersection(*lists) if len(lists) < 4 else set()
            for device, lists in keeps.items()}
        paths = {first["device"]}
        while True:
            more = {
                content["device"] for _, content, signers in certificates
                # Records come in any order: the signer of this one may not be known yet.
                if content["device"] in self.certificates
                and all(content[key] == self.certificates[content["device"]][key]
                        for key in ("box_key", "transport_key"))
                and any(signer == self.recovery or signer in paths
                        and (signer not in kept or content["device"] in kept[signer])
                        for signer in signers - {content["device"]})
                } if self.certificates else set()
            if more <= paths:
                break
            paths |= more
        self.members = paths - self.revoked
        self.trusted = self.members | {self.recovery}

    def attached(self):
        """(id, [(signer, signature)] that count) of the records that are sent and digested, by id."""
        anchors = self.known | {self.recovery}
        result = []
        for identity, (_, kind, content, signatures) in sorted(self.records.items()):
            counting = set(signatures) & anchors
            if kind == "certificate":
                is_attached = bool(counting - {content["device"]})
                counting |= set(signatures) & {content["device"]}
            elif kind == "revocation":
                is_attached = bool(counting & self.known) and content["device"] in self.known
            else:
                is_attached = bool(counting)
            if is_attached:
                result.append((identity, [(each, signatures[each]) for each in sorted(counting)]))
        return result

    def digest(self):
        text = b"kith roster v1\0" + self.account
        for identity, signatures in self.attached():
            text += identity + bytes([len(signatures)]) + b"".join(map(b"".join, signatures))
        return blake2b(text)

    def encoded(self):
        """The records, as they are sent: genesis, certificates, revocations, epochs, lockboxes, others."""
        kinds = ["genesis", "certificate", "revocation", "epoch", "lockbox", "rename", "unknown"]
        ordered = sorted(self.attached(), key=lambda each: kinds.index(self.records[each[0]][1]))
        return [
            encode("Record", body=self.records[identity][0], signatures=[
                {"signer": signer, "signature": signature} for signer, signature in signatures])
            for identity, signatures in ordered]

    def epoch_records(self):
        """By epoch's id: (content, recipients) of the records that are trusted."""
        result = {}
        for _, content, signers in self.of_kind("epoch"):
            if signers & self.trusted and not signers & self.revoked:
                result[blake2b(content["box_public_key"])] = (
                    content, {each["device"] for each in content["recipients"]})
        for _, content, signers in self.of_kind("lockbox"):
            if signers & self.trusted and content["epoch"] in result:
                result[content["epoch"]][1].add(content["secret"]["device"])
        return result


class Store:
    """What a member keeps of one store: everything that came, and what follows from it."""

    def __init__(self, name, policy):
        self.name, self.policy = name, policy
        self.vector = {}  # by chain: the sequence that is covered
        self.change_sets = {}  # by (device, incarnation, sequence, digest of the header)
        self.entries = {}  # by key: {digest: entry}
        self.quarantined = 0

    def slot(self, key):
        """(newest, runner-up) of a key (section 7)."""
        order = sorted(
            self.entries.get(key, {}).items(), key=lambda item: (
                stamp_order(item[1]["stamp"]), bool(item[1]["removed"]),
                stamp_order(item[1]["replaced"]), item[0]))
        newest = order[-1] if order else None
        before = order[-2] if len(order) > 1 else None
        if before and (newest[1]["removed"] or stamp_order(newest[1]["replaced"])
                       >= stamp_order(before[1]["stamp"])):
            before = None
        return newest, before

    def value(self, key):
        """The newest value, which is shown if all fit the policy."""
        newest, _ = self.slot(key)
        return newest[1]["value"] if newest else None

    def digest(self):
        text = b""
        for key in sorted(self.entries, key=str.encode):
            newest, before = self.slot(key)
            for digest, _ in [newest, before] if newest[1]["value"] is not None and before else (
                    [newest] if newest[1]["value"] is not None else []):
                text += struct.pack(">I", len(key.encode())) + key.encode() + digest
        return blake2b(text)

    def have(self, awaited=False):
        return {
            "store": self.name, "policy": self.policy, "digest": self.digest(),
            "awaited": awaited, "vector": self.vector_entries()}

    def vector_entries(self):
        return [
            {"device": device, "incarnation": incarnation, "sequence": sequence}
            for (device, incarnation), sequence in sorted(self.vector.items())]


class Member:
    """A device: its keys, its account's records, its stores."""

    def __init__(self, signing_seed=None, box_seed=None, transport=None, account=None):
        self.id, self.private = signing_pair(signing_seed or os.urandom(32))
        self.box_public, self.box_private = box_pair(box_seed or os.urandom(32))
        self.transport = transport or os.urandom(32)
        self.process = os.urandom(16)
        self.incarnation = struct.unpack("<Q", os.urandom(8))[0]
        self.clock = 0
        self.stores, self.epochs = {}, {}
        self.roster = Roster(account)

    # ------------------------------------------------------------------------------ membership

    @classmethod
    def of_directory(cls, path):
        """The keys and records of a directory that `kith join` made, which no node runs on. The only
        part that knows how Kith keeps them on disk."""
        with open(os.path.join(path, "secrets"), "rb") as file:
            raw = file.read()
        if raw[:10] != b"KithSecr\x01\x00":
            raise ValueError("not a file of secrets without a passphrase")
        database = sqlite3.connect(f"file:{path}/kith.sqlite?mode=ro", uri=True)
        # A row: the commit's number and clock, then its key: of a record 4 and the body's digest.
        rows = [open_secretbox(row[0], raw[106:138])
                for row in database.execute("select sealed from vital")]
        records = [decode("Record", row[49:]) for row in rows if row[16] == 4]
        database.close()
        genesis = [each["body"] for each in records
                   if decode("RecordBody", each["body"])["genesis"]]
        member = cls(raw[10:42], raw[42:74], raw[74:106], blake2b(genesis[0]))
        member.learn(records)
        return member

    def certificate(self, name):
        """Its certificate's body."""
        return encode("RecordBody", certificate={
            "device": self.id, "box_key": self.box_public,
            "transport_key": transport_public(self.transport), "name": name,
            "issued": int(time.time() * 1000)})

    def signed_record(self, body):
        """A record that this member alone signed."""
        return {"body": body, "signatures": [
            {"signer": self.id, "signature": sign(self.private, self.roster.signed_bytes(body))}]}

    def learn(self, records):
        """Takes in decoded records and opens what they hold for this device; whether any was news."""
        is_news = any([self.roster.learn(record) for record in records])
        if is_news:
            for _, epoch, _ in self.roster.of_kind("epoch"):
                for secret in epoch["recipients"]:
                    self._open(secret, blake2b(epoch["box_public_key"]))
            for _, lockbox, _ in self.roster.of_kind("lockbox"):
                self._open(lockbox["secret"], lockbox["epoch"])
        return is_news

    def _open(self, secret, epoch):
        if secret["device"] == self.id and epoch not in self.epochs:
            opened = open_secret(secret["box"], self.box_public, self.box_private)
            if opened and Epoch(opened).id == epoch:
                self.epochs[epoch] = Epoch(opened)

    @property
    def current(self):
        """The epoch under which it publishes."""
        records = self.roster.epoch_records()

        def is_sound(epoch):
            if epoch not in records:
                return True
            parents, generation = records[epoch][0]["parents"], records[epoch][0]["generation"]
            known = [records[each][0]["generation"] for each in parents if each in records]
            if not all(map(is_sound, parents)):
                return False
            if len(known) == len(parents):
                return generation == 1 + max(known, default=0)
            return max(known, default=0) < generation <= 1 << 31

        usable = [
            (-content["generation"], epoch) for epoch, (content, recipients) in records.items()
            if epoch in self.epochs and not recipients & self.roster.revoked and is_sound(epoch)]
        return self.epochs[min(usable)[1]]

    # --------------------------------------------------------------------------------- sessions

    def dial(self, host, port, psk=None, **hello):
        """A session with a listener, after the handshake; parts of the hello may be given."""
        connection = socket.create_connection((host, port), timeout=10)
        return Session(self, connection, psk or self.current.psk, hello)

    def hello(self, **parts):
        return encode("Hello", **{
            "version": 1, "clock": wall_clock(self.clock), "synchronised": True,
            "process_id": self.process,
            "roster_digest": self.roster.digest() if self.roster.records else bytes(32),
            "software": "kithmember", "device": self.id, **parts})

    def exchange(self, session, until=lambda: False, seconds=10):
        """Does what a member does on a session until a condition holds; TimeoutError if it does not."""
        end = time.monotonic() + seconds
        session.begin()
        while not until():
            message = session.receive(max(0, end - time.monotonic()))
            if message is None:
                raise TimeoutError("the condition did not come to hold")
            self.handle(session, message)

    def handle(self, session, message):
        message = decode("Message", message)
        if message["records"] is not None:
            if self.learn(message["records"]["records"]):
                session.send_have(self)
        elif message["have"] is not None:
            self._receive_have(session, message["have"])
        elif message["batch"] is not None:
            self._receive_batch(session, message["batch"])

    def _receive_have(self, session, have):
        if have["clock"] >> 56 > self.clock >> 56:
            self.clock = have["clock"] >> 56 << 56
        if have["all"]:
            session.listed = {each["store"] for each in have["stores"]}
        adopted = [each for each in have["stores"] if each["store"] not in self.stores]
        for each in adopted:
            self.open(each["store"], each["policy"])
        if adopted:
            session.send_have(self, [each["store"] for each in adopted])
        for each in have["stores"]:
            store = self.stores[each["store"]]
            if each["policy"] != store.policy:
                continue
            noted = {} if have["whole"] else session.vectors.get(store.name, {})
            told = {(e["device"], e["incarnation"]): e["sequence"] for e in each["vector"]}
            session.vectors[store.name] = {**noted, **told}
            if have["number"] and have["whole"]:
                is_everything = session.vectors[store.name] == store.vector and (
                    each["digest"] not in (b"", store.digest()))
                session.send_answer(store, have["number"], is_everything)

    def _receive_batch(self, session, part):
        session.parts.append(part)
        if part["more"] or part["store"] not in self.stores:
            return
        parts, session.parts = session.parts, []
        store, before = self.stores[part["store"]], dict(self.stores[part["store"]].vector)
        tainted = set()
        received = {}
        for each in [each for part in parts for each in part["change_sets"]]:
            header = decode("ChangeSetHeader", each["header"])
            chain = (header["device"], header["incarnation"])
            received[chain] = max(received.get(chain, 0), header["sequence"])
            if not self.take(store, each):
                tainted.add(chain)
        for cover in part["covers"]:
            chain = (cover["device"], cover["incarnation"])
            covered = store.vector.get(chain, 0)
            # Never above the highest header that is kept or came.
            highest = max([key[2] for key in store.change_sets if key[:2] == chain]
                          + [received.get(chain, 0)])
            through = min(cover["through"], highest)
            if chain not in tainted and cover["from"] <= covered < through:
                store.vector[chain] = through
        if part["answers"]:
            session.answered.add(store.name)
        if store.vector != before:
            session.tell(self, store, before)

    # -------------------------------------------------------------------------------- contents

    def open(self, store, policy=None):
        return self.stores.setdefault(store, Store(store, policy or STANDARD_POLICY))

    def take(self, store, change_set):
        """Checks a decoded ChangeSet and merges its entries; False if its chain is tainted."""
        header = decode("ChangeSetHeader", change_set["header"])
        signed = b"kith change set v1\0" + self.roster.account + change_set["header"]
        author, epoch = header["device"], self.epochs.get(header["epoch"])
        if not verifies(author, signed, change_set["signature"]):
            return False
        boxes = {each["index"]: each["box"] for each in change_set["entries"]}
        digests = header["entry_digests"]
        if any(index >= len(digests) or blake2b(sealed) != digests[index]
               for index, sealed in boxes.items()):
            return False
        if author in self.roster.revoked:
            return True
        if author not in self.roster.members or epoch is None or (
                header["format"] != 1 or header["store_tag"] != epoch.store_tag(store.name)):
            return False
        self.clock = max(self.clock, header["clock"])
        shared = box_key(self.roster.certificates[author]["box_key"], epoch.box_private)
        for index, sealed in boxes.items():
            nonce = header["nonce_prefix"] + struct.pack(">I", index)
            self._merge(store, header, box_open(sealed, nonce, shared))
        name = (author, header["incarnation"], header["sequence"], blake2b(change_set["header"]))
        store.change_sets[name] = change_set
        return True

    def _merge(self, store, header, plaintext):
        try:
            entry = decode("Entry", plaintext)
            is_canonical = encode("Entry", **entry) == plaintext
        except (TypeError, ValueError, IndexError):
            is_canonical = False
        if not is_canonical or not entry["stamp"] or not entry["claim"] or (
                max(entry["stamp"]["clock"], entry["claim"]["clock"]) > header["clock"]):
            store.quarantined += 1
            return
        store.entries.setdefault(entry["key"], {})[blake2b(plaintext)] = entry

    def tick(self):
        self.clock = max(wall_clock(self.clock), self.clock + 1)
        return self.clock

    def entry(self, store, key, value, clock, stamp=None):
        """The plaintext of the entry that sets a key to an encoded value, or removes it (None), if
        it is published at a clock (section 9); its stamp is given, or the next reading."""
        newest = (self.stores[store].slot(key)[0] or (None, None))[1]
        shown = newest if newest and newest["value"] is not None else None
        claim = {"clock": clock, "device": self.id, "group": 0}
        fallback = None
        if shown and value is not None and len(value) <= len(shown["value"]):
            claim = shown["claim"]
        if shown and value is not None:
            is_earlier = claim_order(shown["claim"]) < claim_order(claim)
            fallback = {"value": shown["value"], "claim": shown["claim"]} if is_earlier else (
                shown["fallback"])
        return encode(
            "Entry", key=key, stamp={"clock": stamp or self.tick(), "device": self.id},
            value=value, removed=True if value is None else None, claim=claim,
            replaced=newest["stamp"] if newest else None, fallback=fallback)

    def change_set(self, store, plaintexts, sequence, clock, incarnation=None, epoch=None,
                   nonce_prefix=None, **header):
        """A sealed and signed ChangeSet, as a dictionary; parts of the header may be given."""
        epoch, prefix = epoch or self.current, nonce_prefix or os.urandom(20)
        shared = box_key(epoch.box_public, self.box_private)
        boxes = [box(plaintext, prefix + struct.pack(">I", index), shared)
                 for index, plaintext in enumerate(plaintexts)]
        encoded = encode("ChangeSetHeader", **{
            "format": 1, "store_tag": epoch.store_tag(store), "epoch": epoch.id,
            "device": self.id, "sequence": sequence, "clock": clock, "nonce_prefix": prefix,
            "incarnation": self.incarnation if incarnation is None else incarnation,
            "entry_digests": [blake2b(each) for each in boxes], **header})
        signed = b"kith change set v1\0" + self.roster.account + encoded
        return {
            "header": encoded, "signature": sign(self.private, signed),
            "entries": [{"index": index, "box": each} for index, each in enumerate(boxes)]}

    def publish(self, sessions, store, key, value):
        """Sets a key to an encoded value, or removes it (None), and sends that on sessions."""
        held, chain = self.stores[store], (self.id, self.incarnation)
        covered = held.vector.get(chain, 0)
        # The stamp is a tick, and the publishing clock, which the claim may name, a later one.
        stamp, publishing = self.tick(), self.tick()
        plaintext = self.entry(store, key, value, publishing, stamp)
        change_set = self.change_set(store, [plaintext], covered + 1, publishing)
        self.take(held, change_set)
        held.vector[chain] = covered + 1
        for session in sessions:
            session.send(batch={
                "store": store, "change_sets": [change_set], "covers": [
                    {"device": chain[0], "incarnation": chain[1], "from": covered,
                     "through": covered + 1}]})
            session.tell(self, held, {**held.vector, chain: covered})

    # --------------------------------------------------------------------------------- pairing

    @classmethod
    def join(cls, token, name, confirm=lambda invitation: True):
        """Joins the account of an invitation's token (section 16); what `kith invite` printed."""
        raw = uncrockford("".join(token.split()).removeprefix("kith1-").replace("-", ""))
        content = raw[:-4]
        if content[0] != 1 or blake2b(b"kith invitation v1\0" + content)[:4] != raw[-4:]:
            raise ValueError("a mistyped token")
        secret, port = content[1:33], struct.unpack(">H", content[33:35])[0]
        hosts, at = [], 36
        for _ in range(content[35]):
            hosts.append(content[at + 1:at + 1 + content[at]].decode())
            at += 1 + content[at]
        for host in hosts:
            try:
                connection = socket.create_connection((host.strip("[]"), port), timeout=10)
                break
            except OSError:
                continue
        else:
            raise ConnectionError("the inviter is at none of its addresses")
        member = cls()
        session = PairingSession(member, connection, kdf(secret, 1, b"KithPair"), name)
        session.join(confirm)
        return member


class Connection:
    """Length words, frames and messages on a socket (section 13)."""

    def __init__(self, connection):
        self.socket = connection
        self.buffer = bytearray()
        self.plaintext = bytearray()

    def _fill(self, count, deadline):
        """Whether so many bytes have come before the deadline; EOFError if none will."""
        while len(self.buffer) < count:
            left = deadline - time.monotonic()
            if not select.select([self.socket], [], [], max(0, left))[0]:
                return False
            more = self.socket.recv(1 << 18)
            if not more:
                raise EOFError
            self.buffer += more
        return True

    def receive_frame(self, deadline):
        """A frame without its length word, or None if it has not come whole."""
        if not self._fill(2, deadline):
            return None
        length = struct.unpack(">H", self.buffer[:2])[0]
        if not self._fill(2 + length, deadline):
            return None
        whole = bytes(self.buffer[2:2 + length])
        del self.buffer[:2 + length]
        return whole

    def handshake_frame(self):
        message = self.receive_frame(time.monotonic() + 10)
        if message is None:
            raise TimeoutError("no answer in the handshake")
        return message

    def split(self, noise):
        """The dialler's ends of the session."""
        sending, receiving = noise.split()
        self.outgoing, self.incoming = Frames(sending), Frames(receiving)

    def send_message(self, message):
        """Sends any bytes as one message."""
        self.socket.sendall(self.outgoing.seal(message))

    def receive(self, seconds=10):
        """The next message's bytes, or None if none came whole; EOFError at the session's end."""
        deadline = time.monotonic() + seconds
        while True:
            if len(self.plaintext) >= 4:
                length = struct.unpack(">I", self.plaintext[:4])[0]
                padded = (4 + length + 63) // 64 * 64
                if len(self.plaintext) >= padded:
                    message = bytes(self.plaintext[4:4 + length])
                    if any(self.plaintext[4 + length:padded]):
                        raise ValueError("padding that is not zero")
                    del self.plaintext[:padded]
                    return message
            sealed = self.receive_frame(deadline)
            if sealed is None:
                return None
            self.plaintext += self.incoming.open(sealed)

    def is_ended(self, seconds=10):
        """Whether the other side ends the session within so many seconds; its messages are dropped."""
        deadline = time.monotonic() + seconds
        try:
            while self.receive(max(0, deadline - time.monotonic())) is not None:
                pass
        except (EOFError, ConnectionError):
            return True
        return False

    def close(self):
        self.socket.close()


class Session(Connection):
    """A session that a member dialled."""

    def __init__(self, member, connection, psk, hello):
        super().__init__(connection)
        self._prepare(member)
        noise = Noise(member.transport, psk)
        self.socket.sendall(frame(noise.write_first(encode("Offer", versions=[1]))))
        self.peer = decode("Hello", noise.read_second(self.handshake_frame()))
        self.socket.sendall(frame(noise.write_third(member.hello(**hello))))
        self.split(noise)

    def _prepare(self, member):
        self.vectors, self.parts = {}, []
        self.answered, self.listed = set(), None
        self.number, self.has_begun = 0, False
        self.member = member

    def send(self, **message):
        """Sends a Message: records, have, batch or addresses, as bytes or a dictionary."""
        self.send_message(encode("Message", **message))

    def begin(self):
        """What is sent first: the records if the digests differ, then a Have of all stores."""
        if self.has_begun:
            return
        self.has_begun = True
        if self.peer["roster_digest"] != self.member.roster.digest():
            for record in self.member.roster.encoded():
                self.send(records={"records": [record]})
        self.send_have(self.member)

    def send_have(self, member, stores=None):
        """A Have that asks, whole, for the stores named or all."""
        self.number += 1
        self.send(have={
            "number": self.number, "whole": True, "all": stores is None,
            "clock": wall_clock(member.clock), "synchronised": True,
            "stores": [member.stores[each].have(each not in self.answered)
                       for each in sorted(member.stores if stores is None else stores,
                                          key=str.encode)]})

    def tell(self, member, store, before):
        """A Have that tells of the chains that rose."""
        risen = [each for each in store.vector_entries()
                 if before.get((each["device"], each["incarnation"])) != each["sequence"]]
        self.send(have={"stores": [
            {"store": store.name, "policy": store.policy, "vector": risen}]})

    def send_answer(self, store, number, is_everything=False):
        above = {} if is_everything else self.vectors[store.name]
        self.send(batch={
            "store": store.name, "answers": number, "everything": is_everything,
            "change_sets": [
                change_set for name, change_set in sorted(store.change_sets.items())
                if name[2] > above.get(name[:2], 0)],
            "covers": [
                {"device": chain[0], "incarnation": chain[1], "from": above.get(chain, 0),
                 "through": covered}
                for chain, covered in sorted(store.vector.items()) if above.get(chain, 0) < covered]})

    def is_settled(self, store):
        """Whether both sides cover the same of a store since it was answered."""
        held = self.member.stores.get(store)
        return bool(held) and store in self.answered and self.vectors.get(store) == held.vector


class PairingSession(Session):
    """The joiner's side of an invitation, and of the session that it becomes."""

    def __init__(self, member, connection, psk, name):
        Connection.__init__(self, connection)
        self._prepare(member)
        noise = Noise(member.transport, psk, prologue=b"kith-pair-1")
        self.socket.sendall(frame(noise.write_first(b"")))
        self.invitation = decode("Invitation", noise.read_second(self.handshake_frame()))
        member.roster.account = self.invitation["account"]
        request = encode(
            "JoinRequest", certificate=member.signed_record(member.certificate(name)))
        self.socket.sendall(frame(noise.write_third(request)))
        self.split(noise)

    def join(self, confirm, seconds=60):
        """The pairing's messages stand as they are, in no Message; then everything is pulled (section
        15), and only then does the inviter count this device."""
        if not confirm(self.invitation):
            self.close()
            raise PermissionError("declined here")
        self.send_message(encode("JoinConfirm"))
        answer = self.receive(seconds)
        reply = decode("JoinReply", answer) if answer is not None else {"accepted": False}
        if not reply["accepted"]:
            raise PermissionError("declined by the inviter")
        self.member.learn(reply["records"])
        members = self.member.roster.members
        if not {self.member.id, self.invitation["device"]} <= members:
            raise ValueError("the reply does not make both members")
        self.member.current  # an epoch that opens, or an error
        self.member.clock = max(self.member.clock, reply["clock"])
        self.member.exchange(self, until=self.has_everything, seconds=seconds)
        self.send(done={})
        if not self.is_ended(seconds):
            raise TimeoutError("the inviter did not end the session")
        self.close()

    def begin(self):
        """A Have that lists nothing yet."""
        if not self.has_begun:
            self.has_begun = True
            self.send_have(self.member)

    def has_everything(self):
        """Whether all stores that the inviter listed were answered for."""
        return self.listed is not None and self.listed <= self.answered
