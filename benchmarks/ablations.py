"""Variants of the mixture's moves that live in the benchmarks only.

They show what a part of the algorithm is for by doing without it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np

from kplus.core.job import Job
from kplus.core.memo import Memo
from kplus.core.types import Array, IntArray, Proposal
from kplus.data.blocks import ArrayBlocks
from kplus.dp_mixture import search
from kplus.dp_mixture.birth import BirthSettings, BornComponents
from kplus.dp_mixture.families.family import Columns, Likelihood
from kplus.dp_mixture.fresh import seeded
from kplus.dp_mixture.model import DPMixtureModel
from kplus.dp_mixture.moves import by_size, choose_merges, pair_changes
from kplus.dp_mixture.params import Components, MixtureStats, pair_index
from kplus.dp_mixture.sticks import mean_log_weights, stick_evidence
from kplus.engine import make_engine
from kplus.engine.blas import SINGLE_THREAD
from kplus.engine.resources import Resources

Judge = Callable[[DPMixtureModel, MixtureStats, MixtureStats, IntArray], Array]


def make_model(X: Array, likelihood: Likelihood) -> DPMixtureModel:
    D = X.shape[1]
    columns = Columns(tuple(f"column {j}" for j in range(D)), (None,) * D)
    return DPMixtureModel(likelihood.resolve(X[:20_000], None, columns))


# ----------------------------------------------------- merges judged on a batch


def batch_under_all(
    model: DPMixtureModel, total: MixtureStats, batch: MixtureStats, pairs: IntArray
) -> Array:
    """Change of the batch's bound: its rows under the parameters of all rows.

    The rows of the batch stand against what the parameters cost as a whole.
    """
    family, (a, b) = model.family, pairs.T

    def worth(N: Array, S: Array, n: Array, s: Array) -> Array:
        expected = family.expect(N, S)
        out: Array = expected.total(n - N, s - S) + family.evidence(N, S)
        return out

    single = worth(total.N, total.S, batch.N, batch.S)
    sums = (total.N, total.S, batch.N, batch.S)
    joint = worth(*(part[a] + part[b] for part in sums))
    sticks = [_sticks_joined(total.N, batch.N, *pair) for pair in pairs]
    before = _sticks_worth(total.N, batch.N)
    return joint - single[a] - single[b] - batch.pairs + np.array(sticks) - before


def batch_alone(
    model: DPMixtureModel, total: MixtureStats, batch: MixtureStats, pairs: IntArray
) -> Array:
    """Change of the bound that the batch would have if it were all the data."""
    return pair_changes(model, batch, 1.0, pairs)


def _sticks_worth(N: Array, n: Array) -> float:
    return float((n - N) @ mean_log_weights(N, 1.0)) + stick_evidence(N, 1.0)


def _sticks_joined(N: Array, n: Array, a: int, b: int) -> float:
    old_to_new = np.where(np.arange(len(N)) == b, a, np.arange(len(N)))
    old_to_new[old_to_new > b] -= 1
    K = len(N) - 1
    return _sticks_worth(np.bincount(old_to_new, N, K), np.bincount(old_to_new, n, K))


JUDGES: dict[str, Judge] = {
    "batch under all": batch_under_all,
    "batch alone": batch_alone,
}


def greedy_merges(
    model: DPMixtureModel,
    X: Array,
    judge: Judge,
    n_components: int,
    n_batches: int,
    n_passes: int,
    rng: np.random.Generator,
) -> tuple[list[int], list[float]]:
    """Memoized passes with merges after each batch; K and whole bound by pass."""
    sample = X[rng.choice(len(X), min(len(X), 10_000), replace=False)]
    stats = seeded(model, sample, np.ones(len(sample)), n_components, rng)
    scale = len(X) / stats.mass
    params = model.posterior(stats.N * scale, stats.S * scale, float(len(X)))
    batches = np.array_split(X, n_batches)
    memo = Memo(n_batches)
    components, bounds = [], []
    for visit in range(n_passes):
        for i, rows in enumerate(batches):
            latest = model.share_out(params, rows, np.ones(len(rows)))[0]
            memo.replace(i, latest)
            if visit > 0:
                _merge(model, memo, latest, judge)
                params = model.posterior(memo.total.N, memo.total.S, memo.total.mass)
        memo.resum()
        params = model.posterior(memo.total.N, memo.total.S, memo.total.mass)
        components.append(memo.total.K)
        bounds.append(model.best_bound(memo.total))
    return components, bounds


def _merge(
    model: DPMixtureModel, memo: Memo, latest: MixtureStats, judge: Judge
) -> None:
    """Merge the disjoint pairs that pay as the judge sees it."""
    total = memo.total
    if total.K == 1:
        return
    pairs = np.column_stack(pair_index(total.K))
    changes = judge(model, total, latest, pairs)
    merges = choose_merges(total, pairs, changes, 1e-9)
    if len(merges):
        old_to_new = by_size(total.N, pairs[merges])
        memo.regroup(old_to_new, int(old_to_new.max()) + 1)


def run_greedy(X: Array, likelihood: Likelihood, arguments: dict[str, Any]) -> Any:
    rng = np.random.default_rng(arguments["random_state"])
    SINGLE_THREAD.take()
    try:
        return greedy_merges(
            make_model(X, likelihood),
            X,
            JUDGES[arguments["judge"]],
            arguments["n_components"],
            arguments["n_batches"],
            arguments["max_iter"],
            rng,
        )
    finally:
        SINGLE_THREAD.give_back()


# ---------------------------------------------------------- settings of births


class _EvenTargets(BornComponents):
    """Draw targets evenly, whatever their size and however long they have waited."""

    def planned(self, params: Components) -> Proposal | None:
        even = replace(params, waited=np.ones(params.K, np.int64))
        chances = np.where(params.N >= 2.0, 1.0, 0.0)
        # With counts all alike only what was tried before is left to tell them apart.
        tried = chances * params.tried / np.maximum(params.N, 1e-300)
        proposal = super().planned(replace(even, N=chances * 2.0, tried=tried * 2.0))
        if proposal is None:
            return None
        plan = proposal.params.plan
        return replace(proposal, params=replace(params, plan=plan))


def run_births(
    X: Array, likelihood: Likelihood, arguments: dict[str, Any]
) -> search.MixtureFit:
    """A fit from one component with settings of births that users do not have.

    Every birth takes place on all rows, as in the paper: fits of `DPMixture` begin on
    samples.
    """
    rows, n_batches = arguments["birth_rows"], arguments["n_batches"]
    model = replace(make_model(X, likelihood), n_active=4, n_collect=rows)
    births = BirthSettings(**arguments["births"])
    spec = search.Spec(model, births=births, n_batches=n_batches)
    source = ArrayBlocks(X, -(-len(X) // n_batches))
    rng = np.random.default_rng(arguments["random_state"])
    kind = _EvenTargets if arguments["even_targets"] else BornComponents
    one = seeded(model, X[:10_000], np.ones(len(X[:10_000])), 1, rng)
    start = model.posterior(one.N, one.S, one.mass)
    with patch.object(search, "BornComponents", kind):
        job = Job(
            source, None, rng, max_iter=arguments["max_iter"],
            make_engine=make_engine, resources=Resources(),
        )  # fmt: skip
        return search.fit(job, spec, start)
