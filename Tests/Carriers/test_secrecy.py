"""What the storage sees."""

import objects
from rig import Rig

WINDOW = 16


class Secrecy(Rig):
    def test_objects(self):
        """the objects hold no text, share nothing and have common sizes"""
        laptop, desktop, tablet = self.account("the-red-laptop", "the-blue-desktop", "the-old-tablet")
        folder = self.shared_folder(laptop, desktop, tablet)
        laptop.write({f"secret.key.{index}": "the secret value " * index for index in range(60)})
        laptop.moment()
        for device in (desktop, tablet, laptop, desktop):
            # The same value again and again.
            device.moment(("set", "secret.key.1", "the secret value of all"))
        laptop.kith("devices", "revoke", "the-old-tablet", "--yes")
        laptop.moment()
        desktop.moment(("set", "secret.key.2", "the secret value of all"))
        laptop.write({"secret.large": "the secret value " * 40_000})
        laptop.moment()

        found = self.objects(folder)
        texts = ["secret", "value", "default", "kith", laptop.account, bytes.fromhex(laptop.account)]
        for device in (laptop, desktop, tablet):
            texts += [device.name, device.status["device"], bytes.fromhex(device.status["device"])]
        texts = [text if isinstance(text, bytes) else text.encode() for text in texts]
        # The path counts as well.
        everything = [str(path.relative_to(folder)).encode() for path in folder.rglob("*")]
        everything += found.values()
        for text in texts:
            for part in {text, text.upper(), text[:8] if len(text) > 16 else text}:
                if part == b"KITH" or part == b"kith":
                    # Four bytes are found by chance, and kith1 is the directory's name.
                    continue
                for data in everything:
                    self.assertNotIn(part, data)
        seen, windows = set(), 0
        for name, data in found.items():
            own = {data[at:at + WINDOW] for at in range(len(data) - WINDOW + 1)}
            self.assertEqual(seen & own, set(), name)
            seen |= own
            windows += len(own)
        sizes = sorted({len(data) for data in found.values()})
        self.assertEqual([size for size in sizes if objects.padded_size(size) != size], [])
        self.assertEqual(sizes[0], 4096)
        self.say(f"{len(found)} objects of {len(sizes)} sizes ({', '.join(map(str, sizes))} bytes): none "
                 f"of {len(texts)} texts in them, {windows} windows of 16 bytes all different")
