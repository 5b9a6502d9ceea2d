"""Filling the gaps of a table by what a fitted model says of them."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from sklearn.utils import check_random_state

from kplus.base.estimator import Table
from kplus.core.reading import read_blocks
from kplus.core.types import Array
from kplus.data.filling import Gaps, filled
from kplus.engine.blas import SINGLE_THREAD

__all__ = ["Filler", "impute"]


class Filler(Protocol):
    """What a model says of the missing values of rows; codes for categories."""

    def check(self, X: Array) -> None:
        """Refuse values that the model does not take."""

    def expected(self, X: Array) -> Array:
        """Rows with their conditional means, or likeliest categories."""

    def draws(self, X: Array, n: int, rng: np.random.Generator) -> Sequence[Array]:
        """Rows with values drawn jointly given what is observed, `n` times."""


def impute(
    estimator: Any, table: Table, filler: Filler, n_draws: Any, random_state: Any
) -> Any:
    """The table with its gaps filled; with `n_draws`, a list of so many."""
    if n_draws is None:
        return _fill(table, lambda X: [filler.expected(X)], filler.check, 1)[0]
    if isinstance(n_draws, bool) or not isinstance(n_draws, Integral) or n_draws < 1:
        raise ValueError(
            f"n_draws must be an int of at least 1, or None for what is expected, not "
            f"{n_draws!r}."
        )
    rng, n = _generator(estimator, random_state), int(n_draws)
    return _fill(table, lambda X: filler.draws(X, n, rng), filler.check, n)


def _generator(estimator: Any, random_state: Any) -> np.random.Generator:
    """None: seeded by the estimator's."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    state = estimator.random_state if random_state is None else random_state
    return np.random.default_rng(check_random_state(state).randint(2**31 - 1))


def _fill(
    table: Table,
    fill: Callable[[Array], Sequence[Array]],
    check: Callable[[Array], None],
    n_tables: int,
) -> list[Any]:
    """Only the values that are missing are kept of each block."""
    rows, columns = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    values: list[list[Array]] = [[np.empty(0)] for _ in range(n_tables)]
    with SINGLE_THREAD:
        for start, X in read_blocks(table.source):
            check(X)
            gaps = np.isnan(X)
            some = np.flatnonzero(gaps.any(axis=1))
            if not len(some):
                continue
            inside = gaps[some]
            i, j = np.nonzero(inside)
            rows.append(start + some[i])
            columns.append(j)
            for parts, complete in zip(values, fill(X[some]), strict=True):
                parts.append(complete[inside])
    where = np.concatenate(rows), np.concatenate(columns)
    return [
        filled(table.X, table.source, table.coding, Gaps(*where, np.concatenate(parts)))
        for parts in values
    ]
