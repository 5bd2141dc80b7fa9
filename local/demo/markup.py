"""HTML from values: elements that escape what they hold."""

from __future__ import annotations

from xml.etree import ElementTree

Element = ElementTree.Element
Child = Element | str


def element(tag: str, *children: Child, **attributes: object) -> Element:
    """An element. In names of attributes `_` stands for `-`, and one at the end for nothing (`class_`).

    True makes an attribute without value; None and False leave it out.
    """
    made = Element(tag)
    for name, value in attributes.items():
        if value is not None and value is not False:
            made.set(name.rstrip("_").replace("_", "-"), "" if value is True else printable(str(value)))
    for child in children:
        if isinstance(child, Element):
            made.append(child)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + printable(child)
        else:
            made.text = (made.text or "") + printable(child)
    return made


def printable(text: str) -> str:
    """The text with what a reader cannot see, or what would reorder the rest, as an escape."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)


def document(root: Element) -> str:
    """A whole page. What stands in `script` and `style` is written as it is."""
    return "<!doctype html>\n" + ElementTree.tostring(root, encoding="unicode", method="html") + "\n"
