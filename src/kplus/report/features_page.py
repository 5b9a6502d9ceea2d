"""The page of a model with latent features."""

import math
from typing import Any

import numpy as np

from kplus.base.portrait import Portrait
from kplus.core.types import Array, IntArray
from kplus.report import about, about_sections, feature_sections
from kplus.report.features import Features, bits, counts_of, gather
from kplus.report.page import Fact, page
from kplus.report.parts import say_share, say_size
from kplus.report.rows import draw
from kplus.report.wanted import (
    FOOTER,
    Wanted,
    about_rows,
    in_short,
    labels_data,
    origin_of,
    stability_fact,
)

__all__ = ["features_page"]


def features_page(model: Any, X: Any, wanted: Wanted) -> str:
    portrait: Portrait = model.portrait_
    drawn = Z = data = None
    if X is not None:
        drawn = draw(model, X, None, wanted.row_names)
        Z = bits(model, drawn.some(slice(None)))
        portrait = _sized(drawn.portrait(model, None), model, X, wanted)
        if drawn.is_all:
            data = _data(Z, model, wanted)
    content = gather(model, portrait, drawn, Z)
    result, shape = wanted.stability, wanted.image_shape
    cleared = about.clearness(model, portrait.K, "feature")
    names = [feature_sections.feature_name(f) for f in content.features]
    parts = [
        feature_sections.cards(content, shape),
        feature_sections.table(content, result, shape is None),
        feature_sections.combinations(content),
        feature_sections.rebuilt(content, shape),
        feature_sections.filled(content),
        about_sections.stability(result, names),
        about_sections.trace(about.trace(model)),
        feature_sections.idle(content),
        origin_of(model, X, wanted),
        about_sections.labels(
            data is not None, "Which features each row has: 1 or 0.", wanted.elsewhere
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


def _sized(portrait: Portrait, model: Any, X: Any, wanted: Wanted) -> Portrait:
    """With the sizes of the features in all rows."""
    fitted: Portrait = model.portrait_
    sizes, n_rows = fitted.sizes, fitted.n_rows
    if not wanted.of_fit:
        sizes, n_rows = counts_of(model, X)
    return Portrait(**vars(portrait) | {"sizes": sizes, "n_rows": n_rows})


def _data(Z: Array, model: Any, wanted: Wanted) -> dict[str, Any] | None:
    least = 0.5 if getattr(model, "weights", None) is None else 0.0
    columns: list[IntArray] = [(z > least).astype(np.int64) for z in Z.T]
    return labels_data(
        [f"feature {k}" for k in range(len(columns))], columns, 0, wanted
    )


def _headline(content: Features, cleared: about.Cleared) -> str:
    K, n = len(content.features), say_size(content.n_rows)
    if K == 0:
        return f"No feature: nothing in these {n} rows is worth one"
    perhaps = " or ".join(map(str, cleared.others))
    after = {"given": ", as asked for", "unclear": f", or perhaps {perhaps or 'more'}"}
    noun = "feature" if K == 1 else "features"
    words = f"{K} {noun} in {n} rows{after.get(cleared.kind, '')}"
    if content.explained is None:
        return words
    verb = "explains" if K == 1 else "explain"
    share = say_share(max(content.explained, 0.0))
    return f"{words}, which {verb} {share} of what differs between them"


def _facts(content: Features, cleared: about.Cleared, stability: Any) -> list[Fact]:
    K, columns = len(content.features), len(content.columns)
    rows = f"in {say_size(content.n_rows)} rows, {columns:,} columns"
    values = {
        "clear": ("clear-cut", "good"),
        "unclear": ("not clear-cut", "poor"),
        "given": ("given", ""),
        "": ("found by the fit", ""),
    }
    value, tone = values[cleared.kind]
    facts = [
        Fact("Features", f"{K:,}", rows),
        Fact("Is the number clear?", value, cleared.words, tone),
    ]
    if content.explained is not None and math.isfinite(content.explained):
        share = say_share(max(content.explained, 0.0))
        facts.append(Fact("Explained", share, "of the variance of the columns"))
    return [*facts, stability_fact(stability)]
