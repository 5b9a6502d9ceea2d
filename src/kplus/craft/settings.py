"""What the parameters of `CRAFT` ask for: tables, searches, attributes, warnings."""

from typing import Any, NamedTuple, Self

import numpy as np

from kplus.base.checks import refuse_other_columns
from kplus.base.estimator import Table, warn
from kplus.base.tables import open_mixed_table
from kplus.core.job import Job
from kplus.core.reading import read_all
from kplus.core.types import Array, Blocks
from kplus.craft import search
from kplus.craft.model import ClusterSums, CraftModel
from kplus.craft.paper.algorithm import PaperSpec, row_costs
from kplus.craft.report import (
    Profile,
    agreeing_features,
    budgeted_features,
    thresholded_features,
)
from kplus.craft.search import CraftFit, CraftSpec
from kplus.data.categories import Coding

__all__ = [
    "attributes",
    "best_fit",
    "check",
    "check_stream",
    "open_rows",
    "scores",
    "spec",
    "warn_of_table",
]

_PAPER_FRACTION = 0.5  # m, which the paper's algorithm cannot do without
_LOOK_AT = 2_000  # rows that are looked at for spikes
_SPIKE = 0.5  # one value in so many of the rows
_LIKE_AN_ID = 0.9  # so many categories a row
_LEAST_ROWS = 20  # with fewer, columns look like that by chance


class LastFit(NamedTuple):
    """What a later fit or prediction takes from the last fit."""

    model: CraftModel
    sums: ClusterSums
    coding: Coding | None

    @classmethod
    def of(cls, craft: Any) -> Self:
        return cls(craft._model, craft._sums, craft._coding)


def last_fit(craft: Any) -> LastFit | None:
    """With `warm_start` after a fit that saw columns in the same way: that fit."""
    if not craft.warm_start or not hasattr(craft, "_model"):
        return None
    last = LastFit.of(craft)
    same = last.model.layout.numeric == craft.numeric and np.array_equal(
        craft._asked, craft.categorical_features
    )
    return last if same else None


# ------------------------------------------------------------------- settings


def check(craft: Any) -> None:
    """Refuse parameters that do not go together."""
    wished, most = craft.n_clusters, craft.max_clusters
    if wished is not None and most is not None and most < wished:
        raise ValueError(
            f"max_clusters={most} is below n_clusters={wished}; leave one of them out, "
            f"or raise max_clusters."
        )
    if craft.variant == "paper":
        _check_paper(craft)


def _check_paper(craft: Any) -> None:
    """Refuse what Algorithms 1 and 2 have no place for."""
    if craft.sharing == 1.0:
        raise ValueError(
            "sharing=1 does not go with variant='paper', where it means ρ = 0 and no "
            "cluster is ever opened; give less, or use variant='likelihood'."
        )
    if craft.numeric != "gaussian":
        raise ValueError(
            f"numeric={craft.numeric!r} does not go with variant='paper'; leave it out."
        )
    if craft.n_clusters is None and isinstance(craft.penalty, str):
        raise ValueError(
            "variant='paper' needs a penalty or n_clusters: the paper has no rule for "
            "either. Give one, or use variant='likelihood'."
        )


def check_stream(craft: Any) -> None:
    """The paper's algorithm walks over all rows again and again."""
    if craft.variant == "paper":
        raise ValueError(
            "partial_fit does not go with variant='paper', which walks over all rows "
            "again and again; use variant='likelihood'."
        )


def spec(craft: Any, levels: tuple[int | None, ...]) -> CraftSpec:
    """What the parameters ask of a search."""
    return CraftSpec(
        levels=levels,
        numeric=craft.numeric,
        n_clusters=craft.n_clusters,
        max_clusters=craft.max_clusters,
        penalty=None if isinstance(craft.penalty, str) else float(craft.penalty),
        fraction=craft.feature_fraction,
        sharing=float(craft.sharing),
        smoothing=float(craft.smoothing),
        n_init=craft.n_init,
    )


def paper_spec(craft: Any, levels: tuple[int | None, ...]) -> PaperSpec:
    """The same for the algorithm as published."""
    m = _PAPER_FRACTION if craft.feature_fraction is None else craft.feature_fraction
    rho = None
    if craft.sharing > 0.0 and m < 1.0:
        rho = (1.0 - float(craft.sharing)) * m * (1.0 - m)
    return PaperSpec(
        levels=levels,
        fraction=float(m),
        rho=rho,
        penalty=None if isinstance(craft.penalty, str) else float(craft.penalty),
        n_clusters=craft.n_clusters,
        smoothing=float(craft.smoothing),
        variance_floor=float(craft.variance_floor),
        category_threshold=craft.category_threshold,
        variance_threshold=craft.variance_threshold,
        max_iter=craft.max_iter,
    )


# --------------------------------------------------------------------- tables


def open_rows(craft: Any, X: Any, *, reset: bool) -> Table:
    """Open a table; the coding of an earlier one decides the codes of categories."""
    last = last_fit(craft) if reset else None
    coding: Coding | None = None if last is None else last.coding
    if not reset:
        coding = craft._coding
    source, coding = open_mixed_table(
        craft,
        X,
        reset=reset,
        block_rows=craft.batch_size,
        categorical=craft.categorical_features,
        coding=coding,
        unknown=craft.handle_unknown,
    )
    if last is not None:
        refuse_other_columns(source.n_features, len(last.model.layout.levels))
    return Table(X, source, coding)


def best_fit(craft: Any, job: Job, coding: Coding | None) -> CraftFit:
    """The fit that the parameters ask for."""
    levels: tuple[int | None, ...] = (None,) * job.source.n_features
    if coding is not None:
        levels = coding.levels
    if craft.variant == "paper":
        return search.fit_as_published(job, paper_spec(craft, levels), craft.n_init)
    wanted, last = spec(craft, levels), last_fit(craft)
    if last is None or craft.n_clusters not in (None, last.sums.K):
        return search.fit(job, wanted)
    return search.refit(job, wanted, last.model.layout, last.sums)


def scores(craft: Any, source: Blocks) -> Array:
    """The score of each row in each cluster."""
    if craft._paper is not None:
        return -row_costs(read_all(source), craft._paper)
    return search.score(source, craft._model, craft._clusters)


# ----------------------------------------------------------------- attributes


def attributes(craft: Any, found: CraftFit) -> dict[str, Any]:
    """What clusters say about themselves, under the names of attributes."""
    model, sums = found.model, found.sums
    layout = model.layout
    scores = Profile.of(model, sums).gains / sums.counts[:, None]
    whole = sums.sums.sum(axis=0)
    total = float(sums.counts.sum())
    return {
        "n_clusters_": sums.K,
        "cluster_sizes_": sums.counts.copy(),
        "selected_features_": layout.by_column(_selected(craft, found)),
        "feature_scores_": layout.by_column(scores),
        "n_missing_": layout.missing(whole, total),
        "penalty_": float(model.penalties(whole, total).penalty),
    }


def _selected(craft: Any, found: CraftFit) -> Any:
    """The features to report, by the rule that the parameters ask for."""
    model, sums = found.model, found.sums
    if found.paper is not None:
        return found.paper.chosen[:, model.layout.columns]
    thresholds = craft.category_threshold, craft.variance_threshold
    if thresholds != (None, None):
        return thresholded_features(model, sums, *thresholds)
    if model.fraction is not None:
        return budgeted_features(model, sums)
    return agreeing_features(model, sums)


# ------------------------------------------------------------------- warnings


def warn_of_table(craft: Any, found: CraftFit, source: Blocks) -> None:
    """Say what a user should know of a table and its fit."""
    names = getattr(craft, "feature_names_in_", None)
    if names is None:
        names = [str(d) for d in range(source.n_features)]
    _warn_of_ids(found, names)
    if craft.numeric == "gaussian":
        _warn_of_spikes(found, names, source)
    if found.sums.blank > 0.0:
        warn(
            f"Rows without any value (weight {found.sums.blank:g}) tell nothing; they "
            f"are counted in the largest cluster."
        )
    if craft.n_clusters is not None and craft.n_clusters > found.sums.K:
        warn(
            f"Found {found.sums.K} clusters, not n_clusters={craft.n_clusters}: in "
            f"more of them no feature would be worth its cost. With feature_fraction a "
            f"number of features counts in any case."
        )


def _warn_of_ids(found: CraftFit, names: Any) -> None:
    layout, sums = found.model.layout, found.sums
    whole = sums.sums.sum(axis=0)
    ids = []
    for q, column in enumerate(layout.categories):
        counts = whole[layout.places(q)]
        seen, used = float(counts.sum()), int(np.count_nonzero(counts))
        if seen >= _LEAST_ROWS and used >= _LIKE_AN_ID * seen:
            ids.append(repr(str(names[column])))
    if ids:
        warn(
            f"Nearly every row has a category of its own in {', '.join(ids)}, as in a "
            f"column of names or of numbers of rows. It tells nothing; drop it."
        )


def _warn_of_spikes(found: CraftFit, names: Any, source: Blocks) -> None:
    layout = found.model.layout
    if not layout.scored:
        return
    step = max(1, source.n_rows // _LOOK_AT)
    X = source.take(np.arange(0, source.n_rows, step))
    spikes = []
    for column in layout.numbers[: layout.scored]:
        values, counts = np.unique(X[:, column], return_counts=True, equal_nan=True)
        counts = counts[~np.isnan(values)]
        if len(counts) < 3 or counts.sum() < _LEAST_ROWS:
            continue
        if counts.max() >= _SPIKE * counts.sum():
            spikes.append(repr(str(names[column])))
    if spikes:
        warn(
            f"More than half of the rows have the same number in {', '.join(spikes)}. "
            f"A Gaussian does not fit such a column, and clusters may come about by it "
            f"alone: try numeric='quantile', or drop it."
        )
