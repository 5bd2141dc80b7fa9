"""The demo's page: what was sent, what became of each delivery, and what each of them changed."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from local.demo.chart import patterns, span
from local.demo.markup import Element, document, element
from local.demo.parts import section
from local.demo.record import Outcome, Record, Story, Theme, figures
from local.demo.story import dead_letters, once, stories
from local.demo.time_line import time_line

STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
# The page is whole without it.
SCRIPT = """
(function () {
  var form = document.querySelector(".filter"), field = form.querySelector("input");
  var said = form.querySelector("[role=status]"), opened = [];
  form.hidden = false;
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  field.addEventListener("input", function () {
    var text = field.value.trim().toLowerCase(), found = 0;
    document.querySelectorAll("#events tbody").forEach(function (body) {
      body.hidden = text !== "" && body.querySelector("th").firstChild.textContent.toLowerCase().indexOf(text) < 0;
      found += body.hidden ? 0 : 1;
    });
    if (text !== "") {
      document.querySelectorAll("#events details:not([open])").forEach(function (part) {
        part.open = true;
        opened.push(part);
      });
    } else {
      opened.splice(0).forEach(function (part) { part.open = false; });
    }
    said.textContent = text === "" ? "" : found + (found === 1 ? " event" : " events");
  });
})();
"""

THEMES = {
    Theme.KILLED: (
        "Killed in the middle",
        "The function's processes died while they had these messages. SQS gave them out again once they were visible, "
        "and the ledger told what was left to do.",
    ),
    Theme.TWINS: (
        "Twice in one batch",
        "The producer sent these twice in one call. One of the two did the work.",
    ),
    Theme.IMPOSTOR: (
        "Same id, other content",
        "A message came with the id of an event that was there before, and another total. The ledger knows the content "
        "it has seen: the row stayed as it was, and the message went to the dead-letter queue.",
    ),
    Theme.RESENT: ("Sent again later", "The producer sent these once more. What was done was not done again."),
    Theme.RETURNED: ("Given out again", "A call could not finish with these, and SQS gave them out again."),
}
_METRICS = {
    Outcome.APPLIED: "Applied",
    Outcome.RESUMED: "Resumed",
    Outcome.DUPLICATE: "Duplicates",
    Outcome.REJECTED: "Rejected",
    Outcome.CONFLICT: "Conflicts",
    Outcome.RETRY: "Retries",
}
_OPEN = (Theme.KILLED, Theme.TWINS, Theme.IMPOSTOR)


def render(record: Record) -> str:
    """The page as HTML, complete in itself."""
    return document(element("html", _head(record), _body(record), lang="en"))


def _head(record: Record) -> Element:
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(STYLE)}'; script-src '{_hash(SCRIPT)}'"
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", _title(record)),
        element("link", rel="icon", href="data:,"),
        element("style", STYLE),
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _title(record: Record) -> str:
    return f"What became of {record.report.sent:,} messages"


def _body(record: Record) -> Element:
    return element(
        "body",
        element("a", "Skip to the figures", href="#figures", class_="skip"),
        patterns(),
        _header(record),
        element(
            "main",
            *_problems(record.report.problems),
            _figures(record),
            time_line(record),
            dead_letters(record.dead_letters),
            _events(record),
            _sources(record),
        ),
        element("footer", element("p", "Made by make demo. The same figures for programs: build/demo.json.")),
        element("script", SCRIPT),
    )


def _header(record: Record) -> Element:
    links = {
        "figures": "Figures",
        "time-line": "Time line",
        "dead-letters": "Dead letters",
        "events": "Event by event",
        "sources": "How it is known",
    }
    return element(
        "header",
        element("p", f"examples/orders on an emulator, {record.began:%d %B %Y, %H:%M} UTC", class_="run"),
        element("h1", _title(record)),
        _verdict(record),
        element(
            "nav",
            element("ul", *(element("li", element("a", text, href=f"#{name}")) for name, text in links.items())),
            aria_label="On this page",
        ),
    )


def _verdict(record: Record) -> Element:
    report = record.report
    came = (
        f" {report.sent:,} messages, {report.duplicates_sent:,} of them duplicates, were delivered "
        f"{len(record.deliveries):,} times while the function was killed {_times(len(record.kills))}. "
        f"{report.unique_events:,} events became {report.business_rows:,} rows"
    )
    if report.is_clean:
        said = element("strong", "Nothing lost, nothing doubled.")
        return element("p", said, came + ", each written once.", class_="verdict")
    said = element("strong", f"Lost {report.lost}, doubled {report.doubled}, unexpected {report.unexpected}.")
    return element("p", said, came + ".", class_="verdict unclean")


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _problems(problems: Sequence[str]) -> list[Element]:
    if not problems:
        return []
    found = element("ul", *(element("li", problem) for problem in problems))
    return [element("section", element("h2", "What is wrong", id="problems"), found, class_="problems")]


def _figures(record: Record) -> Element:
    """Lost and doubled come first. The reasons of dead letters have a table of their own."""
    shown = figures(record.report, record.reported, record.killed, record.seconds)
    shown.sort(key=lambda figure: figure.name not in ("lost", "doubled"))
    return section(
        "figures",
        "Figures",
        element(
            "dl",
            *(
                element(
                    "div",
                    element("dt", figure.name),
                    element("dd", figure.value, class_="value bad" if figure.is_bad else "value"),
                    element("dd", figure.meaning.partition("\n")[0], class_="meaning"),
                )
                for figure in shown
            ),
            class_="figures",
        ),
    )


def _events(record: Record) -> Element:
    by_theme: dict[Theme, list[Story]] = {theme: [] for theme in Theme}
    for story in record.stories:
        by_theme[story.theme].append(story)
    seconds = span(record)
    groups = [
        stories(theme.value, heading, text, by_theme[theme], record.kills, seconds, is_open=theme in _OPEN)
        for theme, (heading, text) in THEMES.items()
        if by_theme[theme]
    ]
    return section(
        "events",
        "Event by event",
        element(
            "p",
            "Each event with its deliveries in order, by what happened to it. Times are seconds since the first "
            "message was sent. In the small time lines a disc did the work, a ring changed nothing, a cross was cut "
            "off, a square became a dead letter, a triangle came back, and broken lines are the kills.",
        ),
        _filter(),
        *groups,
        *([once(by_theme[Theme.ONCE])] if by_theme[Theme.ONCE] else []),
    )


def _filter() -> Element:
    return element(
        "form",
        element("label", "Show only events with this in their id", for_="filter"),
        element("input", id="filter", type="search", autocomplete="off", spellcheck="false"),
        element("p", role="status", class_="note"),
        class_="filter",
        role="search",
        hidden=True,
    )


def _sources(record: Record) -> Element:
    return section(
        "sources",
        "How it is known",
        element(
            "p",
            "The emulator notes each call of the function: the messages it handed over, and whether there was an "
            "answer. The function logs what a person has to look into, and counts the rest. The tables' change streams "
            "tell of each write, and a row of the ledger names the message that committed or settled the event, and "
            "when. The subscriber's queue says when each notification arrived. What a killed call had done follows "
            "from these times.",
        ),
        element("p", _agreement(record)),
    )


def _agreement(record: Record) -> str:
    """Whether the deliveries add up to what the function counted."""
    counted = {outcome: record.reported.get(metric, 0) for outcome, metric in _METRICS.items()}
    shown = Counter(delivery.outcome for delivery in record.deliveries)
    if all(shown[outcome] == number for outcome, number in counted.items()):
        return "The outcomes shown here add up to the function's own counts."
    said = ", ".join(f"{number:,} {outcome.value} ({shown[outcome]:,} here)" for outcome, number in counted.items())
    return f"The outcomes shown here do not add up to the function's own counts: {said}."
