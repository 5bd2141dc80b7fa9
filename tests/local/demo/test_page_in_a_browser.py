"""The demo's page in headless Chromium: nothing fails, nothing leaves the page, nothing overflows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from local.demo.page import render
from tests.local.demo.run import RECORD

SECONDS = 60
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), "")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason=f"no browser on the PATH: none of {', '.join(NAMES)}")
DARK, LIGHT = 0, 1
# Tells what a page does, and how wide it is, in the title of the page around it, where --dump-dom shows it.
MEASURE = """
var failed = [];
window.addEventListener("error", function (event) { failed.push(event.message); }, true);
window.addEventListener("load", function () {
  var asked = performance.getEntriesByType("resource").map(function (entry) { return entry.name; });
  var page = document.documentElement, ground = getComputedStyle(document.body).backgroundColor;
  document.querySelectorAll("details").forEach(function (part) { part.open = true; });
  parent.postMessage(
    {asked: asked, failed: failed, width: page.scrollWidth, room: page.clientWidth, ground: ground}, "*");
});
"""
FRAME = """<!doctype html><style>body { margin: 0; } iframe { border: 0; }</style>
<script>
window.addEventListener("message", function (event) { document.title = JSON.stringify(event.data); });
</script>
<iframe src="measured.html" width="%d" height="900"></iframe>
"""


def run(page: Path, *arguments: str, width: int = 1200, scheme: int = LIGHT) -> tuple[str, str]:
    """What Chromium prints of a page, and what it logs. It cannot get beyond this machine."""
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--hide-scrollbars",
        "--enable-logging=stderr",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={page.parent / 'profile'}",
        f"--blink-settings=preferredColorScheme={scheme}",
        f"--window-size={width},1000",
        *arguments,
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    return done.stdout, done.stderr


def measured(folder: Path, html: str, width: int, scheme: int = LIGHT) -> dict[str, Any]:
    """What a page does and takes in a window of this width. No window is as narrow as a frame can be."""
    # Without its policy, which would stop what is to be seen here.
    free = re.sub(r"<meta http-equiv=[^>]*>", "", html)
    written(folder, "measured.html", free.replace("<head>", f"<head><script>{MEASURE}</script>", 1))
    shown, _ = run(written(folder, "frame.html", FRAME % width), "--dump-dom", scheme=scheme)
    title = re.search(r"<title>(.*)</title>", shown)
    assert title is not None
    return dict(json.loads(unescape(title[1])))


def written(folder: Path, name: str, html: str) -> Path:
    page = folder / name
    page.write_text(html, encoding="utf-8")
    return page


def test_a_page_that_fails_asks_and_overflows_is_seen(tmp_path: Path) -> None:
    """Else it would say nothing that another one does none of it."""
    html = (
        '<html><head></head><body><img src="http://127.0.0.1:9/x.png"><p style="width: 400px">wide</p>'
        "<script>nowhere();</script></body></html>"
    )
    seen = measured(tmp_path, html, 320)
    assert seen["asked"] == ["http://127.0.0.1:9/x.png"]
    assert seen["failed"][0] == "Uncaught ReferenceError: nowhere is not defined"
    assert (seen["width"], seen["room"]) == (408, 320)


@pytest.mark.parametrize("width", [320, 1200])
def test_nothing_fails_leaves_the_page_or_overflows(width: int, tmp_path: Path) -> None:
    seen = measured(tmp_path, render(RECORD), width)
    assert (seen["asked"], seen["failed"]) == ([], [])
    assert (seen["width"], seen["room"]) == (width, width)


def test_its_own_policy_lets_its_style_and_script_through(tmp_path: Path) -> None:
    shown, logged = run(written(tmp_path, "demo.html", render(RECORD)), "--dump-dom")
    assert "<title>What became of 14 messages</title>" in shown
    assert "CONSOLE" not in logged  # where Chromium says what it has refused
    assert '<form class="filter" role="search">' in shown  # hidden until the script has run


def test_the_filter_shows_events_by_their_id(tmp_path: Path) -> None:
    typed = """
    <script>
    var field = document.querySelector("#filter");
    field.value = " RESENT ";
    field.dispatchEvent(new Event("input"));
    var shown = [].filter.call(document.querySelectorAll("#events tbody"), function (b) { return !b.hidden; });
    var said = document.querySelector("[role=status]").textContent;
    document.title = shown.length + " " + shown[0].offsetHeight + " " + said;
    field.value = "";
    field.dispatchEvent(new Event("input"));
    document.title += " " + document.querySelectorAll("#events details[open]").length;
    </script></body>
    """
    html = re.sub(r"<meta http-equiv=[^>]*>", "", render(RECORD)).replace("</body>", typed)
    shown, _ = run(written(tmp_path, "typed.html", html), "--dump-dom")
    title = re.search(r"<title>(.*)</title>", shown)
    assert title is not None
    found, height, status, opened = re.fullmatch(r"(\d+) (\d+) (.*?) (\d+)", title[1]).groups()  # type: ignore[union-attr]
    assert (found, status, opened) == ("1", "1 event", "3")
    assert int(height) > 0


@pytest.mark.parametrize(("scheme", "ground"), [(LIGHT, "rgb(251, 250, 248)"), (DARK, "rgb(20, 23, 26)")])
def test_it_takes_the_colours_of_the_readers_scheme(scheme: int, ground: str, tmp_path: Path) -> None:
    assert measured(tmp_path, render(RECORD), 1200, scheme)["ground"] == ground


@pytest.mark.parametrize("scheme", [LIGHT, DARK])
@pytest.mark.parametrize("width", [500, 1200])
def test_there_is_something_to_see(width: int, scheme: int, tmp_path: Path) -> None:
    """A picture of one colour is a small file."""
    blank = '<!doctype html><meta name="color-scheme" content="light dark">'
    assert len(picture(tmp_path, render(RECORD), width, scheme)) > 5 * len(picture(tmp_path, blank, width, scheme))


def picture(folder: Path, html: str, width: int, scheme: int) -> bytes:
    shot = folder / "shot.png"
    run(written(folder, "shown.html", html), f"--screenshot={shot}", width=width, scheme=scheme)
    content = shot.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(content[16:20], "big") == width
    return content
