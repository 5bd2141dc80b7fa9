from __future__ import annotations

from local.demo.markup import document, element


def test_what_an_element_holds_is_escaped() -> None:
    """In an attribute only a quote could end it."""
    made = element("p", "<script>alert(1)</script> & ", element("b", "</b>"), " a<b", title='"><img src=x>')
    assert document(made) == (
        "<!doctype html>\n"
        '<p title="&quot;&gt;<img src=x&gt;">&lt;script&gt;alert(1)&lt;/script&gt; &amp; <b>&lt;/b&gt;</b> a&lt;b</p>\n'
    )


def test_what_cannot_be_seen_is_shown_as_an_escape() -> None:
    made = element("p", "a\x00b\u202ec\ud800\ufeff\nd é 漢")
    assert document(made).encode() == "<!doctype html>\n<p>a\\u0000b\\u202ec\\ud800\\ufeff\nd é 漢</p>\n".encode()


def test_attributes_are_named_and_left_out() -> None:
    made = element("a", class_="x", aria_label="y", hidden=True, open=False, rel=None, tabindex=0)
    assert document(made) == '<!doctype html>\n<a class="x" aria-label="y" hidden="" tabindex="0"></a>\n'
