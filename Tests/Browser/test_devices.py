"""Devices over their pages: pairing, revocation, devices that are away, and programs that end."""

from case import Case
from pages import KithPage

# Draws the page for changed statuses at once, so that no event of the node comes in between. Returns
# what a person reads of each: after `whole`, a store that no program has opened is here in part.
IN_PART = """
  const [name] = arguments;
  return (async () => {
    const [{ app }, { renderDevices }, { renderMap }, { renderStores }, { showPairing }, { verdict }] =
      await Promise.all(["app", "devices", "map", "stores", "pairing", "verdict"].map((module) =>
        import(`/${module}.js`)));
    const real = app.status;
    const status = structuredClone(real);
    const text = (css) => document.querySelector(css).textContent;
    const shown = () => {
      app.status = status;
      for (const draw of [renderDevices, renderMap, renderStores]) draw();
      const { kind, title, detail } = verdict(app, Date.now());
      return {
        kind, title, detail: detail.map((part) => part.name ?? part).join(""),
        device: text(`[data-device="${other.id}"]`), map: document.querySelector("#map").ariaLabel,
        notes: text("#store-notes"), list: text("#store-list"),
        images: document.querySelectorAll("main img").length,
      };
    };
    const other = status.devices.find((device) => !device.isThisDevice);
    const seen = { whole: shown() };

    other.name = name;
    const [store] = status.stores;
    Object.assign(store, { isOpenedHere: false, authorsOverLimit: [other.id] });
    status.stores.push({ ...structuredClone(store), identifier: name });
    status.storesInPart = [store.identifier, name];
    seen.part = shown();
    const unheard = {
      ...structuredClone(other), id: "f".repeat(64), name: "phone", isConnected: false, behind: {},
    };
    status.devices.push(unheard);
    seen.one = { ...shown(), phone: text(`[data-device="${unheard.id}"]`) };
    status.devices.pop();
    [other.isConnected, status.peers] = [false, []];
    status.carriers = [{ location: "/nas", heldSinceMilliseconds: 1 }];
    seen.carrier = shown();

    app.status = real;
    for (const draw of [renderDevices, renderMap, renderStores]) draw();
    for (const partial of [undefined, "1 store came only in part"]) {
      showPairing({ role: "joiner", state: "done", partial });
      seen[`joined ${partial ? "part" : "whole"}`] = text("#pairing-body");
    }
    showPairing(null);
    return seen;
  })();"""


class DeviceTests(Case):
    def open_empty(self, index, name):
        return KithPage(self.browser(index), self.peer(name).serve()).open()

    def invite(self, page):
        """Invites over a page; returns the code and the address."""
        page.press("Invite a device", "header")
        code = page.browser.wait_text("#pairing-code", "-")
        address = page.browser.run("return document.querySelector('#pairing-body li code').textContent")
        return code, address

    def join(self, page, code, address):
        browser = page.browser
        browser.type("#join-code", code)
        browser.type("#join-name", page.peer.name)
        browser.run("document.querySelector('#join-form details').open = true")
        browser.type("#join-address", address)
        page.press("Join", "#join-form")

    def test_signed_out(self):
        """who is signed out signs in again on the page; a page that ended shows no empty store"""
        peer = self.account(theme="dark")
        page = KithPage(self.browser(), peer).open()
        page.wait_value("theme", "dark")
        peer.kith("account", "sign-out")
        page.wait_state("Nobody is signed in.")
        page.browser.wait_text("#sign-in-title", "Sign in again")
        self.picture(page.browser, "signed-out")
        page.press("Sign in", "#sign-in")
        page.wait_state("only device")
        page.wait_value("theme", "dark")
        self.assertIsNone(page.browser.text("#sign-in"))
        # The address works once.
        other = self.browser(1)
        other.open(peer.address)
        other.wait_text("#state", "This page has ended.")
        self.picture(other, "ended")
        for hidden in ("#store-section", "#devices-card", "#welcome", "#keys-empty", "#import-open"):
            self.assertIsNone(other.text(hidden), hidden)

    def test_pairing(self):
        """two devices pair over two pages"""
        laptop, desktop = self.open_empty(0, "laptop"), self.open_empty(1, "desktop")
        laptop.wait_state("Nobody is signed in.")
        self.picture(laptop.browser, "1-welcome")
        laptop.browser.type("#create-name", "laptop")
        laptop.press("Create the account", "#create-form")
        key = laptop.browser.wait_text("#recovery-key", "-")
        laptop.peer.secrets.append(key)
        # It lasts until a person has it, and there is no account before.
        laptop.browser.open(laptop.peer.root)
        self.assertEqual(laptop.browser.wait_text("#recovery-key", "-"), key)
        laptop.wait_state("Nobody is signed in.")
        self.assertTrue(laptop.browser.run("return document.querySelector('#recovery-done').disabled"))
        self.picture(laptop.browser, "2-recovery-key")
        laptop.browser.click("#recovery-sure")
        laptop.press("Create the account", "#pairing")
        laptop.wait_closed("pairing")
        self.assertNotIn(key, laptop.browser.run("return document.documentElement.outerHTML"))
        laptop.wait_state("only device")
        laptop.add("theme", "dark")

        code, address = self.invite(laptop)
        self.assertRegex(code, r"^\d{4}-\d{4}$")
        self.assertGreater(laptop.browser.run(
            "return document.querySelector('.qr path').getBBox().width"), 20)
        self.picture(laptop.browser, "3-invitation")
        # The check digit finds a mistyped code; another code is a lost try, on both pages.
        mistyped = ("1" if code[0] == "0" else "0") + code[1:]
        for wrong, answer in ((mistyped, "Nothing was sent"), ("0000-0000", "has another code")):
            self.join(desktop, wrong, address)
            desktop.browser.wait_text("#pairing-title", "did not join")
            self.assertIn(answer, desktop.browser.text("#pairing-body"))
            desktop.press("Close", "#pairing")
            desktop.wait_closed("pairing")
        laptop.browser.wait_text("#pairing-tries", "2 tries left")

        self.join(desktop, code, address)
        laptop.browser.wait_text("#pairing-title", "Is this your device?")
        desktop.browser.wait_text("#pairing-title", "Is this your other device?")
        # Each page asks a person to compare what the other one shows.
        self.assertEqual(laptop.fingerprints, desktop.fingerprints[::-1])
        self.assertEqual(len(set(laptop.fingerprints)), 2)
        self.picture(laptop.browser, "4-fingerprints-inviting")
        self.picture(desktop.browser, "4-fingerprints-joining")
        desktop.press("Both are the same: join")
        laptop.press("Both are the same: admit it")
        for page in (laptop, desktop):
            page.browser.wait_text("#pairing-title", "Done")
        desktop.browser.wait_text("#pairing-body", "and has all that the other device has")
        self.picture(desktop.browser, "5-joined")
        for page in (laptop, desktop):
            page.press("Close", "#pairing")
            page.wait_state("Everything is in sync.")
        desktop.wait_value("theme", "dark")
        self.picture(desktop.browser, "6-in-step")
        # The code is on no page any more.
        self.assertNotIn(code, laptop.browser.run("return document.documentElement.outerHTML"))

    def test_refused_pairing(self):
        """a device that a person does not admit stays out"""
        laptop = KithPage(self.browser(), self.account(theme="dark")).open()
        stranger = self.open_empty(1, "stranger")
        self.join(stranger, *self.invite(laptop))
        laptop.browser.wait_text("#pairing-title", "Is this your device?")
        stranger.press("Both are the same: join")
        laptop.press("Do not admit it")
        laptop.browser.wait_text("#pairing-title", "did not join")
        stranger.browser.wait_text("#pairing-title", "did not join")
        stranger.press("Close", "#pairing")
        stranger.wait_state("Nobody is signed in.")
        laptop.press("Close", "#pairing")
        laptop.wait_state("only device")
        self.assertEqual(len(laptop.peer.status["devices"]), 1)

    def test_given_up_pairing(self):
        """a device that waits for the other one's person can give up, by a button and by Escape"""
        laptop = KithPage(self.browser(), self.account(theme="dark")).open()
        desktop = self.open_empty(1, "desktop")
        escape = "\ue00c"
        for give_up in (lambda: desktop.press("Cancel", "#pairing"),
                        lambda: desktop.browser.press_key(escape)):
            self.join(desktop, *self.invite(laptop))
            laptop.browser.wait_text("#pairing-title", "Is this your device?")
            desktop.press("Both are the same: join")
            desktop.browser.wait_text("#pairing-title", "Finishing")
            give_up()
            desktop.wait_closed("pairing")
            desktop.wait_state("Nobody is signed in.")
            laptop.browser.wait_text("#pairing-title", "did not join")
            laptop.press("Close", "#pairing")
            laptop.wait_closed("pairing")
        self.assertEqual(len(laptop.peer.status["devices"]), 1)

    def test_revocation(self):
        """a revocation shows on both pages"""
        laptop, desktop = self.open_both(theme="dark")
        laptop.press("Revoke desktop")
        laptop.browser.wait_text("#revoke", "cannot be undone")
        self.assertTrue(laptop.browser.run("return document.querySelector('#revoke-do').disabled"))
        self.picture(laptop.browser, "revoke")
        laptop.browser.click("#revoke-sure")
        laptop.browser.click("#revoke-do")
        laptop.wait_closed("revoke")
        laptop.wait_state("only device")
        desktop.wait_state("This device was revoked.")
        laptop.browser.click("#former-count")
        laptop.browser.wait_text("#former", "revoked")
        self.picture(laptop.browser, "revoked-by-this-device")
        self.picture(desktop.browser, "revoked-this-device")
        # It reads no later write, and cannot write.
        laptop.set("theme", "light")
        desktop.browser.click("#add")
        desktop.browser.type("#editor-key", "late")
        desktop.browser.type("#editor-value", "late")
        desktop.save()
        desktop.browser.wait_text("#editor .problem", "device was revoked")
        self.assertEqual(desktop.value("theme"), "dark")
        self.assertEqual(laptop.peer.values, {"theme": "light"})

    def test_rename_and_away(self):
        """a device is renamed, goes away, and comes back"""
        laptop, desktop = self.open_both(theme="dark")
        laptop.press("Rename desktop")
        laptop.browser.type("#rename-name", "studio")
        laptop.browser.click("#rename-do")
        laptop.wait_closed("rename")
        for page in (laptop, desktop):
            page.browser.wait("the new name", lambda: page.device("studio"))
        desktop.peer.page.stop()
        desktop.wait_state("kith web does not answer.")
        self.assertEqual(desktop.value("theme"), "dark")
        laptop.wait_state("No other device is connected.")
        laptop.set("theme", "light")
        laptop.browser.wait_text("#state-detail", "waits")
        self.picture(laptop.browser, "away")
        self.picture(desktop.browser, "program-ended")
        # A new run of the program has a new address; the values are there.
        desktop.peer.serve(laptop.peer)
        desktop.open()
        desktop.wait_value("theme", "light")
        laptop.wait_state("Everything is in sync.")

    def test_node_of_another_program(self):
        """a node of another program ends, and comes back"""
        laptop = self.peer("laptop")
        laptop.create_account()
        laptop.kith("set", "theme", "dark")
        node = laptop.run()
        page = KithPage(self.browser(), laptop.serve()).open()
        page.wait_value("theme", "dark")
        page.browser.wait_text("#node", "Another program runs the node.")
        node.kill()
        # The page's program takes the directory over.
        page.browser.wait_text("#node", "This page's program runs the node")
        page.set("theme", "light")
        self.assertEqual(laptop.values, {"theme": "light"})
        laptop.run()
        page.browser.wait_text("#node", "Another program runs the node.")
        page.set("theme", "blue")
        self.assertEqual(laptop.values, {"theme": "blue"})

    def test_store_in_part(self):
        """while a store is here in part, no device is said to have everything"""
        laptop, _ = self.open_both(theme="dark")
        laptop.press("Sync now", "header")
        laptop.browser.wait_text("#toasts", "All other devices are up to date in default.")
        hostile = "<img src=x onerror=window.ran=1>\u202ename"
        plain = hostile.replace("\u202e", "\\u{202e}")
        seen = laptop.browser.run(IN_PART, hostile)

        whole = seen["whole"]
        self.assertEqual((whole["kind"], whole["title"]), ("synced", "Everything is in sync."))
        self.assertEqual(whole["detail"], "desktop has everything that this device has.")
        self.assertIn("in sync", whole["device"])
        self.assertIn("has everything", whole["device"])
        self.assertNotIn("In part", whole["notes"])

        rest = f" In part here: default and {hostile}. The rest of each comes once a program here opens it."
        titles = {"part": "All devices have what is here.",
                  "one": "1 of 2 other devices has what is here.",
                  "carrier": "What is here is on a carrier."}
        for case, title in titles.items():
            with self.subTest(case):
                part = seen[case]
                self.assertEqual((part["kind"], part["title"]), ("partly", title))
                self.assertTrue(part["detail"].endswith(rest), part["detail"])
                self.assertIn("has what is here", part["device"])
                self.assertEqual(
                    part["notes"], f"In part: the rest of {plain} comes once a program here opens it.")
                self.assertEqual(part["list"].count(", in part"), 2)
                self.assertEqual(part["images"], 0)
                for claim in ("in sync", "has everything"):
                    self.assertNotIn(claim, part["device"] + part["map"])
        self.assertIn(f"{plain}: connected", seen["part"]["map"])
        # Nothing was heard of it, so it is not said to have anything.
        self.assertNotIn("has ", seen["one"]["phone"])

        joined = "This device now belongs to the account"
        self.assertEqual(seen["joined whole"], joined + ", and has all that the other device has.")
        self.assertEqual(seen["joined part"], joined + ".1 store came only in part")
        self.assertIsNone(laptop.browser.run("return window.ran ?? null"))
        laptop.wait_state("Everything is in sync.")

    def test_carrier(self):
        """a carrier that holds everything, and one that is gone"""
        laptop, desktop = self.open_both(theme="dark")
        folder = self.folder / "nas"
        folder.mkdir()
        laptop.peer.kith("carrier", "add", "folder", str(folder))
        laptop.browser.wait_text("#carriers", "Has held everything of this device since")
        self.picture(laptop.browser, "carrier")
        desktop.peer.page.stop()
        laptop.wait_state("Everything is on a carrier.")
        folder.rename(self.folder / "pulled-out")
        laptop.set("theme", "light")
        laptop.browser.wait_text("#carriers .problem", "folder")
        self.picture(laptop.browser, "carrier-gone")
