"""A real browser without a driver: Chromium, spoken to in its DevTools protocol through two pipes."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe")
# The protocol's pipes must have the numbers 3 and 4.
LAUNCH = """import os, sys
pipes, command = sys.argv[1:3], sys.argv[3:]
for number, pipe in enumerate(pipes, start=3):
    os.dup2(int(pipe), number)
os.execvp(command[0], command)
"""
PATIENCE = 240.0  # seconds; two busy cores may be slow


def program() -> str | None:
    """The browser of this machine; the variable BROWSER_FOR_TESTS names another one."""
    named = os.environ.get("BROWSER_FOR_TESTS")
    return named or next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class Tab:
    """A page that is open in a browser."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers  # the ends of pipes
        self._number, self._session, self._read = 0, "", b""
        self.complaints: list[str] = []  # errors of the console, exceptions, what the policy refused
        self.downloads = 0  # that are complete
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, path: Path, width: int = 1400, height: int = 1000, scheme: str = "light") -> None:
        """Show a file in a window of this size, on a system that is light or dark."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.do("Emulation.setDeviceMetricsOverride", **metrics)
        self.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.do("Page.navigate", url=path.resolve().as_uri())
        self.wait_for(f"document.readyState === 'complete' && location.href.endsWith('{path.name}')")

    def evaluate(self, expression: str) -> Any:
        """The value of JavaScript, waiting where it is a promise."""
        answer = self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until JavaScript says so."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.02)

    def centre(self, selector: str) -> tuple[float, float]:
        """The middle of an element, scrolled into sight."""
        place = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{place}.scrollIntoView({{block: 'center'}})")
        x, y = self.evaluate(
            f"(b => [b.x + b.width / 2, b.y + b.height / 2])({place}.getBoundingClientRect())"
        )
        return x, y

    def point(self, x: float, y: float, kind: str = "mouseMoved", **more: Any) -> None:
        """Move the mouse somewhere, or press it there."""
        self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector: str, times: int = 1) -> None:
        """Press the mouse on an element, as a person would."""
        x, y = self.centre(selector)
        self.point(x, y)
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.point(x, y, kind, button="left", clickCount=count)

    def press(self, key: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.do("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def saved(self, selector: str, directory: Path, name: str) -> bytes:
        """What a press on an element saves as a file."""
        allowed = {"behavior": "allow", "downloadPath": str(directory), "eventsEnabled": True}
        self.do("Browser.setDownloadBehavior", **allowed)
        before = self.downloads
        self.click(selector)
        while self.downloads == before:
            self._note(self._next())
        return (directory / name).read_bytes()

    def picture(self) -> bytes:
        """What the whole page looks like, as a PNG."""
        shot = self.do("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            if not select.select([self._answers], [], [], PATIENCE)[0]:
                raise TimeoutError("the browser does not answer")
            if not (part := os.read(self._answers, 1 << 16)):
                raise RuntimeError("the browser has ended")
            self._read += part
        message, self._read = self._read.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        details = event.get("params", {})
        if event.get("method") == "Browser.downloadProgress":
            self.downloads += details["state"] == "completed"
        if event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(details["exceptionDetails"]))
        if event.get("method") == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.complaints.append(details["entry"]["text"])
        if event.get("method") == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning"):
            self.complaints.append(str(details["args"]))


@contextlib.contextmanager
def browser(path: str) -> Iterator[Tab]:
    """A browser that runs until the end of the block, with nothing of anybody's in it."""
    to_browser, commands = os.pipe()
    answers, from_browser = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        pipes = (str(to_browser), str(from_browser))
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *pipes, path, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Tab(commands, answers)
        finally:
            process.terminate()
            process.wait(PATIENCE)
            os.close(commands)
            os.close(answers)
