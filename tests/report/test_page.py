"""Any page: its policy, its parts, and text that stays text."""

import base64
import hashlib
import html
import re

import pytest

from kplus.report.page import Fact, Section, page, sortable

HOSTILE = '</script></style><script>alert("1")</script>'


@pytest.fixture
def text():
    return page(
        HOSTILE,
        HOSTILE,
        [
            Section("one", HOSTILE, "body", HOSTILE, short=HOSTILE),
            Section("two", "Two", sortable(HOSTILE, ["a", HOSTILE], [])),
        ],
        facts=[Fact(HOSTILE, HOSTILE, HOSTILE, "good")],
        lines=[HOSTILE],
        data={"labels": HOSTILE},
        footer=HOSTILE,
    )


def test_hostile_text_is_escaped_everywhere(text):
    assert HOSTILE not in text
    assert 'alert("1")' not in text
    assert text.count("<script") == 2
    assert text.count("<style") == 1
    assert text.count(html.escape(HOSTILE)) == 14


def test_the_policy_allows_the_style_and_the_script_only(text):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    policy = html.unescape(policy)
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["default-src"] == parts["base-uri"] == "'none'"
    for name, found in [
        ("style-src", re.search(r"<style>(.*?)</style>", text, re.S)[1]),
        ("script-src", re.search(r"<script>(.*?)</script>", text, re.S)[1]),
    ]:
        digest = base64.b64encode(hashlib.sha256(found.encode()).digest()).decode()
        assert parts[name] == f"'sha256-{digest}'"


def test_nothing_comes_from_elsewhere(text):
    assert not re.search(r"(src|href)=\"(?!#|data:)", text)
    assert not re.search(r"https?://|@import|url\(|style=|\son\w+=", text)


def test_every_section_is_in_the_contents(text):
    assert re.findall(r'<li><a href="#(\w+)"', text) == ["one", "two"]
    assert re.findall(r'<section id="(\w+)" aria-labelledby="\1-heading"', text) == [
        "one",
        "two",
    ]


def test_headings_of_tables_sort():
    text = sortable("A table", ["name", "size"], [], numbers=["size"], id="x")
    assert text.count('<button type="button">') == 2
    assert '<th scope="col" data-number class="number">' in text
    assert '<table data-sort id="x"><caption class="hidden">A table' in text
