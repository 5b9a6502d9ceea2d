"""The loop that serves every estimator: sweep, judge, propose, update."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Optional, get_args

import numpy as np

from kplus.core.declared import (
    Sizes,
    check,
    check_same_kinds,
    check_shape,
    returned,
    type_of,
)
from kplus.core.errors import CheckpointError
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

__all__ = [
    "LoopState",
    "Pending",
    "check_result",
    "run",
]

_At = Position[Any, Any, Any]


@dataclass(frozen=True)
class Pending:
    """A proposal that the next pass will judge.

    `move` is the number of the move that made it.
    """

    move: int
    note: Any
    params: Any
    objective: float
    converged: bool
    snapshots: tuple[Any, Any] | None

    def kept(self, objective: float, moves: Sequence[Move]) -> bool:
        """Report the outcome to the move; a trial must have lowered the objective."""
        kept = self.snapshots is None or objective <= self.objective
        if self.note is not None:
            moves[self.move].on_outcome(self.note, objective - self.objective, kept)  # type: ignore[attr-defined]
        return kept

    def restored(self, memo: Memo, engine: Engine) -> tuple[float, Any]:
        """Take a trial back; return the objective and parameters from before it."""
        assert self.snapshots is not None
        memo.restore(self.snapshots[0])
        engine.restore(self.snapshots[1])
        return self.objective, self.params


@dataclass(frozen=True)
class LoopState:
    """A fit before a pass: all that the passes to come depend on.

    `states` are those of the moves that have any, None for the others.
    """

    params: Any
    history: list[float]
    pending: Pending | None
    memo: Any
    rows: Any
    states: list[Any]

    @classmethod
    def of(
        cls,
        params: Any,
        history: list[float],
        pending: Pending | None,
        memo: Memo,
        engine: Engine,
        moves: Sequence[Move],
    ) -> "LoopState":
        states = [getattr(move, "state", None) for move in moves]
        if pending is not None and pending.snapshots is not None:
            sums, rows = pending.snapshots
            pending = replace(pending, snapshots=(sums, engine.state(rows)))
        rows = engine.state(engine.snapshot())
        return cls(params, history, pending, memo.snapshot(), rows, states)

    def restore(
        self,
        model: Model[Any, Any],
        start: Any,
        memo: Memo,
        engine: Engine,
        moves: Sequence[Move],
    ) -> tuple[Any, list[float], Pending | None]:
        """Bring everything to where it was; return parameters, history, pending.

        A state that is not one of this model, data and moves is a `CheckpointError`.
        """
        _check_moves(self, moves)
        declared = _Declared.by(model, start)
        pending = self.pending
        if pending is not None and pending.snapshots is not None:
            sums, rows = pending.snapshots
            K = declared.check(pending.params, sums, memo)
            declared.resume(engine, rows, K)
            pending = replace(pending, snapshots=(sums, engine.snapshot()))
        K = declared.check(self.params, self.memo, memo)
        declared.resume(engine, self.rows, K)
        memo.restore(self.memo)
        for move, kept in zip(moves, self.states, strict=True):
            if kept is not None:
                move.state = kept  # type: ignore[attr-defined]
        return self.params, list(self.history), pending


def check_result(
    result: FitResult, model: Model[Any, Any], start: Any, rows: Any, n_rows: int
) -> None:
    """Refuse what is no result of a loop, with what was gathered of its rows."""
    check(result, FitResult, {}, "the result")
    declared = _Declared.by(model, start)
    sizes = declared.check_params(result.params)
    check(result.total, declared.summary, sizes, "the sums")
    if rows is None:
        return
    if not isinstance(rows, np.ndarray) or len(rows) != n_rows:
        raise CheckpointError("what was gathered of the rows is not of all rows")


def _check_moves(state: LoopState, moves: Sequence[Move]) -> None:
    """Refuse what other moves remember, or have proposed."""
    if len(state.states) != len(moves):
        raise CheckpointError(f"there are {len(state.states)} moves")
    for move, kept in zip(moves, state.states, strict=True):
        hint = type_of(move, "state") if hasattr(move, "state") else None
        check(kept, hint or type(None), {}, f"the state of {type(move).__name__}")
    pending = state.pending
    if pending is None:
        return
    if pending.move not in range(len(moves)):
        raise CheckpointError(f"move {pending.move} is pending")
    if pending.note is not None:
        on_outcome = getattr(moves[pending.move], "on_outcome", None)
        hint = type(None) if on_outcome is None else returned(on_outcome, "note")
        check(pending.note, hint, {}, "what a move noted")


@dataclass(frozen=True)
class _Declared:
    """What the states of a loop must be, by its start and its model.

    `sizes` are those of the start, without the number of groups.
    """

    start: Any
    summary: Any
    local: Any
    sizes: Sizes

    @classmethod
    def by(cls, model: Model[Any, Any], start: Any) -> "_Declared":
        sizes: Sizes = {}
        check(start, type(start), sizes, "the start")
        sizes.pop("K", None)
        summary, local = get_args(returned(type(model).summarize)) or (Any, Any)
        return cls(start, summary, local, sizes)

    def check_params(self, params: Any) -> Sizes:
        """Refuse parameters of another kind; return the sizes with them."""
        check_same_kinds(params, self.start, "params")
        sizes = self.sizes.copy()
        check(params, type(self.start), sizes, "params")
        return sizes

    def check(self, params: Any, sums: Any, memo: Memo) -> int:
        """Refuse parameters and sums that do not belong together; return K."""
        sizes = self.check_params(params)
        one = self.summary
        check(sums, tuple[list[Optional[one]], Optional[one], one], sizes, "the sums")  # type: ignore[valid-type]  # noqa: UP045
        memo.check(sums)
        groups, base, total = sums
        K = params.K
        for summary in (*groups, base, total):
            if summary is None:
                continue
            if summary.K > K or (summary is total and summary.K < K):
                raise CheckpointError(f"there are sums of {summary.K} groups, not {K}")
        return int(K)

    def resume(self, engine: Engine, state: Any, K: int) -> None:
        """Resume the engine; refuse per-row states of another kind."""
        engine.resume(state)
        for local, n_rows, groups in engine.states(K):
            if local is None:
                continue
            name, sizes = "the state of rows", self.sizes | {"K": groups, "N": n_rows}
            check(local, self.local, sizes, name)
            if isinstance(local, np.ndarray):  # labels, or an entry per group
                axes = "N <K" if local.dtype.kind == "i" else "N K"
                check_shape(local, axes, sizes, {}, name)


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
        is full-data inference, one per block is memoized inference. An empty group
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
        Saves a `LoopState` after each pass. If it has one, the fit resumes from it,
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
    """Try the moves in turn; return the next position, and the pending proposal."""
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
