"""The example `bookmarks-web`: two pages, and the attacks on a page without a secret."""

import json
import statistics

from attackers import Attacker, Caller, Name
from case import Case
from peers import PRODUCTS

TITLES = "return [...document.querySelectorAll('#bookmarks a')].map((link) => link.textContent)"


class BookmarkTests(Case):
    def start(self, peer, *peers):
        calls = [word for other in peers for word in ("--peer", other.address)]
        program = peer.start("--directory", peer.directory, "--web-port", "0", "--listen", "127.0.0.1",
                             *calls, program=PRODUCTS / "bookmarks-web")
        peer.root = program.printed(r"^open (http://127\.0\.0\.1:\d+/)$")[1]
        peer.address = program.printed(r"^ready on .*?(127\.0\.0\.1:\d+)$")[1]
        peer.port = int(peer.root.rstrip("/").split(":")[-1])
        peer.page = program

    def open(self, index, peer):
        browser = self.browser(index)
        browser.open(peer.root)
        browser.wait_text("#device", peer.name)
        return browser

    def pair(self):
        laptop, desktop = self.account("laptop"), self.peer("desktop")
        laptop.admit(desktop)
        laptop.page.stop()
        self.start(laptop)
        self.start(desktop, laptop)
        return laptop, desktop

    def add(self, browser, url, title):
        browser.type("#url", url)
        browser.type("#title", title)
        browser.click("#add button")

    def test_two_pages(self):
        """bookmarks of one page show on the other"""
        laptop, desktop = self.pair()
        left, right = self.open(0, laptop), self.open(1, desktop)
        self.add(left, "https://example.com/dock", "Dock")
        right.wait_text("#bookmarks", "Dock")
        right.wait_text("#changed", "Changed on laptop")
        self.add(right, "https://example.com/quay", "Quay")
        left.wait_text("#bookmarks", "Quay")
        left.click("[aria-label='Move Quay up']")
        right.wait("the new order", lambda: right.run(TITLES) == ["Quay", "Dock"])
        self.picture(right, "bookmarks")

        right.run("""
          window.shown = {};
          new MutationObserver(() => {
            for (const link of document.querySelectorAll("#bookmarks a")) {
              shown[link.textContent] ??= Date.now();
            }
          }).observe(document.querySelector("#bookmarks"), { childList: true, subtree: true })""")
        left.run("document.querySelector('#add').addEventListener('submit', "
                 "() => { window.sent = Date.now(); }, true)")
        times = []
        for number in range(20):
            self.add(left, f"https://example.com/{number}", f"Page {number}")
            shown = right.wait("the bookmark", lambda: right.run(
                "return shown[arguments[0]]", f"Page {number}"))
            times.append(shown - left.run("return sent"))
            left.wait_text("#bookmarks", f"Page {number}")
        print(f"{len(times)} bookmarks from page to page: {min(times)}, {statistics.median(times):.0f}, "
              f"{max(times)} ms (least, median, most) ", end="")

        left.click("[aria-label='Remove Dock']")
        right.wait_text("#notice", "Dock")
        self.picture(right, "bookmarks-removed")
        self.assertNotIn("Dock", right.run(TITLES))
        laptop.page.stop()
        left.wait_text("#connection", "Not connected")

    def test_hostile_bookmarks(self):
        """hostile bookmarks stay text, and foreign pages get nothing"""
        laptop = self.account("laptop")
        laptop.page.stop()
        self.start(laptop)
        browser = self.open(0, laptop)
        titles = ["<img src=x onerror=\"window.ran=1\">", "</script><script>window.ran=2</script>"]
        for number, title in enumerate(titles):
            self.add(browser, f"https://example.com/{number}", title)
            browser.wait_text("#bookmarks", title)
        self.add(browser, "javascript:window.ran=3", "evil")
        browser.wait_text("#error", "http")
        self.assertEqual(browser.run(TITLES), titles)
        self.assertIsNone(browser.run("return window.ran ?? null"))
        self.assertEqual(browser.run(
            "return document.querySelectorAll('#bookmarks :is(img, script)').length"), 0)

        caller = Caller(laptop)
        add = {"url": "https://example.com/attack", "title": "attack"}
        refused = [
            ({"Host": f"evil.example:{laptop.port}"}, 421), ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403), ({"Content_Type": "text/plain"}, 415), ({"Content_Type": None}, 415),
        ]
        for headers, status in refused:
            with self.subTest(headers):
                self.assertEqual(caller.status("POST", "/add", add, **headers), status)
        self.assertEqual(caller.status("GET", "/events", Host=f"evil.example:{laptop.port}"), 421)

        attacker = self.stop_later(Attacker())
        name = self.stop_later(Name(laptop.port))
        attempts = f"""
          const at = arguments[0], body = {json.dumps(json.dumps(add))};
          const text = (response) => response.then((one) => one.text()).catch(() => "");
          return Promise.all([
            text(fetch(at + "/events")),
            text(fetch(at + "/add", {{ method: "POST", mode: "no-cors", body }})),
            text(fetch(at + "/add", {{
              method: "POST", body, headers: {{ "Content-Type": "application/json" }} }})),
          ])"""
        # Of another origin, and under a name that was made to lead to the page's port.
        for origin, target in ((f"http://127.0.0.1:{attacker.port}", laptop.root.rstrip("/")),
                               (f"http://evil.example:{laptop.port}",) * 2):
            with self.subTest(origin):
                name.target = attacker.port
                browser.open(origin)
                browser.wait("the attacker's script",
                             lambda: browser.run("return typeof attack") == "function")
                name.target = laptop.port
                for text in browser.run(attempts, target):
                    self.assertNotIn("example.com", text)
        browser.open(laptop.root)
        browser.wait_text("#bookmarks", titles[1])
        self.assertEqual(browser.run(TITLES), titles)
