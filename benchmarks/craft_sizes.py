"""How much data and how many runs; one set to measure, one to try the code."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Sizes of the cases of ``craft.py``."""

    figures: tuple[str, ...]
    figure_rows: tuple[int, ...]
    figure_seeds: int
    subspace_seeds: int
    noise_rows: tuple[int, ...]
    noise_seeds: int
    fractions: tuple[float, ...]
    category_thresholds: tuple[float, ...]
    variance_thresholds: tuple[float, ...]
    budget_seeds: int
    table_names: tuple[str, ...]
    table_runs: int
    many_runs: int
    peer_starts: int
    adult_rows: int | None
    adult_runs: int
    orders: int
    order_seeds: int
    scale_rows: tuple[int, ...]
    correlated_seeds: int
    wide_rows: int
    paper_seeds: int


FULL = Sizes(
    figures=("2a", "2c", "3a", "3c", "4a", "4c"),
    figure_rows=(300, 3000),
    figure_seeds=20,
    subspace_seeds=40,
    noise_rows=(300, 3000),
    noise_seeds=20,
    fractions=(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    category_thresholds=(0.76, 0.8, 0.85, 0.9, 0.95, 0.99),
    variance_thresholds=(4.0, 4.5, 5.0, 5.5, 6.0),
    budget_seeds=20,
    table_names=("Bank", "Spam", "Splice", "Wine", "Monk-3"),
    table_runs=20,
    many_runs=5,
    peer_starts=3,
    adult_rows=None,
    adult_runs=3,
    orders=6,
    order_seeds=10,
    scale_rows=(200_000, 1_000_000, 5_000_000),
    correlated_seeds=5,
    wide_rows=10_000,
    paper_seeds=5,
)
QUICK = Sizes(
    figures=("2a", "3a"),
    figure_rows=(300,),
    figure_seeds=2,
    subspace_seeds=2,
    noise_rows=(300,),
    noise_seeds=2,
    fractions=(0.3, 0.8),
    category_thresholds=(0.8,),
    variance_thresholds=(5.0,),
    budget_seeds=2,
    table_names=("Wine", "Monk-3"),
    table_runs=2,
    many_runs=1,
    peer_starts=1,
    adult_rows=2_000,
    adult_runs=1,
    orders=2,
    order_seeds=2,
    scale_rows=(20_000, 40_000),
    correlated_seeds=1,
    wide_rows=500,
    paper_seeds=1,
)
