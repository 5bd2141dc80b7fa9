"""The plot: well-formed, to scale, and nothing but shapes and texts."""

from __future__ import annotations

from xml.etree import ElementTree

from benchmarks.plot import Cost, costs, svg
from tests.benchmarks.support import report

NAMESPACE = "{http://www.w3.org/2000/svg}"
THROUGHPUT = {"ours": {1: 500.0, 10: 4000.0}, "peer": {1: 600.0, 10: 700.0}}


def drawn(bars: list[Cost], peer: str = "Powertools 3.37.0") -> ElementTree.Element:
    return ElementTree.fromstring(svg(bars, THROUGHPUT, peer))


def test_it_holds_shapes_and_texts_alone() -> None:
    kinds = {element.tag.removeprefix(NAMESPACE) for element in drawn([Cost("calls", 3, 40)]).iter()}

    assert kinds == {"svg", "style", "rect", "text", "line", "polyline", "circle"}


def test_the_longer_bar_fills_the_width_and_the_other_is_to_scale() -> None:
    bars = [bar for bar in drawn([Cost("calls", 3, 40)]).iter(f"{NAMESPACE}rect") if bar.get("height") == "11"]

    assert [(bar.get("class"), bar.get("width")) for bar in bars] == [("ours", "28.5"), ("peer", "380.0")]


def test_the_curves_run_from_the_smallest_batch_to_the_largest() -> None:
    picture = drawn([Cost("calls", 3, 40)])

    points = {line.get("class"): line.get("points") for line in picture.iter(f"{NAMESPACE}polyline")}
    labels = [text.text for text in picture.iter(f"{NAMESPACE}text")]

    assert points == {
        "line ours": "76.0,338.2 630.0,172.0",
        "line peer": "76.0,333.5 630.0,328.8",
    }
    assert {"0", "1,000", "2,000", "3,000", "4,000"} <= set(labels)


def test_texts_are_escaped() -> None:
    labels = [text.text for text in drawn([Cost("a <b> & c", 1, 2, "ms")], "peer & co").iter(f"{NAMESPACE}text")]

    assert {"a <b> & c", "1 ms", "2 ms", "peer & co"} <= set(labels)


def test_its_bars_are_the_report_s_costs() -> None:
    assert costs(report()["details"]) == [
        Cost("AWS calls, 10 new events", 3, 40),
        Cost("AWS calls, 10 redelivered events", 1, 10),
        Cost("CPU time, 10 new events", 2.5, 14.3, "ms"),
        Cost("CPU time, 10 redelivered events", 1.0, 4.0, "ms"),
        Cost("10 new events at 5 ms a call", 18.0, 234.0, "ms"),
        Cost("1,000 messages on the emulator", 1.25, 5.0, "s"),
        Cost("Cold start: imports and clients", 180.0, 250.0, "ms"),
    ]
