"""Passes over very many rows with very many workers, from times measured here.

A pass is: the driver sends the parameters with every call, workers do their tasks and
add up what belongs together, and the driver takes in these sums and adds them. The
driver's network and its adding are serial; calls end at different times.
"""

from typing import Any

import numpy as np

from kplus.core.memo import PairwiseSum
from report import CaseResult, Row

ROWS = 10**10
WORKERS = (10, 30, 100, 300, 1000)
NETWORK = 1.25e9  # bytes a second, of the driver: 10 Gbit/s
CALL = 1.9e-3  # seconds of driver and scheduler for each call: assumed, as seen here
LATENCY = 1.1e-2  # of calls and their answers, one a worker: the same
ADDING = 4e9  # bytes a second, of adding one sum to another
TASK_ROWS = 2**22  # as engine/engine.py cuts very many rows
CALLS_A_WORKER = 4  # or more, as engine/dask.py does ...
LONGEST = 10.0  # ... where calls would take longer than so many seconds
BATCHES = (1, 20)  # parameters are updated after each


def pass_seconds(facts: dict[str, Any], workers: int, batches: int) -> float:
    """One pass over all rows."""
    tasks = max(-(-ROWS // batches // TASK_ROWS), 1)
    alone = tasks * TASK_ROWS * facts["row_s"] / workers
    calls = min(tasks, max(CALLS_A_WORKER, int(-(-alone // LONGEST))) * workers)
    size = np.diff(np.linspace(0, tasks, calls + 1).astype(int))
    seconds = _work(facts, size, workers)
    sent = calls * facts["params_bytes"] / NETWORK
    received = _sums(size) * facts["summary_bytes"] * (1 / NETWORK + 1 / ADDING)
    # What is received while others still work costs nothing but for the last calls.
    serial = sent + received / calls * min(calls, workers) + calls * CALL
    busy = sent + received + calls * CALL
    return batches * (max(seconds + serial, busy) + LATENCY)


def _sums(size: np.ndarray) -> int:
    """How many sums calls of so many tasks bring back."""
    start, found = 0, 0
    for n in size:
        sums = PairwiseSum(start)
        for _ in range(n):
            sums.add(0)
        start += n
        found += len(sums.portions)
    return found


def _work(facts: dict[str, Any], size: np.ndarray, workers: int) -> float:
    """When the last worker is done, if each takes the next call when it is free."""
    rng = np.random.default_rng(0)
    spread = facts["spread"]
    noise = rng.lognormal(-(spread**2) / 2, spread, len(size))
    lengths = size * TASK_ROWS * facts["row_s"] * noise
    free = np.zeros(workers)
    for length in lengths:
        first = int(np.argmin(free))
        free[first] += length
    return float(free.max())


def simulate(facts: dict[str, Any], versions: dict[str, str]) -> CaseResult:
    rows: list[Row] = []
    alone = ROWS * facts["row_s"]
    for workers in WORKERS:
        row: Row = {"workers": workers}
        for batches in BATCHES:
            seconds = pass_seconds(facts, workers, batches)
            row[f"s a pass, {batches} batches"] = seconds
            row[f"efficiency, {batches} batches"] = f"{alone / seconds / workers:.0%}"
        rows.append(row)
    notes = [
        f"Modelled, not measured: 10¹⁰ rows; {facts['row_s'] * 1e9:,.0f} ns a row (the "
        f"median of tasks on one core, spread {facts['spread']:.0%}), sums of "
        f"{facts['summary_bytes'] / 1e3:,.0f} kB, tasks of {TASK_ROWS:,} rows, "
        f"parameters of {facts['params_bytes'] / 1e3:,.0f} kB a call, the driver's "
        f"network 10 Gbit/s, {CALL * 1e3} ms a call; workers read their own disks.",
        "It breaks where the driver takes in sums as fast as workers make them, and "
        "where a batch has too few tasks for all workers.",
    ]
    title = "Ten thousand million rows on many workers, predicted"
    return CaseResult(title, rows, [], notes, versions)
