"""The base of the tests in a browser: processes and browsers end with their test, failures explain
themselves, and no program may print a secret."""

import contextlib
import functools
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import peers
from pages import KithPage
from webdriver import Browser, Driver

SCREENSHOTS = pathlib.Path(os.environ.get("KITH_SCREENSHOTS", ".build/screenshots")).absolute()
CHROMIUM = os.environ.get("KITH_CHROMIUM", "chromium")
# Names of foreign sites lead to this host, and nothing of the browser's own protects it: the server
# alone has to.
ARGUMENTS = (
    "--host-resolver-rules=MAP *.example 127.0.0.2",
    "--disable-features=LocalNetworkAccessChecks,HttpsUpgrades,HttpsFirstBalancedMode",
)


class Browsers:
    """The browsers of all tests: starting one takes a second."""

    driver = None
    kept = []

    @classmethod
    def get(cls, index):
        cls.driver = cls.driver or Driver()
        while len(cls.kept) <= index:
            cls.kept.append(Browser(cls.driver, CHROMIUM, ARGUMENTS))
        return cls.kept[index]

    @classmethod
    def reset(cls):
        """Leaves one empty window in each browser."""
        for browser in cls.kept:
            windows = browser.get("/window/handles")
            for window in windows[1:]:
                browser.post("/window", handle=window)
                browser.driver.call("DELETE", browser.path + "/window")
            browser.post("/window", handle=windows[0])
            browser.devtools("Network.clearBrowserCookies")
            browser.emulate()
            browser.open("about:blank")
            browser.forget()

    @classmethod
    def quit(cls):
        for browser in cls.kept:
            browser.quit()
        cls.kept.clear()
        if cls.driver:
            cls.driver.stop()
            cls.driver = None


class Case(unittest.TestCase):
    def __init__(self, name="runTest"):
        super().__init__(name)
        if name != "runTest":
            setattr(self, name, self.explaining(getattr(self, name)))

    def explaining(self, method):
        @functools.wraps(method)
        def run():
            try:
                method()
            except unittest.SkipTest:
                raise
            except BaseException:
                self.explain()
                raise
        return run

    @contextlib.contextmanager
    def subTest(self, *arguments, **parameters):
        with super().subTest(*arguments, **parameters):
            try:
                yield
            except Exception:
                self.explain()
                raise

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kith-browser-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.peers = []
        self.used = []
        self.addCleanup(self.end)

    def end(self):
        # The pages are still open: they must not keep a program from its end.
        wrong = [text for peer in reversed(self.peers) for text in peer.stop()]
        try:
            Browsers.reset()
        except Exception as error:
            Browsers.quit()
            wrong.append(f"the browsers failed: {error}")
        self.assertEqual(wrong, [])

    def peer(self, name):
        peer = peers.Peer(name, self.folder)
        self.peers.append(peer)
        return peer

    def account(self, name="laptop", **values):
        """A device with a new account, that serves its page."""
        peer = self.peer(name)
        peer.create_account()
        if values:
            peer.kith("set", *[text for pair in values.items() for text in pair])
        return peer.serve()

    def joined(self, first, name="desktop"):
        """A second device of the account, that serves its page."""
        return first.admit(self.peer(name)).serve(first)

    def open_both(self, **values):
        """The pages of two devices of one account, in sync, each in a browser of its own."""
        laptop = self.account(**values)
        desktop = self.joined(laptop)
        pages = [KithPage(self.browser(index), peer).open() for index, peer in enumerate((laptop, desktop))]
        for page in pages:
            page.wait_state("Everything is in sync.")
            for key, value in values.items():
                page.wait_value(key, value)
        return pages

    def browser(self, index=0):
        browser = Browsers.get(index)
        if browser not in self.used:
            self.used.append(browser)
        return browser

    def stop_later(self, server):
        self.addCleanup(server.stop)
        return server

    def picture(self, browser, name):
        """Screenshots of what is shown now: light, dark, and on phones, where all fits the width."""
        looks = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 390)}
        for look, (scheme, width) in looks.items():
            browser.emulate(scheme, width, 844 if width < 500 else 900)
            # All of the page, but a dialog as it is seen.
            height = browser.run(
                "return document.querySelector('dialog[open]') ? 0 "
                ": Math.min(document.documentElement.scrollHeight, 3000)")
            if height > 900:
                browser.emulate(scheme, width, height)
            browser.run("return new Promise((done) => requestAnimationFrame(() => "
                        "requestAnimationFrame(() => done(true))))")
            browser.screenshot(SCREENSHOTS / f"{name}-{look}.png")
            wide = browser.run(
                "return document.documentElement.scrollWidth - document.documentElement.clientWidth")
            self.assertLessEqual(wide, 0, f"{name} is {wide} px too wide on {width} px ({look})")
        browser.emulate()

    def explain(self):
        """Tells what the programs and the browsers said before a failure."""
        lines = []
        for peer in self.peers:
            for program in peer.programs:
                lines += [f"-- standard error of {program.name}:", program.error.rstrip()]
        for index, browser in enumerate(self.used):
            try:
                path = SCREENSHOTS / f"failed-{self._testMethodName}-{index}.png"
                browser.screenshot(path)
                lines += [f"-- browser {index}, at {browser.url.split('#')[0]}, see {path}:",
                          *browser.read_console()]
            except Exception as error:  # What explains a failure must not hide it.
                lines.append(f"-- browser {index} cannot tell: {error}")
        print("\n".join(["", *lines]), file=sys.stderr)
