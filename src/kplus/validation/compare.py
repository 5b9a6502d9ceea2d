"""Several models side by side on the same rows: `kplus.compare`."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kplus.data.rows import Rows, drawn
from kplus.validation.comparison import Candidate, Comparison
from kplus.validation.resampling import found_by, fresh, is_for_features
from kplus.validation.stability import stability
from kplus.validation.stability_result import Stability
from kplus.validation.validate import Validation, validate

__all__ = ["NAMES", "compare"]

_FEWEST_ROWS = 10  # that folds and resamples can be made of
_FOLDS = 3
_N_UNASKED = 3

NAMES = {
    "dp-mixture": "DPMixture",
    "dp-means": "DPMeans",
    "craft": "CRAFT",
    "bp-means": "BPMeans",
    "k-features": "KFeatures",
    "meibp": "MEIBP",
    "ibp-variational": "IBPVariational",
}
"""What can be asked for by name; the first three are compared unasked."""


def compare(
    X: Any,
    models: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    max_rows: int = 5_000,
    n_resamples: int = 10,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Fit several models to the same rows, and say how they compare.

    Of each model: the number of groups, and whether it is clear; whether the groups
    come back in fits to drawn rows (`stability`); whether there is anything between
    clusters (`validate`); the log density of rows held out, where the model has one;
    and the time of the fit. Of each two models: how far they agree on the rows. The
    result prints as a table with a line of advice for each model.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, path or blocks
        The rows. Categories and missing values may be among them; models that do not
        take these are listed with the reason.
    models : sequence or dict of names and estimators, optional
        Names are "dp-mixture", "dp-means" (of columns on one scale), "craft", and for
        features "bp-means", "k-features", "meibp", "ibp-variational". Estimators may
        be those of kplus or any other that clusters; they are fitted anew. By default
        the first three.
    max_rows : int, default=5000
        Of more rows a sample of this size is compared, so that the answer comes soon.
        Small groups of a large table may be missing there.
    n_resamples : int, default=10
        Fits to drawn rows, of each model. 0: none, and no stability.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample and of all fits.
    n_jobs : int or None, default=None
        Fits to drawn rows at a time; -1 uses all cores.
    progress : callable, optional
        Called with a few words before each step.

    Returns
    -------
    comparison : Comparison

    See Also
    --------
    stability : Whether the groups of one model come back.
    validate : How good clusters are, without fitting again.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> import kplus
    >>> X, _ = make_blobs(300, centers=3, random_state=1)
    >>> comparison = kplus.compare(X, n_resamples=4, random_state=0)
    >>> [candidate.n_groups for candidate in comparison.candidates]
    [3, 3, 3]
    >>> comparison.best.name
    'dp-mixture'
    >>> comparison.agreement.round(1)
    array([[1., 1., 1.],
           [1., 1., 1.],
           [1., 1., 1.]])
    """
    _check("max_rows", max_rows, _FEWEST_ROWS)
    _check("n_resamples", n_resamples, 0)
    estimators = _estimators(models)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    table = Rows(X)
    if table.n_rows < _FEWEST_ROWS:
        raise ValueError(
            f"Comparing models needs {_FEWEST_ROWS} rows or more, not {table.n_rows}."
        )
    rows = drawn(table.n_rows, max_rows, np.random.default_rng(seed))
    tried = _Trial(table.take(rows), seed, n_resamples, n_jobs, progress)
    candidates = tuple(tried.of(name, model) for name, model in estimators.items())
    if all(candidate.model is None for candidate in candidates):
        reasons = "; ".join(f"{c.name}: {c.why_not}" for c in candidates)
        raise ValueError(f"No model takes this table. {reasons}")
    return Comparison(candidates=candidates, n_rows=table.n_rows, rows=rows)


def _check(name: str, value: Any, least: int) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(f"{name} must be an int of at least {least}, not {value!r}.")


def _estimators(models: Any) -> dict[str, Any]:
    """What is compared, by name; refuses what is no estimator."""
    if models is None:
        models = list(NAMES)[:_N_UNASKED]
    if isinstance(models, Mapping):
        return _not_empty({str(name): _made(model) for name, model in models.items()})
    if isinstance(models, str) or not isinstance(models, Sequence):
        raise TypeError(
            f"models must be a list or a dict of names and estimators, not {models!r}."
        )
    out: dict[str, Any] = {}
    for model in models:
        name = plain = model if isinstance(model, str) else type(model).__name__
        number = 1
        while name in out:
            number += 1
            name = f"{plain} {number}"
        out[name] = _made(model)
    return _not_empty(out)


def _not_empty(estimators: dict[str, Any]) -> dict[str, Any]:
    if not estimators:
        raise ValueError("models is empty; name one or more, or leave it out.")
    return estimators


def _made(model: Any) -> Any:
    """An estimator of a name, or the one that is given."""
    import kplus

    if isinstance(model, str):
        if model not in NAMES:
            raise ValueError(
                f"models: there is no {model!r}; there are {', '.join(NAMES)}."
            )
        estimator = getattr(kplus, NAMES[model])()
        # Columns of a table are in units of their own.
        return estimator.set_params(scale=True) if model == "dp-means" else estimator
    if isinstance(model, type) or not hasattr(model, "get_params"):
        raise TypeError(f"models: {model!r} is neither a name nor an estimator.")
    ours = is_for_features(model) and hasattr(model, "describe")  # no mere transformer
    if not (ours or hasattr(model, "fit_predict")):
        raise TypeError(
            f"models: {type(model).__name__} finds neither clusters nor features."
        )
    return model


@dataclass(frozen=True)
class _Trial:
    """The rows and the settings that all models are given."""

    sample: Any
    seed: int
    n_resamples: int
    n_jobs: int | None
    progress: Callable[[str], None] | None

    def of(self, name: str, model: Any) -> Candidate:
        """Fit a model and judge it, or say why it does not take the rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they are about stands in the table
            self._say(f"Fitting {name}")
            fitted = fresh(model, self.seed)
            begun = time.process_time()
            try:
                groups = found_by(fitted, self.sample)
            except (TypeError, ValueError) as error:
                return Candidate(name, why_not=" ".join(str(error).split()))
            seconds = time.process_time() - begun
            self._say(f"Judging {name}")
            return Candidate(
                name,
                model=fitted,
                groups=groups,
                seconds=seconds,
                validation=self._validation(fitted) if groups.ndim == 1 else None,
                stability=self._stability(fitted),
            )

    def _say(self, words: str) -> None:
        if self.progress is not None:
            self.progress(words)

    def _validation(self, fitted: Any) -> Validation:
        # CRAFT's score is no density; that of other rows would be beside the point.
        scored = hasattr(fitted, "lower_bound_") and hasattr(fitted, "score_samples")
        try:
            cv = _FOLDS if scored else None
            return validate(fitted, self.sample, cv=cv, random_state=self.seed)
        except ValueError:  # such as a column without values in a fold
            return validate(fitted, self.sample, random_state=self.seed)

    def _stability(self, fitted: Any) -> Stability | None:
        if not self.n_resamples:
            return None
        try:
            return stability(
                fitted,
                self.sample,
                n_resamples=self.n_resamples,
                random_state=self.seed,
                n_jobs=self.n_jobs,
            )
        except ValueError:  # no fit to drawn rows is possible
            return None
