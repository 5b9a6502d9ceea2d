"""How a fit went and how sure its answer is, as plain values, for any model."""

import platform
import re
import reprlib
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from kplus import __version__
from kplus.base.checkpointing import Fingerprint
from kplus.core.types import Blocks
from kplus.observations import __all__ as FAMILIES

__all__ = [
    "Cleared",
    "Event",
    "Origin",
    "Trace",
    "Tree",
    "clearness",
    "digest",
    "origin",
    "trace",
    "tree",
]

_CLEAR = 0.65  # of a tree, as kplus fit says it
_MOST_LEAVES = 60
_MEASURES = {
    "objective": "What is left unexplained, and the cost of more of them",
    "lower bound": "How well the model describes the rows",
    "log joint": "How well the chain describes the rows",
}


@dataclass(frozen=True)
class Cleared:
    """Whether the number of groups might as well be another."""

    kind: str  # "clear", "unclear", "given", or "" where nobody knows
    words: str
    others: tuple[int, ...] = ()  # numbers that are nearly as good


def clearness(model: Any, n_groups: int, noun: str = "group") -> Cleared:
    """Judge the number of groups by what the model keeps."""
    asked = getattr(model, f"n_{model._group_noun}s", None)
    if isinstance(asked, (int, np.integer)):
        return Cleared("given", f"The number of {noun}s was given.")
    if n_groups == 1:
        return Cleared("clear", f"Nothing says that there is more than one {noun}.")
    path: Any = getattr(model, "path_", None)
    tree = getattr(model, "cluster_tree_", None)
    if hasattr(path, "is_clear"):
        if path.is_clear:
            return Cleared("clear", "Coarse and fine looks at the rows agree on it.")
        others = [int(K) for K in path.runners_up if n_groups != K]
        listed = " or ".join(map(str, others[:3])) or "Others"
        words = f"{listed} would be nearly as good."
        return Cleared("unclear", words, tuple(others[:3]))
    if tree is not None and model._group_noun == "cluster":
        if tree.clearness >= _CLEAR:
            return Cleared("clear", f"Rows are few between {noun}s, as far as they go.")
        return Cleared("unclear", f"Some {noun}s might be one, or fall apart further.")
    if isinstance(getattr(model, "penalty", None), (int, float)):
        return Cleared("given", f"It follows from the price of a {noun}, as given.")
    return Cleared("", f"As many {noun}s as lower the costs, or raise the likelihood.")


# ------------------------------------------------------------------------ tree


@dataclass(frozen=True)
class Tree:
    """The upper part of a tree of clusters, ready to be drawn from left to right.

    Attributes
    ----------
    places : tuple of float
        Of nodes, leaves first: how far along the row of leaves.
    heights : tuple of float
        Of nodes, from 0 to 1: half by the overlap of what is joined, half by the order
        of the steps, as those of groups that hardly overlap are all the same.
    groups : tuple of int
        The cluster that a node is in; -1: it holds several.
    children : tuple of (int, int)
        Of the nodes after the leaves.
    sizes : tuple of float
        Of the leaves.
    cut : float or None
        Between the last step inside of a cluster and the next one.
    n_hidden : int
        Pieces that are not drawn on their own.
    """

    places: tuple[float, ...]
    heights: tuple[float, ...]
    groups: tuple[int, ...]
    children: tuple[tuple[int, int], ...]
    sizes: tuple[float, ...]
    cut: float | None
    n_hidden: int

    @property
    def n_leaves(self) -> int:
        return len(self.sizes)


def tree(model: Any) -> Tree | None:
    """The tree of a model, down to 60 pieces; None: it has none worth a picture."""
    whole = getattr(model, "cluster_tree_", None)
    if whole is None or whole.n_leaves < 2:
        return None
    n, K = whole.n_leaves, int(model.n_clusters_)
    cluster = getattr(model, "cluster_of_component_", None)
    if cluster is None or len(cluster) != n:
        cluster = getattr(model, "cluster_of_cell_", None)
    if cluster is None or len(cluster) != n:
        cluster = whole.cut(min(K, n))
    shown = min(n, _MOST_LEAVES)
    below = n - shown  # steps that are not drawn
    groups = [int(k) for k in cluster]
    sizes, heights = list(map(float, whole.sizes)), [0.0] * n
    for t, (i, j) in enumerate(whole.children):
        groups.append(groups[i] if groups[i] == groups[j] else -1)
        sizes.append(sizes[i] + sizes[j])
        heights.append(float(whole.heights[t]))
    used = set(whole.children[:below].ravel().tolist())
    leaves = [i for i in range(n + below) if i not in used]
    number = {node: at for at, node in enumerate(leaves)}
    number |= {n + t: shown + t - below for t in range(below, n - 1)}
    steps = [(number[int(i)], number[int(j)]) for i, j in whole.children[below:]]
    kept = sorted(number, key=number.__getitem__)
    rise = [0.0] * shown + _heights([heights[n + t] for t in range(below, n - 1)])
    cut = None
    if 1 <= K <= shown:
        last = shown + (shown - 1 - K)  # the last step inside of a cluster
        low = rise[last] if shown > K else 0.0
        cut = 0.5 * (low + rise[last + 1]) if K > 1 else 1.03
    return Tree(
        places=_places(shown, steps),
        heights=tuple(rise),
        groups=tuple(groups[i] for i in kept),
        children=tuple(steps),
        sizes=tuple(sizes[i] for i in leaves),
        cut=cut,
        n_hidden=below,
    )


def _heights(steps: list[float]) -> list[float]:
    """Heights that can be told apart, from what may be all the same."""
    highest, n = max(steps, default=0.0) or 1.0, len(steps)
    return [0.5 * h / highest + 0.5 * (t + 1) / n for t, h in enumerate(steps)]


def _places(n: int, steps: list[tuple[int, int]]) -> tuple[float, ...]:
    """Leaves in an order without crossings, and steps between what they join."""
    order: list[int] = []
    stack = [n + len(steps) - 1] if steps else list(range(n))
    while stack:
        node = stack.pop()
        if node < n:
            order.append(node)
        else:
            stack += reversed(steps[node - n])
    places = [0.0] * (n + len(steps))
    for at, leaf in enumerate(order):
        places[leaf] = float(at)
    for t, (i, j) in enumerate(steps):
        places[n + t] = 0.5 * (places[i] + places[j])
    return tuple(places)


# ----------------------------------------------------------------------- trace


@dataclass(frozen=True)
class Event:
    """Changes of the number of groups in a pass that were kept."""

    at: int
    kind: str
    times: int


@dataclass(frozen=True)
class Trace:
    """How a fit went, pass by pass.

    Attributes
    ----------
    measure : str
    words : str
        What is measured, and ...
    group_words : str
        ... what is counted.
    higher_is_better : bool
    values : tuple of float
    groups : tuple of int
        How many there were; () where that is not known.
    events : tuple of Event
    burn_in : int
        Sweeps of a chain that were thrown away.
    converged : bool or None
    """

    measure: str
    words: str
    group_words: str
    higher_is_better: bool
    values: tuple[float, ...]
    groups: tuple[int, ...]
    events: tuple[Event, ...]
    burn_in: int
    converged: bool | None


def trace(model: Any) -> Trace:
    values = tuple(float(v) for v in model._history)
    groups = getattr(getattr(model, "fit_report_", None), "groups", ())
    kept = getattr(model, "n_components_history_", None)
    if kept is not None:
        groups = tuple(int(k) for k in kept)
    moves, events = getattr(model, "moves_", None), []
    if moves is not None and len(moves):
        counted = Counter(
            (int(move["pass"]), str(move["kind"])) for move in moves[moves["accepted"]]
        )
        events = [Event(at, kind, n) for (at, kind), n in sorted(counted.items())]
    return Trace(
        measure=model._measure,
        words=f"{_MEASURES.get(model._measure, 'Measure')} ({model._measure})",
        group_words=f"Number of {_pieces(model)} in each pass",
        higher_is_better=model._measure != "objective",
        values=values,
        groups=tuple(groups) if len(groups) == len(values) else (),
        events=tuple(event for event in events if event.at <= len(values)),
        burn_in=int(getattr(model, "burn_in", 0)) if kept is not None else 0,
        converged=getattr(model, "converged_", None),
    )


def _pieces(model: Any) -> str:
    """What passes count, which clusters may be made of."""
    if model._group_noun != "cluster":
        return "features"
    if hasattr(model, "cluster_of_cell_"):
        return "cells, which groups are made of,"
    return "components" if hasattr(model, "n_components_") else "groups"


# ---------------------------------------------------------------------- origin


@dataclass(frozen=True)
class Origin:
    """Where an answer comes from, and how to get it again."""

    model: str
    settings: tuple[tuple[str, str], ...]  # those that are not at their defaults
    defaults: tuple[tuple[str, str], ...]
    choice: str
    versions: tuple[tuple[str, str], ...]
    when: str
    took: str
    digest: str
    python: str


def origin(model: Any, data: str, rows: str | None) -> Origin:
    """What there is to tell; `data` is the digest, `rows` says where rows are from."""
    name, params = type(model).__name__, model.get_params(deep=False)
    plain = type(model)().get_params(deep=False)
    given = {key: v for key, v in params.items() if repr(v) != repr(plain.get(key))}
    words = ", ".join(f"{key}={value!r}" for key, value in given.items())
    short = reprlib.Repr()
    short.maxother = short.maxstring = 200
    packages = ("numpy", "scipy", "scikit-learn")
    scaled = getattr(model, "scaling_", None) is not None
    lines = ["import kplus"]
    families = [one for one in FAMILIES if re.search(rf"\b{one}\(", words)]
    if families:
        lines.append(f"from kplus.observations import {', '.join(families)}")
    lines.append("")
    if scaled:
        lines.append("# X has columns of mean 0 and standard deviation 1.")
    lines += [
        f"model = kplus.{name}({words})",
        f"model.fit({rows or 'X'})",
        f'model.report("report.html", {rows or "X"})',
    ]
    took = getattr(model, "fit_report_", None)
    return Origin(
        model=name,
        settings=tuple((key, short.repr(value)) for key, value in given.items()),
        defaults=tuple(
            (key, short.repr(value))
            for key, value in params.items()
            if key not in given
        ),
        choice=str(getattr(model, "choice_", "")),
        versions=(
            ("kplus", __version__),
            ("Python", platform.python_version()),
            *((package, version(package)) for package in packages),
        ),
        when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        took="" if took is None else str(took),
        digest=data,
        python="\n".join(lines),
    )


def digest(source: Blocks) -> str:
    """SHA-256 of the values of a table; of a large one, of some blocks, as is said."""
    mark = Fingerprint(source, None).plain
    part = "" if mark["values"] is not None else " (of some blocks of its rows)"
    return f"sha256:{mark['sample']}{part}"
