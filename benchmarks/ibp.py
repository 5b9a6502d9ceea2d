"""The Indian buffet process: ``python benchmarks/ibp.py [--only CASE,...]``.

Likelihoods are of entries held out, mean of an entry, under the scale of the noise that
a method finds. Seconds are CPU time of `fit`, kernels loaded, one thread.
"""

from collections.abc import Callable

from command import main
from data import Store
from ibp_cost import case_cost, case_plain
from ibp_curves import case_curves
from ibp_real import case_real, case_yale_full
from ibp_sizes import FULL, QUICK, Sizes
from ibp_slow import case_slow
from ibp_solver import case_flips, case_row_solver
from ibp_synthetic import case_large, case_scales, case_synthetic
from ibp_tabletop import case_histogram, case_tabletop
from ibp_variational import case_variational
from report import CaseResult

CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "synthetic": case_synthetic,
    "scales": case_scales,
    "curves": case_curves,
    "large": case_large,
    "real": case_real,
    "yale_full": case_yale_full,
    "tabletop": case_tabletop,
    "histogram": case_histogram,
    "row_solver": case_row_solver,
    "flips": case_flips,
    "cost": case_cost,
    "plain": case_plain,
    "slow": case_slow,
    "variational": case_variational,
}


if __name__ == "__main__":
    main("ibp", CASES, FULL, QUICK)
