"""Small pictures as SVG: functions of plain values, coloured by the page's style."""

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from kplus.core.types import Array
from kplus.report.about import Trace, Tree
from kplus.report.content import Bar, Histogram, Interval
from kplus.report.markup import Markup, shortened, tag
from kplus.report.scatter import MANY_NAMES, MAP, NAME_RADIUS, Scatter

__all__ = [
    "badge",
    "bars",
    "color_of",
    "dots",
    "histogram",
    "image",
    "interval",
    "meter",
    "scatter",
    "signed",
    "svg",
    "trace",
    "tree",
]

_N_COLORS, _N_SHAPES = 7, 6
_WIDE, _HIGH = 160, 52  # of a small picture
_FLAT = 1e-7


def color_of(group: int) -> str:
    """The class that has a group's colour."""
    return "cn" if group < 0 else f"c{group % _N_COLORS}"


def svg(
    width: float, height: float, *children: Any, title: str = "", **more: Any
) -> Markup:
    """A picture; without a title it is decoration, and not read out."""
    about: dict[str, Any] = {"role": "img"} if title else {"aria_hidden": "true"}
    return tag(
        "svg",
        tag("title", title) if title else None,
        children,
        viewBox=f"0 0 {_n(width)} {_n(height)}",
        focusable="false",
        **about,
        **more,
    )


def _n(value: float) -> str:
    """A coordinate in few digits."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _shape(group: int, x: float, y: float, r: float) -> str:
    """The outline of a group's mark: people who see no colours have shapes."""
    kind = 0 if group < 0 else group // _N_COLORS % _N_SHAPES
    a, b = _n(x), _n(y)
    if kind == 0:
        d = _n(2 * r)
        return (
            f"M{_n(x - r)} {b}a{_n(r)} {_n(r)} 0 1 0 {d} 0a{_n(r)} {_n(r)} 0 1 0-{d} 0z"
        )
    if kind == 1:
        return f"M{_n(x - r)} {_n(y - r)}h{_n(2 * r)}v{_n(2 * r)}h-{_n(2 * r)}z"
    if kind == 2:
        return f"M{a} {_n(y - 1.2 * r)}l{_n(1.2 * r)} {_n(2.2 * r)}h-{_n(2.4 * r)}z"
    if kind == 3:
        q = _n(1.3 * r)
        return f"M{a} {_n(y - 1.3 * r)}l{q} {q}-{q} {q}-{q}-{q}z"
    if kind == 4:
        return f"M{a} {_n(y + 1.2 * r)}l{_n(1.2 * r)}-{_n(2.2 * r)}h-{_n(2.4 * r)}z"
    s, x0, y0 = _n(0.8 * r), _n(x - 0.4 * r), _n(y - 1.2 * r)
    return f"M{x0} {y0}h{s}v{s}h{s}v{s}h-{s}v{s}h-{s}v-{s}h-{s}v-{s}h{s}z"


def badge(group: int, words: str) -> Markup:
    """A group's mark beside its name."""
    mark = tag("path", d=_shape(group, 8, 8, 5.5), class_="shape")
    return tag("span", svg(16, 16, mark), words, class_=f"badge {color_of(group)}")


# ------------------------------------------------------------------ of columns


def histogram(of: Histogram, title: str) -> Markup:
    """The shape of a column in a group above that in all rows, each to its height."""
    edges = np.asarray(of.edges)
    x = (edges - edges[0]) / max(edges[-1] - edges[0], 1e-300) * _WIDE
    return svg(
        _WIDE,
        _HIGH + 16,
        tag("path", d=_steps(x, of.overall), class_="all"),
        tag("path", d=_steps(x, of.here), class_="here"),
        tag("path", d=f"M0 {_HIGH}H{_WIDE}", class_="rule"),
        tag("text", of.ends[0], x=0, y=_HIGH + 13, class_="quiet"),
        tag(
            "text", of.ends[1], x=_WIDE, y=_HIGH + 13, text_anchor="end", class_="quiet"
        ),
        title=title,
    )


def _steps(x: Array, shares: Sequence[float]) -> str:
    top = max(shares, default=0.0) or 1.0
    parts = [f"M{_n(x[0])} {_HIGH}"]
    for right, share in zip(x[1:], shares, strict=True):
        parts.append(f"V{_n(_HIGH - (_HIGH - 2) * share / top)}H{_n(right)}")
    return "".join([*parts, f"V{_HIGH}z"])


def interval(of: Interval, ends: Sequence[str], title: str) -> Markup:
    """Mean and standard deviation of a group above those of all rows."""
    low = min(mean - 2.0 * spread for mean, spread in (of.here, of.overall))
    high = max(mean + 2.0 * spread for mean, spread in (of.here, of.overall))
    span = (high - low) or 1.0
    lines = []
    for (mean, spread), y, kind in ((of.overall, 34, "all"), (of.here, 16, "here")):
        left, right = ((mean + s * spread - low) / span * _WIDE for s in (-1, 1))
        middle = (mean - low) / span * _WIDE
        lines += [
            tag(
                "rect",
                x=_n(left),
                y=y - 5,
                rx=3,
                height=10,
                class_=kind,
                width=_n(max(right - left, 1.0)),
            ),
            tag("path", d=f"M{_n(middle)} {y - 8}v16", class_="ink"),
        ]
    return svg(
        _WIDE,
        _HIGH + 16,
        lines,
        tag("path", d=f"M0 {_HIGH}H{_WIDE}", class_="rule"),
        tag("text", ends[0], x=0, y=_HIGH + 13, class_="quiet"),
        tag("text", ends[1], x=_WIDE, y=_HIGH + 13, text_anchor="end", class_="quiet"),
        title=title,
    )


def bars(of: Sequence[Bar]) -> Markup:
    """Shares of categories: a bar for the group, a grey one for all rows below it."""
    rows = [
        tag(
            "tr",
            tag("th", shortened(bar.name, 40), scope="row"),
            tag(
                "td",
                svg(
                    100,
                    12,
                    tag(
                        "rect",
                        x=0,
                        y=7,
                        height=5,
                        width=_n(100 * bar.overall),
                        class_="all",
                    ),
                    tag(
                        "rect",
                        x=0,
                        y=0,
                        height=7,
                        width=_n(100 * bar.here),
                        class_="here",
                    ),
                    preserveAspectRatio="none",
                ),
            ),
            tag(
                "td",
                f"{bar.here:.0%}",
                tag("span", f" of {bar.overall:.0%}", class_="hidden"),
            ),
        )
        for bar in of
    ]
    return tag("table", tag("tbody", rows), class_="bars")


def meter(share: float) -> Markup:
    """A share as a bar, beside its number."""
    width = _n(100 * min(max(share, 0.0), 1.0))
    return svg(
        100,
        10,
        tag(
            "rect", x=0, y=0, width=100, height=10, rx=3, class_="all", fill_opacity=0.5
        ),
        tag("rect", x=0, y=0, width=width, height=10, rx=3, class_="shape"),
        class_="meter",
        preserveAspectRatio="none",
    )


def signed(deviation: float, limit: float) -> Markup:
    """A bar to the right of the middle, or to the left where less is added."""
    width = 50.0 * min(abs(deviation) / (limit or 1.0), 1.0)
    left = 50.0 if deviation > 0.0 else 50.0 - width
    return svg(
        100,
        12,
        tag("rect", x=_n(left), y=1, width=_n(width), height=10, class_="shape"),
        tag("path", d="M50 0V12", class_="rule"),
        preserveAspectRatio="none",
    )


def dots(on: Sequence[int], K: int) -> Markup:
    """Which of K features a combination has, as a line of dots."""
    marks = [
        tag(
            "circle",
            cx=8 + 14 * k,
            cy=8,
            r=5 if k in on else 2.5,
            class_="spot" if k in on else "all",
            data_group=k,
        )
        for k in range(K)
    ]
    return svg(14 * K + 2, 16, marks, class_="dotted")


# ---------------------------------------------------------------------- the map


def scatter(of: Scatter, words: Sequence[str]) -> Markup:
    """Rows as dots in the colours and shapes of their groups."""
    width, height = MAP
    groups = sorted(set(of.labels.tolist()))
    radius = float(np.clip(90.0 / np.sqrt(max(len(of.dots), 1)), 1.6, 4.5))
    at = of.dots * [width, -height] + [0, height]
    marks = [
        tag(
            "path",
            tag("title", words[k] if k >= 0 else "Rows that belong nowhere"),
            d="".join(_shape(k, x, y, radius) for x, y in at[of.labels == k]),
            class_=f"dots {color_of(k)}",
            data_group=k,
        )
        for k in groups
    ]
    rings = [
        tag(
            "ellipse",
            cx=0, cy=0, rx=_n(e.radii[0]), ry=_n(e.radii[1]),
            transform=(
                f"matrix({width} 0 0 {-height} 0 {height}) "
                f"translate({e.center[0]:.4f} {e.center[1]:.4f}) rotate({e.angle:.2f})"
            ),
            vector_effect="non-scaling-stroke",
            class_=f"ellipse {color_of(e.group)}",
            data_group=e.group,
        )
        for e in of.ellipses
    ]  # fmt: skip
    small = len(of.centers) > MANY_NAMES
    names = [
        _name(k, x * width, height - y * height, small)
        for k, (x, y) in of.centers.items()
    ]
    return svg(
        width,
        height,
        rings,
        marks,
        names,
        title=f"Map of {len(of.dots):,} rows in {len(of.centers)} groups",
        data_points=True,
    )


def _name(k: int, x: float, y: float, small: bool) -> Markup:
    return tag(
        "g",
        tag("circle", cx=_n(x), cy=_n(y), r=NAME_RADIUS[small]),
        tag("text", k, x=_n(x), y=_n(y)),
        class_=f"name {'small ' * small}{color_of(k)}",
        data_group=k,
        data_pins=True,
    )


# ----------------------------------------------------------------------- images


def image(values: Array, alt: str, limit: float | None = None) -> Markup:
    """An array as a PNG inside of the page.

    Greys from the lowest to the highest value; or, with a `limit`, blue for -limit,
    white for 0 and orange for it.
    """
    uri = base64.b64encode(_png(_colors(values, limit))).decode()
    return tag("img", src=f"data:image/png;base64,{uri}", alt=alt)


def _colors(values: Array, limit: float | None) -> Any:
    seen = np.nan_to_num(np.asarray(values, float))
    if limit is None:
        low, high = seen.min(), seen.max()
        grey = (seen - low) / ((high - low) or 1.0)
        return np.repeat((255 * grey).astype(np.uint8)[..., None], 3, axis=2)
    share = np.clip(seen / (limit or 1.0), -1.0, 1.0)[..., None]
    ends = np.where(share < 0.0, [0, 114, 178], [213, 94, 0])
    return (255 + np.abs(share) * (ends - 255)).astype(np.uint8)


def _png(pixels: Any) -> bytes:
    """RGB pixels as a PNG file."""
    height, width, _ = pixels.shape
    raw = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body
        + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )  # fmt: skip


# ------------------------------------------------------------- of the whole fit


def tree(of: Tree, words: str) -> Markup:
    """Branches from the pieces below to one group at the top, with the cut."""
    width, height, foot = 720, 300, 44
    step = width / max(of.n_leaves, 1)
    x = [(place + 0.5) * step for place in of.places]
    y = [height - (height - 16) * h for h in of.heights]
    branches = []
    for t, (i, j) in enumerate(of.children):
        up = of.n_leaves + t
        branches.append(_branch(of.groups[up], f"M{_n(x[i])} {_n(y[up])}H{_n(x[j])}"))
        for below in (i, j):
            line = f"M{_n(x[below])} {_n(y[below])}V{_n(y[up])}"
            branches.append(_branch(of.groups[below], line))
    cut = None
    if of.cut is not None:
        at = _n(height - (height - 16) * of.cut)
        cut = tag("path", d=f"M0 {at}H{width}", class_="ink", stroke_dasharray="6 5")
    return svg(width, height + foot, branches, cut, _feet(of, x, height), title=words)


def _branch(group: int, line: str) -> Markup:
    """A line in the colour of its group, black above the groups."""
    return tag(
        "path",
        d=line,
        class_=f"path {color_of(group)}" if group >= 0 else "ink",
        data_group=group if group >= 0 else None,
        stroke_width=2 if group >= 0 else 1.2,
        stroke_linecap="square",
    )


def _feet(of: Tree, x: Sequence[float], height: float) -> list[Markup]:
    """Below the leaves a mark for each, and the name of each group once."""
    order = sorted(range(of.n_leaves), key=lambda i: of.places[i])
    marks = [
        tag(
            "path", d=_shape(of.groups[i], x[i], height + 8, 4),
            class_=f"shape {color_of(of.groups[i])}", data_group=of.groups[i],
        )
        for i in order
    ]  # fmt: skip
    named, runs = [], [[order[0]]] if order else []
    for i in order[1:]:
        if of.groups[i] == of.groups[runs[-1][-1]]:
            runs[-1].append(i)
        else:
            runs.append([i])
    low = len(runs) > 24  # two lines, so that they have room
    for at, run in enumerate(runs):
        middle = 0.5 * (x[run[0]] + x[run[-1]])
        if of.groups[run[0]] >= 0:
            y = height + 28 + 14 * (low and at % 2)
            named.append(
                tag("text", of.groups[run[0]], x=_n(middle), y=y, text_anchor="middle")
            )
    return [*marks, *named]


_MARKS = {
    "birth": ("M-4 4L0-5 4 4z", "groups were born"),
    "merge": ("M-4-4L0 5 4-4z", "groups were joined"),
    "delete": ("M-4-4L4 4M4-4L-4 4", "groups were dropped"),
    "refit": ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "groups were fitted again"),
}


def trace(of: Trace) -> Markup:
    """The measure of a fit and the number of groups over its passes."""
    width, left, right = 720, 8, 712
    n = len(of.values)
    x = np.linspace(left, right, n) if n > 1 else np.array([0.5 * (left + right)])
    later = of.values[of.burn_in :] or of.values
    y = _heights(of.values, later, 48, 190)
    parts: list[Any] = [
        tag("text", of.words, x=left, y=22, class_="quiet"),
        _line(x, y, "c0"),
    ]
    if of.burn_in:
        end = _n(float(x[min(of.burn_in, n - 1)]))
        parts.insert(
            0,
            tag(
                "rect", x=0, y=20, width=end, height=175, class_="all", fill_opacity=0.4
            ),
        )
    for event in of.events:
        if event.kind in _MARKS:
            shape, words = _MARKS[event.kind]
            at, words = event.at - 1, f"Pass {event.at}: {words} ({event.times} times)"
            parts.append(
                tag(
                    "path", tag("title", words),
                    d=shape, transform=f"translate({_n(x[at])} {_n(y[at] - 10)})",
                    class_="event hollow" if event.kind == "refit" else "event",
                )
            )  # fmt: skip
    height = 200
    if of.groups:
        g = _heights(of.groups, of.groups, 252, 300)
        parts += [
            tag("text", of.group_words, x=left, y=226, class_="quiet"),
            _line(x, g, "c3"),
            tag("text", of.groups[0], x=left, y=_n(g[0] - 8)),
            tag("text", of.groups[-1], x=right, y=_n(g[-1] - 8), text_anchor="end"),
        ]
        height = 310
    words = f"{n} passes: {of.measure} from {of.values[0]:.6g} to {of.values[-1]:.6g}"
    return svg(width, height, parts, title=words)


def _heights(
    values: Sequence[float], later: Sequence[float], top: float, low: float
) -> Array:
    """Where values go between two heights; those far from all later ones to the rim."""
    least, most = min(later), max(later)
    span = most - least
    if span <= _FLAT * max(abs(least), abs(most)):  # rounding is no trend
        return np.full(len(values), 0.5 * (top + low))
    share = (np.asarray(values, float) - least) / span
    out: Array = low - (low - top) * np.clip(share, 0.0, 1.0)
    return out


def _line(x: Array, y: Array, color: str) -> Markup:
    points = " ".join(f"{_n(a)},{_n(b)}" for a, b in zip(x, y, strict=True))
    dots = [
        tag("circle", cx=_n(a), cy=_n(b), r=3, class_="shape")
        for a, b in zip(x, y, strict=True)
    ]
    return tag(
        "g",
        tag("polyline", points=points, class_="path", stroke_width=2),
        dots if len(x) <= 40 else None,
        class_=color,
    )
