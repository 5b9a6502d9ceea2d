"""The page of a model with clusters."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from kplus.base.portrait import Portrait
from kplus.core.types import IntArray
from kplus.report import about, about_sections, sections
from kplus.report.content import Clusters, gather
from kplus.report.page import Fact, page
from kplus.report.parts import say_share, say_size
from kplus.report.rows import column_names, draw, groups_of
from kplus.report.scatter import scatter
from kplus.report.wanted import (
    FOOTER,
    Wanted,
    about_rows,
    in_short,
    labels_data,
    origin_of,
    stability_fact,
)

__all__ = ["clusters_page"]


def clusters_page(model: Any, X: Any, wanted: Wanted) -> str:
    portrait: Portrait = model.portrait_
    labels: IntArray | None = getattr(model, "labels_", None)
    drawn = own = where = None
    if X is not None:
        labels = model.labels_ if wanted.of_fit else groups_of(model, X)
        assert labels is not None
        drawn = draw(model, X, labels, wanted.row_names)
        own = labels[drawn.numbers]
        portrait = _sized(drawn.portrait(model, own), model, labels, wanted)
        where = scatter(model, drawn, own, column_names(model), portrait.K)
    content = gather(model, portrait, drawn, own)
    result, cleared = wanted.stability, about.clearness(model, portrait.K)
    known = None if result is None else result.group_stability.tolist()
    names = [sections.group_name(k) for k in range(portrait.K)]
    data = (
        None if labels is None else labels_data(["cluster"], [labels + 1], -1, wanted)
    )
    parts = [
        sections.cards(content, wanted.image_shape),
        None if where is None else sections.the_map(where, content),
        sections.table(content, known, wanted.image_shape is None),
        about_sections.tree(about.tree(model), portrait.K, cleared.kind == "given"),
        about_sections.stability(result, names),
        about_sections.trace(about.trace(model)),
        sections.idle(content),
        sections.odd_rows(content, drawn is None or drawn.is_all),
        origin_of(model, X, wanted),
        about_sections.labels(
            data is not None,
            "The group of each row, from 0 on; -1: none.",
            wanted.elsewhere,
        ),
    ]
    return page(
        wanted.title or f"{type(model).__name__} report",
        _headline(content, cleared) + in_short(result),
        [part for part in parts if part is not None],
        facts=_facts(content, cleared, result),
        lines=about_rows(drawn),
        data=None if data is None else {"labels": data},
        footer=FOOTER,
    )


def _sized(
    portrait: Portrait, model: Any, labels: IntArray, wanted: Wanted
) -> Portrait:
    """With the sizes of the groups in all rows, or in those of the fit by weight."""
    fitted: Portrait = model.portrait_
    sizes, n_rows = fitted.sizes, fitted.n_rows
    if not wanted.of_fit:
        sizes = np.bincount(labels[labels >= 0], minlength=portrait.K).astype(float)
        n_rows = float(len(labels))
    return Portrait(**vars(portrait) | {"sizes": sizes, "n_rows": n_rows})


def _headline(content: Clusters, cleared: about.Cleared) -> str:
    K, n = len(content.clusters), say_size(content.n_rows)
    if K == 1:
        return f"One group: the {n} rows do not fall apart"
    perhaps = " or ".join(map(str, cleared.others))
    how = {
        "clear": ("clear ", ""),
        "unclear": ("", f", or perhaps {perhaps}" if perhaps else ", or perhaps more"),
        "given": ("", ", as asked for"),
        "": ("", ""),
    }
    before, after = how[cleared.kind]
    return f"{K} {before}groups in {n} rows{after}{_how_sure(content)}"


def _how_sure(content: Clusters) -> str:
    value = content.sureness
    if math.isnan(value):
        return ""
    doubts = ((0.95, "little doubt"), (0.8, "some doubt"), (0.0, "much doubt"))
    spaces = ((0.5, "well apart"), (0.25, "apart"), (-math.inf, "close together"))
    if content.probable:
        return f"; there is {_band(value, doubts)} which row is in which"
    return f"; they lie {_band(value, spaces)}"


def _band(value: float, bands: Sequence[tuple[float, str]]) -> str:
    return next(words for least, words in bands if value >= least)


def _sure_fact(content: Clusters) -> Fact | None:
    value = content.sureness
    if math.isnan(value) or len(content.clusters) < 2:
        return None
    words = sections.say_sure(value, content.probable)
    good, poor = (0.9, 0.7) if content.probable else (0.5, 0.25)
    tone = "good" if value >= good else "poor" if value < poor else ""
    if content.probable:
        note = "is how surely a row belongs to its group, on average"
        return Fact("How sure is it?", words, note, tone)
    note = "is how much closer rows are to their own group; 1 at most"
    return Fact("How far apart are they?", words, note, tone)


def _facts(content: Clusters, cleared: about.Cleared, stability: Any) -> list[Fact]:
    K, columns = len(content.clusters), len(content.columns)
    rows = f"in {say_size(content.n_rows)} rows, {columns:,} columns"
    clear = {
        "clear": ("clear-cut", "good"),
        "unclear": ("not clear-cut", "poor"),
        "given": ("given", ""),
        "": ("found by the fit", ""),
    }
    value, tone = clear[cleared.kind]
    facts = [
        Fact("Groups", f"{K:,}", rows),
        Fact("Is the number clear?", value, cleared.words, tone),
        _sure_fact(content),
    ]
    if content.n_outside:
        share = say_share(content.n_outside / content.n_rows)
        words = say_size(content.n_outside)
        facts.append(Fact("Rows that belong nowhere", words, f"{share} of the rows"))
    facts.append(stability_fact(stability))
    return [fact for fact in facts if fact is not None]
