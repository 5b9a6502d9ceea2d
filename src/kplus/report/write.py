"""Writes the report of a fitted model: one page, with what is known of it."""

import base64
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kplus import __version__
from kplus.base.portrait import Portrait
from kplus.core.types import Array, IntArray
from kplus.persist.atomic import atomic_file
from kplus.report import about, about_sections, sections
from kplus.report.content import Clusters, gather
from kplus.report.markup import Markup
from kplus.report.page import Fact, Section, page
from kplus.report.pictures import image
from kplus.report.rows import Drawn, RowNames, Units, column_names, draw, groups_of
from kplus.report.scatter import scatter

__all__ = ["Wanted", "report"]

_MOST_LABELS = 200_000  # rows whose labels are in the page
_FOOTER = f"Made by kplus {__version__}. This page needs no network and sends nothing."
_MOST_NAMES = 2**20  # characters of the names of all rows


@dataclass(frozen=True)
class Wanted:
    """What a report shall have beside the model and the rows.

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
        Whether the rows are those of the fit, so that `labels_` are theirs.
    elsewhere : str
        Where labels are that do not fit into the page.
    """

    stability: Any = None
    row_names: RowNames | None = None
    image_shape: tuple[int, int] | None = None
    title: str | None = None
    command: str | None = None
    rows: str | None = None
    of_fit: bool = False
    elsewhere: str = "model.predict gives the group of each row."


def report(
    model: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    *,
    stability: Any = None,
    row_names: Sequence[str] | None = None,
    image_shape: tuple[int, int] | None = None,
    title: str | None = None,
) -> Path:
    """Write the report of a fitted estimator; its method `report` says more."""
    check_is_fitted(model)
    wanted = Wanted(
        stability=stability,
        row_names=_row_names(X, row_names),
        image_shape=image_shape,
        title=title,
        rows=repr(os.fspath(X)) if isinstance(X, (str, os.PathLike)) else None,
    )
    return write(model, path, X, wanted)


def write(model: Any, path: Any, X: Any, wanted: Wanted) -> Path:
    """The same with all that may be wanted."""
    _check_shape(model, wanted.image_shape)
    wanted = _judged(model, X, wanted)
    make = clusters_page if model._group_noun == "cluster" else features_page
    html = make(model, X, wanted)
    target = Path(os.fspath(path))
    with atomic_file(target) as file:
        file.write(html.encode("utf-8", "replace"))
    return target


def _row_names(X: Any, given: Sequence[str] | None) -> RowNames | None:
    """What rows are called: as given, or by the index of a pandas frame."""
    if given is not None:
        names = list(given)
        return lambda numbers: [str(names[i]) for i in numbers]
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(X, pandas.DataFrame):
        return None
    if isinstance(X.index, pandas.RangeIndex):
        return None
    return lambda numbers: [str(name) for name in X.index[numbers]]


def _check_shape(model: Any, shape: tuple[int, int] | None) -> None:
    if shape is not None and math.prod(shape) != model.n_features_in_:
        raise ValueError(
            f"image_shape={shape} has {math.prod(shape)} pixels, but the model has "
            f"{model.n_features_in_} columns."
        )


def _judged(model: Any, X: Any, wanted: Wanted) -> Wanted:
    """With stability as a result: fits are made if a number of them is given."""
    given = wanted.stability
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        from kplus.validation.stability import stability

        if X is None:
            raise ValueError("stability as a number of fits needs X, the rows.")
        given = stability(model, X, n_resamples=int(given), random_state=0)
    if given is not None and not hasattr(given, "group_stability"):
        raise TypeError(
            f"stability must be what kplus.stability returns, or a number of fits, "
            f"not {given!r}."
        )
    if given is not None and given.n_groups != model._n_groups:
        raise ValueError(
            f"stability is about {given.n_groups} groups, but the model has "
            f"{model._n_groups}; give that of this model."
        )
    return Wanted(**vars(wanted) | {"stability": given})


# -------------------------------------------------------------------- clusters


def clusters_page(model: Any, X: Any, wanted: Wanted) -> str:
    """The page of a model with clusters."""
    portrait: Portrait = model.portrait_
    drawn = own = labels = None
    if X is not None:
        labels = model.labels_ if wanted.of_fit else groups_of(model, X)
        drawn = draw(model, X, labels, wanted.row_names)
        own = labels[drawn.numbers]
        sizes = {"sizes": portrait.sizes, "n_rows": portrait.n_rows}
        if not wanted.of_fit:
            counts = np.bincount(labels[labels >= 0], minlength=portrait.K)
            sizes = {"sizes": counts.astype(float), "n_rows": float(len(labels))}
        portrait = Portrait(**vars(drawn.portrait(model, own)) | sizes)
    content = gather(model, portrait, drawn, own)
    cleared = about.clearness(model, portrait.K)
    names = [sections.group_name(k) for k in range(portrait.K)]
    pictures = _images(portrait, model, wanted.image_shape)
    result = wanted.stability
    parts: list[Section | None] = [sections.cards(content, pictures)]
    if drawn is not None and own is not None:
        where = scatter(model, drawn, own, column_names(model), portrait.K)
        parts.append(sections.the_map(where, content))
    known = None if result is None else result.group_stability.tolist()
    parts += [
        sections.table(content, known, _sureness_words(content.probable)),
        about_sections.tree(about.tree(model), portrait.K, cleared.kind == "given"),
        about_sections.stability(result, names),
        about_sections.trace(about.trace(model)),
        sections.idle(content),
        sections.odd_rows(content, drawn is None or drawn.is_all),
        *_end(model, drawn, X, wanted),
    ]
    data = _labels_data(
        model.labels_ if labels is None and hasattr(model, "labels_") else labels,
        wanted,
    )
    parts.append(_labels_section(data, wanted))
    return page(
        wanted.title or f"{type(model).__name__} report",
        _headline(content, cleared),
        [part for part in parts if part is not None],
        facts=_facts(content, cleared, result),
        lines=_about_rows(drawn),
        data=None if data is None else {"labels": data},
        footer=_FOOTER,
    )


def _end(model: Any, drawn: Drawn | None, X: Any, wanted: Wanted) -> list[Section]:
    mark = ""
    if X is not None:
        mark = about.digest(model._open(X, reset=False).source)
    return [
        about_sections.origin(about.origin(model, mark, wanted.rows), wanted.command)
    ]


def _images(
    portrait: Portrait, model: Any, shape: tuple[int, int] | None
) -> dict[int, Markup]:
    """The mean of each group as a picture."""
    if shape is None:
        return {}
    means = Units.of(model).portrait(portrait).means
    return {
        k: image(means[k].reshape(shape), f"The mean of group {k}")
        for k in range(portrait.K)
    }


def _sureness_words(probable: bool) -> str:
    if probable:
        return "Sure: how probable it is, on average, that its rows belong there."
    return (
        "Apart: how much closer rows are to the middle of their group than to that of "
        "the next; 1 is far closer, 0 is no closer."
    )


def _headline(content: Clusters, cleared: about.Cleared) -> str:
    K, n = len(content.clusters), sections.say_size(content.n_rows)
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
    rows = f"in {sections.say_size(content.n_rows)} rows, {columns:,} columns"
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
        share = sections.say_share(content.n_outside / content.n_rows)
        words = sections.say_size(content.n_outside)
        facts.append(Fact("Rows that belong nowhere", words, f"{share} of the rows"))
    facts.append(_stability_fact(stability))
    return [fact for fact in facts if fact is not None]


def _stability_fact(stability: Any) -> Fact:
    label = "Do the groups come back?"
    if stability is None:
        note = "kplus fit --stability 20, or report(stability=20), finds out"
        return Fact(label, "not tried", note)
    verdict, _, rest = stability.verdict.partition(":")
    tone = {"Stable": "good", "Not stable": "poor"}.get(verdict, "")
    words = rest.strip().capitalize()
    if not math.isnan(stability.overall):
        words += f" On average {stability.overall:.2f} of 1."
    return Fact(label, verdict.lower(), words, tone)


def _about_rows(drawn: Drawn | None) -> list[str]:
    if drawn is None:
        return [
            "This page is made of what the model keeps. With the rows (kplus report "
            "MODEL DATA) it has a map, distributions and typical rows, too."
        ]
    if drawn.is_all:
        return []
    return [
        f"Sizes count all {drawn.n_rows:,} rows. Pictures, words and unusual rows are "
        f"of {len(drawn.numbers):,} of them, drawn at random, and more of small groups."
    ]


# -------------------------------------------------------------------- features


def features_page(model: Any, X: Any, wanted: Wanted) -> str:
    raise NotImplementedError


# ---------------------------------------------------------------------- labels


def _labels_data(labels: IntArray | None, wanted: Wanted) -> dict[str, Any] | None:
    """What the page's script makes a CSV file of."""
    if labels is None or not len(labels) or len(labels) > _MOST_LABELS:
        return None
    names = None
    if wanted.row_names is not None:
        names = list(wanted.row_names(np.arange(len(labels))))
        if sum(map(len, names)) > _MOST_NAMES:
            names = None
    return {
        "file": "labels.csv",
        "header": ["row", "cluster"],
        "names": names,
        "columns": [packed(labels + 1)],
        "first": -1,
    }


def packed(values: Array | IntArray) -> dict[str, Any]:
    """Whole numbers from 0 on in one or two bytes each, as text."""
    width = 1 if values.max(initial=0) < 2**8 else 2
    raw = values.astype("<u1" if width == 1 else "<u2").tobytes()
    return {"bytes": base64.b64encode(raw).decode(), "width": width}


def _labels_section(data: dict[str, Any] | None, wanted: Wanted) -> Section:
    words = "The group of each row, from 0 on; -1 is none."
    if data is None:
        words = f"The labels of all rows are not in this page. {wanted.elsewhere}"
    return about_sections.labels(data is not None, words, "the labels")
