"""A device that was revoked keeps its keys and can still write to the storage."""

import os

import objects
from kithmember import Epoch, Member, string_value
from kithwire import decode, encode, seal_secret
from rig import Rig

STORE = "default"


class Revoked(Rig):
    def forge(self, member, epoch, key, folder, vector=(), **parts):
        """Puts an object of a member that sets a key, under an epoch; returns its name."""
        policy = member.open(STORE).policy
        stamp, clock = member.tick(), member.tick()
        change_set = member.change_set(
            STORE, [member.entry(STORE, key, string_value("forged"), clock, stamp)], 1, clock,
            epoch=epoch)
        own = objects.entry_of(member.id, member.incarnation, 1)
        body = objects.body_with(member, STORE, policy, [change_set], [*vector, own], **parts)
        name = objects.new_name(member)
        self.put(folder, name, objects.seal_object(member, body, name, epoch))
        return name

    def put(self, folder, name, content):
        (self.place(folder) / name.hex()).write_bytes(content)

    def test_keys_of_the_past(self):
        """a revoked device opens nothing new and brings nothing in"""
        laptop, desktop, thief = self.account("laptop", "desktop", "thief")
        folder = self.shared_folder(laptop, desktop, thief)
        laptop.moment(("set", "before", "1"))
        thief.moment(("set", "thief", "1"))
        desktop.moment()
        stolen = thief.copy("stolen")
        before = self.objects(folder)
        laptop.kith("devices", "revoke", "thief", "--yes")
        laptop.moment(("set", "after", "the new secret"))
        desktop.moment(("set", "desktop", "2"))
        self.assertEqual(desktop.get("after"), "the new secret")

        attacker = Member.of_directory(str(stolen.directory))
        fresh = {name: data for name, data in self.objects(folder).items() if name not in before}
        with_boxes = 0
        member = Member.of_directory(str(desktop.directory))
        for name, data in fresh.items():
            self.assertTrue(objects.is_name(bytes.fromhex(name), attacker))
            epoch, boxes, inner = objects.open_outer(data, attacker)
            self.assertNotIn(epoch, [each.id for each in attacker.epochs.values()])
            for each in attacker.epochs.values():
                self.assertIsNone(objects.secretbox_open(objects.carrier_key(each), inner))
            self.assertEqual(objects.opened_boxes(boxes, attacker), [])
            if boxes:
                with_boxes += 1
                # For two members and the recovery key.
                self.assertEqual(len(boxes), 3)
                self.assertEqual(len(objects.opened_boxes(boxes, member)), 1)
        self.assertGreater(with_boxes, 0)
        self.say(f"of {len(fresh)} objects put after the revocation the revoked device's "
                 f"{len(attacker.epochs)} epoch opens none; {with_boxes} have boxes, of which it "
                 f"opens none")
        self.attack(laptop, desktop, folder, attacker)
        self.go_on(stolen, laptop, desktop)

    def attack(self, laptop, desktop, folder, attacker):
        laptop.moment()
        exports = [laptop.export, desktop.export]
        self.assertEqual(*exports)
        [old] = attacker.epochs.values()
        records = [decode("Record", each) for each in attacker.roster.encoded()]
        # As it always did; with its records; later than all others.
        self.forge(attacker, old, "evil.plain", folder)
        self.forge(attacker, old, "evil.records", folder, records=records)
        self.forge(attacker, old, "evil.latest", folder, level=24)
        # In the name of a member, signed by itself.
        victim = Member.of_directory(str(desktop.directory))
        body = objects.body_with(
            attacker, STORE, attacker.open(STORE).policy, [],
            [objects.entry_of(victim.id, 1, 9)], device=victim.id)
        name = objects.new_name(attacker)
        self.put(folder, name, objects.seal_object(attacker, body, name, old))
        # An epoch of its own, with boxes for all members and records that it signed.
        mine = Epoch(os.urandom(32))
        boxes = {device: seal_secret(mine.secret, content["box_key"], os.urandom(32))
                 for device, content in attacker.roster.certificates.items()}
        record = attacker.signed_record(encode("RecordBody", epoch={
            "generation": 9, "parents": [old.id], "box_public_key": mine.box_public,
            "recipients": [{"device": device, "box": box} for device, box in sorted(boxes.items())]}))
        inner = objects.body_with(
            attacker, STORE, attacker.open(STORE).policy, [], [], records=[*records, record],
            level=24)
        name = objects.new_name(attacker)
        self.put(folder, name, objects.seal_object(
            attacker, inner, name, mine, [boxes[each] for each in sorted(boxes)]))
        self.forge(attacker, mine, "evil.epoch", folder)
        # 100 objects under epochs that nobody knows: few are tried in a turn.
        for _ in range(100):
            self.put(folder, objects.new_name(attacker), objects.seal_outer(
                attacker, os.urandom(32) + b"\0\1" + os.urandom(80 + 4096)))
        for device in (laptop, desktop, laptop, desktop):
            device.moment()
        self.assertEqual([laptop.export, desktop.export], exports)
        for device in (laptop, desktop):
            counters = device.status["counters"]
            self.assertEqual(counters["generations"], 0, counters)

        # The same object by a member, under the newest epoch, is taken in: the forgery is well made.
        twin = desktop.copy("twin")
        twin = Member.of_directory(str(twin.directory))
        self.forge(twin, twin.current, "control", folder)
        laptop.moment(("set", "later", "3"))
        self.assertEqual(laptop.get("control"), "forged")
        desktop.moment()
        laptop.moment()
        self.assertEqual(desktop.get("later"), "3")
        self.say("its objects, an epoch of its own and 100 objects under unknown ones bring nothing "
                 "in; a member's object, made by the same code, does; both devices still exchange")

    def go_on(self, stolen, laptop, desktop):
        """The revoked device itself, which has not heard of it, goes on as ever."""
        before = laptop.export
        stolen.moment(("set", "evil.own", "1"))
        self.assertIsNone(stolen.get("after"))
        for device in (laptop, desktop):
            device.moment()
        self.assertEqual([laptop.export, desktop.export], [before, before])
        remarks = " ".join(stolen.kith("carrier", "list").splitlines()[1].split()[-11:])
        self.say(f"its own node shows nothing new, and nothing of it arrives; it says: “…{remarks}”")

    def test_away(self):
        """a device that was away for three epochs follows by the boxes alone"""
        laptop, away, *gone = self.account("laptop", "away", "one", "two", "three")
        folder = self.shared_folder(laptop, away, *gone)
        laptop.moment(("set", "a", "1"))
        away.moment()
        for number, device in enumerate(gone):
            device.moment()
            laptop.kith("devices", "revoke", device.name, "--yes")
            laptop.moment(("set", "epoch", str(number + 2)))
        epochs = [len(Member.of_directory(str(device.directory)).epochs) for device in (laptop, away)]
        self.assertEqual(epochs, [4, 1])
        away.moment(("set", "back", "again"))
        self.assertEqual(away.get("epoch"), "4")
        laptop.moment()
        self.assertEqual(laptop.export, away.export)
        epochs = [Member.of_directory(str(device.directory)) for device in (laptop, away)]
        self.assertEqual(epochs[0].current.id, epochs[1].current.id)
        self.say(f"three revocations made three epochs; the device came from the first to the fourth "
                 f"in one turn, and wrote under it; {len(self.objects(folder))} objects lie there")
