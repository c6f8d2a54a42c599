"""Several tabs and windows of one page, answers that do not come, and messages on small screens."""

import signal

from case import Case
from pages import KithPage


class WindowTests(Case):
    def open_another(self, page, kind):
        """Opens the page in another tab or window, and waits until it tells a state. Returns its handle."""
        browser = page.browser
        handle = browser.post("/window/new", type=kind)["handle"]
        browser.post("/window", handle=handle)
        browser.open(page.peer.root)
        browser.wait("a state", lambda: page.state not in (None, "Connecting …"))
        return handle

    def close(self, browser, handle):
        browser.post("/window", handle=handle)
        browser.driver.call("DELETE", browser.path + "/window")

    def test_many_tabs(self):
        """eight tabs of one browser all show the values, since a hidden one holds no connection"""
        page = KithPage(self.browser(), self.account(theme="dark")).open()
        [first] = page.browser.get("/window/handles")
        for _ in range(7):
            self.open_another(page, "tab")
            page.wait_value("theme", "dark")
        page.set("theme", "light")
        self.assertEqual(page.peer.values, {"theme": "light"})
        # A hidden tab reads the state again once it is shown.
        page.browser.post("/window", handle=first)
        page.wait_value("theme", "light")
        page.wait_state("only device")
        self.assertEqual(page.browser.text("#toasts"), "")
        self.assertIn("only device", page.browser.run("return document.title"))

    def test_many_windows(self):
        """more visible windows than the browser has connections say so, and the others go on"""
        page = KithPage(self.browser(), self.account(theme="dark")).open()
        [first] = page.browser.get("/window/handles")
        windows = [self.open_another(page, "window") for _ in range(3)]
        for window in windows:
            page.browser.post("/window", handle=window)
            page.wait_state("only device")
        late = [self.open_another(page, "window") for _ in range(3)]
        for window in late:
            page.browser.post("/window", handle=window)
            page.wait_state("Too many windows show this page.")
        self.picture(page.browser, "too-many-windows")
        page.browser.post("/window", handle=first)
        page.set("theme", "light")
        self.assertEqual(page.peer.values, {"theme": "light"})
        for window in windows:
            self.close(page.browser, window)
        for window in late:
            page.browser.post("/window", handle=window)
            page.wait_value("theme", "light")

    def test_no_answer(self):
        """a save without an answer is told as unknown"""
        page = KithPage(self.browser(), self.account(theme="dark")).open()
        page.browser.run("const real = AbortSignal.timeout.bind(AbortSignal);"
                         "AbortSignal.timeout = () => real(1000)")
        page.edit("theme")
        page.browser.type("#editor-value", "light")
        process = page.peer.page.process
        self.addCleanup(process.send_signal, signal.SIGCONT)
        process.send_signal(signal.SIGSTOP)
        page.save()
        page.browser.wait_text("#editor .problem", "It is unknown whether this was done.")
        process.send_signal(signal.SIGCONT)
        page.wait_value("theme", "light")

    def test_node_that_hangs(self):
        """a node that hangs is told, although kith web itself answers"""
        laptop = self.peer("laptop")
        laptop.create_account()
        laptop.kith("set", "theme", "dark")
        node = laptop.run()
        page = KithPage(self.browser(), laptop.serve()).open()
        page.browser.wait_text("#node", "Another program runs the node.")
        page.wait_state("only device")
        self.addCleanup(node.process.send_signal, signal.SIGCONT)
        node.process.send_signal(signal.SIGSTOP)
        # 5 s to the next question, 10 s for its answer.
        page.browser.wait_text("#state", "The node does not answer.", limit=30)
        self.assertEqual(page.value("theme"), "dark")
        self.picture(page.browser, "node-hangs")
        node.process.send_signal(signal.SIGCONT)
        page.wait_state("only device")
        page.set("theme", "light")
        self.assertEqual(laptop.values, {"theme": "light"})

    def test_message_on_a_phone(self):
        """at 320 px a message leaves the upper half free, and its button has one line"""
        page = KithPage(self.browser(), self.account(theme="dark")).open()
        page.set("theme", "light")
        page.browser.emulate(width=320, height=640)
        page.browser.wait_text("#toasts", "theme was saved.")
        lines, top, bottom = page.browser.run("""
          scrollTo(0, 0);
          const [button] = document.querySelectorAll(".toast button");
          const range = document.createRange();
          range.selectNodeContents(button);
          const box = document.querySelector(".toast").getBoundingClientRect();
          return [range.getClientRects().length, box.top, box.bottom]""")
        self.assertEqual(lines, 1)
        self.assertGreater(top, 320)
        self.assertLessEqual(bottom, 640)
