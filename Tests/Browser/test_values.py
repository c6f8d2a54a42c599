"""Values on two pages: an edit that shows at once, conflicts, the quota, transactions, all types."""

import json
import statistics

from case import Case
from pages import KithPage

# Notes when a text of a row comes to the screen, in milliseconds since 1970.
WATCH = """
  const [key] = arguments;
  window.shown = {};
  new MutationObserver(() => {
    const text = document.querySelector(`#key-rows [data-key=${key}] .value`)?.textContent;
    if (!text || shown[text]) return;
    shown[text] = 1;
    // In the frame, and when the frame is done.
    requestAnimationFrame(() => setTimeout(() => { shown[text] = Date.now(); }));
  }).observe(document.querySelector("#key-rows"), { subtree: true, childList: true, characterData: true });
  document.querySelector("#editor-save").addEventListener("click", () => { window.clicked = Date.now(); });
"""


class ValueTests(Case):
    def open_one(self, **values):
        return KithPage(self.browser(), self.account(**values)).open()

    def test_within_100_ms(self):
        """an edit on one page shows on the other"""
        pages = self.open_both(speed="start")
        for page in pages:
            page.browser.run(WATCH, "speed")
        times = []
        for number in range(24):
            # In both directions.
            page, other = pages if number % 2 else pages[::-1]
            text = f"edit {number}"
            page.set("speed", text)
            shown = other.browser.wait("the edit on the other page", lambda: other.browser.run(
                "return shown[arguments[0]] > 1 && shown[arguments[0]]", text))
            times.append(shown - page.browser.run("return clicked"))
            page.wait_value("speed", text)
        print(f"from “Save” to the screen of the other page, {len(times)} edits: {min(times)}, "
              f"{statistics.median(times):.0f}, {max(times)} ms (least, median, most) ", end="")

    def test_conflict(self):
        """a conflict is seen live, and nothing is overwritten unseen"""
        laptop, desktop = self.open_both(theme="light")
        laptop.edit("theme")
        laptop.browser.type("#editor-value", "dark")
        desktop.set("theme", "blue")
        laptop.browser.wait_text("#editor-changed", "changed meanwhile")
        self.picture(laptop.browser, "conflict-while-editing")
        laptop.save()
        laptop.browser.wait_text("#conflict-title", "changed meanwhile")
        self.assertRegex(laptop.browser.text("#conflict-list"), r"(?s)blue.*dark")
        self.picture(laptop.browser, "conflict")
        self.assertEqual(desktop.peer.values, {"theme": "blue"})
        # Back: nothing was saved, and the editor still has the text.
        laptop.press("Back", "#conflict")
        laptop.browser.wait_text("#editor .problem", "Nothing was saved")
        laptop.save()
        laptop.browser.click("#conflict [value=mine]")
        laptop.press("Continue", "#conflict")
        laptop.wait_closed()
        desktop.wait_value("theme", "dark")

        laptop.edit("theme")
        laptop.browser.type("#editor-value", "green")
        desktop.set("theme", "red")
        laptop.browser.wait_text("#editor-changed", "changed meanwhile")
        laptop.save()
        laptop.browser.click("#conflict [value=shown]")
        laptop.press("Continue", "#conflict")
        laptop.wait_closed()
        self.assertEqual(laptop.peer.values, {"theme": "red"})

    def test_over_quota(self):
        """an edit over the quota is refused with its numbers"""
        page = self.open_one()
        page.peer.kith("set", "large", "-", text="x" * 1_000_000)
        page.browser.wait_text("#fill-bytes-text", "977 KiB of 1 MiB (95 %")
        page.browser.click("#add")
        page.browser.type("#editor-key", "more")
        page.browser.run("document.querySelector('#editor-value').value = 'y'.repeat(60000)")
        page.save()
        problem = page.browser.wait_text("#editor .problem", "1 MiB")
        self.picture(page.browser, "over-quota")
        for number in ("60", "977 KiB of 1 MiB", "1 of 1,024 keys"):
            self.assertIn(number, problem.replace(" bytes", ""))
        # The edit is not lost: a shorter one fits.
        page.browser.run("document.querySelector('#editor-value').value = 'y'.repeat(200)")
        page.save()
        page.wait_closed()
        page.wait_value("more", "yyy")
        # A key too long, and one key too many.
        page.browser.click("#add")
        page.browser.type("#editor-key", "k" * 65)
        page.save()
        self.assertIn("64", page.browser.wait_text("#editor .problem", "bytes"))
        page.press("Cancel", "#editor")
        self.assertEqual(set(page.peer.values), {"large", "more"})

    def test_not_shown(self):
        """what is not shown says why, and is written again"""
        laptop = self.account(theme="dark")
        desktop = self.peer("desktop")
        # The account's own value wins on joining.
        desktop.kith("set", "theme", "mine")
        laptop.admit(desktop)
        laptop.page.stop()
        # Both write without the other; together it is too much.
        for peer in (laptop, desktop):
            for number in (1, 2):
                peer.kith("set", f"{peer.name}.{number}", "-", text="x" * 300_000)
        laptop.run()
        page = KithPage(self.browser(), desktop.serve(laptop)).open()
        page.browser.wait_text("#state-note", "2 values or writes are not shown")
        page.browser.click("#tab-unshown")
        page.browser.wait_text("#refusals", "lost to the account's own values on joining")
        page.browser.wait_text("#panel-unshown", "not fit")
        self.picture(page.browser, "not-shown")
        page.press("Write refusal 1 again")
        page.browser.wait("the own value", lambda: laptop.values["theme"] == "mine")
        laptop.kith("rm", "laptop.1")
        # A value that was published shows by itself now; one that was not is a refusal.
        page.browser.wait("room", lambda: "laptop.1" not in desktop.values)
        if page.browser.run("return document.querySelector('#refusals li')"):
            page.browser.click("#refusals li [aria-label^=Write]")
        others = {"theme", "laptop.2", "desktop.1", "desktop.2"}
        page.browser.wait("all other values", lambda: set(laptop.values) == others)
        page.browser.wait_text("#unshown-empty", "No value is hidden")

    def test_transaction(self):
        """several edits are one transaction"""
        laptop, desktop = self.open_both(width="1", height="2")
        for key, value in (("width", "10"), ("height", "20")):
            laptop.edit(key)
            laptop.browser.type("#editor-value", value)
            laptop.press("Add to transaction", "#editor")
            laptop.wait_closed()
        self.picture(laptop.browser, "transaction")
        self.assertEqual(desktop.peer.values, {"width": 1, "height": 2})
        # Another device changes one of them: none is saved unseen.
        desktop.set("height", "3")
        laptop.wait_value("height", "3")
        laptop.browser.click("#tray-save")
        laptop.browser.click("#conflict [value=mine]")
        laptop.press("Continue", "#conflict")
        for page in (laptop, desktop):
            page.wait_value("width", "10")
            page.wait_value("height", "20")
        desktop.browser.click("#tab-changes")
        desktop.browser.wait_text("#changes", "from another device")
        self.picture(desktop.browser, "changes")

    def test_all_types(self):
        """values of all types are edited exactly"""
        page = self.open_one()
        typed = {
            "text": ("string", "Grüße, 世界 👋", "Grüße, 世界 👋"),
            "count": ("integer", "9223372036854775807", 9223372036854775807),
            "ratio": ("double", "1", 1.0), "endless": ("double", "-inf", {"$double": "-inf"}),
            "day": ("date", "2026-12-01T09:00:00Z", {"$date": "2026-12-01T09:00:00Z"}),
            "bytes": ("data", "AAEC/w==", {"$data": "AAEC/w=="}),
            "list": ("array", '[1, 1.0, "x", {"a": []}]', [1, 1.0, "x", {"a": []}]),
            "tree": ("dictionary", '{"9007199254740993": 9007199254740993}',
                     {"9007199254740993": 9007199254740993}),
        }
        for key, (kind, text, _) in typed.items():
            page.add(key, text, kind)
        wanted = {key: value for key, (_, _, value) in typed.items()}
        self.assertEqual(json.dumps(page.peer.values, sort_keys=True), json.dumps(wanted, sort_keys=True))
        # Saving a value as it is shown changes nothing.
        for key in typed:
            page.edit(key)
            page.save()
            page.wait_closed()
        self.assertEqual(json.dumps(page.peer.values, sort_keys=True), json.dumps(wanted, sort_keys=True))
        self.picture(page.browser, "types")
        page.browser.click("#add")
        page.browser.type("#editor-key", "wrong")
        page.choose("#editor-type", "integer")
        page.browser.type("#editor-value", "1.5")
        page.save()
        page.browser.wait_text("#editor .problem", "whole number")
        page.press("Cancel", "#editor")
        # A removed value comes back from the history.
        page.press("Remove tree")
        page.browser.click("#remove-do")
        page.browser.wait("the removal", lambda: page.value("tree") is None)
        page.browser.click("#tab-history")
        page.browser.wait_text("#history", "tree")
        page.browser.click("#history [aria-label^='Bring back tree']")
        self.picture(page.browser, "history")
        page.browser.click("#tab-keys")
        page.wait_value("tree", "9007199254740993")

    def test_import(self):
        """an import shows what it did and nothing else, and the first click counts"""
        page = self.open_one(theme="light")
        file = self.folder / "settings.json"
        file.write_text(json.dumps({"width": 80, "height": 25, "none": None}))
        page.browser.click("#import-open")
        page.browser.act("#import-file", "value", text=str(file))
        page.browser.wait_text("#import-report", "json: 2 values can be imported, 1 refused.")
        # Right after typing: no pause, and no click elsewhere.
        page.browser.act("#import-prefix", "value", text="zz.")
        page.browser.click("#import-do")
        page.browser.wait_text("#import-report", "json: 2 values imported, 1 refused.")
        self.picture(page.browser, "import")
        self.assertEqual(page.peer.values, {"theme": "light", "zz.width": 80, "zz.height": 25})
        other = self.folder / "other.json"
        other.write_text(json.dumps({"depth": 1}))
        page.browser.act("#import-file", "value", text=str(other))
        page.browser.wait_text("#import-report", "1 value can be imported.")
        self.assertEqual(page.browser.text("#import-report"), "json: 1 value can be imported.")
        page.press("Close", "#import")

    def test_existing_key(self):
        """a key that is added but exists already is named so, and keeps its value unless chosen"""
        page = self.open_one(theme="light")
        page.browser.click("#add")
        page.browser.type("#editor-key", "theme")
        page.browser.type("#editor-value", "dark")
        page.save()
        page.browser.wait_text("#conflict-title", "This key exists already")
        self.assertTrue(page.browser.run("return document.querySelector('#conflict [value=shown]').checked"))
        self.picture(page.browser, "existing-key")
        page.press("Continue", "#conflict")
        page.wait_closed()
        self.assertEqual(page.peer.values, {"theme": "light"})

    def test_forms(self):
        """dates and data are typed as on the command line, and data is shown as it is typed"""
        page = self.open_one()
        for number, text in enumerate(("2026-12-01", "2026-12-01 10:00", "2026-12-01T10:00:00,5+0100")):
            page.add(f"date.{number}", text, "date")
        page.add("hexadecimal", "0x000102", "data")
        page.add("base64", "AAEC", "data")
        self.assertEqual(page.peer.values, {
            "date.0": {"$date": "2026-12-01T00:00:00Z"}, "date.1": {"$date": "2026-12-01T10:00:00Z"},
            "date.2": {"$date": "2026-12-01T09:00:00.5Z"},
            "hexadecimal": {"$data": "AAEC"}, "base64": {"$data": "AAEC"}})
        self.assertEqual(page.value("base64"), "AAEC (3 bytes)")
        page.browser.click("#add")
        page.browser.type("#editor-key", "wrong")
        page.choose("#editor-type", "data")
        page.browser.type("#editor-value", "zz")
        page.save()
        page.browser.wait_text("#editor .problem", "Base64")
        page.choose("#editor-type", "double")
        page.browser.type("#editor-value", "12345678901234567890.5")
        page.browser.wait_text("#editor-understood", "is kept as 12345678901234567000.")
        page.press("Cancel", "#editor")

    def test_equivalent_keys(self):
        """keys that Unicode calls equivalent look different"""
        page = self.open_one()
        page.peer.kith("set", "caf\u00e9", "1", "cafe\u0301", "2")
        page.browser.wait_text("#search-count", "2 keys")
        self.assertEqual(page.browser.run(
            "return [...document.querySelectorAll('#key-rows .key')].map((key) => key.textContent)"),
            ["cafe\\u{301}", "caf\u00e9"])

    def test_many_keys(self):
        """a full store of 1,024 keys is searched without a delay"""
        page = self.open_one()
        file = self.folder / "many.json"
        file.write_text(json.dumps({f"key.{number:04}": "v" * 200 for number in range(1_024)}))
        page.peer.kith("import", str(file))
        page.browser.open(page.peer.root)
        page.browser.wait_text("#search-count", "1,024 keys")
        spent = page.browser.run("""
          const search = document.querySelector("#search");
          const start = performance.now();
          search.value = "key.0512";
          search.dispatchEvent(new Event("input", { bubbles: true }));
          return new Promise((done) => requestAnimationFrame(() =>
            setTimeout(() => done(performance.now() - start))))""")
        page.browser.wait_text("#search-count", "1 of 1,024 keys")
        print(f"{spent:.0f} ms from a search to its frame ", end="")
