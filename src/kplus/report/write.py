"""Writes the report of a fitted model to a file."""

import math
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kplus.persist.atomic import atomic_file
from kplus.report.clusters_page import clusters_page
from kplus.report.features_page import features_page
from kplus.report.rows import RowNames
from kplus.report.wanted import Wanted

__all__ = ["report", "write"]


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


def write(model: Any, path: str | os.PathLike[str], X: Any, wanted: Wanted) -> Path:
    """The same with all that may be wanted."""
    _check_shape(model, wanted.image_shape)
    wanted = replace(wanted, stability=_judged(model, X, wanted.stability))
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
    if shape is not None and getattr(model, "_coding", None) is not None:
        raise ValueError("image_shape is for columns of numbers; there are categories.")
    if shape is not None and math.prod(shape) != model.n_features_in_:
        raise ValueError(
            f"image_shape={shape} has {math.prod(shape)} pixels, but the model has "
            f"{model.n_features_in_} columns."
        )


def _judged(model: Any, X: Any, given: Any) -> Any:
    """Stability as a result: fits are made if a number of them is given."""
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        from kplus.validation.stability import stability

        if X is None:
            raise ValueError("stability as a number of fits needs X, the rows.")
        given = stability(model, X, n_resamples=int(given), random_state=0)
    if given is None:
        return None
    if not hasattr(given, "group_stability"):
        raise TypeError(
            f"stability must be what kplus.stability returns, or a number of fits, "
            f"not {given!r}."
        )
    if given.n_groups != model._n_groups:
        raise ValueError(
            f"stability is about {given.n_groups} groups, but the model has "
            f"{model._n_groups}; give that of this model."
        )
    return given
