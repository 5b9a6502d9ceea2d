"""What the estimators with an Indian buffet process prior share."""

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.callback import with_callbacks
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kplus.base.checks import (
    check_features_of_rows,
    column_name,
    describe_infinite,
    refuse_empty_columns,
)
from kplus.base.described import DescribedFeatures
from kplus.base.estimator import AT_LEAST_ONE, Estimator, Table, warn
from kplus.base.portrait import Belonging
from kplus.base.tables import open_table
from kplus.core.errors import DataError
from kplus.core.reading import read_all
from kplus.core.types import Array, Blocks, PassInfo
from kplus.data.wrapped import ShiftedBlocks
from kplus.ibp.table import Survey, survey

__all__ = ["IBPEstimator", "as_array", "given"]

_HIGH = 1e6  # levels so much larger than the deviations leave too few digits
_SCALE = [Interval(Real, 1e-100, 1e100, closed="both"), StrOptions({"infer"})]


class IBPEstimator(
    DescribedFeatures, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator
):
    """X = ZA + noise with binary Z; subclasses infer Z, A, scales and alpha.

    A subclass sets `components_`, `n_components_`, `feature_counts_`, `alpha_`,
    `noise_scale_`, `factor_scale_` and `_n_rows`, and has `_expected_bits`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_components": [AT_LEAST_ONE, None],
        "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"infer"})],
        "noise_scale": _SCALE,
        "factor_scale": _SCALE,
        "negative": [StrOptions({"error", "shift", "noise"})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    _measure = "lower bound"
    _groups = "features"
    _result = "components_"
    _none_found: ClassVar[tuple[str, str]]  # why there may be none, and what to do

    @property
    def _nonnegative(self) -> bool:
        """Whether the prior of the factors is confined to nonnegative values."""
        raise NotImplementedError

    def _expected_bits(self, source: Blocks) -> Array:
        """Z, or its expectation, for rows in the units of the components."""
        raise NotImplementedError

    def _drawn(self, Z: Array, rng: np.random.RandomState) -> Array:
        """How much rows drawn have of the features that are theirs."""
        return Z

    def _belonging(self, rows: Any, labels: Any = None) -> Belonging:
        Z = np.asarray(self._expected_bits(self._open(rows, reset=False).source))
        least = 0.5 if getattr(self, "weights", None) is None else 0.0
        return Belonging.of_features(
            Z, read_all(rows), self.components_, self.offset_, least
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = self._nonnegative and self.negative == "error"
        return tags

    @property
    def n_samples_seen_(self) -> float:
        """Number of rows of the fit."""
        return float(self._n_rows)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    # --------------------------------------------------------- steps of a fit

    def _open(self, X: Any, *, reset: bool) -> Table:
        """Rows in the units of the components; a new fit surveys them first."""
        # Samplers hold all rows: they have no batch_size.
        block_rows = getattr(self, "batch_size", None)
        source = open_table(self, X, reset=reset, block_rows=block_rows)
        if reset:
            return self._surveyed(X, source)
        if not survey(source).finite:
            raise describe_infinite(self, source)
        return Table(X, ShiftedBlocks(source, self.offset_), offset=self.offset_)

    def _surveyed(self, X: Any, source: Blocks) -> Table:
        """Refuse values that the model cannot represent; shift columns if required."""
        refuse_empty_columns(self, source, None)
        summary = survey(source)
        if not summary.finite:
            raise describe_infinite(self, source)
        if summary.empty_rows:
            raise DataError(_empty_rows(summary.empty_rows))
        if self._nonnegative and self.negative == "shift":
            source = ShiftedBlocks(source, summary.lowest)
            return Table(X, source, survey=survey(source), offset=summary.lowest)
        if (
            self._nonnegative
            and self.negative == "error"
            and summary.lowest.min() < 0.0
        ):
            raise DataError(_negative_values(self, summary.lowest))
        if np.abs(summary.means).max() > _HIGH * summary.deviation > 0.0:
            raise DataError(_high_level(self, summary))
        return Table(X, source, survey=summary, offset=np.zeros(source.n_features))

    def _attributes(self, fit: Any) -> dict[str, Any]:
        """The fitted attributes."""
        raise NotImplementedError

    def _attributes_of(self, params: Any, n_rows: int) -> dict[str, Any]:
        """The same from the parameters of a pass, in mid-fit."""
        raise NotImplementedError

    def _store(self, fit: Any, table: Table) -> None:
        for name, value in {**self._attributes(fit), **_of_table(table)}.items():
            setattr(self, name, value)

    def _described(self, info: PassInfo, table: Table) -> dict[str, Any]:
        attributes = self._attributes_of(info.params, table.source.n_rows)
        return {**attributes, **_of_table(table)}

    def _warn(self, fit: Any, table: Table) -> None:
        if self.n_components_ == 0:
            why, remedy = self._none_found
            warn(
                f"{type(self).__name__} found no feature {why}: n_components_ is 0, "
                f"and transform returns no columns.{remedy}"
            )
        super()._warn(fit, table)

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)  # `init` may be an estimator
    def fit(self, X: Any, y: Any = None, checkpoint: Any = None) -> Self:
        """Find features.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            Rows to explain; NaN where a value is missing. A path may name a ``.npy``,
            ``.csv`` or Parquet file.
        y : None
            Ignored.
        checkpoint : str or path-like, optional
            A folder in which to note, now and then, how far the fit has got: see
            `resume`. It is gone when the fit has ended.

        Returns
        -------
        self : estimator
        """
        return self._fit(X, checkpoint=checkpoint)

    # ------------------------------------------------------------ what users call

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Find features and return which of them each row has.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components_)
        """
        return self.fit(X).transform(X)

    def transform(self, X: Any) -> Array:
        """Return which features each row has.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            NaN where a value is missing.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components_)
        """
        check_is_fitted(self)
        return self._expected_bits(self._open(X, reset=False).source)

    def inverse_transform(self, X: Any) -> Array:
        """Return the rows that features make up: Z A.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_components_)
            Features Z of each row, as `transform` returns them.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        return check_features_of_rows(self, X) @ self.components_ + self.offset_

    def impute(self, X: Any) -> Array:
        """Fill in missing entries from the features of their rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            NaN where a value is missing.

        Returns
        -------
        X_filled : ndarray of shape (n_samples, n_features)
            X itself where it was observed.
        """
        check_is_fitted(self)
        source = self._open(X, reset=False).source
        fitted = self._expected_bits(source) @ self.components_ + self.offset_
        table = as_array(open_table(self, X, reset=False))
        return np.where(np.isnan(table), fitted, table)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean predictive log-likelihood of an entry.

        For entry x and the features z of its row: log N(x; z·E[a], noise_scale_²).

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            The features of each row are inferred from what is observed here.
        y : array-like of shape (n_samples, n_features), optional
            The truth: entries missing in X and known here are scored. Without it, those
            observed in X are. Labels of the rows, as scikit-learn passes on, are
            ignored.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        source = self._open(X, reset=False).source
        table = as_array(source)
        fitted = self._expected_bits(source) @ self.components_
        if y is not None and (sp.issparse(y) or np.ndim(y) == 2):
            table = self._held_out(table, y)
        known = ~np.isnan(table)
        if not known.any():
            raise DataError(
                "X holds no value (all are NaN): there is nothing to score."
            )
        error = np.mean((table[known] - fitted[known]) ** 2)
        variance = self.noise_scale_**2
        return float(-0.5 * (np.log(2.0 * np.pi * variance) + error / variance))

    def _held_out(self, table: Array, y: Any) -> Array:
        """The entries of y that a table lacks, NaN elsewhere."""
        truth = y.toarray() if sp.issparse(y) else y
        truth = check_array(truth, dtype=np.float64, ensure_all_finite="allow-nan")
        if truth.shape != table.shape:
            raise ValueError(
                f"y has shape {truth.shape}, X has {table.shape}; give the same rows "
                f"and columns as in X, with the values that are missing there."
            )
        held_out = np.where(np.isnan(table), truth - self.offset_, np.nan)
        if np.isnan(held_out).all():
            raise ValueError(
                "No entry that is missing in X is known in y, so that there is nothing "
                "to score; set the entries held out to NaN in X."
            )
        return held_out

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draw rows from the fitted model.

        Each row has feature k with the share of rows that had it in the fit, and is the
        sum of its features plus noise.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None
            By default that of the estimator.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        Z : ndarray of shape (n_samples, n_components_)
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
        seed = self.random_state if random_state is None else random_state
        rng = check_random_state(seed)
        shares = self.feature_counts_ / (self._n_rows + 1.0)
        Z = (rng.uniform(size=(n_samples, self.n_components_)) < shares).astype(float)
        Z = self._drawn(Z, rng)
        noise = rng.normal(scale=self.noise_scale_, size=(n_samples, len(self.offset_)))
        return self.inverse_transform(Z) + noise, Z


def _of_table(table: Table) -> dict[str, Any]:
    return {"offset_": table.offset, "_n_rows": table.source.n_rows}


def as_array(source: Blocks) -> Array:
    """All rows, float64."""
    return read_all(source).astype(np.float64)


def _empty_rows(rows: list[int]) -> str:
    few = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
    where = f"row{'s' if len(rows) > 1 else ''} {few}"
    return f"Input X contains NaN only in {where}. Drop rows without any value."


def given(value: Any) -> float | None:
    """A number that is given, or None where it is to be inferred."""
    return None if isinstance(value, str) else float(value)


def _high_level(model: Any, summary: Survey) -> str:
    j = int(np.argmax(np.abs(summary.means)))
    remedy = "take off the column means first"
    if model._nonnegative:
        remedy = "use negative='shift' to take off the minimum of each column"
    return (
        f"The values of {column_name(model, j)} lie about {summary.means[j]:.6g}, but "
        f"values differ by {summary.deviation:.3g} only: float64 has too few digits "
        f"for both; {remedy}."
    )


def _negative_values(model: Any, lowest: Array) -> str:
    j = int(np.argmin(lowest))
    return (
        f"Negative values in data passed to {type(model).__name__} (down to "
        f"{lowest[j]:.6g} in {column_name(model, j)}), but features are nonnegative. "
        f"Use negative='shift' to take off the minimum of each column, "
        f"negative='noise' if the true values are not negative but for noise, or "
        f"prior='gaussian' for features of either sign."
    )
