"""The demo's page: what it says of a small run, and that everybody can read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from local.audit import Found
from local.demo.gather import Seen, record_of
from local.demo.page import STYLE, render
from local.demo.record import Outcome, Record, Story, Theme
from local.traffic import Traffic
from tests.local.demo.run import DONE, FIRST, HOSTILE, RECORD, REPORT, delivery

CHART_ROWS = ["applied", "resumed", "duplicate", "cut off by a kill", "dead-lettered", "came back"]
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    def all(self, *tags: str) -> Iterator[Node]:
        for child in self.children:
            if isinstance(child, Node):
                if not tags or child.tag in tags:
                    yield child
                yield from child.all(*tags)

    def by_id(self, name: str) -> Node:
        (found,) = (node for node in self.all() if node.attributes.get("id") == name)
        return found

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class Reader(HTMLParser):
    """A page as a tree; fails where elements are not closed in turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = Node("")
        self.open = [self.root]
        self.feed(html)
        self.close()
        assert self.open == [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs))
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(record: Record = RECORD) -> Node:
    return Reader(render(record)).root


PAGE = read()


def rows(node: Node) -> list[list[str]]:
    return [[cell.text for cell in row.all("th", "td")] for row in node.all("tr")]


def effects(event_id: str) -> list[str]:
    """What the page says of each delivery of an event: outcome, and what it changed."""
    (body,) = (body for body in PAGE.by_id("events").all("tbody") if next(body.all("th")).text.startswith(event_id))
    return [" | ".join(row[-2:]) for row in rows(body)]


def test_the_first_sentence_is_the_verdict_with_its_figures() -> None:
    (header,) = PAGE.all("header")
    assert [p.text for p in header.all("p")][1] == (
        "Nothing lost, nothing doubled. 14 messages, 5 of them duplicates, were delivered 20 times while the function "
        "was killed twice. 7 events became 7 rows, each written once."
    )
    assert not [node for node in PAGE.all("section") if node.attributes.get("class") == "problems"]


def test_an_unclean_run_says_what_is_wrong_before_all_else() -> None:
    report = replace(REPORT, lost=1, doubled=2, problems=["a was written 2 times", "b is <gone>"])
    page = read(replace(RECORD, report=report))
    (main,) = page.all("main")
    first = next(main.all("section"))
    assert first.text == "What is wronga was written 2 timesb is <gone>"
    (header,) = page.all("header")
    assert [p.text for p in header.all("p")][1].startswith("Lost 1, doubled 2, unexpected 0. 14 messages")
    assert "each written once" not in header.text
    bad = [node.text for node in page.all("dd") if node.attributes["class"] == "value bad"]
    assert bad == ["1", "2"]


def test_the_figures_begin_with_what_was_lost_and_doubled() -> None:
    names = [node.text for node in PAGE.all("dt")]
    values = [node.text for node in PAGE.all("dd") if node.attributes["class"] == "value"]
    assert list(zip(names, values, strict=True)) == [
        ("lost", "0"),
        ("doubled", "0"),
        ("events sent", "14"),
        ("unique events", "7"),
        ("business rows", "7"),
        ("ledger: sent", "7"),
        ("notifications", "7 / 9"),
        ("resumed", "2"),
        ("killed", "6"),
        ("dead-lettered", "2 / 3"),
        ("seconds", "97"),
    ]


@pytest.mark.parametrize(
    ("event_id", "told"),
    [
        ("once", ["●applied | business row and ledger row written, notification published, ledger row marked sent"]),
        (
            "resent",
            [
                "●applied | business row and ledger row written, notification published, ledger row marked sent",
                "○duplicate | nothing: the ledger says sent",
            ],
        ),
        (
            "twins",
            [
                "●applied | business row and ledger row written, notification published, ledger row marked sent",
                "○duplicate | nothing: its copy in the same call did the work",
            ],
        ),
        (
            "rows",
            [
                "✕cut off by a kill | business row and ledger row written; not announced",
                "◐resumed | notification published, ledger row marked sent; no row written, the ledger holds the event",
            ],
        ),
        (
            "published",
            [
                "✕cut off by a kill | business row and ledger row written, notification published; not marked, so it "
                "may be announced once more",
                "◐resumed | notification published, ledger row marked sent; no row written, the ledger holds the event",
            ],
        ),
        (
            "answer",
            [
                "✕cut off by a kill | business row and ledger row written, notification published, ledger row marked "
                "sent; only the answer was missing",
                "✕cut off by a kill | nothing: there was nothing left to do",
                "○duplicate | nothing: the ledger says sent",
            ],
        ),
        (
            "early",
            [
                "✕cut off by a kill | nothing: it died before it wrote",
                "●applied | business row and ledger row written, notification published, ledger row marked sent",
            ],
        ),
        (
            "<i>false</i>",
            [
                "●applied | business row and ledger row written, notification published; another call marked it",
                "◆conflict: id-reused | copy in the dead-letter queue; no row written, the ledger holds this id with "
                "other content",
            ],
        ),
        (
            "returned",
            [
                "↻retry: throttled | nothing: the message comes back",
                "✕failed: Task timed out | nothing: the message comes back",
            ],
        ),
    ],
)
def test_each_delivery_says_what_it_changed_and_what_not(event_id: str, told: list[str]) -> None:
    assert effects(event_id) == told


def test_a_delivery_says_when_and_why_it_came() -> None:
    (body,) = (body for body in PAGE.by_id("events").all("tbody") if next(body.all("th")).text.startswith("rows"))
    first, second = rows(body)
    assert first[:4] == [
        "rowssent 1×, delivered 2×1 row, 1 notification",
        "3.95 s",
        "4.00 s",
        "first sendmessage 1, call 4",
    ]
    assert second[:3] == ["19.95 s", "20.00 s", "redelivered after a killmessage 1, call 20"]


def test_events_are_grouped_by_what_happened_to_them() -> None:
    assert [heading.text for heading in PAGE.all("h3")] == [
        "Killed in the middle: 4 events",
        "Twice in one batch: 1 event",
        "Same id, other content: 1 event",
        "Sent again later: 1 event",
        "Given out again: 1 event",
        "Delivered once: 1 event",
    ]
    groups = [node for node in PAGE.all("details") if node.attributes.get("class") == "story"]
    assert ["open" in group.attributes for group in groups] == [True, True, True, False, False, False]


def test_a_large_group_shows_its_first_events_and_the_others_on_demand() -> None:
    many = [
        Story(f"e-{n:03d}", Theme.TWINS, [delivery(n, FIRST, Outcome.APPLIED, DONE)] * 2, 1, 1, 2) for n in range(9)
    ]
    events = read(replace(RECORD, stories=many)).by_id("events")
    (more,) = (node for node in events.all("details") if node.attributes.get("class") == "more")
    assert next(more.all("summary")).text == "3 events more"
    assert len(list(more.all("tbody"))) == 3
    assert len(list(events.all("tbody"))) == 9


def test_dead_letters_have_their_reasons_and_their_deliveries() -> None:
    (table,) = PAGE.by_id("dead-letters").all("table")
    assert next(table.all("caption")).text == "4 dead letters of 3 messages"
    assert rows(table)[1:] == [
        [
            "bad-json2 copies",
            "is not JSON",
            HOSTILE.replace("\u202e", "\\u202e"),
            "4.00 s: cut off by a kill20.00 s redelivered after a kill: rejected",
        ],
        ["id-reused1 copy", "is taken", '{"id": "<i>false</i>"}', "30.00 s: conflict"],
        ["(none)1 copy", "moved by the queue's own redrive policy", "moved", ""],
    ]


def test_the_time_line_is_there_in_words_and_in_numbers() -> None:
    line = PAGE.by_id("time-line")
    (chart,) = (node for node in line.all("svg") if node.attributes.get("role") == "img")
    assert chart.attributes["aria-labelledby"] == "chart-title chart-description"
    assert PAGE.by_id("chart-title").text == "Messages over time"
    assert PAGE.by_id("chart-description").text == (
        "35 seconds, in rows: 14 sent, 5 applied, 2 resumed, 3 duplicate, 6 cut off by a kill, 2 dead-lettered, "
        "2 came back. Kills, at seconds: 4.2, 6.1. The table below has the numbers."
    )
    assert rows(line)[:3] == [
        ["seconds", "sent", *CHART_ROWS, "kills"],
        ["0 to 5", "12", "4", "0", "2", "5", "0", "0", "1"],
        ["5 to 10", "1", "0", "0", "0", "1", "0", "2", "1"],
    ]
    legend = [node.text for node in line.all("li")]
    assert legend == [
        "first send",
        "sent again",
        "redelivered",
        "✕ 1 at 4.20 s: 5 processes killed",
        "✕ 2 at 6.10 s: 1 process killed",
    ]


def test_it_says_whether_it_adds_up_to_what_the_function_counted() -> None:
    assert PAGE.by_id("sources").text.endswith("The outcomes shown here add up to the function's own counts.")
    other = read(replace(RECORD, reported={"Applied": 6}))
    assert "do not add up to the function's own counts: 6 applied (5 here), 0 resumed (2 here)" in other.text


def test_a_run_in_which_nothing_was_delivered_has_a_page() -> None:
    traffic = Traffic({}, [], [], [], [])
    seen = Seen([], [], [], Found([], [], [], [], [], []), [], {})
    page = read(record_of(traffic, seen, replace(REPORT, lost=860), {}, 300.0))
    assert "Lost 860" in page.text


# Accessibility: what can be told from the source. The rest is in test_page_in_a_browser.py.


def test_the_page_is_complete_in_itself() -> None:
    html = render(RECORD)
    links = [
        node.attributes[name] for node in PAGE.all() for name in ("src", "href", "srcset") if name in node.attributes
    ]
    assert {link for link in links if link and not link.startswith("#")} == {"data:,"}
    assert not re.search(r"url\((?!#)|@import|@font-face", STYLE)
    (policy,) = (m.attributes["content"] for m in PAGE.all("meta") if m.attributes.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    assert not [node for node in PAGE.all() for name in node.attributes if name == "style" or name.startswith("on")]
    assert len(html.encode()) < 100_000


def test_what_was_sent_cannot_become_part_of_the_page() -> None:
    assert len(list(PAGE.all("script"))) == 1
    assert not list(PAGE.all("img", "i"))
    assert "\u202e" not in render(RECORD)


def test_it_has_a_language_one_main_heading_and_the_others_in_order() -> None:
    (html,) = PAGE.all("html")
    assert html.attributes["lang"] == "en"
    levels = [int(node.tag[1]) for node in PAGE.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_it_has_landmarks_and_a_link_to_skip_to_the_content() -> None:
    assert [len(list(PAGE.all(tag))) for tag in ("header", "nav", "main", "footer")] == [1, 1, 1, 1]
    first = next(PAGE.all("a"))
    assert first.attributes == {"href": "#figures", "class": "skip"}


def test_ids_are_unique_and_whatever_is_named_is_there() -> None:
    ids = [node.attributes["id"] for node in PAGE.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in PAGE.all():
        for name in ("aria-labelledby", "for"):
            for target in (node.attributes.get(name) or "").split():
                assert target in ids
        link = node.attributes.get("href") or ""
        if link.startswith("#"):
            assert link[1:] in ids


def test_each_table_has_a_caption_scopes_and_a_region_for_the_keyboard() -> None:
    regions = [node for node in PAGE.all("div") if node.attributes.get("role") == "region"]
    for region in regions:
        assert region.attributes["tabindex"] == "0"
        assert region.attributes.get("aria-labelledby") or region.attributes.get("aria-label")
    tables = list(PAGE.all("table"))
    assert len(tables) == 8
    assert [table for region in regions for table in region.all("table")] == tables
    for table in tables:
        (caption,) = table.all("caption")
        assert caption.text
        assert {head.attributes.get("scope") for head in table.all("th")} <= {"col", "row", "rowgroup"}


def test_no_row_of_a_table_is_short_of_a_cell() -> None:
    for table in PAGE.all("table"):
        width = len(list(next(table.all("tr")).all("th")))
        for body in table.all("tbody"):
            for number, row in enumerate(body.all("tr")):
                cells = list(row.all("th", "td"))
                spanned = number > 0 and next(body.all("th")).attributes.get("rowspan") is not None
                assert len(cells) == width - spanned


def test_pictures_are_described_or_hidden() -> None:
    for picture in PAGE.all("svg"):
        assert picture.attributes.get("role") == "img" or picture.attributes.get("aria-hidden") == "true"


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_wcag_does() -> None:
    assert round(contrast("#000000", "#ffffff"), 2) == 21.0
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_marks_stand_out_in_both_schemes(scheme: str) -> None:
    light, dark = (dict(re.findall(r"(--[a-z]+): (#[0-9a-f]{6})", part)) for part in STYLE.split("@media", 2)[:2])
    colours = light if scheme == "light" else dark
    assert light.keys() == dark.keys()
    for ground in ("--ground", "--panel"):
        for ink in ("--text", "--muted", "--link", "--good", "--bad", "--kill"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
        for mark in ("--first", "--again", "--redelivered"):
            assert contrast(colours[mark], colours[ground]) >= 3, (mark, ground)


def test_the_style_takes_its_colours_from_the_scheme_alone() -> None:
    _, _, rules = STYLE.split("@media", 2)[2].partition("* {")
    assert not re.search(r"#[0-9a-f]{3,8}\b|rgb|hsl", rules.replace("url(#striped)", "").replace("url(#dotted)", ""))
    assert "prefers-reduced-motion" in STYLE
