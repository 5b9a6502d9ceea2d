"""Cases against other libraries: Adult, and many tables."""

import json
import statistics
from dataclasses import replace

import numpy as np
import pandas as pd

from craft_data import TableFile, load_adult, load_spam, own_tables, write_table
from craft_runs import (
    K_MEANS,
    K_PROTOTYPES,
    PEERS,
    STEP_MIX,
    TASKS,
    TableFits,
    all_versions,
    available,
    craft,
    fit_tables,
    peers_python,
    selected_by,
)
from craft_sizes import Sizes
from data import Store
from report import CaseResult, Check, Claim, Row, claim
from runner import Job, run_job

REFERENCE_S = {"k-prototypes": 155.0, "stepmix": 8.3}  # of one start, K = 2
TIMES_LESS = {"k-prototypes": 300.0, "stepmix": 20.0}


def adult_table(store: Store, rows: int | None) -> TableFile:
    table = write_table(store, "Adult", load_adult())
    if rows is None:
        return table
    pd.read_parquet(table.path).iloc[:rows].to_parquet(table.path)
    return replace(table, labels=table.labels[:rows])


def case_adult(store: Store, sizes: Sizes) -> CaseResult:
    """One start on 48,842 rows with missing values, as they are."""
    table = adult_table(store, sizes.adult_rows)
    fits = {
        k: fit_tables(craft(), [table], sizes.adult_runs, {"n_clusters": k}, warm=True)[
            "Adult"
        ]
        for k in (2, 10)
    }
    ready = preparation(table, sizes.adult_runs)
    starts = {k: fits[k].seconds - ready for k in fits}
    rows = [adult_row("CRAFT", k, fits[k], starts[k]) for k in fits]
    checks = [
        Check("preparation of the frame: below .5 CPU-s", f"{ready:.3f} s", ready < 0.5)
    ]
    for k, limit in ((2, 0.1), (10, 0.3)):
        what = f"one start, K = {k}: below {limit:g} CPU-s"
        checks.append(Check(what, f"{starts[k]:.3f} s", starts[k] < limit))
    peers, notes = available(list(PEERS))
    versions = [fits[2].versions]
    for peer in peers:
        fit = fit_tables(peer, [table], 1, {"n_init": 1})["Adult"]
        rows.append(adult_row(peer.name, 2, fit, fit.seconds))
        versions.append(fit.versions)
        checks.append(less_than(fit, starts[2], fits[2].seconds))
    notes += [
        "Preparation is to find and code the categories of the frame, as a fit does "
        "first. A start is what the fit takes beyond that, search and swaps included. "
        "Times are medians. Agreement with the income classes is "
        "reported, not sought: it comes from the many zeros of one column."
    ]
    title = f"Adult ({len(table.labels):,} rows, missing values), default settings"
    claims = [spam_claim(store, fits)]
    return CaseResult(title, rows, checks, notes, all_versions(*versions), claims)


def preparation(table: TableFile, runs: int) -> float:
    """CPU seconds to open the frame, the median of some runs after a first one."""
    asked = [{"data": str(table.path)}] * (runs + 1)
    answer = run_job(Job("kplus_open", asked, tasks=TASKS))
    return statistics.median(run.facts["fit_s"] for run in answer.runs[1:])


def less_than(peer: TableFits, start: float, whole: float) -> Check:
    """How many times less CPU a start takes than one of a peer."""
    ratio, least = peer.seconds / start, TIMES_LESS[peer.method]
    what = f"one start, K = 2: at least {least:g} times less CPU than {peer.method}"
    told = f"{ratio:,.0f} times; the whole fit {peer.seconds / whole:,.0f} times"
    return Check(what, told, ratio >= least)


def adult_row(name: str, k: int, fit: TableFits, start: float | None) -> Row:
    return {
        "method": name,
        "K": k,
        "CPU s, whole fit": fit.seconds,
        "CPU s, start": start,
        "CPU s, note": REFERENCE_S.get(name),
        "purity": fit.mean("purity"),
        "NMI": fit.mean("nmi"),
        "ARI": fit.mean("ari"),
    }


def spam_claim(store: Store, adult: dict[int, TableFits]) -> Claim:
    """CR-17: seconds on Spam, and that Adult is done."""
    spam = [write_table(store, "Spam", load_spam())]
    methods = [craft(0.5), selected_by("mcfs", 0.5), selected_by("ndfs", 0.5)]
    ours, mcfs, ndfs = (
        fit_tables(method, spam, 1, warm=True)["Spam"] for method in methods
    )
    says = "Spam, m = .5: CRAFT .4 s, MCFS 1.8, NDFS 61.4; Adult: CRAFT is quick"
    found = (
        f"Spam: CRAFT {ours.seconds:.2f} CPU-s, our MCFS {mcfs.seconds:.2f}, our NDFS "
        f"{ndfs.seconds:.2f}; Adult, K = 2: {adult[2].seconds:.2f}"
    )
    return claim(
        "CR-17",
        says,
        found,
        ours.seconds < min(mcfs.seconds, ndfs.seconds),
        adult[2].seconds < 10.0,
    )


def package_tables(
    store: Store, task: str = "export_tables", tasks: str = TASKS
) -> list[TableFile]:
    """Tables that come inside packages, read in the peers' environment."""
    python = peers_python()
    if python is None:
        return []
    folder = store.folder / f"packages-{task}"
    folder.mkdir(exist_ok=True)
    asked = [{"folder": str(folder)}]
    run_job(Job(task, asked, python=python, tasks=tasks))
    listed = json.loads((folder / "sources.json").read_text())
    return [
        TableFile(
            name,
            folder / f"{name}.parquet",
            np.load(folder / f"{name}.npy"),
            source,
        )
        for name, source in listed.items()
    ]


def case_many(store: Store, sizes: Sizes) -> CaseResult:
    """Mean agreement with classes, their number given."""
    tables = own_tables(store) + package_tables(store)
    if sizes.adult_rows is not None:
        tables = [table for table in tables if table.name in sizes.table_names]
    methods, notes = available([craft(), K_PROTOTYPES, STEP_MIX, K_MEANS])
    small = [table for table in tables if table.name != "Adult"]
    large = [table for table in tables if table.name == "Adult"]
    fits: dict[str, dict[str, TableFits]] = {}
    for method in methods:
        starts = {"n_init": sizes.peer_starts} if method is K_PROTOTYPES else {}
        fits[method.name] = fit_tables(method, small, sizes.many_runs, starts)
        if large:
            fits[method.name] |= fit_tables(method, large, 1, {"n_init": 1})
    notes += [
        f"Means of {sizes.many_runs} runs with the default settings of each library, "
        "of Adult one run and one start. k-prototypes takes no table of numbers only: "
        "there it is k-means, and k-modes where there are none."
    ]
    versions = all_versions(*(next(iter(f.values())).versions for f in fits.values()))
    return CaseResult(
        "Tables with classes, K given: ARI",
        [many_row(table, fits) for table in tables],
        many_checks(fits),
        notes,
        versions,
        [kinds_claim(tables, fits)],
    )


def many_checks(fits: dict[str, dict[str, TableFits]]) -> list[Check]:
    means = {
        name: statistics.mean(fit.mean("ari") for fit in mine.values())
        for name, mine in fits.items()
    }
    ours = means.pop("CRAFT")
    return [
        Check(
            f"mean ARI of {len(fits[name])} tables at least that of {name}",
            f"{ours:.3f} against {mean:.3f}",
            ours >= mean,
        )
        for name, mean in means.items()
    ]


def many_row(table: TableFile, fits: dict[str, dict[str, TableFits]]) -> Row:
    frame = pd.read_parquet(table.path)
    numbers = sum(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes)
    row: Row = {
        "data": table.name,
        "from": table.source,
        "rows": len(frame),
        "numbers": numbers,
        "categories": frame.shape[1] - numbers,
        "missing": int(frame.isna().to_numpy().sum()),
        "K": table.K,
    }
    return row | {name: mine[table.name].mean("ari") for name, mine in fits.items()}


def kinds_claim(
    tables: list[TableFile], fits: dict[str, dict[str, TableFits]]
) -> Claim:
    """CR-18: whether k-means fails where there are categories."""
    mixed = [
        table.name
        for table in tables
        if not all(
            map(pd.api.types.is_numeric_dtype, pd.read_parquet(table.path).dtypes)
        )
    ]
    means = {
        name: statistics.mean(mine[table].mean("ari") for table in mixed)
        for name, mine in fits.items()
    }
    ahead = sum(
        fits["CRAFT"][table].mean("ari") > fits[K_MEANS.name][table].mean("ari")
        for table in mixed
    )
    found = (
        f"mean ARI on {len(mixed)} tables with categories: "
        + ", ".join(f"{name} {mean:.3f}" for name, mean in means.items())
        + f"; CRAFT above one-hot KMeans on {ahead} of them"
    )
    says = "k-means fails on categories and mixed tables, CRAFT handles both"
    better = all(means["CRAFT"] >= mean for mean in means.values())
    return claim("CR-18", says, found, better, means[K_MEANS.name] < 0.05)
