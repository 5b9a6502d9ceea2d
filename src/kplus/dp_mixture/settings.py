"""From the parameters of `DPMixture` to tables, models and batches, and back."""

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from kplus.base.checks import refuse_other_columns
from kplus.base.estimator import Table, warn
from kplus.base.tables import open_mixed_table, open_table
from kplus.core.errors import DataError, NotNumbersError
from kplus.core.types import Blocks
from kplus.data.blocks import SparseBlocks, default_block_rows
from kplus.data.categories import Coding, count_levels
from kplus.data.sparse_rows import SparseRowBlocks
from kplus.data.wrapped import UserBlocks
from kplus.dp_mixture.birth import BirthSettings
from kplus.dp_mixture.families import AUTO, by_name
from kplus.dp_mixture.families.categorical import Categorical
from kplus.dp_mixture.families.family import (
    Columns,
    Family,
    Likelihood,
    ObservedFamily,
)
from kplus.dp_mixture.families.gaussian import Gaussian
from kplus.dp_mixture.families.mixed import Mixed
from kplus.dp_mixture.families.multinomial import MultinomialFamily
from kplus.dp_mixture.families.zero_mean_gaussian import ZeroMeanGaussian
from kplus.dp_mixture.model import DPMixtureModel, StochasticModel
from kplus.dp_mixture.moves import MoveRecord
from kplus.dp_mixture.noise import Noise
from kplus.dp_mixture.params import Components
from kplus.dp_mixture.search import Spec
from kplus.dp_mixture.sticks import mean_weights

__all__ = [
    "LastFit",
    "attributes",
    "columns_of",
    "make_spec",
    "moves_table",
    "open_rows",
    "split_blocks",
    "warm_fit",
    "warn_of_wide_prior",
    "with_zeros",
]

_BLOCK_ROWS = 4096  # with about 50 columns a block's work stays in the cache
_BATCH_ROWS = 1000  # rows in a batch at least ...
_N_BATCHES = 20  # ... and so many batches at most
_N_ACTIVE = 4
_LIKELY_COMPONENTS = 100  # to guess the memory of a fit without a cap
_WIDE = 10.0  # a prior variance of so many times that of the components is too wide


# ------------------------------------------------------------------- settings


def make_spec(
    dp: Any, family: Family, source: Blocks, noise: Noise | None = None
) -> Spec:
    """The model, the moves and the batches of the estimator's parameters."""
    alpha = None if dp.concentration == "infer" else float(dp.concentration)
    active = _N_ACTIVE if dp.n_active == "auto" else dp.n_active
    cap = np.inf if dp.max_components is None else dp.max_components
    model = DPMixtureModel(family, alpha, active, dp.birth_rows, noise=noise)
    kinds = tuple(dp.moves)
    if dp.algorithm == "stochastic":
        model = StochasticModel(
            family, alpha, active, noise=noise,
            delay=dp.learning_delay, decay=dp.learning_decay,
        )  # fmt: skip
        kinds = ()
    n_batches = batches_of(dp, source.n_rows, family.n_stats)
    return Spec(
        model=model,
        n_components=dp.n_components,
        kinds=kinds,
        births=BirthSettings(max_components=cap),
        n_batches=n_batches,
    )


def batches_of(dp: Any, n_rows: int, n_stats: int) -> int:
    """Number of batches, no more than fit in `memory_limit`."""
    if dp.algorithm == "full":
        return 1
    if dp.batch_size is not None:
        n_batches = -(-n_rows // dp.batch_size)
    else:
        n_batches = int(np.clip(n_rows // _BATCH_ROWS, 1, _N_BATCHES))
    if dp.memory_limit is not None:
        K = max(dp.n_components, dp.max_components or _LIKELY_COMPONENTS)
        each = 8.0 * K * (n_stats + 4.0 + 0.5 * (K - 1))
        n_batches = min(n_batches, max(1, int(dp.memory_limit // each)))
    return n_batches


def split_blocks(source: Any, n_batches: int) -> Blocks:
    """The same table in blocks of which each batch has the same number.

    An even number, unless batches are small: two threads then share the work. Blocks
    that users define stay as they are.
    """
    if isinstance(source, UserBlocks):
        return source
    batch_rows = -(-source.n_rows // n_batches)
    numbers = getattr(source, "row_numbers", source.n_features)
    most = min(_BLOCK_ROWS, default_block_rows(numbers))
    pairs = -(-batch_rows // (2 * most))
    n_blocks = (
        2 * pairs if batch_rows >= _BATCH_ROWS else max(1, -(-batch_rows // most))
    )
    blocks: Blocks = source.cut(-(-batch_rows // n_blocks))
    return blocks


# --------------------------------------------------------------------- tables


class LastFit(NamedTuple):
    """What a later fit or prediction takes from the last fit."""

    family: Family
    params: Components
    coding: Coding | None

    @classmethod
    def of(cls, dp: Any) -> Self:
        return cls(dp.observations_, dp._params, dp._coding)

    def start(self, spec: Spec) -> Components:
        """Its components, the largest of them if there may be no more."""
        most = int(min(self.params.K, spec.births.max_components))
        N, S, noise = self.params.N[:most], self.params.S[:most], self.params.noise
        return spec.model.posterior(N, S, float(N.sum()) + noise, noise or None)


def warm_fit(dp: Any) -> LastFit | None:
    """The fit that a warm start begins with, if it had the same observations."""
    if not dp.warm_start or not hasattr(dp, "_params"):
        return None
    same = dp._given_observations is dp.observations or (
        isinstance(dp.observations, str) and dp._given_observations == dp.observations
    )
    return LastFit.of(dp) if same else None


def open_rows(
    dp: Any, X: Any, observations: Any, last: LastFit | None, *, reset: bool
) -> Table:
    """Open a table as the observations need it: numbers, or categories as well.

    With `reset` this is a new fit; a `last` one decides the codes of categories.
    """
    coding = None if last is None else last.coding
    likelihood = None if observations == AUTO else by_name(observations)
    unknown = dp.handle_unknown
    if likelihood is None or isinstance(likelihood, Mixed):
        source, coding = open_mixed_table(
            dp, X, reset=reset, coding=coding, unknown=unknown
        )
    elif isinstance(likelihood, Categorical):
        source, coding = open_mixed_table(dp, X, reset=reset, coding=coding, every=True)
    else:
        try:
            source, coding = open_table(dp, X, reset=reset), None
        except NotNumbersError as error:
            raise DataError(
                f"{error} Or give observations='mixed', which takes categories."
            ) from None
    if isinstance(source, SparseBlocks) and _stays_sparse(source, likelihood, last):
        source = SparseRowBlocks.of(source)
    if last is not None:
        refuse_other_columns(source.n_features, last.family.n_columns)
    return Table(X, source, coding)


def _stays_sparse(
    source: SparseBlocks, likelihood: Likelihood | None, last: LastFit | None
) -> bool:
    """Whether the family takes sparse rows; left open, if all values are counts."""
    if likelihood is not None:
        return bool(getattr(likelihood, "takes_sparse", False))
    if last is not None:
        return isinstance(last.family, ObservedFamily | MultinomialFamily)
    x = source.matrix.data
    return bool(np.all((x >= 0) & (np.floor(x) == x) & np.isfinite(x)))


def with_zeros(table: Table) -> Table:
    """The same with rows that are dense, where they are kept sparse."""
    if not isinstance(table.source, SparseRowBlocks):
        return table
    return replace(table, source=table.source.dense())


def columns_of(table: Table, likelihood: Likelihood | None) -> Columns:
    """Names and numbers of categories of the columns."""
    source, coding = table.source, table.coding
    names = getattr(source, "feature_names", None)
    if names is None:
        names = [f"column {j}" for j in range(source.n_features)]
    levels: tuple[int | None, ...] = (None,) * source.n_features
    if coding is not None:
        levels = coding.levels
    elif isinstance(likelihood, Categorical):
        levels = count_levels(source)
    return Columns(tuple(names), levels)


# ----------------------------------------------------------------------- fits


def attributes(
    observations: Any,
    coding: Coding | None,
    family: Family,
    params: Components,
    noise: Noise | None,
) -> dict[str, Any]:
    """Fitted attributes of the components, by name."""
    weights = mean_weights(params.N, params.concentration)
    weights = weights / weights.sum()
    share = None if noise is None else noise.share(params.noise, params.mass)
    if share is not None:
        weights *= 1.0 - share
    values: dict[str, Any] = {
        "observations_": family,
        "n_components_": params.K,
        # In mid-fit, and without a tree, every component is a cluster.
        "n_clusters_": params.K,
        "cluster_of_component_": np.arange(params.K, dtype=np.int32),
        # The rest belongs to components not seen yet.
        "weights_": weights,
        "concentration_": float(params.concentration),
        "_params": params,
        "_noise": noise,
        "_given_observations": observations,
        "_coding": coding,
    }
    if coding is not None:
        values["categories_"] = coding.categories
    if share is not None:
        values["noise_share_"] = share
    return values | family.attributes(params.N, params.S)


def moves_table(records: list[MoveRecord]) -> Any:
    """All proposals as a structured array; -1 where there is no other component."""
    fields = [
        ("pass", np.int64), ("kind", "U8"), ("target", np.int64),
        ("other", np.int64), ("accepted", np.bool_), ("change", np.float64),
    ]  # fmt: skip
    rows = [
        (r.iteration, r.kind, *(*r.target, -1)[:2], r.accepted, r.change)
        for r in records
    ]
    return np.array(rows, dtype=fields)


def warn_of_wide_prior(dp: Any) -> None:
    """Warn where the user's E[Σ] far exceeds what the components turned out to be."""
    likelihood = dp.observations
    if not isinstance(likelihood, (Gaussian, ZeroMeanGaussian)):
        return
    if likelihood.covariance is None:
        return
    variances = dp.weights_ @ np.diagonal(dp.covariances_, axis1=1, axis2=2)
    given = np.asarray(likelihood.covariance, dtype=np.float64)
    prior = np.full(len(variances), given) if given.ndim == 0 else np.diag(given)
    ratio = float(np.median(prior / variances))
    if ratio > _WIDE:
        warn(
            f"The prior covariance of the components is about {ratio:.3g} times what "
            f"they turned out to be, so that small ones do not raise the bound; set "
            f"a smaller covariance in {type(likelihood).__name__}(...)."
        )
