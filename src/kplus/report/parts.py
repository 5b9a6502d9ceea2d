"""Words and pieces of HTML that several parts of a report have."""

import math
from collections.abc import Sequence

from kplus.report import pictures
from kplus.report.markup import Markup, shortened, tag

__all__ = [
    "MOST_LISTED",
    "OPEN_CARDS",
    "card_tools",
    "find",
    "group_cell",
    "more",
    "name_list",
    "number_cell",
    "rows_words",
    "say_share",
    "say_size",
    "share_cell",
]

OPEN_CARDS = 12  # cards that are not closed at first
MOST_LISTED = 60  # columns


def say_size(size: float) -> str:
    """A number of rows, or a sum of weights."""
    whole = size >= 100.0 or float(size).is_integer()
    return f"{size:,.0f}" if whole else f"{size:,.1f}"


def say_share(share: float) -> str:
    if not math.isfinite(share):
        return "–"
    if 0.0 < share < 0.001:
        return "< 0.1%"
    if 0.9995 <= share < 1.0:
        return "over 99.9%"
    return f"{share:.0%}" if 0.1 <= share <= 0.99 or share == 1.0 else f"{share:.1%}"


def rows_words(size: float, share: float) -> str:
    noun = "row" if size == 1.0 else "rows"
    return f"{say_size(size)} {noun} ({say_share(share)})"


def more(left: int, noun: str) -> Markup | None:
    """What a list leaves out."""
    plural = "s" if left != 1 else ""
    return tag("p", f"and {left:,} {noun}{plural} more") if left > 0 else None


def name_list(names: Sequence[str]) -> Markup:
    """Names of columns, of very many the first."""
    shown = [tag("li", shortened(name)) for name in names[:MOST_LISTED]]
    left = more(len(names) - MOST_LISTED, "column")
    return tag("div", tag("ul", shown, class_="names"), left)


def card_tools(number: int, label: str) -> Markup:
    """What finds, opens and closes cards."""
    return tag(
        "div",
        find("cards", label) if number > OPEN_CARDS else None,
        tag("button", "Open all", type="button", data_open="#cards"),
        class_="tools",
    )


def find(target: str, label: str) -> Markup:
    """A field that filters a table or what else has the id."""
    count = f"{target}-count"
    field = tag(
        "input",
        type="search",
        data_filter=f"#{target}",
        aria_describedby=count,
        placeholder="words or a number",
    )
    told = tag("span", id=count, class_="quiet", aria_live="polite")
    return tag("label", f"{label}: ", field, told)


# ------------------------------------------------------------------------ cells


def group_cell(number: int, name: str) -> Markup:
    """A group, and the way to its card."""
    link = tag("a", pictures.badge(number, name), href=f"#group-{number}")
    return tag("td", link, data_value=number)


def number_cell(words: str, value: float | None) -> Markup:
    """A number in words, and as it is sorted by; None: at the end."""
    return tag("td", words, class_="number", data_value="" if value is None else value)


def share_cell(share: float, words: str | None = None) -> Markup:
    """A share from 0 to 1 with a bar."""
    told = say_share(share) if words is None else words
    return tag("td", told, pictures.meter(share), data_value=share)
