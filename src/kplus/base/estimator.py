"""What all estimators share: parameters, and how a fit goes."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Interval

from kplus.base.checkpointing import begin, check_rows, open_for
from kplus.base.checks import (
    check_weights,
    describe_infinite,
    describe_not_finite,
    refuse_bools,
)
from kplus.base.described import Described
from kplus.base.portrait import Belonging
from kplus.base.progress import PassReporter, Watch, report_of
from kplus.base.tables import open_table
from kplus.base.warn import warn
from kplus.core.errors import NotFiniteError
from kplus.core.types import Blocks, PassInfo
from kplus.data.categories import Coding
from kplus.persist.checkpoint import Checkpoint

__all__ = ["AT_LEAST_ONE", "Clusterer", "Estimator", "Table", "latest", "warn"]

_LOG = logging.getLogger("kplus")

AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")
_KEPT = 10_000  # entries of a stream's history


@dataclass(frozen=True)
class Table:
    """What a user passed, as a fit sees it.

    Attributes
    ----------
    X : what was passed
    source : Blocks
    coding : Coding or None
        How categories became numbers, where there are any.
    survey : Survey or None
        What is in it, for estimators that look at the table first.
    offset : (D,) or None
        What was taken off the columns.
    """

    X: Any
    source: Blocks
    coding: Coding | None = None
    survey: Any = None
    offset: Any = None


class Estimator(Described, CallbackSupportMixin, BaseEstimator):
    """The frame of a fit; subclasses fill in the steps.

    `_find` and `_find_more` return the result of a search: at least `history`, the
    measure after each pass, and `converged`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_init": [AT_LEAST_ONE],
        "max_iter": [AT_LEAST_ONE],
        "tol": [Interval(Real, 0, None, closed="left")],
        "batch_size": [AT_LEAST_ONE, None],
        "warm_start": ["boolean"],
        "n_jobs": [AT_LEAST_ONE, Interval(Integral, None, -1, closed="right"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    # The measure is also the name of attributes: objective_, objective_history_.
    _measure: ClassVar[str] = "objective"
    _groups: ClassVar[str] = "clusters"
    _streaming = False  # while the first batch of a stream is fitted
    _result: ClassVar[str]  # the attribute that fitted estimators have

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def _n_passes(self) -> int | None:
        """How many passes there will be, if that is known."""
        return None

    # --------------------------------------------------------- steps of a fit

    def _check_settings(self) -> None:
        """Refuse parameters that do not go together."""
        refuse_bools(self)

    def _open(self, X: Any, *, reset: bool) -> Table:
        """Open a table: of a new fit, or one that must be like that of the fit."""
        source = open_table(self, X, reset=reset, block_rows=self.batch_size)
        return Table(X, source)

    def _check_table(self, table: Table, weights: Any) -> None:
        """Refuse tables in which there is nothing to find."""

    def _find(self, table: Table, weights: Any, reporter: PassReporter) -> Any:
        """The search that the parameters ask for."""
        raise NotImplementedError

    def _find_more(self, table: Table, weights: Any, watch: Watch) -> Any:
        """The same for a further batch of rows."""
        raise NotImplementedError

    def _store(self, result: Any, table: Table) -> None:
        """Set the attributes, all but the measure and its history."""
        raise NotImplementedError

    def _described(self, info: PassInfo, table: Table) -> dict[str, Any]:
        """The attributes that make a fitted estimator in mid-fit, for callbacks."""
        raise NotImplementedError

    def _store_more(self, result: Any, table: Table) -> None:
        """The same after a further batch of rows."""
        self._store(result, table)

    def _warn(self, result: Any, table: Table) -> None:
        """Say what a user should know of a fit."""
        self._warn_more(result, table)

    def _warn_more(self, result: Any, table: Table) -> None:
        """The same after a further batch of rows."""
        if not result.converged and len(result.history) >= self.max_iter:
            warn(
                f"{type(self).__name__} did not converge in "
                f"max_iter={self.max_iter} passes; raise max_iter or tol.",
                ConvergenceWarning,
            )

    # ------------------------------------------------------------------ fits

    def _fit(self, X: Any, sample_weight: Any = None, checkpoint: Any = None) -> Self:
        """Fit; `checkpoint` is where to keep one, or one to resume."""
        self._check_settings()
        table = self._open(X, reset=True)
        weights = check_weights(sample_weight, table.source.n_rows)
        self._check_table(table, weights)
        if isinstance(checkpoint, Checkpoint):
            check_rows(checkpoint, table.source, weights)
        elif checkpoint is not None:
            checkpoint = begin(checkpoint, self, table.source, weights)
        reporter = PassReporter(
            self,
            X,
            lambda info: self._described(info, table),
            checkpoint,
            table.source.n_rows,
        )
        with self._explaining(table.source), reporter.interrupt:
            result = self._find(table, weights, reporter)
        if checkpoint is not None and not reporter.interrupt.requested:
            checkpoint.remove()
        self._set_history(result.history)
        self.n_iter_ = len(result.history)
        self._store(result, table)
        self._portray(table, weights)
        self._set_report(table.source, len(result.history), reporter)
        self._warn(result, table)
        reporter.close()
        if reporter.interrupt.requested:
            raise KeyboardInterrupt(
                f"The fit was ended after pass {self.n_iter_}; the estimator holds the "
                f"best so far."
            )
        return self

    def _set_report(self, source: Blocks, n_passes: int, watch: Watch) -> None:
        self.fit_report_ = report_of(source, n_passes, watch)
        _LOG.info("%s: %s", type(self).__name__, self.fit_report_)

    @classmethod
    def resume(cls, path: Any, X: Any, sample_weight: Any = None) -> Self:
        """Resume a fit that was interrupted; the result has the same bits.

        Parameters
        ----------
        path : str or path-like
            What was given to `fit` as `checkpoint`.
        X, sample_weight
            The same as in that `fit`.

        Returns
        -------
        estimator : fitted estimator
            With the parameters of the interrupted one.
        """
        return cls(**open_for(cls, path).fit["params"])._resume(path, X, sample_weight)

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def _resume(self, path: Any, X: Any, sample_weight: Any = None) -> Self:
        """As `resume`, for an estimator with the parameters of the interrupted one."""
        return self._fit(X, sample_weight, open_for(type(self), path))

    def _first_batch(self, X: Any, sample_weight: Any) -> Self:
        """Begin a stream: what the first rows have not may come with later ones."""
        self._streaming = True
        try:
            return self.fit(X, sample_weight=sample_weight)
        finally:
            del self._streaming

    def _fit_more(self, X: Any, sample_weight: Any = None) -> Self:
        self._check_settings()
        table = self._open(X, reset=False)
        weights = check_weights(sample_weight, table.source.n_rows)
        watch = Watch(self)
        with watch.interrupt:  # to the end: half a batch must not be stored
            with self._explaining(table.source):
                result = self._find_more(table, weights, watch)
            n_passes = len(result.history)
            self._set_history(latest(self._history, result.history))
            self.n_iter_ += n_passes
            self._store_more(result, table)
            self._portray(table, weights)
            self._set_report(table.source, n_passes, watch)
        self._warn_more(result, table)
        if watch.interrupt.requested:
            raise KeyboardInterrupt(
                f"The batch was ended after pass {n_passes}; the estimator holds all "
                f"of its rows."
            )
        return self

    @contextmanager
    def _explaining(self, source: Blocks) -> Iterator[None]:
        """Say which values are at fault where sums turn out not to be finite."""
        try:
            yield
        except NotFiniteError:
            raise self._explain(source) from None

    def _explain(self, source: Blocks) -> ValueError:
        """What is wrong with rows whose sums are not finite."""
        if get_tags(self).input_tags.allow_nan:
            return describe_infinite(self, source)
        return describe_not_finite(self, source)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._result)

    @property
    def _history(self) -> Any:
        return getattr(self, f"{self._measure.replace(' ', '_')}_history_")

    def _set_history(self, history: Any) -> None:
        name = self._measure.replace(" ", "_")
        setattr(self, f"{name}_history_", history)
        setattr(self, f"{name}_", float(history[-1]))

    def _set_or_drop(self, name: str, value: Any) -> None:
        """Set what not all fits have; None drops that of an earlier fit."""
        if value is not None:
            setattr(self, name, value)
        elif hasattr(self, name):
            delattr(self, name)


class Clusterer(ClusterMixin, Estimator):
    """What the estimators with clusters share."""

    def _sureness(self, rows: Any, labels: Any) -> Any:
        """How surely each row belongs to its cluster, 0 to 1."""
        raise NotImplementedError

    @property
    def _n_groups(self) -> int:
        return int(self.n_clusters_)

    def _belonging(self, rows: Any, labels: Any = None) -> Belonging:
        labels = self.predict(rows) if labels is None else labels
        sureness = self._sureness(rows, labels)
        return Belonging.of_labels(labels, self._n_groups, sureness)

    def _group_sizes(self, weights: Any) -> tuple[Any, float]:
        inside = self.labels_ >= 0
        counted = None if weights is None else weights[inside]
        n_rows = len(inside) if weights is None else weights.sum()
        sizes = np.bincount(self.labels_[inside], counted, self._n_groups)
        return sizes.astype(float), float(n_rows)

    def _check_stream(self) -> None:
        """Refuse settings that streams have no place for."""

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        checkpoint: Any = None,
    ) -> Self:
        """Find clusters.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or path, (n_samples, n_features)
            Rows to cluster. A path may name a ``.npy``, ``.csv`` or Parquet file.
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

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of rows to what was seen before; the class says how.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; `labels_` are those of this batch.

        Returns
        -------
        self : estimator
            `fit_report_` says what this batch took. After Ctrl-C, which ends it as it
            ends a fit, the batch counts as seen.
        """
        self._check_stream()
        if not self.__sklearn_is_fitted__():
            return self._first_batch(X, sample_weight)
        return self._fit_more(X, sample_weight)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find clusters and return the cluster of each row.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self.fit(X, sample_weight=sample_weight).labels_


def latest(earlier: Any, later: Any) -> Any:
    """One array after the other; of both, the entries that a stream keeps."""
    if not len(later):
        return earlier
    # Records are copied field by field, bytes at once.
    raw = f"V{later.dtype.itemsize}"
    earlier = earlier.astype(later.dtype, copy=False)
    both = np.concatenate((earlier.view(raw), later.view(raw)))
    return both[-_KEPT:].view(later.dtype)
