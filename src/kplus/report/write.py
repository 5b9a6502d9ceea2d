"""Writes the report of a fitted model to a file."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kplus.base.portrait import Portrait
from kplus.core.types import IntArray
from kplus.persist.atomic import atomic_file
from kplus.report import sections
from kplus.report.content import gather
from kplus.report.page import Fact, page
from kplus.report.rows import column_names, draw, groups_of
from kplus.report.scatter import scatter

__all__ = ["report"]


def report(model: Any, path: Any, X: Any = None, **settings: Any) -> Path:
    check_is_fitted(model)
    target = Path(os.fspath(path))
    html = _clusters(model, X)
    with atomic_file(target) as file:
        file.write(html.encode("utf-8", "replace"))
    return target


def _clusters(model: Any, X: Any, labels: IntArray | None = None) -> str:
    portrait, drawn, own = model.portrait_, None, None
    if X is not None:
        if labels is None:
            labels = groups_of(model, X)
        drawn = draw(model, X, labels)
        own = labels[drawn.numbers]
        sizes = np.bincount(labels[labels >= 0], minlength=model._n_groups).astype(
            float
        )
        found = drawn.portrait(model, own)
        portrait = Portrait(
            **vars(found) | {"sizes": sizes, "n_rows": float(len(labels))}
        )
    content = gather(model, portrait, drawn, own)
    parts = [sections.cards(content, {})]
    if drawn is not None and own is not None:
        names = column_names(model)
        parts.append(
            sections.the_map(scatter(model, drawn, own, names, portrait.K), content)
        )
    parts.append(sections.table(content, None, "Sureness."))
    parts += filter(
        None,
        [
            sections.idle(content),
            sections.odd_rows(content, drawn is None or drawn.is_all),
        ],
    )
    K, n = portrait.K, portrait.n_rows
    return page(
        "Report of clusters",
        f"{K} groups in {n:,.0f} rows",
        parts,
        facts=[Fact("Groups", str(K))],
    )
