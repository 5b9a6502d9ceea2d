"""The features of a fit: which rows have them, what they add, and combinations.

Units. Files and JSON give features in the units of the input file. A feature is a
difference, so that after ``--scale`` its values are multiplied by the scales of the
columns. The means that were taken off are given back to the base, the feature that all
rows have; then Z times the components makes up the rows, as without ``--scale``. If no
feature is in all rows, none of them can hold the means: rows are then the means (the
`offset` in JSON, `scaling_["mean"]` in the model file) plus their features.

Tables and files give features as zeros and ones. Where a model gives probabilities, a
row has the features of more than one half, and the file has the probabilities, too.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kplus.base.answers import parts_of
from kplus.base.description import say_number
from kplus.cli.console import count
from kplus.cli.predict import feature_answers
from kplus.cli.results import (
    Results,
    finite,
    in_short,
    most_distinctive,
    print_table,
)
from kplus.cli.tables import read_once
from kplus.core.types import Array, IntArray
from kplus.plots.features import FeatureDisplay, in_deviations, in_deviations_words

__all__ = ["FeatureTally", "Features", "IBPFeatures"]

_MAX_COMBINATIONS = 20
_MAX_ADDED, _MAX_PRINTED = 6, 6  # columns of a feature; combinations


class Features(Results):
    """What `BPMeans` or `KFeatures` found."""

    noun, size, picture = "feature", "rows", "features.png"
    headings = ("sureness", "adds")
    knows_error = True  # whether the model knows what features leave of the rows
    _left = 0.0  # what features leave of the rows, squared

    @cached_property
    def _tally(self) -> "FeatureTally":
        return FeatureTally(self.n_found)

    @property
    def n_found(self) -> int:
        return int(self.model.n_components_)

    def pieces(self) -> Iterator[dict[str, NDArray[Any]]]:
        _, parts = parts_of(self.model, self.table.data)
        for part in parts:
            answers = feature_answers(self.model, part)
            Z = answers["features"]
            expected = answers.get("probabilities", Z)
            self._tally.add(Z)
            for start, rows in read_once(part):
                here = slice(start, start + len(rows))
                self._tally.add_values(rows, Z[here])
                if not self.knows_error:
                    left = rows - self.model.inverse_transform(expected[here])
                    self._left += float(np.nansum(np.square(left)))
            yield answers

    def tables(self) -> dict[str, Any]:
        columns = {
            "feature": np.arange(self.n_found),
            "rows": self._tally.counts,
            "share": self._tally.shares,
        }
        for name, values in zip(self.table.column_names, self._values.T, strict=True):
            while name in columns:  # a column of the file called as one of ours
                name = f"{name} (column)"
            columns[name] = values
        return {"components": pa.table(columns)}

    def no_picture(self) -> str | None:
        return None if self.n_found else "There is no picture: there are no features."

    def plotted(self) -> tuple[tuple[float, float], Callable[..., Any]]:
        display = FeatureDisplay(
            components=self._deviations,
            shares=self._tally.shares,
            base=self._tally.base,
            column_names=self.table.column_names,
            unit=in_deviations_words(self._tally.base),
        )
        return display.figsize, display.plot

    def notes(self) -> list[str]:
        if self.n_found == 0 and self.model.objective_ > 0.0:
            return ["Hint: give a lower --penalty, or a number with --components."]
        if self._offset is None:
            return []
        return [
            "No feature is in all rows: a row is the means of the columns plus its "
            "features."
        ]

    def measures(self) -> dict[str, Any]:
        explained = None if self._explained is None else finite(self._explained)
        return {"explained_variance": explained} | super().measures()

    @property
    def priced(self) -> bool:
        # A number of features that was asked for comes without a penalty.
        return getattr(self.model, "n_components", None) is None

    def quality(self) -> str:
        explained = ""
        if self.n_found and self._explained is not None:
            explained = f"{self._explained:.1%} of the variance explained, "
        return explained + super().quality()

    def as_json(self) -> dict[str, Any]:
        patterns, counts = self._tally.combinations()
        first = zip(patterns[:_MAX_COMBINATIONS], counts, strict=False)
        return {
            "features": self.records,
            "offset": self._offset,
            "n_combinations": len(patterns),
            "combinations": [
                {
                    "features": np.flatnonzero(pattern).tolist(),
                    "rows": int(number),
                    "share": float(number / self._tally.n_rows),
                }
                for pattern, number in first
            ],
        }

    def cells(self, record: dict[str, Any]) -> tuple[str, ...]:
        """Sureness, and what it adds, as in "alcohol +0.52, hue -0.31"."""
        sure, columns = record["sureness"], record["columns"][:_MAX_ADDED]
        words = ", ".join(column["words"] for column in columns)
        return in_short(sure), words or "-"

    def print(self, title: str, caption: str = "") -> None:
        if self.n_found == 0:
            print(title)
            return
        if self._tally.base is not None:
            caption = "base: in all rows; shown by how it differs from the column means"
        super().print(title, caption)
        result = self.as_json()
        rows = [
            (
                f"{record['rows']:,}",
                f"{record['share']:.1%}",
                " + ".join(map(str, record["features"])) or "none",
            )
            for record in result["combinations"][:_MAX_PRINTED]
        ]
        left = result["n_combinations"] - len(rows)
        more = f"and {count(left, 'combination')} more" if left else ""
        print_table(("rows", "share", "features"), rows, caption=more)

    @cached_property
    def _values(self) -> Array:
        """What each feature adds to each column, in the units of the file."""
        values = np.array(self.model.components_, dtype=np.float64)
        if self.scaled:
            values *= self.profile.scale
        if self._tally.base is not None:
            values[self._tally.base] += self._taken_off
        return values

    @property
    def _taken_off(self) -> Array:
        """What the columns lost before the fit, in the units of the file."""
        profile, offset = self.profile, getattr(self.model, "offset_", None)
        taken = np.zeros_like(profile.mean) if offset is None else np.asarray(offset)
        return profile.mean + profile.scale * taken if self.scaled else taken

    @property
    def _offset(self) -> dict[str, float] | None:
        """What rows are made of beside features, by column; None: nothing."""
        taken = self._taken_off
        if self.n_found == 0 or self._tally.base is not None or not taken.any():
            return None
        return dict(zip(self.table.column_names, taken.tolist(), strict=True))

    @cached_property
    def _deviations(self) -> Array:
        """The same in standard deviations, the base from the mean."""
        profile = self.profile
        return in_deviations(
            self._values, self._tally.base, profile.mean, profile.deviation
        )

    @cached_property
    def _explained(self) -> float | None:
        """Share of the variance about the column means; None: there is none."""
        profile = self.profile
        spread = profile.deviation / (profile.scale if self.scaled else 1.0)
        total = float((profile.count * spread**2).sum())
        left = self._left
        if self.knows_error:
            left = float(self.model.reconstruction_err_) ** 2
        return None if total == 0.0 else 1.0 - left / total

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        return [
            {
                "feature": k,
                "rows": int(self._tally.counts[k]),
                "share": float(self._tally.shares[k]),
                "base": k == self._tally.base,
                "sureness": finite(self.model.portrait_.sureness[k]),
                "columns": most_distinctive(self._columns_of(k)),
            }
            for k in range(self.n_found)
        ]

    def _columns_of(self, k: int) -> list[dict[str, Any]]:
        added = zip(
            self.table.column_names,
            self._values[k],
            self._deviations[k],
            self.profile.deviation.tolist(),
            strict=True,
        )
        return [
            {
                "name": name,
                "value": finite(value),
                "deviation": finite(deviation),
                "words": f"{name} {say_number(deviation * scale, scale, '+')}",
            }
            for name, value, deviation, scale in added
        ]


class IBPFeatures(Features):
    """What `MEIBP`, `IBPGibbs` or `IBPVariational` found."""

    knows_error = False

    def notes(self) -> list[str]:
        if self._offset is None:
            return []
        return [
            "No feature is in all rows: a row is what was taken off the columns (the "
            "offset of --json) plus its features."
        ]

    @property
    def scores(self) -> Sequence[str]:  # type: ignore[override]
        # Of a sample, or of a distribution.
        chain = hasattr(self.model, "log_joint_")
        first = "log_joint" if chain else "lower_bound"
        return [first, "noise_scale", "factor_scale", "alpha"]


class FeatureTally:
    """Which of K features rows have, added up part by part."""

    def __init__(self, K: int) -> None:
        self.K, self.n_rows = K, 0
        self.counts = np.zeros(K, dtype=np.int64)
        self._everywhere = np.ones(K, dtype=bool)
        self._patterns: list[Any] = []  # Arrow tables: pattern, first row, rows

    def add(self, Z: NDArray[np.uint8]) -> None:
        """Add rows, which come after those that are there."""
        self.counts += np.count_nonzero(Z, axis=0)
        # A pattern of no features at all takes a byte, too.
        packed = np.packbits(Z if self.K else np.zeros((len(Z), 1), bool), axis=1)
        width, content = pa.binary(packed.shape[1]), pa.py_buffer(packed.tobytes())
        columns = {
            "pattern": pa.Array.from_buffers(width, len(Z), [None, content]),
            "first": np.arange(self.n_rows, self.n_rows + len(Z)),
            "rows": np.ones(len(Z), dtype=np.int64),
        }
        self._patterns.append(_merged([pa.table(columns)]))
        self.n_rows += len(Z)
        # Only when as many are waiting, so that few are merged again and again.
        if sum(map(len, self._patterns[1:])) >= len(self._patterns[0]):
            self._patterns = [_merged(self._patterns)]

    def add_values(self, rows: Array, Z: NDArray[np.uint8]) -> None:
        """Note which features are in all rows that have some value."""
        seen = ~np.isnan(rows).all(axis=1)
        self._everywhere &= Z[seen].all(axis=0)

    @property
    def shares(self) -> Array:
        """Of the rows, by feature."""
        return self.counts / self.n_rows

    @property
    def base(self) -> int | None:
        """The feature that all rows with some value have."""
        # Features with equal rows are one, so that no two are everywhere.
        return int(self._everywhere.argmax()) if self._everywhere.any() else None

    def combinations(self) -> tuple[NDArray[np.uint8], IntArray]:
        """Those that occur, the most frequent first, and how many rows have each."""
        order = [("rows", "descending"), ("first", "ascending")]
        found = _merged(self._patterns).sort_by(order)
        content = found["pattern"].combine_chunks().buffers()[1]
        packed = np.frombuffer(content, dtype=np.uint8).reshape(len(found), -1)
        return np.unpackbits(packed, axis=1)[:, : self.K], found["rows"].to_numpy()


def _merged(parts: list[Any]) -> Any:
    """Patterns of several parts, each of them once."""
    groups = pa.concat_tables(parts).group_by("pattern")
    found = groups.aggregate([("first", "min"), ("rows", "sum")])
    return found.select(["pattern", "first_min", "rows_sum"]).rename_columns(
        ["pattern", "first", "rows"]
    )
