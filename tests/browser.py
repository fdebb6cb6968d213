"""A headless Chromium that opens a page as a reader would, and says what is wrong with what it sees."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

__all__ = ["BROWSER", "Browser", "Key", "Mouse", "Sight", "browser", "needs_browser", "served"]

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
OURS = ("file:", "data:", "blob:", "about:", "http://127.0.0.1:")
LEAST_FONT = 8  # pixels on the screen

READY = "window.reportCharts ? reportCharts.ready : 0"
"""Charts of a report stand: how many."""
MEASURE = r"""
(() => {
  const root = document.documentElement, out = {};
  const shown = e => e.checkVisibility ? e.checkVisibility({opacityProperty: true, visibilityProperty: true}) : true;
  const texts = [...document.querySelectorAll("svg text")].filter(t => t.textContent.trim() && shown(t));
  const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  out.wide = root.scrollWidth > innerWidth ? `${root.scrollWidth} > ${innerWidth}` : "";
  out.hidden = [...document.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.ariaLabel || "table");
  out.cut = texts.filter(t => !inside(t.getBoundingClientRect(), t.closest("svg").getBoundingClientRect())).map(t => t.textContent);
  out.overlaps = [];
  for (const svg of new Set(texts.map(t => t.closest("svg")))) {
    const boxes = texts.filter(t => t.closest("svg") === svg).map(t => [t.textContent, t.getBoundingClientRect()]);
    boxes.forEach(([a, x], i) => boxes.slice(i + 1).forEach(([b, y]) => {
      const w = Math.min(x.right, y.right) - Math.max(x.left, y.left), h = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
      if (w > 1.5 && h > 3) out.overlaps.push(`${a} / ${b}`);
    }));
  }
  const size = t => Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b) * parseFloat(getComputedStyle(t).fontSize);
  out.font = texts.length ? Math.min(...texts.map(size)) : 99;
  const canvas = document.createElementNS("http://www.w3.org/1999/xhtml", "canvas").getContext("2d", {willReadFrequently: true});
  const rgba = c => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data; };
  const over = (top, below) => [0, 1, 2].map(i => (top[i] * top[3] + below[i] * (255 - top[3])) / 255);
  const light = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const back = e => { const stack = []; for (; e; e = e.parentElement) stack.push(rgba(getComputedStyle(e).backgroundColor));
    const base = matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches ? [18, 18, 18] : [255, 255, 255];
    return stack.reverse().reduce((c, top) => over(top, c), base); };
  out.faint = [];
  const check = (e, colour, px, bold) => {
    const ground = back(e), a = light(over(rgba(colour), ground)), b = light(ground);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const least = px >= 24 || (bold && px >= 18.6) ? 3 : 4.5;
    if (ratio < least - 0.01) out.faint.push(`${ratio.toFixed(2)} ${e.textContent.trim().slice(0, 40)}`);
  };
  const walker = document.createTreeWalker(document.body || root, NodeFilter.SHOW_TEXT);
  for (let n = walker.nextNode(); n; n = walker.nextNode()) {
    const e = n.parentElement;
    if (!n.textContent.trim() || e.closest("svg, script, style, noscript, [hidden], title") || !shown(e)) continue;
    const box = e.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const style = getComputedStyle(e);
    check(e, style.color, parseFloat(style.fontSize), +style.fontWeight >= 700);
  }
  for (const t of texts) if (!t.closest("[data-on-colour]") && !/^rgb\((0, 0, 0|255, 255, 255)\)$/.test(getComputedStyle(t).fill))
    check(t, getComputedStyle(t).fill, size(t), false);
  out.faint = [...new Set(out.faint)];
  return JSON.stringify(out);
})()
"""


@dataclass(frozen=True, slots=True)
class Sight:
    """What is wrong with a page: every field is empty on a good one."""

    wide: str  # it must be moved sideways
    cut: list[str]  # texts that leave their figure
    overlaps: list[str]  # pairs of texts in figures
    faint: list[str]  # texts whose contrast is below AA
    small: str  # the smallest letters of figures
    hidden: list[str] = field(default_factory=list)  # tables that must be moved sideways
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)  # that left the machine, or were not answered


@dataclass(frozen=True, slots=True)
class Mouse:
    """The pointer, moved to where a script says: [x, y]."""

    place: str
    is_click: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """A key that is pressed: its name, its number, and what it writes."""

    name: str
    number: int
    text: str = ""


class Browser:
    def __init__(self, port):
        self._port = port

    def look(
        self,
        page,
        *,
        width=1100,
        dark=False,
        printed=False,
        picture=None,
    ):
        """Open a file or an address at a width; `picture` keeps what is seen."""
        address = page if isinstance(page, str) else page.resolve().as_uri()
        sight, shot = asyncio.run(self._sight(_target(self._port), address, width, dark=dark, printed=printed))
        if picture is not None:
            picture.write_bytes(shot)
        return sight

    def value(self, address, script):
        """What a script says that waits for itself: an expression, a promise included."""
        return asyncio.run(self._value(_target(self._port), address, script))

    def use(self, page, steps, *, width=1100):
        """Do one step after the other on a page; returns what the scripts among them say."""
        return asyncio.run(self._used(_target(self._port), page.resolve().as_uri(), steps, width))

    async def _used(self, target, address, steps, width):
        connection = await _Connection.to(target)
        found = []
        try:
            for name in ("Page", "Runtime", "Log"):
                await connection.call(f"{name}.enable")
            await connection.call(
                "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
            )
            await connection.call("Page.navigate", url=address)
            await connection.until("Page.loadEventFired")
            await connection.evaluated(READY)
            for step in steps:
                match step:
                    case str():
                        found.append(await connection.evaluated(step))
                    case Mouse():
                        x, y = await connection.evaluated(step.place)
                        kinds = ("mouseMoved", "mousePressed", "mouseReleased") if step.is_click else ("mouseMoved",)
                        for kind in kinds:
                            button = "none" if kind == "mouseMoved" else "left"
                            await connection.call(
                                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1
                            )
                    case Key():
                        key = {
                            "key": step.name,
                            "code": step.name,
                            "windowsVirtualKeyCode": step.number,
                            "text": step.text,
                        }
                        await connection.call("Input.dispatchKeyEvent", type="keyDown", **key)
                        await connection.call("Input.dispatchKeyEvent", type="keyUp", **key)
            assert connection.complaints == []
        finally:
            await connection.close()
        return found

    async def _value(self, target, address, script):
        connection = await _Connection.to(target)
        try:
            await connection.call("Page.enable")
            await connection.call("Page.navigate", url=address)
            await connection.until("Page.loadEventFired")
            return await connection.evaluated(script)
        finally:
            await connection.close()

    async def _sight(self, target, address, width, *, dark, printed):
        connection = await _Connection.to(target)
        try:
            for name in ("Page", "Network", "Runtime", "Log"):
                await connection.call(f"{name}.enable")
            await connection.call(
                "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
            )
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            await connection.call("Emulation.setEmulatedMedia", media="print" if printed else "", features=[scheme])
            await connection.call("Page.navigate", url=address)
            await connection.until("Page.loadEventFired")
            await connection.evaluated(READY)
            seen = json.loads(await connection.evaluated(MEASURE))
            shot = await connection.call("Page.captureScreenshot", captureBeyondViewport=True)
        finally:
            await connection.close()
        font = seen.pop("font")
        small = f"{font:.1f} px" if font < LEAST_FONT else ""
        return Sight(
            **seen, small=small, console=connection.complaints, requests=connection.requests
        ), base64.b64decode(shot["data"])


def _target(port):
    """A new, empty page."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(json.load(answer)["webSocketDebuggerUrl"])


class _Connection:
    """The DevTools protocol: calls with their answers, and events."""

    def __init__(self, socket):
        self._socket, self._numbers = socket, count(1)
        self._events = []
        self.complaints = []
        self.requests = []

    @classmethod
    async def to(cls, target):
        from tornado.websocket import websocket_connect

        return cls(await websocket_connect(target, max_message_size=200_000_000))

    async def call(self, method, **parameters):
        number = next(self._numbers)
        await self._socket.write_message(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = await self._next()
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    async def evaluated(self, script):
        """What a script says, once what it promises is there."""
        done = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    async def until(self, event):
        while event not in self._events:
            await self._next()

    async def close(self):
        await self._socket.write_message(json.dumps({"id": next(self._numbers), "method": "Page.close", "params": {}}))
        while await self._socket.read_message() is not None:  # the page is gone, and with it the connection
            pass
        self._socket.close()

    async def _next(self):
        text = await asyncio.wait_for(self._socket.read_message(), 60)
        assert text is not None, "the browser has gone"
        message = json.loads(text)
        method, parameters = message.get("method", ""), message.get("params", {})
        self._events.append(method)
        match method:
            case "Network.requestWillBeSent" if not parameters["request"]["url"].startswith(OURS):
                self.requests.append(parameters["request"]["url"])
            case "Network.loadingFailed":
                self.requests.append(f"failed: {parameters.get('errorText')}")
            case "Runtime.exceptionThrown":
                self.complaints.append(str(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in {"error", "warning", "assert"}:
                self.complaints.append(str(parameters["args"]))
            case "Log.entryAdded" if parameters["entry"]["level"] in {"error", "warning"}:
                self.complaints.append(parameters["entry"]["text"])
        return message


@contextmanager
def served(folder):
    """The address of a folder on this machine."""
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def browser():
    """One process for many pages; it has no network but this machine's."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--allow-file-access-from-files",
            "--hide-scrollbars",
        )
        offline = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        command = [
            str(BROWSER),
            *options,
            offline,
            "--remote-debugging-port=0",
            "--remote-allow-origins=*",
            f"--user-data-dir={profile}",
        ]
        process = subprocess.Popen([*command, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            note, until_s = Path(profile) / "DevToolsActivePort", time.monotonic() + 60
            while not (note.exists() and note.read_text().strip()):
                assert time.monotonic() < until_s, "Chromium does not start"
                assert process.poll() is None, "Chromium has ended"
                time.sleep(0.1)
            yield Browser(int(note.read_text().split()[0]))
        finally:
            process.terminate()
            process.wait(30)
