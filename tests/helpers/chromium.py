"""A headless Chromium, driven by its debugging protocol over two pipes: nothing to install."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
PATIENCE = 30  # seconds, at most, for whatever is waited for
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", "--disable-background-networking", "--hide-scrollbars",
         "--remote-debugging-pipe", "about:blank")  # fmt: skip


class Navigated(AssertionError):
    """The page was left for another one before the script had run."""


class Chromium:
    """The browser; each page is a tab of its own."""

    def __init__(self):
        self._profile = tempfile.mkdtemp(prefix="chromium-")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # The protocol is read from file 3 and written to file 4.
        moved = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        words = ["bash", "-c", moved, CHROMIUM, f"--user-data-dir={self._profile}", *FLAGS]
        both = (theirs_in, theirs_out)
        self._process = subprocess.Popen(words, pass_fds=both, stderr=subprocess.DEVNULL)
        for file in both:
            os.close(file)
        self._out, self._in = ours_out, os.fdopen(ours_in, "rb", buffering=0)
        self._buffer, self._number = b"", 0
        self.events = []

    def call(self, method, session=None, **params):
        """One command, and what it returns; events that come before are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": session} if session else {}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self.events.append(answer)
        if "navigated" in answer.get("error", {}).get("message", ""):
            raise Navigated(f"{method}: {answer['error']}")
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def _read(self):
        while b"\0" not in self._buffer:
            data = self._in.read(1 << 16)
            assert data, "the browser has gone"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def page(self, **settings):
        """A new tab."""
        return Page(self, **settings)

    def close(self):
        self._process.terminate()
        self._process.wait(10)
        os.close(self._out)
        self._in.close()
        shutil.rmtree(self._profile, ignore_errors=True)


class Page:
    """A tab: what it shows, what it asked the network for, and what it complained about."""

    def __init__(self, browser, width=1400, height=900, scripts=True, dark=False):
        self._browser = browser
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.color("dark" if dark else "light")
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def color(self, theme):
        scheme = {"name": "prefers-color-scheme", "value": theme}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def call(self, method, **params):
        return self._browser.call(method, self._session, **params)

    def resize(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)  # fmt: skip

    def open(self, address=None):
        """Open an address, or load the page again."""
        how = {"method": "Page.navigate", "url": address} if address else {"method": "Page.reload"}
        self.call(**how)
        self.wait_for("document.readyState === 'complete'")

    def value(self, expression):
        """What a script finds; it runs also where the page's own may not."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, expression):
        """Until it is true: the page says when, the limit is only for one that never does.

        While another page is loaded, nothing is true.
        """
        end = time.monotonic() + PATIENCE
        while not self._holds(expression):
            assert time.monotonic() < end, f"never came true: {expression}"
            time.sleep(0.05)

    def _holds(self, expression):
        try:
            return self.value(expression)
        except Navigated:
            return False

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)

    def _events(self, method):
        self.call("Runtime.evaluate", expression="0")  # all that came before is there now
        return [event["params"] for event in self._browser.events
                if event.get("method") == method and event["sessionId"] == self._session
                ]  # fmt: skip

    def requests(self):
        """The addresses it asked for."""
        return [event["request"]["url"] for event in self._events("Network.requestWillBeSent")]

    def complaints(self):
        """Errors and warnings on its console."""
        kinds = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        return [event for kind in kinds for event in self._events(kind)]

    def screenshot(self, file, whole=True):
        """A picture of the whole page, or of what is in sight."""
        made = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_bytes(base64.b64decode(made["data"]))

    def close(self):
        self._browser.call("Target.closeTarget", targetId=self._target)
