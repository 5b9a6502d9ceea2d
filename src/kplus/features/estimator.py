"""What the estimators of latent features, `BPMeans` and `KFeatures`, share."""

from dataclasses import replace
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
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kplus.base.checks import (
    check_features_of_rows,
    check_shapes,
    check_weights,
    refuse_empty_columns,
    refuse_fewer_rows,
    refuse_other_columns,
)
from kplus.base.described import DescribedFeatures
from kplus.base.estimator import AT_LEAST_ONE, Estimator, Table, warn
from kplus.base.job import answering, job_of
from kplus.base.portrait import Belonging
from kplus.base.progress import PassReporter, Watch
from kplus.core.reading import read_all
from kplus.core.types import Array, PassInfo
from kplus.features import search
from kplus.features.model import EXACT_FEATURES, FeatureSums
from kplus.features.search import FeatureFit, FeatureSpec
from kplus.linear.sums import as_groups

__all__ = ["LatentFeatures"]


class LatentFeatures(
    DescribedFeatures, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator
):
    """X ≈ Z A with binary Z. Subclasses define the parameters and `_stepwise`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Estimator._parameter_constraints,
        "penalty": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_components": [AT_LEAST_ONE, None],
        "max_components": [AT_LEAST_ONE, None],
        "collapsed": ["boolean"],
        "init": [StrOptions({"auto", "++", "split", "ica", "random"})],
        "assignment": [StrOptions({"auto", "flips", "exact"})],
        "effort": [Interval(Real, 0, None, closed="left")],
        "sparse_output": ["boolean"],
    }
    _groups = "features"
    _result = "components_"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def n_samples_seen_(self) -> float:
        """Summed weights of all rows seen, those of a stream included."""
        return float(self._sums.weight)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    @property
    def _stepwise(self) -> bool:
        """Whether features are added one by one until the objective rises."""
        raise NotImplementedError

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        checkpoint: Any = None,
    ) -> Self:
        """Find features.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            Rows to explain; NaN where a value is missing. A path may name a ``.npy``,
            ``.csv`` or Parquet file.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; 2 is the same as the row twice, 0 as leaving it out.
        checkpoint : str or path-like, optional
            A folder in which to note, now and then, how far the fit has got: see
            `resume`. It is gone when the fit has ended.

        Returns
        -------
        self : estimator
        """
        return self._fit(X, sample_weight, checkpoint)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find features and return which of them each row has.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        Z : ndarray or sparse array of shape (n_samples, n_components_)
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of rows to what was seen before.

        Earlier rows keep the features they have, and count as sums; rows of this batch
        choose theirs and, with a number as `penalty` and no `n_components`, may add
        new ones. With ``penalty="auto"`` the first batch decides number and penalty;
        `collapsed` and `effort` concern the first batch only.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self : estimator
            `objective_` and `feature_counts_` cover every row seen so far, and
            `fit_report_` says what this batch took. After Ctrl-C, which ends it as it
            ends a fit, the batch counts as seen.
        """
        if not self.__sklearn_is_fitted__():
            return self._first_batch(X, sample_weight)
        return self._fit_more(X, sample_weight)

    # --------------------------------------------------------- steps of a fit

    def _check_settings(self) -> None:
        super()._check_settings()
        number, most = self.n_components, self.max_components
        if self.assignment == "exact" and (number or 0) > EXACT_FEATURES:
            raise ValueError(
                f"n_components={number} is too many for assignment='exact', which "
                f"tries up to 2^K patterns per row: it goes up to {EXACT_FEATURES}. "
                f"Use 'auto'."
            )
        if number is not None and most is not None and most < number:
            raise ValueError(
                f"max_components={most} is below n_components={number}; leave one of "
                f"them out, or raise max_components."
            )

    def _check_table(self, table: Table, weights: Array | None) -> None:
        refuse_fewer_rows(self, "n_components", table.source.n_rows)
        refuse_empty_columns(self, table.source, weights)

    def _find(
        self, table: Table, weights: Array | None, reporter: PassReporter
    ) -> FeatureFit:
        job = job_of(self, table.source, weights, reporter)
        return search.fit(job, _spec(self), _start(self))

    def _find_more(
        self, table: Table, weights: Array | None, watch: Watch
    ) -> FeatureFit:
        job = job_of(self, table.source, weights, watch)
        spec, sums = _spec_of_stream(self), self._sums
        result = search.run_passes(job, spec, sums.A, spec.penalty or 0.0, sums)
        return replace(result, path=getattr(self, "path_", None))

    def _store(self, result: FeatureFit, table: Table) -> None:
        K, error = len(result.components), float(result.sums.error)
        self.components_ = result.components
        self.n_components_ = K
        self.feature_counts_ = result.sums.counts.copy()
        self.penalty_ = float(result.penalty)
        self.objective_ = error + self.penalty_ * K
        self.reconstruction_err_ = float(np.sqrt(error))
        self.converged_ = result.converged
        self._set_or_drop("path_", result.path)
        self._sums = result.sums.copy()
        self._sums.begin_pass()  # its report would keep rows of the data

    def _described(self, info: PassInfo, table: Table) -> dict[str, Any]:
        return {"components_": info.params.A, "n_components_": info.params.K}

    def _warn_more(self, result: FeatureFit, table: Table) -> None:
        if self.n_components_ == 0:
            warn(_nothing_found(self))
        found = self.n_components is None and self.penalty == "auto"
        if found and self.n_components_ > self.n_features_in_:
            warn(_more_than_columns(self))
        super()._warn_more(result, table)

    # -------------------------------------------------------------------- files

    def _to_state(self) -> dict[str, Any]:
        """What a model file keeps beside the public attributes."""
        sums = self._sums
        kept = {"T": sums.T, "error": sums.error, "weight": sums.weight}
        return {"S": sums.by_column(), **kept}

    def _from_state(self, state: dict[str, Any]) -> None:
        """Restore what `_to_state` returned; refuse arrays of other shapes."""
        S, T, K, D = state["S"], state["T"], self.n_components_, self.n_features_in_
        check_shapes(
            {
                "components_": (self.components_, (K, D)),
                "feature_counts_": (self.feature_counts_, (K,)),
                "S": (S, (K, K) if S.ndim == 2 else (D, K, K)),
                "T": (T, (K, D)),
            }
        )
        S, group = as_groups(S, D)
        self._sums = FeatureSums(
            A=self.components_,
            S=S,
            group=group,
            T=T,
            error=float(state["error"]),
            weight=float(state["weight"]),
            counts=self.feature_counts_.copy(),
        )
        self._sums.begin_pass()

    # ------------------------------------------------------- what was found

    def _belonging(self, rows: Any, labels: Any = None) -> Belonging:
        Z = self._allocate(rows, None)[0].astype(np.float64)
        return Belonging.of_features(Z, read_all(rows), self.components_, 0.0, 0.5)

    # -------------------------------------------------------------------- rows

    def transform(self, X: Any) -> Any:
        """Return which features each row has.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)

        Returns
        -------
        Z : ndarray or sparse array of shape (n_samples, n_components_)
            Zeros and ones; sparse (CSR) with ``sparse_output=True``.
        """
        Z, _ = self._allocate(X, None)
        if self.sparse_output:
            return sp.csr_array(Z, dtype=np.float64)
        return Z.astype(np.float64)

    def inverse_transform(self, X: Any) -> Any:
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
        return check_features_of_rows(self, X) @ self.components_

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the squared error ‖X − Z A‖², with the best Z for X.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        score : float
        """
        return -self._allocate(X, sample_weight)[1]

    def _allocate(self, X: Any, sample_weight: Any) -> tuple[Any, float]:
        check_is_fitted(self)
        source = self._open(X, reset=False).source
        weights = check_weights(sample_weight, source.n_rows)
        with self._explaining(source):
            job = answering(self, source, weights)
            return search.allocate(job, self.components_, self.assignment)


# ------------------------------------------------------------------ parameters


def _spec(model: LatentFeatures) -> FeatureSpec:
    """What the parameters ask of a search."""
    return FeatureSpec(
        penalty=None if isinstance(model.penalty, str) else float(model.penalty),
        n_components=model.n_components,
        max_components=model.max_components,
        stepwise=model._stepwise,
        collapsed=model.collapsed,
        init=model.init,
        assignment=model.assignment,
        effort=float(model.effort),
        n_init=model.n_init,
    )


def _spec_of_stream(model: LatentFeatures) -> FeatureSpec:
    """The same for a later batch, with the penalty and number of the first."""
    spec = replace(_spec(model), stepwise=False)
    if spec.penalty is None and spec.n_components is None:
        spec = replace(spec, penalty=model.penalty_, n_components=model.n_components_)
    return spec


def _start(model: LatentFeatures) -> Array | None:
    """With `warm_start` after a fit: its features, unless another number is set."""
    if not model.warm_start or not hasattr(model, "components_"):
        return None
    start: Array = model.components_
    refuse_other_columns(model.n_features_in_, start.shape[1])
    if len(start) == 0 or model.n_components not in (None, len(start)):
        return None
    return start[: model.max_components]


def _nothing_found(model: LatentFeatures) -> str:
    name = type(model).__name__
    if model.objective_ == 0.0:
        return (
            f"{name} found no feature: X is zero everywhere, so that there is nothing "
            f"to explain. n_components_ is 0, and transform returns no columns."
        )
    return (
        f"{name} found no feature that is worth the penalty of {model.penalty_:.6g}: "
        f"n_components_ is 0, and transform returns no columns. All squares of X sum "
        f"to {model.objective_:.6g}; give a lower penalty, or n_components."
    )


def _more_than_columns(model: LatentFeatures) -> str:
    return (
        f"{type(model).__name__} found {model.n_components_} features in "
        f"{model.n_features_in_} columns. More features than columns mostly cut "
        f"amounts into steps, or explain noise. Give a penalty above "
        f"{model.penalty_:.6g}, or max_components; MEIBP infers the noise and stays "
        f"within the columns, with weights='nonnegative' for amounts."
    )
