"""The page of `kplus.compare`: models side by side, and where they disagree."""

import math
import os
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn import config_context
from sklearn.base import clone

import kplus
from kplus.core.types import Array, IntArray
from kplus.persist.atomic import atomic_file
from kplus.report import pictures
from kplus.report.markup import Markup, joined, shortened, tag
from kplus.report.page import Fact, Section, page, scroll, sortable
from kplus.report.parts import say_share, say_size

__all__ = ["report_comparison"]

_MOST_GROUPS = 12  # rows and columns of a crossing
_CELL, _LABEL = 64, 150  # of the picture of agreement


def report_comparison(comparison: Any, path: Any, *, command: str = "") -> Path:
    """Write the page of a comparison, and return its path."""
    best = comparison.best
    sections = [_models(comparison)]
    if len(comparison.clusterings) > 1:
        sections += [_agreement(comparison), _crossings(comparison)]
    sections += [_groups(comparison), _about(comparison, command)]
    n_fitted = len(comparison.fitted)
    html = page(
        "Models compared",
        _headline(comparison),
        sections,
        facts=[
            Fact("Start with", best.name, _why(best)),
            Fact("Groups", f"{best.n_groups:,}", _kind(best)),
            Fact("Models", f"{n_fitted}", _left_out(comparison)),
            Fact("Rows", f"{len(comparison.rows):,}", _sampled(comparison)),
        ],
        lines=comparison.notes(),
        footer=f"Written by kplus {kplus.__version__}.",
    )
    target = Path(os.fspath(path))
    with atomic_file(target) as file:
        file.write(html.encode("utf-8", "replace"))
    return target


def _headline(comparison: Any) -> str:
    best = comparison.best
    if best.n_groups == 0 or (best.is_clustering and best.n_groups == 1):
        return "No model sees several groups in this table."
    noun = "groups" if best.is_clustering else "features"
    same = [
        c
        for c in comparison.clusterings
        if c.n_groups == best.n_groups and c is not best
    ]
    agree = ""
    if same and best.is_clustering:
        number = "another model finds" if len(same) == 1 else f"{len(same)} others find"
        agree = f"; {number} as many"
    return f"Start with {best.name}: {best.n_groups:,} {noun}{agree}."


def _why(best: Any) -> str:
    """What speaks for a model, in a line."""
    said = []
    if best.is_clear:
        said.append("its number of groups is clear")
    if not math.isnan(best.overall_stability):
        said.append(f"its groups come back ({best.overall_stability:.2f} of 1)")
    if not math.isnan(best.apart):
        said.append(f"they are apart by {best.apart:.2f} of 1")
    return "; ".join(said)


def _kind(candidate: Any) -> str:
    several = "features, of which a row may have several"
    return "clusters" if candidate.is_clustering else several


def _sampled(comparison: Any) -> str:
    n = comparison.n_rows
    return f"drawn from {n:,}" if len(comparison.rows) < n else "all of the table"


def _left_out(comparison: Any) -> str:
    left = len(comparison.candidates) - len(comparison.fitted)
    return "" if not left else f"{left} did not take the table"


# ------------------------------------------------------------------------ models


def _models(comparison: Any) -> Section:
    names = ("Model", "Groups", "Clear", "Comes back", "Apart", "Held out", "CPU s",
             "Advice")  # fmt: skip
    rows = [_line(comparison, c) for c in comparison.candidates]
    numbers = ("Groups", "Comes back", "Apart", "Held out", "CPU s")
    explained = (
        ("Clear", "Whether the number of groups stands out."),
        ("Comes back", "Stability: how far the groups come back in fits to drawn rows, "
         "1 at most; below .6 do not build on it."),
        ("Apart", "The silhouette, or the density-based validity if that is higher: "
         "1 is well apart, 0 touching."),
        ("Held out", "The mean log density of rows that a fit did not see: of models "
         "that have one, higher is better."),
    )  # fmt: skip
    return Section(
        "models",
        "The models",
        [
            sortable("The models", names, rows, numbers=numbers),
            tag("ul", [tag("li", tag("strong", n), f": {w}") for n, w in explained]),
        ],
    )


def _line(comparison: Any, c: Any) -> Markup:
    clear = {True: "yes", False: "no", None: "–"}[c.is_clear]
    known = c.model is not None
    return tag(
        "tr",
        tag("th", shortened(c.name), scope="row"),
        _number(f"{c.n_groups:,}" if known else "–", c.n_groups if known else None),
        tag("td", clear),
        _score(c.overall_stability),
        _score(c.apart),
        _number(*_said(c.held_out)),
        _number(*_said(c.seconds)),
        tag("td", comparison.advice(c), class_="words"),
    )


def _score(value: float) -> Markup:
    """A number up to 1, and a bar as long."""
    if math.isnan(value):
        return _number("–", None)
    bar = pictures.meter(min(max(value, 0.0), 1.0))
    return tag(
        "td", f"{value:.2f}", bar, class_="number c0", data_value=round(value, 4)
    )


def _said(value: float) -> tuple[str, float | None]:
    return ("–", None) if math.isnan(value) else (f"{value:.2f}", round(value, 4))


def _number(words: str, value: float | None) -> Markup:
    return tag("td", words, class_="number", data_value="" if value is None else value)


# --------------------------------------------------------------------- agreement


def _agreement(comparison: Any) -> Section:
    return Section(
        "agreement",
        "How far they agree",
        tag("figure", _heat(comparison), class_="wide"),
        "1: the same groups. 0: no more than chance would give. It is the adjusted "
        "Rand index.",
        short="Agreement",
    )


def _heat(comparison: Any) -> Markup:
    """The matrix of agreement as squares, darker where models agree more."""
    names = [shortened(c.name, 18) for c in comparison.clusterings]
    n = len(names)
    cells = []
    for (i, j), value in np.ndenumerate(comparison.agreement):
        x, y = _LABEL + j * _CELL, i * _CELL
        told = f"{names[i]} and {names[j]}: {value:.2f}"
        cells.append(
            tag(
                "g",
                tag("title", told),
                tag(
                    "rect", x=x + 1, y=y + 1, width=_CELL - 2, height=_CELL - 2,
                    class_="heat", fill_opacity=f"{0.45 * max(value, 0.0):.2f}",
                ),
                tag("text", f"{value:.2f}", x=x + _CELL / 2, y=y + _CELL / 2 + 5,
                    text_anchor="middle"),
            )
        )  # fmt: skip
    down = [
        tag("text", name, x=_LABEL - 8, y=(i + 0.5) * _CELL + 5, text_anchor="end")
        for i, name in enumerate(names)
    ]
    across = [
        tag(
            "text",
            name,
            text_anchor="end",
            transform=f"translate({_LABEL + (j + 0.6) * _CELL:g} {n * _CELL + 16}) "
            "rotate(-35)",
        )
        for j, name in enumerate(names)
    ]
    width, height = _LABEL + n * _CELL, n * _CELL + 100
    title = "Agreement of each two models"
    return pictures.svg(width, height, cells, down, across, title=title, class_="heats")


# ---------------------------------------------------------------------- crossings


def _crossings(comparison: Any) -> Section:
    """Which groups of the other models are which of the best one's."""
    best = comparison.best
    tables = [
        tag(
            "div",
            tag(
                "h3", shortened(best.name), " down, ", shortened(other.name), " across"
            ),
            _crossing(best, other),
        )
        for other in comparison.clusterings
        if other is not best
    ]
    return Section(
        "crossings",
        "Group by group",
        tag("div", tables, class_="two"),
        f"Rows of each group of {best.name} in the groups of another model. One large "
        "number in a line: both see the same group.",
        short="Group by group",
    )


def crossing(one: IntArray, other: IntArray) -> tuple[Array, list[int], list[int]]:
    """Counts of rows by two clusterings, and the numbers of lines and columns.

    Groups that have most in common stand at the same place; -1, no cluster, last.
    """
    lines, i = np.unique(one, return_inverse=True)
    columns, j = np.unique(other, return_inverse=True)
    counts = np.zeros((len(lines), len(columns)))
    np.add.at(counts, (i, j), 1.0)
    by_size = np.lexsort((-counts.sum(axis=1), lines < 0))
    left, order = list(range(len(columns))), []
    for line in by_size:
        if left and lines[line] >= 0:
            order.append(left.pop(int(np.argmax(counts[line, left]))))
    order += left
    order.sort(key=lambda column: bool(columns[column] < 0))
    return (
        counts[by_size][:, order],
        lines[by_size].tolist(),
        columns[order].tolist(),
    )


def _crossing(best: Any, other: Any) -> Markup:
    counts, lines, columns = crossing(best.groups, other.groups)
    shown = counts[:_MOST_GROUPS, :_MOST_GROUPS]
    heads = [
        tag("th", _short(k), scope="col", class_="number")
        for k in columns[:_MOST_GROUPS]
    ]
    head = tag("tr", tag("th", tag("span", "group", class_="hidden")), heads)
    body = [
        tag(
            "tr",
            tag("th", _short(k), scope="row"),
            [
                tag("td", f"{n:,.0f}" if n else "", class_=_shade(n / counts[i].sum()))
                for n in shown[i]
            ],
        )
        for i, k in enumerate(lines[:_MOST_GROUPS])
    ]
    label = f"Rows by groups of {best.name} and of {other.name}"
    table = tag(
        "table",
        tag("caption", label, class_="hidden"),
        tag("thead", head),
        tag("tbody", body),
        class_="crossing",
    )
    cut = max(counts.shape) > _MOST_GROUPS
    note = f"The largest {_MOST_GROUPS} groups of each are shown."
    small = tag("p", note, class_="quiet") if cut else None
    return joined([scroll(label, table), small])


def _short(group: int) -> str:
    return "none" if group < 0 else str(group)


def _shade(share: float) -> str:
    """A class for a cell: how much of its line is there."""
    level = min(int(5 * share), 4)
    return f"number shade{level}" if share > 0.0 else "number"


# -------------------------------------------------------------- groups and settings


def _groups(comparison: Any) -> Section:
    """What each model's groups are like, in words."""
    parts = []
    for c in comparison.fitted:
        if not hasattr(c.model, "portrait_"):
            continue
        frame = nw.from_native(c.model.summary())
        noun = c.model._group_noun
        columns = (
            frame[name].to_list() for name in (noun, "size", "share", "set_apart")
        )
        rows = [
            tag(
                "tr",
                tag("th", pictures.badge(k, _short(k)), scope="row"),
                _number(say_size(float(size)), float(size)),
                _number(say_share(float(share)), float(share)),
                tag("td", words, class_="words"),
            )
            for k, size, share, words in zip(*columns, strict=True)
        ]
        heads = ("Group", "Rows", "Share", "What sets it apart")
        table = sortable(f"Groups of {c.name}", heads, rows, numbers=("Rows", "Share"))
        count = f"{len(rows):,} group{'s' * (len(rows) != 1)}"
        parts.append(
            tag(
                "details",
                tag("summary", tag("h3", shortened(c.name)), tag("p", count)),
                tag("div", table),
                class_="card",
                open=c is comparison.best,
            )
        )
    body = tag("div", parts, id="cards", class_="stack")
    return Section("groups", "What the groups are", body)


def _about(comparison: Any, command: str) -> Section:
    settings = [
        tag("li", tag("strong", shortened(c.name)), ": ", tag("code", _code(c.model)))
        for c in comparison.fitted
    ]
    parts = [tag("ul", settings)]
    if command:
        parts += [tag("h3", "The command"), tag("pre", tag("code", command))]
    return Section("about", "Settings", parts, short="Settings")


def _code(model: Any) -> str:
    """The call that makes this estimator."""
    plain = clone(model)
    defaults = {"n_jobs": None, "verbose": 0}
    known = plain.get_params()
    plain.set_params(**{k: v for k, v in defaults.items() if k in known})
    with config_context(print_changed_only=True):
        return " ".join(repr(plain).split())
