"""The parts of a report that all models have, as HTML: how sure, how it came about."""

import math
from collections.abc import Sequence
from typing import Any

from kplus.report import pictures
from kplus.report.about import Origin, Trace, Tree
from kplus.report.markup import Markup, shortened, tag
from kplus.report.page import Section, sortable
from kplus.report.parts import group_cell, number_cell, share_cell

__all__ = ["labels", "origin", "stability", "trace", "tree"]

_MOVES = {
    "birth": ("▲", "new groups were found"),
    "merge": ("▼", "groups were joined"),
    "delete": ("✕", "empty groups were dropped"),
    "refit": ("○", "groups were fitted again, to a better answer"),
}


def tree(of: Tree | None, n_groups: int, asked: bool) -> Section | None:
    if of is None:
        return None
    words = f"Tree of {of.n_leaves} pieces, cut into {n_groups} groups"
    why = "where you asked" if asked else "where the rows say"
    lead = (
        "The lower two branches join, the more alike they are. The dashed line is the "
        f"cut, {why}: branches below it are one group."
    )
    if of.n_hidden:
        lead += f" The lowest {of.n_hidden:,} steps are not drawn."
    picture = tag(
        "figure", pictures.tree(of, words), class_="map wide", data_points=True
    )
    return Section("tree", "How the groups are related", picture, lead, short="Tree")


def stability(result: Any, names: Sequence[str]) -> Section | None:
    if result is None or not result.n_groups:
        return None
    rows = []
    for k, name in enumerate(names):
        value, gone = float(result.group_stability[k]), float(result.dissolved[k])
        known = math.isfinite(value)
        rows.append(
            tag(
                "tr",
                group_cell(k, name),
                share_cell(value, f"{value:.2f}")
                if known
                else number_cell("never drawn", None),
                number_cell(f"{gone:.0%}", gone),
                class_=pictures.color_of(k), data_group=k, data_points=True,
            )
        )  # fmt: skip
    found = ", ".join(f"{k} in {n}" for k, n in result.number_counts.items())
    lead = (
        f"{result.verdict} The model was fitted again {result.n_resamples} times, to "
        f"rows drawn from the table: a group that is really there comes back."
    )
    noun = "Group" if result.kind == "clusters" else "Feature"
    heads = [noun, "Comes back", "Gone in"]
    return Section(
        "stability",
        "Do they come back?",
        [
            tag(
                "p",
                "1: the same rows each time; from 0.75 on a group is there; below 0.6 "
                f"it is not to be relied upon. Numbers found: {found}.",
            ),
            sortable(f"Stability of {result.kind}", heads, rows, numbers=heads[1:]),
        ],
        lead,
        short="Stability",
    )


def trace(of: Trace) -> Section:
    better = "higher" if of.higher_is_better else "lower"
    passes = f"{len(of.values):,} pass{'es' if len(of.values) != 1 else ''}"
    lead = (
        f"{passes} over all rows; the {of.measure} went from {of.values[0]:,.6g} to "
        f"{of.values[-1]:,.6g}, and {better} is better."
    )
    if of.converged is False:
        lead += " The fit was ended before it came to rest: raise the number of passes."
    if of.burn_in:
        lead += f" The first {of.burn_in:,}, on grey, were thrown away."
    kinds = {event.kind for event in of.events}
    legend = [
        tag("li", tag("strong", mark), " ", words)
        for kind, (mark, words) in _MOVES.items()
        if kind in kinds
    ]
    body = [
        tag("figure", pictures.trace(of), class_="map wide"),
        tag("ul", legend) if legend else None,
    ]
    return Section("fit", "How the fit went", body, lead, short="Fit")


def origin(of: Origin, command: str | None) -> Section:
    """Where the answer comes from, and how to get it again."""
    facts = [
        ("Model", of.model),
        *[("Kind of groups, chosen by the table", of.choice)] * bool(of.choice),
        ("Report written", of.when),
        *[("The fit took", of.took)] * bool(of.took),
        *[("Data", of.digest)] * bool(of.digest),
        ("Versions", ", ".join(f"{name} {number}" for name, number in of.versions)),
    ]
    body = [
        tag("div", _pairs("Origin", facts), class_="scroll plain"),
        tag("h3", "Get it again"),
        [tag("p", "On the command line:"), _code(command)] if command else None,
        tag("p", "In Python:"),
        _code(of.python),
        tag("h3", "Settings"),
        _pairs("Settings that were given", of.settings)
        if of.settings
        else tag("p", "All settings are the defaults."),
        tag(
            "details",
            tag("summary", f"All {len(of.defaults)} others, at their defaults"),
            _pairs("Settings at their defaults", of.defaults),
        ),
    ]
    return Section("origin", "Where it comes from", body, short="Origin")


def _code(text: str) -> Markup:
    return tag("pre", tag("code", text), tabindex=0, role="region", aria_label="Code")


def _pairs(label: str, pairs: Sequence[tuple[str, str]]) -> Markup:
    rows = [
        tag("tr", tag("th", name, scope="row"), tag("td", shortened(value, 300)))
        for name, value in pairs
    ]
    return tag(
        "table",
        tag("caption", label, class_="hidden"),
        tag("tbody", rows),
        class_="plain",
    )


def labels(available: bool, words: str, elsewhere: str) -> Section:
    """Where to get the answer for each row."""
    body: Any = tag("p", elsewhere)
    if available:
        about = {"type": "button", "data_download": "labels", "hidden": True}
        body = tag("p", tag("button", "Save them as CSV", **about))
    lead = words if available else f"They are too many for this page. {words}"
    return Section("labels", "The answer for each row", body, lead, short="Labels")
