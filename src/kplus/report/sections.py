"""The parts of a report of clusters, as HTML."""

import math
from collections.abc import Sequence
from typing import Any

from kplus.base.description import say_number
from kplus.report import pictures
from kplus.report.content import Cluster, Clusters, Histogram, Interval, Telling
from kplus.report.markup import Markup, shortened, tag
from kplus.report.page import Section, sortable
from kplus.report.parts import (
    MOST_LISTED,
    OPEN_CARDS,
    card_tools,
    find,
    group_cell,
    more,
    name_list,
    number_cell,
    rows_words,
    say_share,
    say_size,
    share_cell,
)
from kplus.report.scatter import Scatter

__all__ = ["cards", "group_name", "idle", "odd_rows", "say_sure", "table", "the_map"]


_SURE = "Sure: how probable it is, on average, that its rows belong there."
_APART = (
    "Apart: how much closer rows are to the middle of their group than to that of "
    "the next; 1 is far closer, 0 is no closer."
)
_COMES_BACK = (
    " Comes back: how far the group is found again in other fits; 1 is always, and "
    "the same rows."
)


def group_name(number: int) -> str:
    return "Rows that belong nowhere" if number < 0 else f"Group {number}"


# ----------------------------------------------------------------------- cards


def cards(of: Clusters, shape: tuple[int, int] | None) -> Section:
    tools = card_tools(len(of.clusters), "Find a group")
    lead = (
        "What sets each group apart from the whole table. In the small pictures the "
        "group is in colour and all rows are grey, each drawn to its own height."
    )
    return Section(
        "groups",
        "The groups",
        [
            tools,
            tag(
                "div",
                [_card(c, of, shape) for c in of.clusters],
                class_="cards",
                id="cards",
            ),
        ],
        lead,
        short="Groups",
    )


def _card(cluster: Cluster, of: Clusters, shape: tuple[int, int] | None) -> Markup:
    k = cluster.number
    if shape is None:
        told = sorted(cluster.telling, key=lambda t: isinstance(t.picture, tuple))
        body: list[Any] = [
            _apart(cluster),
            tag("div", map(_telling, told), class_="columns"),
            _typical(cluster),
        ]
    else:
        body = [_images(cluster, of, shape)]
    body.append(_nearest(cluster, shape is None))
    words = rows_words(cluster.size, cluster.share)
    return tag(
        "details",
        tag(
            "summary",
            tag("h3", pictures.badge(k, group_name(k))),
            tag("p", words, _sure(cluster, of.probable)),
            tag("p", cluster.apart[0], class_="closed")
            if cluster.apart and shape is None
            else None,
        ),
        tag("div", body),
        open=k < OPEN_CARDS,
        class_=f"card {pictures.color_of(k)}",
        id=f"group-{k}",
        data_group=k,
        data_words=f"{group_name(k)}: {words}. {'; '.join(cluster.apart)}",
    )


def say_sure(value: float | None, probable: bool) -> str:
    """How surely rows belong, as a probability or from 0 to 1."""
    if value is None:
        return "–"
    if not probable:
        return f"{value:.2f}"
    if value >= 0.9995:
        return "over 99.9%"
    return f"{value:.1%}" if value >= 0.99 else f"{value:.0%}"


def _sure(cluster: Cluster, probable: bool) -> str:
    if cluster.sureness is None:
        return ""
    words = say_sure(cluster.sureness, probable)
    return f" · {words} sure" if probable else f" · apart by {words}"


def _apart(cluster: Cluster) -> Markup:
    if not cluster.apart:
        return tag("p", "No column tells this group from the whole table.")
    return tag("ul", [tag("li", words) for words in cluster.apart], class_="apart")


def _telling(of: Telling) -> Markup:
    title = f"{of.name}: {of.here} in this group, {of.overall} in all rows"
    caption = tag(
        "figcaption",
        tag("strong", shortened(of.name, 40)),
        None if isinstance(of.picture, tuple) else f"{of.here}; all rows {of.overall}",
    )
    if isinstance(of.picture, Histogram):
        return tag("figure", pictures.histogram(of.picture, title), caption)
    if isinstance(of.picture, Interval):
        ends = _ends(of.picture)
        return tag("figure", pictures.interval(of.picture, ends, title), caption)
    return tag("figure", caption, pictures.bars(of.picture or ()), class_="wide")


def _ends(of: Interval) -> tuple[str, str]:
    pair = (of.here, of.overall)
    low = min(mean - 2.0 * spread for mean, spread in pair)
    high = max(mean + 2.0 * spread for mean, spread in pair)
    return say_number(low, high - low), say_number(high, high - low)


def _typical(cluster: Cluster) -> list[Markup]:
    if not cluster.typical:
        return []
    items = [
        tag(
            "li",
            tag("strong", shortened(row.name)),
            ": ",
            ", ".join(map(shortened, row.words)),
        )
        if row.words
        else tag("li", shortened(row.name))
        for row in cluster.typical
    ]
    return [tag("h4", "Most typical rows"), tag("ul", items, class_="apart")]


def _images(cluster: Cluster, of: Clusters, shape: tuple[int, int]) -> list[Markup]:
    """The mean of a group, how it differs from that of all rows, and typical rows."""
    center, limit = cluster.center, of.limit
    off = pictures.image((center - of.center).reshape(shape), "Less the mean", limit)
    first = [
        (pictures.image(center.reshape(shape), "The mean"), "mean"),
        (off, "against all rows"),
    ]
    some = [
        (pictures.image(row.values.reshape(shape), row.name), shortened(row.name))
        for row in cluster.typical
    ]
    out = [tag("div", map(_captioned, first), class_="images")]
    if some:
        typical = tag("div", map(_captioned, some), class_="images")
        out += [tag("h4", "Most typical rows"), typical]
    return out


def _captioned(of: tuple[Markup, str]) -> Markup:
    return tag("figure", of[0], tag("figcaption", of[1]))


def _nearest(cluster: Cluster, told: bool) -> Markup | None:
    if cluster.nearest is None:
        return None
    why = f", told apart most by {shortened(cluster.nearest_words)}"
    return tag(
        "p",
        "Nearest: ",
        tag("a", group_name(cluster.nearest).lower(), href=f"#group-{cluster.nearest}"),
        why if told and cluster.nearest_words else "",
        ".",
    )


# --------------------------------------------------------------------- the map


def the_map(of: Scatter, clusters: Clusters) -> Section:
    words = [
        f"{group_name(c.number)}: {rows_words(c.size, c.share)}"
        for c in clusters.clusters
    ]
    chips = [_chip(c.number, str(c.number), words[c.number]) for c in clusters.clusters]
    if clusters.n_outside:
        chips.append(_chip(-1, "none", "Rows that belong nowhere"))
    told = (
        "Point at a group, or press its button, to see it alone everywhere on the page."
    )
    return Section(
        "map",
        "The map",
        [
            tag("figure", pictures.scatter(of, words), class_="map wide"),
            tag(
                "p", told, class_="told quiet tools", data_told=told, aria_live="polite"
            ),
            tag("ul", chips, class_="chips", data_points=True),
            tag("p", _axes(of), class_="quiet"),
        ],
        "Rows that lie close together are alike in what tells the groups apart.",
        short="Map",
    )


def _chip(group: int, name: str, words: str) -> Markup:
    button = tag(
        "button",
        pictures.badge(group, name),
        type="button",
        data_group=group,
        aria_pressed="false",
        aria_label=f"{words}: show alone",
    )
    return tag("li", button)


def _axes(of: Scatter) -> str:
    right, *up = (
        ", ".join(columns) or "no column in particular" for columns in of.axes
    )
    axes = f"Further to the right: {right}. " + (
        f"Further up: {up[0]}. "
        if up
        else "Up and down is at random, so that rows do not hide each other. "
    )
    drawn = f"{len(of.dots):,} of {of.n_rows:,} rows are drawn. "
    rim = f"{of.n_beyond:,} lie farther out, and are drawn at the rim. "
    rings = "An outline holds most rows of a component of the mixture. "
    return (
        axes
        + drawn * (len(of.dots) < of.n_rows)
        + rim * (of.n_beyond > 0)
        + rings * bool(of.ellipses)
        + "The axes are Fisher's discriminants: of all directions those that separate "
        "the groups best."
    )


# ----------------------------------------------------------------------- table


def table(of: Clusters, stability: Sequence[float] | None, words: bool) -> Section:
    """All groups in lines; with `words`, also what sets each of them apart."""
    heads = ["Group", "Rows", "Share", "Sure" if of.probable else "Apart"]
    heads += ["Comes back"] if stability is not None else []
    numbers = heads[1:]
    heads += ["What sets it apart"] if words else []
    rows = [_line(cluster, stability, of.probable, words) for cluster in of.clusters]
    if of.n_outside:
        rows.append(_outside_line(of, stability is not None, words))
    lead = _SURE if of.probable else _APART
    lead += _COMES_BACK if stability is not None else ""
    return Section(
        "table",
        "All groups",
        [
            tag("div", find("all-groups", "Find in the table"), class_="tools"),
            sortable(
                "All groups",
                heads,
                rows,
                numbers=numbers,
                id="all-groups",
            ),
        ],
        lead,
        short="Table",
    )


def _line(
    cluster: Cluster, stability: Sequence[float] | None, probable: bool, words: bool
) -> Markup:
    k = cluster.number
    cells = [
        group_cell(k, group_name(k)),
        number_cell(say_size(cluster.size), cluster.size),
        share_cell(cluster.share),
        number_cell(say_sure(cluster.sureness, probable), cluster.sureness),
    ]
    if stability is not None:
        value = float(stability[k])
        known = math.isfinite(value)
        cells.append(
            number_cell(f"{value:.2f}" if known else "–", value if known else None)
        )
    if words:
        told = "; ".join(cluster.apart) or "no column on its own"
        cells.append(tag("td", tag("div", told), class_="words"))
    return tag("tr", cells, class_=pictures.color_of(k), data_group=k, data_points=True)


def _outside_line(of: Clusters, judged: bool, words: bool) -> Markup:
    share = of.n_outside / of.n_rows
    return tag(
        "tr",
        tag("td", pictures.badge(-1, "None"), data_value=-1),
        number_cell(say_size(of.n_outside), of.n_outside),
        share_cell(share),
        number_cell("–", None),
        number_cell("–", None) if judged else None,
        tag("td", "rows that belong nowhere", class_="words") if words else None,
        class_="cn",
        data_group=-1,
        data_points=True,
    )


# ------------------------------------------------------------------------ rows


def odd_rows(of: Clusters, whole: bool) -> Section | None:
    parts: list[Any] = []
    if of.outside:
        items = [
            tag(
                "li",
                tag("strong", shortened(row.name)),
                ": ",
                ", ".join(map(shortened, row.words)),
            )
            for row in of.outside
        ]
        share = say_share(of.n_outside / of.n_rows)
        parts += [
            tag("h3", "Rows that belong nowhere"),
            tag(
                "p", f"{say_size(of.n_outside)} rows ({share}) are in no group, such as"
            ),
            tag("ul", items),
        ]
    if of.odd:
        lines = [
            tag(
                "tr",
                tag("td", shortened(row.name)),
                tag(
                    "td",
                    pictures.badge(row.group, group_name(row.group)),
                    data_value=row.group,
                ),
                tag("td", row.words, class_="words"),
                data_group=row.group,
            )
            for row in of.odd
        ]
        parts += [
            tag("h3", "Least typical rows"),
            sortable("Least typical rows", ["Row", "Group", "What is unusual"], lines),
        ]
    if not parts:
        return None
    lead = "Rows to look at: they fit no group well, or are mistakes of the table."
    if not whole:
        lead += " Only the rows that were drawn have been looked at."
    return Section("odd", "Unusual rows", parts, lead)


def idle(of: Clusters) -> Section | None:
    if not of.idle and not of.missing:
        return None
    parts: list[Any] = []
    if of.idle:
        parts.append(name_list(of.idle))
    if of.missing:
        rows = [
            tag("tr", tag("td", shortened(name)), number_cell(say_share(share), share))
            for name, share in of.missing
        ]
        parts += [
            tag("h3", "Missing values"),
            sortable(
                "Missing values",
                ["Column", "Rows without a value"],
                rows[:MOST_LISTED],
                numbers=["Rows without a value"],
            ),
            more(len(rows) - MOST_LISTED, "column"),
        ]
    lead = (
        f"{len(of.idle)} of {len(of.columns)} columns are much the same in all groups."
        if of.idle
        else "Every column tells some group from the whole table."
    )
    return Section(
        "idle", "Columns that did not matter", parts, lead, short="Other columns"
    )
