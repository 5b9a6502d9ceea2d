"""What the paper left out as too slow: beam search and INMF (Table 1, section 5)."""

import numpy as np

from data import Store
from ibp_cost import AXES, SLACK, shapes
from ibp_runs import TASKS
from ibp_sizes import Sizes
from ibp_synthetic import exponent, shown
from report import CaseResult, Row, claim
from runner import Job, run_job

SMALL, LARGE = (500, 500, 20), (100_000, 1_000, 50)  # data of Fig. 3
HOURS = 36.0  # after which the paper stopped
# INMF by Table 1: N(K³D + KD²).
WORST = (1, 2, 3)


def case_slow(store: Store, sizes: Sizes) -> CaseResult:
    grid = shapes(sizes.slow, sizes.cost_factors)
    asked = [
        {"shape": list(shape), "iterations": 2} for axis in AXES for shape in grid[axis]
    ]
    large = [{"shape": list(sizes.slow_large), "iterations": 1}]
    answer = run_job(Job("inmf_seconds", asked + large, tasks=TASKS))
    seconds = [run.facts["step_s"] for run in answer.runs]
    n = len(sizes.cost_factors)
    powers = {
        axis: exponent(list(sizes.cost_factors), seconds[i * n : (i + 1) * n])
        for i, axis in enumerate(AXES)
    }
    measured = np.prod(np.array(LARGE[:2]) / sizes.slow_large[:2])
    inmf_hours = seconds[-1] * measured / 3600
    beam = beam_seconds(sizes)
    per_feature = np.exp(np.polyfit(list(beam), np.log(list(beam.values())), 1)[0])
    K = max(beam)
    beam_hours = SMALL[0] * beam[K] * 2.0 ** (SMALL[2] - K) / 3600
    rows: list[Row] = [
        {"method": "INMF", "data": shown(shape), "CPU s": second, "of": "an iteration"}
        for shape, second in zip(
            [one for axis in AXES for one in grid[axis]] + [sizes.slow_large],
            seconds,
            strict=True,
        )
    ]
    rows += [
        {
            "method": "beam search",
            "data": shown((sizes.slow_beam_rows, SMALL[1], k)),
            "CPU s": second,
            "of": "one row more",
        }
        for k, second in beam.items()
    ]
    grown = ", ".join(f"{axis} {power:.2f}" for axis, power in powers.items())
    return CaseResult(
        "Beam search and INMF: what an iteration costs",
        rows,
        [],
        [
            "Our own small implementations in numpy. INMF: expectation propagation for "
            "the factors of a column, the mean of two iterations. Beam search scores "
            "all 2^K sets of features of the next row for one kept matrix. Sums are "
            "kept from row to row; by Table 1 the paper's program looked at all rows "
            "anew for each set, which takes N³."
        ],
        answer.versions,
        [
            claim(
                "ME-10",
                "an iteration of INMF costs no more than Table 1 says, one of beam "
                "search grows like 2^K",
                f"INMF: {grown}; beam search: {per_feature:.2f} times for each feature",
                *(
                    power <= worst + SLACK
                    for power, worst in zip(powers.values(), WORST, strict=True)
                ),
                per_feature > 1.5,
            ),
            claim(
                "ME-13",
                f"in {HOURS:g} hours beam search ends no iteration on the small data "
                "and INMF none on the large",
                f"extrapolated, an iteration of INMF on {shown(LARGE)} takes "
                f"{60 * inmf_hours:.2g} min, one of beam search on {shown(SMALL)} "
                f"{60 * beam_hours:.2g} min for each matrix kept",
                inmf_hours > HOURS,
                beam_hours > HOURS,
            ),
        ],
    )


def beam_seconds(sizes: Sizes) -> dict[int, float]:
    """CPU seconds of one row more, by the number of features so far."""
    asked = [
        {"shape": [sizes.slow_beam_rows, SMALL[1], k]} for k in sizes.slow_components
    ]
    answer = run_job(Job("beam_row_seconds", asked, tasks=TASKS))
    return {
        k: run.facts["row_s"]
        for k, run in zip(sizes.slow_components, answer.runs, strict=True)
    }
