"""The loop that serves every estimator: sweep, judge, propose, update."""

from collections.abc import Sequence
from typing import Any

from kplus.core.memo import Memo, add_up
from kplus.core.types import (
    Callback,
    Engine,
    FitResult,
    Model,
    Move,
    PassInfo,
    Proposal,
)

__all__ = ["run"]


def run(
    model: Model[Any, Any],
    engine: Engine,
    params: Any,
    *,
    moves: Sequence[Move] = (),
    groups: Sequence[Sequence[int]] | None = None,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    finish: Move | None = None,
) -> FitResult:
    """Pass over the data until nothing pays any more.

    Each pass assigns every row under the current parameters and sums what the
    parameters need. The fit ends right after such a sum, never after an update, so
    that the labels belong to the parameters returned.

    Parameters
    ----------
    moves : sequence of Move
        Tried in order after each pass; the first proposal is taken.
    groups : sequence of block lists, optional
        Parameters are updated after each group: one group of all blocks (default)
        is full-data inference, a group a block is memoized inference. An empty group
        at the end brings them up to date once more before the pass is judged.
    max_iter : int
        Most passes.
    finish : Move, optional
        Proposes how to present the result; one more sweep makes the labels follow.
    tol : float
        Rest when a pass lowers the objective by less than this share of it.
    """
    if groups is None:
        groups = [range(engine.n_blocks)]
    memo = Memo(len(groups))
    history: list[float] = []
    converged = False
    for iteration in range(1, max_iter + 1):
        params = _one_pass(model, engine, params, memo, groups)
        history.append(model.objective(params, memo.total))
        info = PassInfo(iteration, history[-1], params)
        if (callback is not None and callback(info)) or iteration == max_iter:
            break
        resting = model.settled(memo.total) or _small_step(history, tol)
        updated = model.update(params, memo.total)
        for move in moves:
            proposal = move.propose(model, params, memo.total, updated, resting)
            if proposal is not None:
                params = _adopt(proposal, memo, engine)
                break
        else:
            if resting:
                converged = True
                break
            params = updated
    if finish is not None:
        proposal = finish.propose(model, params, memo.total, params, True)
        if proposal is not None:
            params = _adopt(proposal, memo, engine)
            params = _one_pass(model, engine, params, memo, groups)
            history[-1] = model.objective(params, memo.total)
    return FitResult(params, memo.total, history, len(history), converged)


def _adopt(proposal: Proposal, memo: Memo, engine: Engine) -> Any:
    """Carry sums and per-row state over to the proposed groups."""
    memo.regroup(proposal.into, proposal.K)
    engine.regroup(proposal.into, proposal.K)
    return proposal.params


def _one_pass(
    model: Model[Any, Any],
    engine: Engine,
    params: Any,
    memo: Memo,
    groups: Sequence[Sequence[int]],
) -> Any:
    """Visit every block; between groups, bring the parameters up to date."""
    memo.begin_pass()
    for group, block_ids in enumerate(groups):
        if group > 0:
            params = model.advance(params, memo.total)
        if not block_ids:
            continue
        summary = add_up(engine.sweep(model, params, block_ids))
        if model.incremental:
            memo.adjust(group, summary)
        else:
            memo.replace(group, summary)
    memo.resum()
    return params


def _small_step(history: Sequence[float], tol: float) -> bool:
    if len(history) < 2:
        return False
    return history[-2] - history[-1] <= tol * abs(history[-1])
