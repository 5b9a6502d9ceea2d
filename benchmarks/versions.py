"""This version of kplus against another: ``python benchmarks/versions.py``.

The environment variable KPLUS_BEFORE_PYTHON names the interpreter of an environment
with the other version, such as that of the commit before. Both fit the same data in
turn, each in a process of its own.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from command import main
from data import DataMissing, Store
from profiles import MAKERS, TASKS, Table, data_for
from report import CaseResult, Check, Row
from runner import Job, run_job, time_command

Sizes = tuple[Table, ...]
FULL: Sizes = (Table(150, 4, 3), Table(5_000, 10, 5), Table(100_000, 20, 10))
QUICK: Sizes = (Table(60, 4, 3),)
# Those that keep all rows in memory and visit them one by one; see profile.md.
SLOW = {"IBPGibbs": 5_000, "IBPVariational": 5_000}
ROUNDS = 3


def pythons() -> dict[str, Path]:
    before = os.environ.get("KPLUS_BEFORE_PYTHON")
    if before is None:
        raise DataMissing("KPLUS_BEFORE_PYTHON does not name an interpreter")
    return {"before": Path(before), "now": Path(sys.executable)}


def case_fits(store: Store, sizes: Sizes) -> CaseResult:
    """Default fits, warm, one thread: least CPU time of some rounds, taken in turn."""
    rows: list[Row] = []
    for table in sizes:
        for estimator in MAKERS:
            if table.rows <= SLOW.get(estimator, table.rows):
                rows.append(_compare(store, estimator, table))
    worst = max(row["now / before"] for row in rows)
    checks = [
        Check("no fit slower by more than 5 %", f"{worst:.2f} times", worst <= 1.05)
    ]
    notes = ["Other numbers of groups come of sums added up in another order."]
    return CaseResult("Default fits before and now, CPU s", rows, checks, notes)


def _compare(store: Store, estimator: str, table: Table) -> Row:
    path = data_for(store, estimator, table)
    own = {"estimator": estimator}
    few, seconds = min(table.rows, 500), 0.3
    runs = [
        own | {"rows": few, "seconds": 0.0},
        own | {"rows": table.rows, "seconds": seconds},
    ]
    best: dict[str, float] = {}
    found: dict[str, int] = {}
    for _ in range(ROUNDS):
        for name, python in pythons().items():
            job = Job("default_fits", runs, path, python=python, tasks=TASKS)
            facts = run_job(job).runs[-1].facts
            best[name] = min(best.get(name, float("inf")), facts["cpu_s"])
            found[name] = facts["K"]
    return {
        "estimator": estimator,
        "table": f"{table.rows:,} × {table.columns}",
        "before": best["before"],
        "now": best["now"],
        "now / before": best["now"] / best["before"],
        "K before": found["before"],
        "K now": found["now"],
    }


def case_first(store: Store, sizes: Sizes) -> CaseResult:
    """The first fit in a fresh process; numba's cache, if it has one, is empty."""
    table, rows, checks = sizes[0], [], []
    for estimator in MAKERS:
        path = data_for(store, estimator, table)
        row: Row = {"estimator": estimator}
        for name, python in pythons().items():
            facts = []
            for turn in range(ROUNDS if name == "now" else 1):
                cache = str(store.folder / f"cache-{estimator}-{turn}")
                environment = {"NUMBA_CACHE_DIR": cache}
                asked = [{"estimator": estimator}]
                job = Job("first_fit", asked, path, python=python, tasks=TASKS)
                job.environment.update(environment)
                facts.append(run_job(job).runs[0].facts)
            row[f"import s, {name}"] = min(fact["import_s"] for fact in facts)
            row[f"first fit s, {name}"] = min(fact["fit_s"] for fact in facts)
        rows.append(row)
        seconds = row["first fit s, now"]
        target = f"{estimator}: first fit below .3 s"
        checks.append(Check(target, f"{seconds:.2f} s", seconds < 0.3))
    title = f"First fit of a process with empty caches ({table.rows} × {table.columns})"
    return CaseResult(title, rows, checks)


def case_imports(store: Store, sizes: Sizes) -> CaseResult:
    """Whole processes that import, and the command line."""
    wine = store.folder / "wine.csv"
    shipped = Path(__file__).parents[1] / "src" / "kplus" / "datasets" / "wine.csv"
    wine.write_bytes(shipped.read_bytes())
    fit = ["-m", "kplus.cli", "fit", str(wine), "--force", "-q"]
    imports = [
        "from sklearn.cluster import KMeans",
        "from kplus import DPMeans",
        "from kplus import DPMixture",
    ]
    commands = {statement: ["-c", statement] for statement in imports} | {
        "kplus --help": ["-m", "kplus.cli", "--help"],
        "kplus fit wine.csv": [*fit, "-o", str(store.folder / "found")],
        "kplus fit wine.csv --model dp-means": [
            *(*fit, "--model", "dp-means", "-o", str(store.folder / "means"))
        ],
    }
    rows = []
    for command, arguments in commands.items():
        row: Row = {"process": command}
        for name, python in pythons().items():
            time_command(arguments, 1, python)  # compiles, and fills the disk's cache
            runs = time_command(arguments, 5, python)
            row |= {f"wall s, {name}": runs.best("wall_s")}
            row |= {f"CPU s, {name}": runs.best("cpu_s")}
            row |= {f"peak MB, {name}": runs.best("peak_mb")}
        rows.append(row)
    return CaseResult("Start-up: whole processes", rows)


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "first": case_first,
    "fits": case_fits,
    "imports": case_imports,
}

if __name__ == "__main__":
    main("versions", CASES, FULL, QUICK)
