"""What a report shall have beside the model and the rows, and what pages make of it."""

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kplus import __version__
from kplus.core.types import IntArray
from kplus.report import about, about_sections
from kplus.report.page import Fact, Section
from kplus.report.rows import Drawn, RowNames
from kplus.validation.stability_result import STABLE, UNSTABLE

__all__ = [
    "FOOTER",
    "Wanted",
    "about_rows",
    "in_short",
    "labels_data",
    "origin_of",
    "stability_fact",
]

FOOTER = f"Made by kplus {__version__}. This page needs no network and sends nothing."

_MOST_LABELS = 600_000  # numbers
_MOST_NAMES = 2**20  # characters of the names of all rows


@dataclass(frozen=True)
class Wanted:
    """What a report shall have.

    Attributes
    ----------
    stability : Stability, int or None
    row_names : callable or None
        From numbers of rows, what these are called.
    image_shape : (int, int) or None
    title : str or None
    command : str or None
        The line that made the fit.
    rows : str or None
        Python for the rows, such as ``"data.csv"`` in quotes.
    of_fit : bool
        Whether the rows are those of the fit, so that its labels and sizes are theirs.
    elsewhere : str
        Where the answers for all rows are if they do not fit into the page.
    """

    stability: Any = None
    row_names: RowNames | None = None
    image_shape: tuple[int, int] | None = None
    title: str | None = None
    command: str | None = None
    rows: str | None = None
    of_fit: bool = False
    elsewhere: str = "In Python, predict and transform give them."


def stability_fact(stability: Any) -> Fact:
    label = "Do they come back?"
    if stability is None:
        note = "kplus fit --stability 20, or report(stability=20), finds out"
        return Fact(label, "not tried", note)
    verdict, _, rest = stability.verdict.partition(":")
    tone = {"Stable": "good", "Not stable": "poor"}.get(verdict, "")
    words = rest.strip()
    words = words[:1].upper() + words[1:]
    if not math.isnan(stability.overall):
        words += f" On average {stability.overall:.2f} of 1."
    return Fact(label, verdict.lower(), words, tone)


def in_short(stability: Any) -> str:
    """The end of a headline: whether the answer comes back."""
    if stability is None or stability.n_groups == 0:
        return ""
    known = np.asarray(stability.group_stability)
    if np.all(known >= STABLE):
        return ". They come back in other samples of the rows"
    which = "None" if np.all(known < UNSTABLE) else "Not all"
    comes = "comes" if which == "None" else "come"
    return f". {which} of them {comes} back in other samples of the rows"


def about_rows(drawn: Drawn | None) -> list[str]:
    """How much of the table the page has seen."""
    if drawn is None:
        return [
            "This page is made of what the model keeps. With the rows (kplus report "
            "MODEL DATA) it shows these, too."
        ]
    if drawn.is_all:
        return []
    return [
        f"Sizes count all {drawn.n_rows:,} rows. Pictures, words and unusual rows are "
        f"of {len(drawn.numbers):,} of them, drawn at random, and more of small groups."
    ]


def origin_of(model: Any, X: Any, wanted: Wanted) -> Section:
    mark = "" if X is None else about.digest(model._open(X, reset=False).source)
    return about_sections.origin(about.origin(model, mark, wanted.rows), wanted.command)


def labels_data(
    header: Sequence[str], columns: Sequence[IntArray], first: int, wanted: Wanted
) -> dict[str, Any] | None:
    """What the page's script makes a CSV file of; None: it would be too much.

    `columns` have whole numbers from 0 on, which stand for those from `first` on.
    """
    n = len(columns[0]) if columns else 0
    if not 0 < n * len(columns) <= _MOST_LABELS:
        return None
    names = None
    if wanted.row_names is not None:
        names = list(wanted.row_names(np.arange(n)))
        if sum(map(len, names)) > _MOST_NAMES:
            return None
    return {
        "file": "labels.csv",
        "header": ["row", *header],
        "names": names,
        "columns": [_packed(column) for column in columns],
        "first": first,
    }


def _packed(values: IntArray) -> dict[str, Any]:
    """Whole numbers from 0 on in one or two bytes each, as text."""
    width = 1 if values.max(initial=0) < 2**8 else 2
    raw = values.astype("<u1" if width == 1 else "<u2").tobytes()
    return {"bytes": base64.b64encode(raw).decode(), "width": width}
