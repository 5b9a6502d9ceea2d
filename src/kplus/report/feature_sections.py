"""The parts of a report of latent features, as HTML."""

import math
from typing import Any

from kplus.report import pictures
from kplus.report.features import Feature, Features
from kplus.report.markup import Markup, shortened, tag
from kplus.report.page import Section, sortable
from kplus.report.parts import (
    MOST_LISTED,
    OPEN_CARDS,
    card_tools,
    group_cell,
    more,
    name_list,
    number_cell,
    rows_words,
    say_share,
    say_size,
    share_cell,
)

__all__ = [
    "cards",
    "combinations",
    "feature_name",
    "filled",
    "idle",
    "rebuilt",
    "table",
]

_MOST_DOTS = 40  # features that combinations are drawn of


def feature_name(feature: Feature) -> str:
    return f"Feature {feature.number}{', in all rows' if feature.is_base else ''}"


def apart(feature: Feature) -> str:
    """What a feature adds, in a line."""
    verb = "stands at" if feature.is_base else "adds"
    to = "in" if feature.is_base else "to"
    words = [f"{added.words} {to} {added.name}" for added in feature.added[:3]]
    return f"{verb} {', '.join(words)}" if words else "adds hardly anything"


_BARS = (
    "Bars tell what a feature adds to a column, in standard deviations of that column."
)
_PIXELS = "It adds to pixels that are orange, and takes from those that are blue."


def cards(of: Features, shape: tuple[int, int] | None) -> Section:
    lead = "A row is the sum of the features that it has. "
    lead += _BARS if shape is None else _PIXELS
    if any(feature.is_base for feature in of.features):
        lead += " The one in all rows is what they begin from"
        lead += ": its bars are from the mean." if shape is None else ", in greys."
    if of.has_offset:
        lead += " To that comes what all rows have: the level of each column."
    body = tag(
        "div",
        [_card(feature, of, shape) for feature in of.features],
        class_="cards",
        id="cards",
    )
    tools = card_tools(len(of.features), "Find a feature")
    return Section("groups", "The features", [tools, body], lead, short="Features")


def _card(feature: Feature, of: Features, shape: tuple[int, int] | None) -> Markup:
    k = feature.number
    words = rows_words(feature.size, feature.share)
    picture = None
    if shape is not None:
        values, alt = feature.values.reshape(shape), f"Feature {k} as a picture"
        scale = None if feature.is_base else of.limit
        picture = tag("figure", pictures.image(values, alt, scale), class_="image")
    bars = [
        tag(
            "tr",
            tag("th", shortened(added.name, 40), scope="row"),
            tag("td", pictures.signed(added.deviation, of.longest)),
            tag("td", added.words),
        )
        for added in (() if shape is not None else feature.added)
    ]
    body: list[Any] = [
        picture,
        tag("table", tag("tbody", bars), class_="bars") if bars else None,
        more(feature.n_more, "column") if shape is None else None,
        tag("p", f"Such as {', '.join(map(shortened, feature.typical))}.")
        if feature.typical
        else None,
    ]
    if not feature.added:
        body.append(tag("p", "It adds hardly anything to any column."))
    return tag(
        "details",
        tag(
            "summary",
            tag("h3", pictures.badge(k, feature_name(feature))),
            tag("p", words),
            tag("p", apart(feature), class_="closed") if shape is None else None,
        ),
        tag("div", body),
        open=k < OPEN_CARDS,
        class_=f"card {pictures.color_of(k)}",
        id=f"group-{k}",
        data_group=k,
        data_words=f"{feature_name(feature)}: {words}. It {apart(feature)}.",
    )


def table(of: Features, stability: Any, words: bool) -> Section:
    heads = ["Feature", "Rows", "Share", "Matters"]
    known = None if stability is None else stability.group_stability.tolist()
    heads += ["Comes back"] if known is not None else []
    rows = []
    for feature in of.features:
        k, sure = feature.number, feature.sureness
        cells = [
            group_cell(k, feature_name(feature)),
            number_cell(say_size(feature.size), feature.size),
            share_cell(feature.share),
            number_cell("–" if sure is None else f"{sure:.2f}", sure),
        ]
        if known is not None:
            value = known[k] if math.isfinite(known[k]) else None
            cells.append(number_cell("–" if value is None else f"{value:.2f}", value))
        if words:
            cells.append(tag("td", tag("div", apart(feature)), class_="words"))
        rows.append(
            tag(
                "tr", cells, class_=pictures.color_of(k), data_group=k, data_points=True
            )
        )
    lead = (
        "Matters: by how much a row that has the feature would be rebuilt worse "
        "without it; 1 is all that there is to rebuild."
    )
    numbers, heads = heads[1:], heads + ["What it adds"] * words
    body = sortable("All features", heads, rows, numbers=numbers, id="all-groups")
    return Section("table", "All features", body, lead, short="Table")


def combinations(of: Features) -> Section | None:
    if not of.combinations or not of.features:
        return None
    K = len(of.features)
    rows = []
    for found in of.combinations:
        words = " + ".join(map(str, found.features)) or "none"
        spots = pictures.dots(found.features, K) if K <= _MOST_DOTS else None
        rows.append(
            tag(
                "tr",
                tag("td", spots, words),
                number_cell(f"{found.rows:,}", found.rows),
                share_cell(found.share),
            )
        )
    left = of.n_combinations - len(of.combinations)
    return Section(
        "combinations",
        "Which features go together",
        [
            sortable(
                "Combinations of features",
                ["Features", "Rows", "Share"],
                rows,
                numbers=["Rows", "Share"],
            ),
            more(left, "combination"),
        ],
        f"{of.n_combinations:,} combinations occur; the most frequent come first.",
        short="Combinations",
    )


def rebuilt(of: Features, shape: tuple[int, int] | None) -> Section | None:
    if of.explained is None:
        return None
    parts: list[Any] = []
    if shape is not None:
        parts.append(
            tag("div", [_pair(row, shape) for row in of.rebuilt], class_="images")
        )
    shown = (
        of.by_column if len(of.by_column) <= MOST_LISTED else of.by_column[:MOST_LISTED]
    )
    rows = [
        tag(
            "tr",
            tag("td", shortened(name)),
            share_cell(max(share, 0.0)),
            class_="c0",
        )
        for name, share in shown
    ]
    if shape is None:
        parts += [
            sortable("Columns", ["Column", "Explained"], rows, numbers=["Explained"]),
            more(len(of.by_column) - len(shown), "column"),
        ]
    lead = (
        f"The features explain {say_share(max(of.explained, 0.0))} of the variance "
        f"about the means of the columns."
    )
    return Section("rebuilt", "How well rows are rebuilt", parts, lead, short="Rebuilt")


def _pair(row: Any, shape: tuple[int, int]) -> Markup:
    made = " + ".join(map(str, row.features)) or "no feature"
    both = (
        pictures.image(row.values.reshape(shape), f"{row.name} as it is"),
        pictures.image(row.rebuilt.reshape(shape), f"{row.name} as rebuilt"),
    )
    words = tag("figcaption", f"{shortened(row.name)}, and rebuilt of {made}")
    return tag("figure", tag("div", both), words, class_="pair")


def filled(of: Features) -> Section | None:
    if not of.filled:
        return None
    heads = ["Column", "Missing", "Expected there", "Mean of the others"]
    rows = [
        tag(
            "tr",
            tag("td", shortened(gap.name)),
            number_cell(say_share(gap.share), gap.share),
            number_cell(*gap.filled),
            number_cell(*gap.seen),
        )
        for gap in of.filled
    ]
    n = sum(gap.n for gap in of.filled)
    lead = (
        f"{n:,} value{'s are' if n != 1 else ' is'} missing. The features of a row "
        "tell what is expected there, and impute fills it in; here are the means."
    )
    body = sortable("Gaps", heads, rows, numbers=heads[1:])
    return Section("gaps", "Missing values", body, lead, short="Gaps")


def idle(of: Features) -> Section | None:
    if not of.idle:
        return None
    lead = f"No feature adds to {len(of.idle)} of {len(of.columns)} columns."
    return Section(
        "idle",
        "Columns that did not matter",
        name_list(of.idle),
        lead,
        short="Other columns",
    )
