"""The loop that serves every estimator: sweep, judge, propose, update."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from kplus.core.declared import check
from kplus.core.loop_state import LoopState, Pending
from kplus.core.memo import Memo
from kplus.core.types import (
    Callback,
    Checkpointer,
    Engine,
    FitResult,
    Model,
    Move,
    PassInfo,
    Position,
    Proposal,
)

__all__ = ["run"]

_At = Position[Any, Any, Any]


def run(
    model: Model[Any, Any],
    engine: Engine,
    params: Any,
    *,
    moves: Sequence[Move] = (),
    groups: Sequence[Sequence[int]] | None = None,
    max_iter: int,
    tol: float,
    step: float = 0.0,
    base: Any = None,
    callback: Callback | None = None,
    finish: Move | None = None,
    checkpointer: Checkpointer | None = None,
) -> FitResult:
    """Pass over the data until nothing pays any more.

    Each pass assigns every row under the current parameters and sums what the
    parameters need. The fit ends right after such a sum, never after an update, so
    that the labels belong to the parameters returned.

    Parameters
    ----------
    moves : sequence of Move
        Tried in order after each pass; the first proposal is taken, and those after it
        only if it leaves the sums exact.
    groups : sequence of block lists, optional
        Parameters are updated after each group: one group of all blocks (default)
        is full-data inference, a group a block is memoized inference. An empty group
        at the end brings them up to date once more before the pass is judged.
    max_iter : int
        Most passes.
    tol, step : float
        Converged when a pass changes the objective by no more than `step`, or than the
        share `tol` of it, and no move proposes anything.
    base : Summary, optional
        Sums over rows seen earlier, which count but are not visited.
    finish : Move, optional
        Proposes how to present the result; one more sweep makes the labels follow.
    checkpointer : Checkpointer, optional
        Saves a `LoopState` after each pass. If it has one, the fit goes on from there,
        to the same bits.
    """
    if groups is None:
        groups = [range(engine.n_blocks)]
    memo = Memo(len(groups), base)
    history: list[float] = []
    converged = False
    pending: Pending | None = None
    if checkpointer is not None:

        def restore(kept: Any) -> tuple[Any, list[float], Pending | None]:
            check(kept, LoopState, {}, "the state of the loop")
            return kept.restore(model, params, memo, engine, moves)  # type: ignore[no-any-return]

        params, history, pending = checkpointer.load(restore) or (params, history, None)
    for iteration in range(len(history) + 1, max_iter + 1):
        params = _one_pass(model, engine, params, memo, groups)
        objective = model.objective(params, memo.total)
        undone = None
        if pending is not None and not pending.kept(objective, moves):
            undone = pending
        if undone is not None:
            objective, params = undone.restored(memo, engine)
        history.append(objective)
        info = PassInfo(iteration, objective, params)
        if (callback is not None and callback(info)) or iteration == max_iter:
            break
        stable = model.converged(memo.total) or _small_step(history, tol, step)
        if undone is not None:
            stable = undone.converged  # as if it had not been tried
        updated = model.update(params, memo.total)
        at = Position(model, params, memo.total, updated, stable)
        at, pending = _moved(moves, at, objective, memo, engine)
        if at.converged:
            converged = True
            break
        params = at.updated
        if checkpointer is not None:
            checkpointer.save(
                partial(LoopState.of, params, history, pending, memo, engine, moves)
            )
    if finish is not None:
        at = Position(model, params, memo.total, params, converged=True)
        proposal = finish.propose(at)
        if proposal is not None:
            params = _adopt(proposal, memo, engine)
            params = _one_pass(model, engine, params, memo, groups)
            history[-1] = model.objective(params, memo.total)
    return FitResult(params, memo.total, history, len(history), converged)


def _moved(
    moves: Sequence[Move], at: _At, objective: float, memo: Memo, engine: Engine
) -> tuple[_At, Pending | None]:
    """Ask the moves in turn; return where the fit goes on, and what is yet to tell."""
    pending = None
    for number, move in enumerate(moves):
        proposal = move.propose(at)
        if proposal is None:
            continue
        snapshots = (memo.snapshot(), engine.snapshot()) if proposal.trial else None
        pending = Pending(
            number, proposal.note, at.updated, objective, at.converged, snapshots
        )
        params = _adopt(proposal, memo, engine)
        at = Position(at.model, params, memo.total, params, converged=False)
        if not proposal.exact:
            break
    return at, pending


def _adopt(proposal: Proposal, memo: Memo, engine: Engine) -> Any:
    """Carry sums and per-row state over to the proposed groups."""
    memo.regroup(proposal.old_to_new, proposal.K)
    if proposal.provisional is not None:
        memo.add_provisional(proposal.provisional)
    engine.regroup(proposal.old_to_new, proposal.K)
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
    latest = None
    for group, block_ids in enumerate(groups):
        if not block_ids:
            continue
        if latest is not None:
            params = model.advance(params, memo.total, latest)
        latest = engine.sweep(model, params, block_ids)
        if model.incremental:
            memo.adjust(group, latest)
        else:
            memo.replace(group, latest)
    memo.resum()
    if not groups[-1]:
        params = model.advance(params, memo.total, latest)
    return params


def _small_step(history: Sequence[float], tol: float, step: float) -> bool:
    if len(history) < 2:
        return False
    change = abs(history[-2] - history[-1])
    return change <= max(tol * abs(history[-1]), step)
