"""The page of `kith web`, as a person uses it."""

import json


def quoted(text):
    return json.dumps(text)


class KithPage:
    def __init__(self, browser, peer):
        self.browser = browser
        self.peer = peer

    def open(self):
        """Opens the address that the program printed, and waits until the page knows its device."""
        self.browser.open(self.peer.address)
        self.browser.wait(
            "the page", lambda: self.browser.text("#node") and self.state != "Connecting …")
        key = self.browser.run("return localStorage.getItem('kith-key')")
        self.peer.secrets.append(key)
        self.peer.secrets += [cookie["value"] for cookie in self.browser.get("/cookie")]
        return self

    @property
    def state(self):
        return self.browser.text("#state")

    def wait_state(self, part):
        return self.browser.wait_text("#state", part)

    def press(self, label, within="body"):
        """Presses a button by its text or accessible name."""
        script = """
          return [...document.querySelectorAll(arguments[0] + " button")].find((button) =>
            [button.textContent, button.ariaLabel].includes(arguments[1])
            && button.checkVisibility() && !button.disabled)"""

        def attempt():
            button = self.browser.run(script, within, label)
            if button:
                self.browser.post(f"/element/{list(button.values())[0]}/click")
            return button

        self.browser.wait(f"the button “{label}”", attempt)

    # Values

    @staticmethod
    def row(key):
        return f"#key-rows [data-key={quoted(key)}]"

    def value(self, key):
        """The text of a key's value; None if the table does not show the key."""
        return self.browser.text(f"{self.row(key)} .value")

    def wait_value(self, key, part):
        return self.browser.wait_text(f"{self.row(key)} .value", part)

    def edit(self, key):
        """Opens the editor, and waits until it has the value."""
        self.press(f"Edit {key}", "#key-rows")
        self.browser.wait("the editor", lambda: self.browser.run(
            "return document.querySelector('#editor[open]:not([aria-busy])') !== null"))

    def choose(self, css, value):
        """Chooses of a list, as a person does with the keyboard."""
        self.browser.run(
            "const list = document.querySelector(arguments[0]); list.value = arguments[1];"
            "list.dispatchEvent(new Event('change', { bubbles: true }))", css, value)

    def save(self):
        self.browser.click("#editor-save")

    def wait_closed(self, dialog="editor"):
        self.browser.wait(f"the dialog {dialog} to close", lambda: self.browser.run(
            "return !document.getElementById(arguments[0]).open", dialog))

    def set(self, key, value):
        """Edits a key of the table and saves."""
        self.edit(key)
        self.browser.type("#editor-value", value)
        self.save()
        self.wait_closed()

    def add(self, key, value, kind="string"):
        self.browser.click("#add")
        self.browser.type("#editor-key", key)
        self.choose("#editor-type", kind)
        self.browser.type("#editor-value", value)
        self.save()
        self.wait_closed()

    # Devices

    def device(self, name):
        """The text of a device's card."""
        cards = self.browser.run(
            "return [...document.querySelectorAll('[data-device]')].map((card) => card.innerText)")
        return next((card for card in cards if card.startswith(name)), None)

    @property
    def fingerprints(self):
        """What the page asks to compare: this device's fingerprint, and the other's."""
        return self.browser.run(
            "return [...document.querySelectorAll('#pairing .fingerprints dd')]"
            ".map((one) => one.textContent)")
