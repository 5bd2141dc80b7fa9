"""Text of others on the operator's terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with escapes in place of all that could move the cursor, turn or hide other text, or look like a space.

    Event ids, message attributes and groups come from producers, who may put anything into them.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
