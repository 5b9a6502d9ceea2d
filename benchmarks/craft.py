"""Mixed tables: ``python benchmarks/craft.py [--only CASE,...]``.

CPU is that of `fit` alone, kernels loaded. Purity, NMI (geometric) and ARI are of the
labels that a library returns against the classes of the data.
"""

from collections.abc import Callable

from command import main
from craft_correlated import case_correlated, case_numbers, case_open, case_wide
from craft_data import write_mixed_rows
from craft_made import case_budget, case_fixed, case_structureless, case_synthetic
from craft_order import case_farthest, case_orders
from craft_peers import case_adult, case_many
from craft_runs import TASKS
from craft_scores import ari
from craft_sizes import FULL, QUICK, Sizes
from craft_tables import case_splice, case_tables
from data import Store
from report import CaseResult, Check, Row
from runner import Job, run_job

N_COLUMNS = 20  # of the scaling table, half of them text


def case_scaling(store: Store, sizes: Sizes) -> CaseResult:
    """Default settings on Parquet files: seconds and memory by rows."""
    rows: list[Row] = []
    small = store.folder / "mixed-small.parquet"
    write_mixed_rows(small, 5_000, N_COLUMNS // 2)
    for n in sizes.scale_rows:
        path = store.folder / f"mixed-{n}.parquet"
        classes = write_mixed_rows(path, n, N_COLUMNS // 2)
        # The small one goes before: it loads what is compiled.
        asked = [{"data": str(file), "random_state": 0} for file in (small, path)]
        answer = run_job(Job("kplus_file", asked, watch=True, tasks=TASKS))
        path.unlink()
        _, run = answer.runs
        assert run.labels is not None
        before, peak = run.anonymous_before_mb, run.anonymous_peak_mb
        rows.append(
            {
                "rows": n,
                "CPU s": run.cpu_s,
                "wall s": run.wall_s,
                "rows a CPU-s": n / run.cpu_s,
                "passes": run.facts["n_iter"],
                "µs a row and pass": 1e6 * run.cpu_s / n / run.facts["n_iter"],
                "memory grown, MB": None if before is None else peak - before,
                "table as float64, MB": 8 * N_COLUMNS * n / 2**20,
                "K": run.facts["n_clusters"],
                "ARI": ari(classes, run.labels),
            }
        )
    return CaseResult(
        f"Mixed rows from Parquet ({N_COLUMNS} columns, half of them text)",
        rows,
        scaling_checks(rows),
        [
            "Default settings, K not given; eight clusters, a twentieth of the cells "
            "missing. The time of a small fit is mostly the search on 20,000 rows."
        ],
        answer.versions,
    )


def scaling_checks(rows: list[Row]) -> list[Check]:
    first, last = rows[-2:]
    factor = last["rows"] / first["rows"]
    grown = last["CPU s"] / first["CPU s"]
    what = f"at most {1.15 * factor:.1f} times the CPU for {factor:g} times the rows"
    checks = [Check(what, f"{grown:.2f} times", grown <= 1.15 * factor)]
    if last["memory grown, MB"] is not None:
        share = last["memory grown, MB"] / last["table as float64, MB"]
        what = f"{last['rows']:,} rows: memory grows by less than a half of the table"
        checks.append(Check(what, f"{share:.0%}", share < 0.5))
    return checks


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "synthetic": case_synthetic,
    "structureless": case_structureless,
    "fixed": case_fixed,
    "budget": case_budget,
    "tables": case_tables,
    "splice": case_splice,
    "orders": case_orders,
    "farthest": case_farthest,
    "adult": case_adult,
    "many": case_many,
    "scaling": case_scaling,
    "correlated": case_correlated,
    "wide": case_wide,
    "open": case_open,
    "numbers": case_numbers,
}


if __name__ == "__main__":
    main("craft", CASES, FULL, QUICK)
