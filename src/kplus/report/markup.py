"""HTML and SVG by one function: whatever is not markup already is text, and escaped."""

import html
import json
import re
from collections.abc import Iterable
from typing import Any

__all__ = ["Markup", "joined", "shortened", "tag", "text_of", "to_json"]

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
# Control characters, lone surrogates, and what turns the direction of the text around.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_LONGEST = 60


class Markup(str):
    """Text that is HTML already; all other text is escaped."""


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element of HTML or SVG.

    Parameters
    ----------
    name : str
    children : str, Markup, number, None, or iterables of these
    attributes : str, number, bool or None
        ``class_`` is class, other underscores are hyphens. True: an attribute without
        a value; None and False: none.

    Examples
    --------
    >>> tag("p", "1 < 2", tag("br"), class_="small", data_group=3, hidden=True)
    '<p class="small" data-group="3" hidden>1 &lt; 2<br></p>'
    """
    told = "".join(_attribute(*item) for item in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{told}>")
    return Markup(f"<{name}{told}>{joined(children)}</{name}>")


def joined(children: Iterable[Any]) -> Markup:
    """Children one after the other."""
    return Markup("".join(map(_child, children)))


def _child(child: Any) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return str(child)
    if isinstance(child, (str, int, float)):
        return text_of(child)
    return joined(child)


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    # SVG has names of its own with capitals, which are passed as they are.
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text_of(value)}"'


def text_of(value: Any) -> str:
    """Any value as text of HTML."""
    return html.escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", str(value)))


def to_json(value: Any) -> Markup:
    """A value as JSON that can stand inside of a script element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(
        text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    )


def shortened(text: Any, longest: int = _LONGEST) -> str:
    """A name of any length, in one line that can be printed."""
    line = " ".join(str(text).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
