"""What a model with an Indian buffet process prior found.

Tables and files tell features as zeros and ones. Where a model gives probabilities, a
row has the features of more than one half, and the file has the probabilities, too.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kplus.cli.console import count
from kplus.cli.features import Features
from kplus.cli.summary import finite
from kplus.core.types import Array

__all__ = ["BuffetFindings"]


class BuffetFindings(Features):
    """What was found; see `Findings`.

    Parameters
    ----------
    model : MEIBP, IBPGibbs or IBPVariational
    rows : Rows
        Of the fit.
    X : object
        The same, as the model takes them.
    """

    _left = 0.0

    def _add_values(self, rows: Array, answers: dict[str, NDArray[Any]]) -> None:
        expected = answers.get("probabilities", answers["features"])
        left = rows - self._model.inverse_transform(expected)
        self._left += float(np.nansum(np.square(left)))

    @property
    def _squared_error(self) -> float:
        return self._left

    def notes(self) -> list[str]:
        if self._offset is None:
            return []
        return [
            "No feature is in all rows: a row is what was taken off the columns (the "
            "offset of --json) plus its features."
        ]

    def measures(self) -> dict[str, Any]:
        model, explained = self._model, self._explained
        return {
            "n_components": self._n,
            "explained_variance": None if explained is None else finite(explained),
            self._measure: finite(getattr(model, f"{self._measure}_")),
            "noise_scale": finite(model.noise_scale_),
            "factor_scale": finite(model.factor_scale_),
            "alpha": finite(model.alpha_),
        }

    def title(self) -> tuple[str, str]:
        measures, explained = self.measures(), ""
        if self._n and self._explained is not None:
            explained = f"{self._explained:.1%} of the variance explained, "
        words = ", ".join(
            f"{name.replace('_', ' ')} {measures[name]:.6g}"
            for name in ("noise_scale", "factor_scale", "alpha", self._measure)
            if measures[name] is not None
        )
        return count(self._n, "feature"), f"{explained}{words}"

    @property
    def _measure(self) -> str:
        """What says how good the fit is: of a sample, or of a distribution."""
        return "log_joint" if hasattr(self._model, "log_joint_") else "lower_bound"

    @property
    def _taken_off(self) -> Array:
        found, offset = self._rows.found, self._model.offset_
        if not self._rows.scaled:
            return np.asarray(offset)
        return np.asarray(found.mean + found.scale * offset)
