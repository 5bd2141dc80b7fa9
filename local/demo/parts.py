"""What the parts of the demo's page are made of."""

from __future__ import annotations

from collections.abc import Sequence

from local.demo.markup import Element, element


def section(name: str, heading: str, *content: Element) -> Element:
    """A part of the page that can be linked to by `name`."""
    title = element("h2", heading, id=f"{name}-heading")
    return element("section", title, *content, id=name, aria_labelledby=f"{name}-heading")


def table(
    name: str,
    caption: str,
    heads: Sequence[str],
    bodies: Sequence[Element],
    *,
    numbers: Sequence[str] = (),
    kind: str | None = None,
) -> Element:
    """A table in a region of its own that can be scrolled, with the keyboard too.

    name: for its ids. bodies: `tbody` elements. numbers: the heads of columns of numbers.
    """
    head = [element("th", text, scope="col", class_="number" if text in numbers else None) for text in heads]
    return element(
        "div",
        element(
            "table",
            element("caption", caption, id=f"{name}-caption"),
            element("thead", element("tr", *head)),
            *bodies,
            class_=kind,
        ),
        class_="scroll",
        role="region",
        tabindex=0,
        aria_labelledby=f"{name}-caption",
    )


def in_seconds(at: float) -> str:
    return f"{at:.2f} s"


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun. many: the plural, where it has more than an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
