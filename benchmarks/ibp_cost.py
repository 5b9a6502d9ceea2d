"""What an iteration costs: exponents in N, D and K (Table 1), and plain Python."""

from dataclasses import replace

from data import Store
from ibp_methods import (
    Method,
    accelerated,
    bnmf,
    meibp,
    random_start,
    uncollapsed,
    variational,
)
from ibp_runs import TASKS
from ibp_sizes import Shape, Sizes
from ibp_synthetic import exponent, shown
from report import CaseResult, Check, Row, claim
from runner import Job, run_job

AXES = ("N", "D", "K")
# Highest exponents by Table 1: MEIBP N(K²D + K³ ln K), the variational method and
# uncollapsed Gibbs NK²D, accelerated Gibbs and BNMF N(K² + KD).
WORST = {
    "MEIBP": (1, 1, 3),
    "f-VIBP": (1, 1, 2),
    "t-AIBP": (1, 1, 2),
    "t-UGibbs": (1, 1, 2),
    "BNMF": (1, 1, 2),
}
SLACK = 0.15  # of a measured exponent
PUBLIC_S = 0.85  # CPU seconds of a sweep of the public Python code, K = 20 to 32


def restless(method: Method) -> Method:
    """From a start that is far from rest, and never ended by its tolerance."""
    method = random_start(method)
    return replace(method, settings=method.settings | {"tol": 0.0})


def cost_methods(k: int) -> list[Method]:
    return [
        restless(meibp(k, "noise")),
        restless(variational("finite", k)),
        accelerated(k),
        uncollapsed(k, "noise"),
        bnmf(k),
    ]


def shapes(base: Shape, factors: tuple[int, ...]) -> dict[str, list[Shape]]:
    """The base with one of its sizes multiplied, by the name of that size."""
    return {
        axis: [
            (base[0] * f, base[1], base[2])
            if axis == "N"
            else (base[0], base[1] * f, base[2])
            if axis == "D"
            else (base[0], base[1], base[2] * f)
            for f in factors
        ]
        for axis in AXES
    }


def case_cost(store: Store, sizes: Sizes) -> CaseResult:
    grid = shapes(sizes.cost, sizes.cost_factors)
    rows: list[Row] = []
    found, holds = [], []
    for i, name in enumerate(WORST):
        seconds, versions = {}, {}
        for axis, line in grid.items():
            asked = [
                {
                    "method": cost_methods(shape[2])[i].as_json(),
                    "shape": list(shape),
                    "passes": list(sizes.cost_passes),
                    "repeats": sizes.cost_repeats,
                }
                for shape in line
            ]
            task = "meibp_pass_seconds" if name == "MEIBP" else "step_seconds"
            answer = run_job(Job(task, asked, tasks=TASKS))
            seconds[axis] = [run.facts["step_s"] for run in answer.runs]
            versions = answer.versions
        powers = {
            axis: exponent(list(sizes.cost_factors), values)
            for axis, values in seconds.items()
        }
        rows.append(
            {"method": name, "ms an iteration": 1000 * seconds["N"][0]}
            | {f"exponent in {axis}": power for axis, power in powers.items()}
            | {"worst case": "N{} D{} K{}".format(*map(power_of, WORST[name]))}
        )
        shown_powers = ", ".join(f"{a} {p:.2f}" for a, p in powers.items())
        found.append(f"{name}: {shown_powers}")
        holds.append(
            all(
                power <= worst + SLACK
                for power, worst in zip(powers.values(), WORST[name], strict=True)
            )
        )
    return CaseResult(
        "CPU of an iteration: how it grows (Table 1)",
        rows,
        [],
        [
            f"Synthetic data of {shown(sizes.cost)}, each size in turn multiplied by "
            f"{', '.join(map(str, sizes.cost_factors))}. An iteration: the slope "
            f"between fits of {sizes.cost_passes[0]} and of {sizes.cost_passes[1]}, "
            "the least of three; of MEIBP the least of its passes from the true Z. "
            "Exponents are fitted; overhead makes them smaller on "
            "small data. Beam search and INMF: see the case `slow`."
        ],
        versions,
        [
            claim(
                "ME-10",
                "an iteration costs no more than Table 1 says; MEIBP is linear in N",
                "; ".join(found),
                *holds,
            )
        ],
    )


def power_of(exponent: int) -> str:
    return {1: "", 2: "²", 3: "³"}[exponent]


def case_plain(store: Store, sizes: Sizes) -> CaseResult:
    """The accelerated sampler against one in plain numpy."""
    asked = [{"shape": list(sizes.plain), "passes": list(sizes.cost_passes)}]
    answer = run_job(Job("sampler_sweeps", asked, tasks=TASKS))
    facts = answer.runs[0].facts
    ratio = facts["plain_s"] / facts["ours_s"]
    rows = [
        {
            "sampler": name,
            "CPU ms a sweep": 1000 * seconds,
            "times ours": seconds / facts["ours_s"],
            "K": k,
        }
        for name, seconds, k in (
            ("IBPGibbs, accelerated", facts["ours_s"], facts["K_ours"]),
            ("plain numpy", facts["plain_s"], facts["K_plain"]),
            ("public Python code, K = 20 to 32", PUBLIC_S, None),
        )
    ]
    return CaseResult(
        f"A sweep of the accelerated sampler ({shown(sizes.plain)})",
        rows,
        [
            Check(
                "at least 20 times less CPU than plain Python",
                f"{ratio:.0f} times less than plain numpy, "
                f"{PUBLIC_S / facts['ours_s']:.0f} than the public figure",
                ratio >= 20.0,
            )
        ],
        [
            "Both start at the true Z with the true scales. The public figure was "
            "measured on another day, on data of this shape."
        ],
        answer.versions,
    )
