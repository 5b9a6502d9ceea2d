"""What fitted parameters say of rows, in one pass over them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kplus.core.types import Block
from kplus.search.job import Job
from kplus.search.runs import gathered

__all__ = ["answers"]


@dataclass(frozen=True)
class _Kept:
    """A model of whose state of rows one attribute is kept: nobody will come back."""

    model: Any
    name: str

    def summarize(self, params: Any, block: Block, local: Any) -> tuple[Any, Any]:
        summary, state = self.model.summarize(params, block, local)
        return summary, getattr(state, self.name)


def answers(
    job: Job,
    model: Any,
    params: Any,
    *,
    keep: str | None = None,
    shown: Callable[[Any], Any] = lambda state: state,
) -> tuple[Any, Any]:
    """Visit all rows once; return the sums, and what is `shown` of their state.

    Parameters
    ----------
    job : Job
        As for a fit: the same threads or workers, within the same memory.
    keep : str, optional
        The attribute of the state that the answer needs; the rest goes at once.
    shown : function, optional
        From the state of a block, or what is kept of it, to an entry or line a row.
    """
    visiting = model if keep is None else _Kept(model, keep)
    with job.engine() as engine:
        total = engine.sweep(visiting, params, range(engine.n_blocks))
        return total, gathered(engine, shown)
