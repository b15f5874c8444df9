"""A real Chromium without a window, driven over its debugging pipe; nothing beyond the standard library is needed."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def find_browser() -> str | None:
    """Return the path of an installed Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


WIRE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Becomes the browser after laying the two pipes on descriptors 3 and 4, where it listens and speaks."""


class Browser:
    """One page in one browser. ``complaints`` collects console errors, exceptions and blocked content."""

    def __init__(self, path: str):
        self._profile = tempfile.mkdtemp()
        its_in, our_out = os.pipe()
        our_in, its_out = os.pipe()
        high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10) for descriptor in (its_in, its_out)]
        command = [path, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", WIRE, *map(str, high), *command],
            pass_fds=high,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for descriptor in (its_in, its_out, *high):
            os.close(descriptor)
        self._out, self._in = our_out, os.fdopen(our_in, "rb")
        self._rest, self._number = b"", 0
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)  # the browser ends when its pipe does
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._in.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send one command and return its result; what the page complains of meanwhile is kept."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._listen(answer)

    def look(self, width: int, height: int, dark: bool) -> None:
        """Set the size of the window in CSS pixels and the colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path: Path) -> None:
        """Open a file and wait until the page says that every chart is drawn."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && document.documentElement.dataset.drawn !== undefined")

    def ask(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page, of a promise what it comes to."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression: str, timeout_s: float = 60.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not self.ask(expression):
            assert time.monotonic() < deadline, f"waited in vain for {expression}"
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """Press and release one key."""
        codes = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " ")}
        code, text = codes[key]
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **typed)

    def screenshot(self, path: Path) -> Path:
        """Save what the whole page looks like as a PNG file."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))
        return path

    def picture(self, selector: str) -> str:
        """Return what one element looks like, as a PNG in base64."""
        box = self.ask(
            f"(({{ x, y, width, height }}) => ({{ x: x + scrollX, y: y + scrollY, width, height, scale: 1 }}))"
            f"(document.querySelector({selector!r}).getBoundingClientRect())"
        )
        return self.call("Page.captureScreenshot", format="png", clip=box, captureBeyondViewport=True)["data"]

    def num_changed(self, before: str, after: str) -> int:
        """Return in how many pixels two pictures of the same size differ so that it is seen."""
        return self.ask(CHANGED % (before, after))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._in.fileno(), 1 << 20)
            assert piece, "the browser has ended"
            self._rest += piece
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def _listen(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))
        if method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(parameters["args"]))
        if method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])
        if method == "Page.javascriptDialogOpening":
            self.complaints.append(f"a dialog opened: {parameters['message']}")


CHANGED = """
(async () => {
  const pixels = async (data) => {
    const image = new Image(), canvas = document.createElement("canvas");
    image.src = "data:image/png;base64," + data;
    await image.decode();
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height).data;
  };
  const [one, two] = [await pixels("%s"), await pixels("%s")];
  const changed = new Set();
  one.forEach((value, at) => { if (Math.abs(value - two[at]) > 60) changed.add(at >> 2); });
  return changed.size;
})()
"""

CUT = """
[...document.querySelectorAll(".jump, .top, .scroll, .story, .fields, .timeline, .attempt, .side-by-side, .command, "
  + ".tree, .table:not(.numbers *), .tiles div")]
  .filter(box => box.scrollWidth > box.clientWidth).map(box => box.className + " " + (box.ariaLabel || box.innerText))
"""
"""What hides a part of itself to the right: bars of links, headers, charts, trees, tables, boxes of words. A figure's
table of numbers may: it has a column for each line, and is a region that the keys scroll."""

BROKEN = """
(() => {
  const lines = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return new Set([...range.getClientRects()].map(box => Math.round(box.bottom / 8))).size;
  };
  const texts = document.createTreeWalker(document.getElementById("main"), NodeFilter.SHOW_TEXT);
  const bad = [];
  while (texts.nextNode()) {
    const node = texts.currentNode, words = node.textContent.trim(), parent = node.parentElement;
    if (!parent.checkVisibility() || !words || lines(node) < 2) continue;
    const whole = parent.matches("dd") || !/\\s/.test(words);
    if (whole && words.length < 20 && parent.matches("tbody th, tbody th a, code, .tiles dd")) bad.push(words);
  }
  return bad;
})()
"""
"""Names and flags that are broken in their middle, and values that are torn from their units."""
