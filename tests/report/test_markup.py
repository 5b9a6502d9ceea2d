"""Whatever is not markup is text: hostile names cannot become part of a page."""

import html
import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kplus.report.markup import Markup, joined, shortened, tag, text_of, to_json

HOSTILE = (
    "<script>alert(1)</script>",
    "</style></script><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" \'',
    "javascript:alert(1)",
    "&lt;b&gt; &amp;",
    "]]> <!-- -->",
    "\u2028\u2029\0\x1b[31m\ud800\ufffe",
    "\u202egnp.exe\u2066",
    "{{7*7}} ${7*7} `",
)


class Read(HTMLParser):
    """What a browser would see of a piece of HTML."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.text = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)

    def handle_comment(self, data):
        raise AssertionError(data)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_text(text):
    seen = Read(tag("p", text, [text, None, (text,)], title=text, data_words=text))
    (found,) = seen.tags
    printable = html.unescape(text_of(text))
    assert found == ("p", {"title": printable, "data-words": printable})
    assert "".join(seen.text) == printable * 3


@given(st.text())
def test_any_text_stays_text(text):
    seen = Read(tag("td", text, class_=text))
    assert len(seen.tags) == 1
    assert "".join(seen.text) == html.unescape(text_of(text)).replace("\r", "\n")
    assert not set("<>\"'\0\u202e\ud800") & set(text_of(text))


@given(st.text())
def test_data_in_a_script_ends_nothing(text):
    written = to_json({"names": [text, HOSTILE[1]]})
    assert not set("<>&") & set(written)
    assert written.isascii()
    assert json.loads(written) == {"names": [text, HOSTILE[1]]}


def test_numbers_that_json_lacks_are_refused():
    with pytest.raises(ValueError, match="Out of range"):
        to_json({"x": float("nan")})


def test_attributes_and_children():
    assert tag("a", href="#x", hidden=True, id=None, open=False) == (
        '<a href="#x" hidden></a>'
    )
    assert tag("br") == "<br>"
    assert joined([1, 2.5, Markup("<b>"), "<"]) == "12.5<b>&lt;"
    assert tag("svg", viewBox="0 0 1 1") == '<svg viewBox="0 0 1 1"></svg>'


def test_names_are_shortened_to_a_line():
    assert shortened("a\n b\tc") == "a b c"
    assert shortened("x" * 100) == "x" * 59 + "…"
    assert shortened("x" * 100, 10) == "x" * 9 + "…"
    assert shortened(3) == "3"
