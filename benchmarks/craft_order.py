"""Cases of what should not matter: seeds, the order of rows, where λ comes from."""

import statistics

from compare import value_range
from craft_data import paper_tables
from craft_runs import (
    DP_MEANS_MEAN,
    DP_MEANS_ROW,
    Method,
    TableFits,
    craft,
    fit_tables,
)
from craft_scores import mean_pairwise_ari
from craft_sizes import Sizes
from data import Store
from report import CaseResult, Check, Row, claim


def case_orders(store: Store, sizes: Sizes) -> CaseResult:
    """Agreement of runs with each other, over orders of rows and over seeds."""
    tables = [t for t in paper_tables(store) if t.name in sizes.table_names]
    rows: list[Row] = []
    checks = []
    told: dict[str, list[str]] = {"CRAFT": [], "the paper's": []}
    holds = []
    for name, method in (
        ("CRAFT", craft(0.5)),
        ("the paper's", craft(0.5, paper=True)),
    ):
        by_order = [
            fit_tables(method, tables, sizes.order_seeds, {"order": order})
            for order in range(sizes.orders)
        ]
        for table in tables:
            fits = [fit[table.name] for fit in by_order]
            row = order_row(method, table.name, fits)
            rows.append(row)
            told[name].append(f"{table.name} {row['other order']:.2f}")
            if name == "CRAFT":
                same = row["other order"]
                what = f"{table.name}: the same clusters whatever the order of rows"
                checks.append(Check(what, f"ARI {same:.3f}", same > 1 - 1e-9))
            holds.append(row["all pairs"] > 0.95)
    found = "mean ARI of orders, same seed: " + "; ".join(
        f"{name} {', '.join(parts)}" for name, parts in told.items()
    )
    says = "low variance over runs, robust to initialisation"
    title = f"{sizes.order_seeds} seeds and {sizes.orders} orders of rows, m = .5"
    notes = ["Mean ARI of pairs of runs. K = classes; the paper's finds its own λ."]
    claims = [claim("CR-15", says, found, *holds)]
    return CaseResult(title, rows, checks, notes, fits[0].versions, claims)


def order_row(method: Method, name: str, fits: list[TableFits]) -> Row:
    """``fits`` holds one for each order, each with one run for each seed."""
    by_seed = zip(*(fit.labels for fit in fits), strict=True)
    purities = [value for fit in fits for value in fit.scores("purity")]
    return {
        "data": name,
        "method": method.name,
        "K": value_range([k for fit in fits for k in fit.clusters]),
        "other order": statistics.mean(mean_pairwise_ari(list(s)) for s in by_seed),
        "other seed": statistics.mean(mean_pairwise_ari(fit.labels) for fit in fits),
        "all pairs": mean_pairwise_ari([one for fit in fits for one in fit.labels]),
        "purity, sd": statistics.pstdev(purities),
    }


def case_farthest(store: Store, sizes: Sizes) -> CaseResult:
    """λ by farthest-first: which K it leads to, from the mean and from a row."""
    tables = [t for t in paper_tables(store) if t.name in sizes.table_names]
    methods = [DP_MEANS_MEAN, DP_MEANS_ROW, craft(0.5, paper=True)]
    rows: list[Row] = []
    reached: dict[str, list[bool]] = {}
    ari: dict[str, list[float]] = {}
    for method in methods:
        fits = fit_tables(method, tables, sizes.order_seeds)
        for table in tables:
            fit = fits[table.name]
            right = [k == table.K for k in fit.clusters]
            reached.setdefault(method.name, []).extend(right)
            ari.setdefault(method.name, []).append(fit.mean("ari"))
            rows.append(
                {
                    "data": table.name,
                    "method": method.name,
                    "wished K": table.K,
                    "K": value_range(fit.clusters),
                    "reached": f"{sum(right)} of {len(right)}",
                    "ARI": fit.shown("ari"),
                }
            )
    found = "; ".join(
        f"{name}: the wished K in {sum(reached[name])} of {len(reached[name])} runs, "
        f"mean ARI {statistics.mean(ari[name]):.2f}"
        for name in reached
    )
    says = "λ by farthest-first gives about the wished K; better from a random row"
    shares = {name: sum(right) / len(right) for name, right in reached.items()}
    row, mean = DP_MEANS_ROW.name, DP_MEANS_MEAN.name
    claims = [
        claim(
            "CR-11",
            says,
            found,
            min(shares.values()) > 0.8,
            statistics.mean(ari[row]) > statistics.mean(ari[mean]),
        )
    ]
    title = "A penalty for the wished number of clusters, by farthest-first"
    notes = [
        "Numbers and codes as they are. DP-means starts at the mean, (R) at a row."
    ]
    return CaseResult(title, rows, [], notes, fit.versions, claims)
