"""A foreign page in the browser that has the page of kith web open, and hostile values on the page."""

import json

from attackers import Attacker, Caller, Naive, Name
from case import Case
from pages import KithPage

# What a script of the page would do if a value were markup, each in a way of its own.
HOSTILE = {
    "image": "<img src=x onerror=\"window.ran='image'\">",
    "script": "</script><script>window.ran='script'</script>",
    "svg": "<svg/onload=window.ran='svg'>",
    "link": "javascript:window.ran='link'",
    "quotes": "\"'`><b onmouseover=alert(1)>${alert(1)}{{alert(1)}}",
    "style": "<style>*{display:none}</style>",
    "direction": "safe\u202egnp.exe\u2066 \u200f!",
    "entity": "&lt;b&gt; &#x3c;",
    "<img src=x onerror=window.ran=1>": "as a key",
    "__proto__": "polluted",
    "constructor": "key",
    "k\u202ey": "hidden direction",
}


class AttackTests(Case):
    def open_victim(self):
        """The page of kith web, opened in the attacked browser."""
        peer = self.account(theme="dark-as-night")
        peer.secrets.append("dark-as-night")
        page = KithPage(self.browser(), peer).open()
        page.wait_value("theme", "dark-as-night")
        return peer, page

    def attack(self, browser, page_of_attacker, target, attacks):
        """Opens the attacker's page in another window; returns what its attacks learned."""
        windows = browser.get("/window/handles")
        if len(windows) == 1:
            windows.append(browser.post("/window/new", type="window")["handle"])
        browser.post("/window", handle=windows[1])
        browser.forget()
        browser.open(page_of_attacker)
        browser.wait("the attacker's script", lambda: browser.run("return typeof attack") == "function")
        learned = browser.run(f"return attack(arguments[0], {attacks})", target)
        # A frame's content is out of reach for its page, but not for a person.
        frames = browser.run("return document.querySelectorAll('iframe').length")
        self.framed = []
        for index in range(frames):
            browser.post("/frame", id=index)
            self.framed.append(browser.run("return document.title + document.body.innerText"))
            browser.post("/frame/parent")
        self.answers = [(url, status) for url, status in browser.responses() if url.startswith(target)]
        # A window that an attack opened is the page itself, whose own answers are none of the attacks'.
        for opened in set(browser.get("/window/handles")) - set(windows):
            browser.post("/window", handle=opened)
            browser.driver.call("DELETE", browser.path + "/window")
        browser.post("/window", handle=windows[0])
        return learned

    def check_untouched(self, peer, page):
        self.assertEqual(peer.values, {"theme": "dark-as-night"})
        # The page goes on: the attacks took nothing from it.
        page.set("theme", "light-as-day")
        page.wait_value("theme", "light-as-day")

    def test_foreign_page(self):
        """a foreign page"""
        peer, page = self.open_victim()
        target, naive = peer.root.rstrip("/"), self.stop_later(Naive())
        attacker = self.stop_later(Attacker())
        # Of another site, and of the same one: ports do not tell sites apart.
        name = self.stop_later(Name(attacker.port))
        name.target = attacker.port
        for origin in (f"http://evil.example:{attacker.port}/", f"http://127.0.0.1:{attacker.port}/"):
            with self.subTest(origin):
                read = self.attack(page.browser, origin, target, "readings")
                self.assertEqual({what: text for what, text in read.items() if text}, {})
                # A script's element is told that something came, but not what.
                statuses = {status for url, status in self.answers if "/api/" in url}
                self.assertTrue(statuses)
                self.assertLessEqual(statuses, {401, 403})

                used = self.attack(page.browser, origin, target, "files")
                self.assertEqual({what: text for what, text in used.items() if text}, {})
                self.assertFalse([text for text in self.framed if "Kith" in text], self.framed)

                answered = self.attack(page.browser, origin, target, "changes")
                self.assertEqual({what: text for what, text in answered.items() if text}, {})
                # The window that an attack opened is the page itself, which may load its files still.
                statuses = {status for url, status in self.answers
                            if any(f"/api/{path}" in url for path in ("write", "import", "token"))}
                self.assertTrue(statuses)
                self.assertLessEqual(statuses, {400, 403})
        self.check_untouched(peer, page)

        # The same attacks reach a server that guards nothing.
        at = f"http://127.0.0.1:{naive.port}"
        origin = f"http://evil.example:{attacker.port}/"
        self.attack(page.browser, origin, at, "readings")
        self.attack(page.browser, origin, at, "changes")
        used = self.attack(page.browser, origin, at, "files")
        self.assertEqual((used["image"], used["style"]), ("loaded", "loaded"))
        self.assertTrue([text for text in self.framed if "naive secret" in text])
        bodies = [request["body"] for request in naive.requests if request["path"] == "/api/write"
                  and request["method"] == "POST"]
        # Plain text, a beacon and two forms; JSON needs a permission that no server gave.
        self.assertEqual(len([body for body in bodies if b"attack" in body]), 4)

    def test_rebinding(self):
        """a name that was made to lead here"""
        peer, page = self.open_victim()
        naive = self.stop_later(Naive())
        for server, is_guarded in ((peer, True), (naive, False)):
            attacker = self.stop_later(Attacker())
            name = self.stop_later(Name(server.port))
            # The page comes from the attacker; then its name leads to the port of this host.
            name.target = attacker.port
            at = f"http://evil.example:{server.port}"
            windows = page.browser.get("/window/handles")
            window = page.browser.post("/window/new", type="window")["handle"]
            page.browser.post("/window", handle=window)
            page.browser.open(at)
            page.browser.wait("the attacker's script",
                              lambda: page.browser.run("return typeof attack") == "function")
            name.target = server.port
            read = page.browser.run("return attack(arguments[0], { ...readings, ...changes })", at)
            page.browser.post("/window", handle=windows[0])
            if is_guarded:
                # The browser lets the page read the answers, which are refusals.
                told = {what: text for what, text in read.items()
                        if text and text != "loaded" and '"code":"foreign"' not in text}
                self.assertEqual(told, {})
                self.assertIn('"code":"foreign"', read["fetch with cookies"])
                self.assertNotIn("dark-as-night", str(read))
            else:
                self.assertIn("naive secret", read["fetch with cookies"])
                self.assertIn("naive secret", read["json"])
            attacker.stop()
            name.stop()
        self.check_untouched(peer, page)

    def test_stolen_cookie(self):
        """a stolen cookie opens nothing"""
        peer, page = self.open_victim()
        thief = self.stop_later(Attacker())
        # A browser keeps cookies by host, so a server on another port of 127.0.0.1 gets them.
        page.browser.open(f"http://127.0.0.1:{thief.port}/")
        stolen = page.browser.wait("the cookie", lambda: [
            request["headers"]["Cookie"] for request in thief.requests
            if "Cookie" in request["headers"]])[0]
        own = [secret for secret in peer.secrets if secret in stolen]
        self.assertEqual(len(own), 1, "the cookie of the page is among those that the thief got")
        # The key is kept to the page's own port, and no script reads the cookie.
        self.assertIsNone(page.browser.run("return localStorage.getItem('kith-key')"))
        self.assertNotIn(own[0], page.browser.run("return document.cookie"))

        caller = Caller(peer)
        caller.cookie = stolen
        for key in (None, "", "0" * 64, own[0], peer.token):
            with self.subTest(key):
                self.assertEqual(caller.status("GET", "/api/status", X_Kith_Key=key), 401)
                self.assertEqual(caller.status("GET", "/api/events?store=default", X_Kith_Key=key), 401)
                self.assertEqual(caller.write(X_Kith_Key=key), 401)
        # The honest browser comes back without the token.
        page.browser.open(peer.root)
        page.wait_value("theme", "dark-as-night")
        self.check_untouched(peer, page)

    def test_second_use(self):
        """a used address opens no second browser"""
        peer, page = self.open_victim()
        # The address is gone from the tab and its history.
        self.assertNotIn(peer.token, page.browser.url)
        entries = page.browser.devtools("Page.getNavigationHistory")["entries"]
        self.assertNotIn(peer.token, str([entry["url"] for entry in entries]))
        other = self.browser(1)
        for address in (peer.address, peer.root, peer.root + "#" + "0" * 64):
            other.open(address)
            other.wait_text("#state", "This page has ended.")
            other.wait_text("#state-detail", "kith web again")
            self.assertIsNone(other.text("#key-rows tr"))
        # In the browser that used it, it opens the page again.
        page.browser.open("about:blank")
        page.browser.open(peer.address)
        page.wait_value("theme", "dark-as-night")
        self.check_untouched(peer, page)

    def test_two_pages(self):
        """two pages in one browser keep apart"""
        laptop, page = self.open_victim()
        other = self.account("desktop", theme="another account")
        windows = page.browser.get("/window/handles")
        window = page.browser.post("/window/new", type="window")["handle"]
        page.browser.post("/window", handle=window)
        KithPage(page.browser, other).open().wait_value("theme", "another account")
        page.browser.post("/window", handle=windows[0])
        page.browser.open(laptop.root)
        page.wait_value("theme", "dark-as-night")
        self.check_untouched(laptop, page)
        self.assertEqual(other.values, {"theme": "another account"})

    def test_hostile_values(self):
        """hostile values stay text"""
        peer = self.account()
        values = {**HOSTILE, "controls": "a\0\7\33[31mred\u2028\ufeffend", "nested": {
            "<b>": ["<img src=x onerror=window.ran=2>", {"__proto__": "</span><i>"}]}}
        peer.kith("import", "-", text=json.dumps(values))
        page = KithPage(self.browser(), peer).open()
        browser = page.browser
        # Reports of the policy, from the first moment that a script can listen.
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", source="""
          window.blocked = [];
          document.addEventListener("securitypolicyviolation", (event) =>
            blocked.push(event.violatedDirective + " " + event.blockedURI))""")
        browser.open(peer.root)
        page.wait_value("entity", "&lt;b&gt;")
        rows = browser.run("return [...document.querySelectorAll('#key-rows tr')].map((row) => "
                           "[row.dataset.key, row.querySelector('.value').textContent])")
        shown = dict(rows)
        self.assertEqual(set(shown), set(values))
        for key in ("image", "script", "svg", "link", "quotes", "style", "entity", "__proto__"):
            self.assertEqual(shown[key], HOSTILE[key])
        # Characters that reorder or hide text are shown by their numbers.
        self.assertIn("\\u{202e}", shown["direction"])
        self.assertNotIn("\u202e", shown["direction"])
        self.assertIn("\\u{0}", shown["controls"])
        for key in ("image", "nested", "direction"):
            page.press(f"Edit {key}", "#key-rows")
            browser.wait_text("#editor-title", key)
            page.press("Cancel", "#editor")
        browser.click(f"{page.row('nested')} summary")
        browser.wait_text(page.row("nested"), "<img src=x")
        browser.click("#tab-history")
        browser.click("#tab-keys")
        # Nothing ran, nothing was even tried, nothing is an element or a link.
        self.assertIsNone(browser.run("return window.ran ?? null"))
        self.assertEqual(browser.run("return window.blocked"), [])
        self.assertEqual(browser.run(
            "return document.querySelectorAll('#key-rows :is(img, script, svg, style, a, b, i)').length"),
            0)
        self.assertIsNone(browser.run("return ({}).polluted ?? null"))
        wrong = [line for line in browser.read_console() if "Security" in line or "Error" in line]
        self.assertEqual(wrong, [])
        with self.assertRaisesRegex(Exception, "no such alert"):
            browser.get("/alert/text")
        self.picture(browser, "hostile-values")
