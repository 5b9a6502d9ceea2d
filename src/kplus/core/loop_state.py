"""The state of a loop between two passes: what a checkpoint holds, and its checks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from kplus.core.types import Engine, FitResult, Model, Move

__all__ = ["LoopState", "Pending", "check_result"]


@dataclass(frozen=True)
class Pending:
    """A proposal of which the next pass will tell what it was worth.

    `move` is the number of the move that made it.
    """

    move: int
    note: Any
    params: Any
    objective: float
    converged: bool
    snapshots: tuple[Any, Any] | None

    def kept(self, objective: float, moves: Sequence[Move]) -> bool:
        """Tell the move what came of it; a trial must have paid."""
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
        """Bring everything to where it was; return parameters, history, what pends.

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
        """Let the engine go on; refuse per-row states of another kind."""
        engine.resume(state)
        for local, n_rows, groups in engine.states(K):
            if local is None:
                continue
            name, sizes = "the state of rows", self.sizes | {"K": groups, "N": n_rows}
            check(local, self.local, sizes, name)
            if isinstance(local, np.ndarray):  # labels, or an entry per group
                axes = "N <K" if local.dtype.kind == "i" else "N K"
                check_shape(local, axes, sizes, {}, name)
