"""The features of a fit: which rows have them, what they add, and combinations.

Units. Files and JSON tell features in the units of the input file. A feature is a
difference, so that after ``--scale`` its values are multiplied by the scales of the
columns. The means that were taken off are given back to the base, the feature that all
rows have; then Z times the components makes up the rows, as without ``--scale``. If no
feature is in all rows, none of them can hold the means: rows are then the means (the
`offset` in JSON, `scaling_["mean"]` in the model file) plus their features.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kplus.cli.console import count
from kplus.cli.models import feature_answers
from kplus.cli.summary import (
    Rows,
    column_words,
    finite,
    largest,
    print_table,
    telling,
)
from kplus.cli.tally import FeatureTally
from kplus.core.types import Array, IntArray
from kplus.io.answers import parts_of
from kplus.plots.features import (
    FeatureDisplay,
    in_deviations,
    in_deviations_words,
)

__all__ = ["Features"]

_MAX_COMBINATIONS = 20
_MAX_PRINTED = 6


class Features:
    """What a model of latent features found; see `Findings`.

    Parameters
    ----------
    model : BPMeans or KFeatures
    rows : Rows
        Of the fit.
    X : object
        The same, as the model takes them.
    """

    main, picture = "features", "features.png"

    def __init__(self, model: Any, rows: Rows, X: Any) -> None:
        self._model, self._rows, self._X = model, rows, X
        self._n = int(model.n_components_)
        self._tally = FeatureTally(self._n)

    def pieces(self) -> Iterator[dict[str, NDArray[Any]]]:
        _, parts = parts_of(self._model, self._X)
        for part in parts:
            answers = feature_answers(self._model, part)
            self._add(answers)
            yield answers

    def _add(self, answers: dict[str, NDArray[Any]]) -> None:
        """Count what the next rows have."""
        Z, start = answers["features"], self._tally.n_rows
        self._tally.add(Z)
        for own, rows in self._rows.between(start, start + len(Z)):
            self._tally.add_values(rows, Z[own])
            self._add_values(rows, {kind: said[own] for kind, said in answers.items()})

    def _add_values(self, rows: Array, answers: dict[str, NDArray[Any]]) -> None:
        """Add up more that a model tells of the values of rows."""

    @property
    def _counts(self) -> IntArray:
        return self._tally.counts

    @property
    def _shares(self) -> Array:
        return self._counts / self._tally.n_rows

    @property
    def _base(self) -> int | None:
        return self._tally.base

    def tables(self) -> dict[str, Any]:
        columns = {
            "feature": np.arange(self._n),
            "rows": self._counts,
            "share": self._shares,
        }
        for name, values in zip(self._rows.names, self._values.T, strict=True):
            while name in columns:  # a column of the file called as one of ours
                name = f"{name} (column)"
            columns[name] = values
        return {"components": pa.table(columns)}

    def no_picture(self) -> str | None:
        return None if self._n else "There is no picture: there are no features."

    def draw(self, path: Path) -> None:
        # A figure of its own, without pyplot: no screen is needed or touched.
        from matplotlib.figure import Figure

        display = FeatureDisplay(
            components=self._deviations,
            shares=self._shares,
            base=self._base,
            column_names=self._rows.names,
            unit=in_deviations_words(self._base),
        )
        figure = Figure(figsize=display.figsize, layout="constrained")
        display.plot(ax=figure.subplots())
        figure.savefig(path, dpi=150)

    def notes(self) -> list[str]:
        if self._n == 0 and self._model.objective_ > 0.0:
            return ["Hint: give a lower --penalty, or a number with --components."]
        if self._offset is None:
            return []
        return [
            "No feature is in all rows: a row is the means of the columns plus its "
            "features."
        ]

    def measures(self) -> dict[str, Any]:
        model, explained = self._model, self._explained
        return {
            "n_components": self._n,
            "explained_variance": None if explained is None else finite(explained),
            "objective": finite(model.objective_),
            "penalty": finite(model.penalty_),
        }

    def records(self) -> dict[str, Any]:
        patterns, counts = self._combinations
        return {
            "features": self._records,
            "offset": self._offset,
            "n_combinations": len(patterns),
            "combinations": [
                {
                    "features": np.flatnonzero(pattern).tolist(),
                    "rows": int(number),
                    "share": float(number / self._tally.n_rows),
                }
                for pattern, number in zip(
                    patterns[:_MAX_COMBINATIONS], counts, strict=False
                )
            ],
        }

    def title(self) -> tuple[str, str]:
        model, explained = self._model, ""
        if self._n and self._explained is not None:
            explained = f"{self._explained:.1%} of the variance explained, "
        # A number of features that was asked for comes without a penalty.
        price = f"penalty {model.penalty_:.6g}, " if model.n_components is None else ""
        words = f"{explained}{price}objective {model.objective_:.6g}"
        return count(self._n, "feature"), words

    def print(self, title: str) -> None:
        if self._n == 0:
            print(title)
            return
        shown, caption = largest(self._records, "rows")
        if self._base is not None:
            words = "base: in all rows; told as it differs from the column means"
            caption = words if caption is None else f"{caption}\n{words}"
        rows = [
            (
                f"{'base ' if record['base'] else ''}{record['feature']}",
                f"{record['rows']:,}",
                f"{record['share']:.1%}",
                column_words(record["columns"]),
            )
            for record in shown
        ]
        print_table(("feature", "rows", "share", "adds (in SDs)"), rows, title, caption)
        self._print_combinations()

    def _print_combinations(self) -> None:
        records = self.records()
        shown = records["combinations"][:_MAX_PRINTED]
        left = records["n_combinations"] - len(shown)
        caption = f"and {count(left, 'combination')} more" if left else None
        rows = [
            (
                f"{record['rows']:,}",
                f"{record['share']:.1%}",
                " + ".join(map(str, record["features"])) or "none",
            )
            for record in shown
        ]
        print_table(("rows", "share", "features"), rows, caption=caption)

    @cached_property
    def _values(self) -> Array:
        """What each feature adds to each column, in the units of the file."""
        values = np.array(self._model.components_, dtype=np.float64)
        if self._rows.scaled:
            values *= self._rows.found.scale
        if self._base is not None:
            values[self._base] += self._taken_off
        return values

    @property
    def _taken_off(self) -> Array:
        """What the columns lost before the fit, in the units of the file."""
        mean = self._rows.found.mean
        return mean if self._rows.scaled else np.zeros_like(mean)

    @property
    def _offset(self) -> dict[str, float] | None:
        """What rows are made of beside features, by column; None: nothing."""
        taken = self._taken_off
        if self._n == 0 or self._base is not None or not taken.any():
            return None
        return dict(zip(self._rows.names, taken.tolist(), strict=True))

    @cached_property
    def _deviations(self) -> Array:
        """The same in standard deviations, the base from the mean."""
        found = self._rows.found
        return in_deviations(self._values, self._base, found.mean, found.deviation)

    @cached_property
    def _explained(self) -> float | None:
        """Share of the variance about the column means; None: there is none."""
        found = self._rows.found
        spread = found.deviation / (found.scale if self._rows.scaled else 1.0)
        total = float((found.count * spread**2).sum())
        if total == 0.0:
            return None
        return 1.0 - self._squared_error / total

    @property
    def _squared_error(self) -> float:
        """What the features leave of the rows, in the units of the model."""
        return float(self._model.reconstruction_err_) ** 2

    @cached_property
    def _combinations(self) -> tuple[NDArray[Any], IntArray]:
        """The combinations of features that occur, the most frequent first."""
        return self._tally.combinations()

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        return [
            {
                "feature": k,
                "rows": int(self._counts[k]),
                "share": float(self._shares[k]),
                "base": k == self._base,
                "columns": telling(self._columns(k)),
            }
            for k in range(self._n)
        ]

    def _columns(self, k: int) -> list[dict[str, Any]]:
        values, deviations = self._values[k], self._deviations[k]
        return [
            {"name": name, "value": finite(value), "deviation": finite(deviation)}
            for name, value, deviation in zip(
                self._rows.names, values, deviations, strict=True
            )
        ]
