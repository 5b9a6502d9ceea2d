"""One HTML page that needs nothing else: no network, no inline styles, nothing foreign.

Its style and script are the files beside this one; a Content-Security-Policy allows
these two by their digests, and pictures that are in the page. The script knows no
particular page: it works on attributes.

``data-group="3"``
    belongs to group 3: shown beside all else of this group when one of them is
    pointed at; a button pins it.
``table[data-sort]``
    is sorted by the buttons in its headings; cells may have a ``data-value``.
``input[data-filter="#id"]``
    hides those children of #id, or rows of the table, whose text lacks what is typed:
    these words in a row or, where nothing has them so, each of them somewhere.
``button[data-open="#id"]``
    opens or closes all details in #id.
``button[data-download="key"]``
    saves what `key` of the page's data holds.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from kplus.report.markup import Markup, tag, to_json

__all__ = ["Fact", "Section", "page", "scroll", "sortable"]


@dataclass(frozen=True)
class Fact:
    """One of the few things at the top of a page."""

    label: str
    value: str
    note: str = ""
    tone: str = ""  # "good" or "poor", or neither


@dataclass(frozen=True)
class Section:
    """A part of a page, with an entry in its contents."""

    id: str
    title: str
    body: Any
    lead: Any = ""
    short: str = ""  # title in the contents, if another


def page(
    title: str,
    headline: str,
    sections: Sequence[Section],
    *,
    facts: Sequence[Fact] = (),
    lines: Sequence[Any] = (),
    data: Any = None,
    footer: Any = "",
) -> str:
    """A whole page.

    Parameters
    ----------
    title : str
        Of the window, and above the headline.
    headline : str
        The answer, in a sentence.
    sections : sequence of Section
    facts : sequence of Fact
        What stands in boxes below the headline.
    lines : sequence of str or Markup
        Sentences below these.
    data : plain values, optional
        What the script can save to a file, by key.
    footer : str or Markup
    """
    style, script = _resource("page.css"), _resource("page.js")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; "
        f"style-src '{_digest(style)}'; img-src data:; base-uri 'none'; "
        f"form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(style)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", class_="skip", href="#content"),
        _header(title, headline, facts, lines),
        _contents(sections),
        tag("main", map(_section, sections), id="content"),
        tag("footer", footer),
        None
        if data is None
        else tag("script", to_json(data), type="application/json", id="data"),
        tag("script", Markup(script)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _header(
    title: str, headline: str, facts: Sequence[Fact], lines: Sequence[Any]
) -> Markup:
    boxes = [
        tag(
            "div",
            tag("dt", fact.label),
            tag("dd", tag("strong", fact.value), tag("span", fact.note)),
            class_=f"fact {fact.tone}".strip(),
        )
        for fact in facts
    ]
    return tag(
        "header",
        tag(
            "div",
            tag("p", title, class_="kicker"),
            tag("button", "Dark", type="button", id="theme", hidden=True),
            class_="bar",
        ),
        tag("h1", headline),
        tag("dl", boxes, class_="facts") if boxes else None,
        [tag("p", line) for line in lines],
    )


def _contents(sections: Sequence[Section]) -> Markup:
    links = [
        tag("li", tag("a", section.short or section.title, href=f"#{section.id}"))
        for section in sections
    ]
    return tag("nav", tag("ul", links), aria_label="Contents")


def _section(section: Section) -> Markup:
    heading = f"{section.id}-heading"
    return tag(
        "section",
        tag("h2", section.title, id=heading),
        tag("p", section.lead, class_="lead") if section.lead else None,
        section.body,
        id=section.id,
        aria_labelledby=heading,
    )


def scroll(label: str, *children: Any) -> Markup:
    """What may be wider than a phone, with a scroll bar of its own."""
    return tag(
        "div", children, class_="scroll", tabindex=0, role="region", aria_label=label
    )


def sortable(
    label: str,
    columns: Sequence[str],
    rows: Sequence[Any],
    *,
    numbers: Sequence[str] = (),
    **attributes: Any,
) -> Markup:
    """A table that can be sorted by each of its columns.

    `rows` are tr elements; columns of `numbers` are sorted from the largest first.
    """
    headings = [
        tag(
            "th",
            tag("button", name, type="button"),
            scope="col",
            data_number=name in numbers,
            class_="number" if name in numbers else None,
        )
        for name in columns
    ]
    table = tag(
        "table",
        tag("caption", label, class_="hidden"),
        tag("thead", tag("tr", headings)),
        tag("tbody", rows),
        data_sort=True,
        **attributes,
    )
    return scroll(label, table)


def _resource(name: str) -> str:
    return files("kplus.report").joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
