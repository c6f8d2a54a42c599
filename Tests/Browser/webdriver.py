"""A client of W3C WebDriver: drives headless Chromium through chromedriver, by HTTP and JSON.

It needs nothing but the standard library. Elements are named by CSS selectors, as in
`browser.click("#add")`, and each call waits until its element can be used.
"""

import base64
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

LIMIT = 20  # seconds that a condition may take
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Failure(Exception):
    """An answer of chromedriver that is an error."""


class Driver:
    """One chromedriver process, which starts browsers."""

    def __init__(self, program="chromedriver"):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([program, "--port=0"], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=subprocess.STDOUT)
        end = time.monotonic() + LIMIT
        while True:
            self.log.seek(0)
            started = re.search(r"started successfully on port (\d+)", self.log.read())
            if started:
                self.port = int(started[1])
                return
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failure(f"{program} does not start")
            time.sleep(0.02)

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            value = json.load(connection.getresponse())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise Failure(f"{value['error']}: {' '.join(value['message'].split())[:300]}")
        return value

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


class Browser:
    """One Chromium with a profile of its own."""

    def __init__(self, driver, program="chromium", arguments=()):
        self.driver = driver
        self.console = []
        options = {
            "binary": shutil.which(program),
            "args": ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update",
                     "--window-size=1280,900", "--lang=en", *arguments],
        }
        if os.getuid() == 0:
            options["args"].append("--no-sandbox")
        capabilities = {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            # A dialog that a script opened is what a test looks for.
            "unhandledPromptBehavior": "ignore",
        }
        session = driver.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.path = "/session/" + session["sessionId"]
        self.process = session["capabilities"].get("goog:processID")

    def get(self, path):
        return self.driver.call("GET", self.path + path)

    def post(self, path, **body):
        return self.driver.call("POST", self.path + path, body)

    def quit(self):
        try:
            self.driver.call("DELETE", self.path)
        except (Failure, OSError):
            if self.process:
                os.kill(self.process, signal.SIGKILL)

    def open(self, url):
        self.post("/url", url=url)

    @property
    def url(self):
        return self.get("/url")

    def run(self, script, *arguments):
        """Runs a function body in the page, and waits for the promise that it may return."""
        return self.post("/execute/sync", script=script, args=list(arguments))

    def devtools(self, command, **parameters):
        return self.post("/goog/cdp/execute", cmd=command, params=parameters)

    def wait(self, what, condition, limit=LIMIT):
        """Waits until the condition returns something true, and returns it."""
        end = time.monotonic() + limit
        pause = 0.01
        while True:
            reason = ""
            try:
                value = condition()
                if value:
                    return value
            except Failure as failure:
                reason = f" ({failure})"
            if time.monotonic() > end:
                raise AssertionError(f"waited {limit} s for {what}{reason}")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)

    # Elements

    def act(self, css, action, **body):
        def attempt():
            found = self.post("/elements", using="css selector", value=css)
            for element in found[:1]:
                self.post(f"/element/{element[ELEMENT]}/{action}", **body)
            return found

        self.wait(f"{css} to {action}", attempt)

    def click(self, css):
        self.act(css, "click")

    def type(self, css, text):
        """Replaces a field's text, as a person does by typing."""
        self.act(css, "clear")
        self.act(css, "value", text=text)

    def press_key(self, key):
        """Presses a key where the focus is."""
        strokes = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        self.post("/actions", actions=[{"type": "key", "id": "keyboard", "actions": strokes}])

    def text(self, css):
        """The text that a person sees; None if there is no such element or it is not shown."""
        return self.run("const element = document.querySelector(arguments[0]);"
                        "return element?.checkVisibility() ? element.innerText : null", css)

    def wait_text(self, css, part, limit=LIMIT):
        """Waits until an element shows a text with this part, and returns the text."""
        seen = []

        def has_part():
            seen[:] = [self.text(css)]
            return seen[0] is not None and part in seen[0]

        try:
            self.wait("", has_part, limit)
        except AssertionError:
            raise AssertionError(
                f"waited {limit} s for “{part}” in {css}: it shows “{seen and seen[0]}”") from None
        return seen[0]

    # What happened

    def read_console(self):
        """All messages of the console so far. Chromedriver tells each only once."""
        self.console += self.post("/se/log", type="browser")
        return [entry["message"] for entry in self.console]

    def forget(self):
        """Drops the messages and answers so far."""
        self.read_console()
        self.console = []
        self.responses()

    def responses(self):
        """The (URL, status) of the answers since the last call."""
        events = [json.loads(entry["message"])["message"]
                  for entry in self.post("/se/log", type="performance")]
        answers = [event["params"]["response"] for event in events
                   if event["method"] == "Network.responseReceived"]
        return [(answer["url"], answer["status"]) for answer in answers]

    # Looks

    def emulate(self, scheme="light", width=1280, height=900):
        is_phone = width < 500
        self.devtools("Emulation.setEmulatedMedia", media="", features=[
            {"name": "prefers-color-scheme", "value": scheme},
            # A picture shows the end of a movement.
            {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=2 if is_phone else 1, mobile=is_phone)

    def screenshot(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.get("/screenshot")))
