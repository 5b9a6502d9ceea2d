"""Streams that never end: ``python benchmarks/soak.py [--only CASE,...] [--quick]``.

Batches of drifting data go through `partial_fit` for half an hour in all, or as many
minutes as ``KPLUS_SOAK_MINUTES`` says; each estimator has a process of its own. The
groups of the data go round in a circle, so that the stream repeats itself after a turn:
what grows after that grows for ever.

Every so many batches the resident memory, the number of groups and the objective or
bound of all rows seen, per row, are noted. Checked are: that memory is flat, by a
straight line through the notes after the warm-up; that nothing is NaN; that groups
do not grow without end; and that the measure per row is sane (`Stream.lowest`,
`Stream.highest`).
"""

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from command import main
from data import Store
from report import CaseResult, Check, Row
from runner import Job, run_job
from worker import status_mb

Note = dict[str, Any]

BATCH = 200
GROUPS, COLUMNS = 5, 4
RADIUS = 10.0
FEATURES, FEATURE_COLUMNS, NOISE = 4, 12, 0.3
PENALTY = 30.0
FEATURE_PENALTY = 300.0
MOST_GROUPS = 40
WARM_UP = 1 / 3  # share of the batches
FLAT_MB = 0.5  # per 1000 batches
SHOWN = 6  # notes in the table of a case


@dataclass(frozen=True)
class Sizes:
    """Seconds for each estimator, batches of a turn, and batches between two notes."""

    seconds: float
    turn: int
    every: int


FULL = Sizes(float(os.environ.get("KPLUS_SOAK_MINUTES", "30")) * 60 / 4, 2000, 20)
QUICK = Sizes(1.0, 30, 3)


# ------------------------------------------------------------------ the streams


def moving_groups(angle: float, rng: np.random.Generator) -> np.ndarray:
    """Round groups on a circle, turned by an angle; noise of variance 1."""
    angles = angle + 2 * np.pi * np.arange(GROUPS) / GROUPS
    centres = np.zeros((GROUPS, COLUMNS))
    centres[:, 0], centres[:, 1] = RADIUS * np.cos(angles), RADIUS * np.sin(angles)
    noise = rng.normal(size=(BATCH, COLUMNS))
    return centres[rng.integers(GROUPS, size=BATCH)] + noise


def swelling_features(angle: float, rng: np.random.Generator) -> np.ndarray:
    """Features of three columns each, which grow and shrink in turn."""
    width = FEATURE_COLUMNS // FEATURES
    heights = 4 + np.sin(angle + 2 * np.pi * np.arange(FEATURES) / FEATURES)
    A = np.kron(np.diag(heights), np.ones(width))
    Z = rng.random((BATCH, FEATURES)) < 0.4
    return Z @ A + rng.normal(scale=NOISE, size=(BATCH, FEATURE_COLUMNS))


def _single_gaussian() -> float:
    """Mean log-density of the groups' whole circle under one Gaussian.

    Two columns have variance RADIUS²/2 + 1, the others 1.
    """
    variances = np.array([RADIUS**2 / 2 + 1] * 2 + [1.0] * (COLUMNS - 2))
    return float(-0.5 * np.sum(np.log(2 * np.pi * np.e * variances)))


@dataclass(frozen=True)
class Stream:
    """An estimator, its data, and between what its measure per row must be.

    `why` says where the limits come from; without limits, the measure must stay
    within a quarter of its range over the first turn. `note` stands below the table.
    """

    estimator: str
    parameters: dict[str, Any]
    rows: Callable[[float, np.random.Generator], np.ndarray]
    measure: str = "objective_"
    lowest: float | None = None
    highest: float | None = None
    why: str = "the range of the first turn, and a quarter of it"
    note: str = ""


STREAMS = {
    "DPMeans": Stream(
        "DPMeans",
        {"penalty": PENALTY, "algorithm": "rows"},
        moving_groups,
        lowest=0.0,
        highest=PENALTY,
        why="a row costs at most the penalty, as a cluster of its own would",
        note="At a fixed penalty the number of clusters grows with the rows, and so it "
        "does at the optimum of the objective: sooner or later noise puts a row beyond "
        "√penalty of all centres, and to join two clusters would cost more than the "
        "penalty.",
    ),
    "DPMixture": Stream(
        "DPMixture",
        {},
        moving_groups,
        measure="lower_bound_",
        lowest=_single_gaussian(),
        highest=float(-0.5 * COLUMNS * np.log(2 * np.pi * np.e)),
        why="above one Gaussian for all, below the log-density of the noise alone",
    ),
    "CRAFT": Stream("CRAFT", {}, moving_groups),
    "BPMeans": Stream(
        "BPMeans",
        {"penalty": FEATURE_PENALTY},
        swelling_features,
        lowest=0.0,
        highest=FEATURE_COLUMNS * (0.24 * 25 + NOISE**2),
        why="at most the squared distances to the mean, with features at their highest",
    ),
}


# ---------------------------------------------------------- what the worker runs


def stream(X: None, arguments: dict[str, Any]) -> dict[str, Any]:
    """Feed batches until the time is over; return the notes."""
    import kplus

    about = STREAMS[arguments["estimator"]]
    rng = np.random.default_rng(0)
    model = getattr(kplus, about.estimator)(random_state=0, **about.parameters)
    notes: list[Note] = []
    batches, begun = 0, time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() - begun < arguments["seconds"] or len(notes) < SHOWN:
            model.partial_fit(about.rows(2 * np.pi * batches / arguments["turn"], rng))
            batches += 1
            if batches % arguments["every"] == 0:
                notes.append(note(model, about, batches, time.monotonic() - begun))
    return {"notes": notes}


def note(model: Any, about: Stream, batches: int, seconds: float) -> Note:
    """What is seen of a model in mid-stream."""
    number = getattr(model, "n_clusters_", None) or getattr(model, "n_components_", 0)
    arrays = [value for value in vars(model).values() if isinstance(value, np.ndarray)]
    floats = [array for array in arrays if array.dtype.kind == "f"]
    return {
        "batches": batches,
        "seconds": seconds,
        "memory_mb": status_mb("VmRSS") or 0.0,
        "groups": int(number),
        "measure": float(getattr(model, about.measure)) / (batches * BATCH),
        "finite": all(bool(np.isfinite(array).all()) for array in floats),
    }


# ------------------------------------------------------------- what is made of it


def slope(notes: list[Note]) -> float:
    """MB per 1000 batches, by a straight line through the notes after the warm-up."""
    late = after_warm_up(notes)
    batches = np.array([one["batches"] for one in late], dtype=float)
    memory = np.array([one["memory_mb"] for one in late])
    return float(np.polyfit(batches / 1000, memory, 1)[0])


def after_warm_up(notes: list[Note]) -> list[Note]:
    return notes[int(len(notes) * WARM_UP) :]


def limits(about: Stream, notes: list[Note], turn: int) -> tuple[float, float]:
    """Between what the measure per row is sane."""
    if about.lowest is not None and about.highest is not None:
        return about.lowest, about.highest
    first = [one["measure"] for one in notes if one["batches"] <= turn]
    low, high = min(first), max(first)
    return low - (high - low) / 4, high + (high - low) / 4


def checks_of(about: Stream, notes: list[Note], turn: int) -> list[Check]:
    grown = slope(notes)
    late = after_warm_up(notes)
    measures = [one["measure"] for one in late]
    low, high = limits(about, notes, turn)
    most = max(one["groups"] for one in notes)
    finite = all(one["finite"] and np.isfinite(one["measure"]) for one in notes)
    name = about.estimator
    return [
        Check(
            f"{name}: memory grows by less than {FLAT_MB} MB in 1000 batches",
            f"{grown:.3f} MB",
            grown < FLAT_MB,
        ),
        Check(f"{name}: no NaN", "none" if finite else "some", finite),
        Check(
            f"{name}: measure per row between {low:.3g} and {high:.3g} ({about.why})",
            f"{min(measures):.3g} to {max(measures):.3g}",
            low <= min(measures) <= max(measures) <= high,
        ),
        Check(f"{name}: at most {MOST_GROUPS} groups", f"{most}", most <= MOST_GROUPS),
    ]


def row_of(one: Note, before: Note | None) -> Row:
    """A line of the table; the speed is that since the line before."""
    batches, seconds = one["batches"], one["seconds"]
    if before is not None:
        batches, seconds = batches - before["batches"], seconds - before["seconds"]
    return {
        "batches": one["batches"],
        "minutes": one["seconds"] / 60,
        "memory MB": one["memory_mb"],
        "groups": one["groups"],
        "measure a row": one["measure"],
        "rows/s": round(batches * BATCH / max(seconds, 1e-9)),
    }


def case_of(name: str, sizes: Sizes) -> CaseResult:
    """Soak one estimator."""
    arguments = {
        "estimator": name,
        "seconds": sizes.seconds,
        "turn": sizes.turn,
        "every": sizes.every,
    }
    limit = sizes.seconds * 2 + 600
    answer = run_job(Job("stream", [arguments], tasks="soak", timeout=limit))
    notes = answer.runs[0].facts["notes"]
    chosen = [notes[i] for i in np.linspace(0, len(notes) - 1, SHOWN).astype(int)]
    rows = [
        row_of(one, before)
        for one, before in zip(chosen, [None, *chosen[:-1]], strict=True)
    ]
    about = STREAMS[name]
    text = (
        f"Batches of {BATCH} rows; the data repeat themselves every {sizes.turn:,} "
        f"batches. Warm-up: the first third."
    )
    return CaseResult(
        f"A stream of {notes[-1]['batches'] * BATCH:,} drifting rows through {name}",
        rows,
        checks_of(about, notes, sizes.turn),
        [f"{text} {about.note}".strip()],
        answer.versions,
    )


def case_dp_means(store: Store, sizes: Sizes) -> CaseResult:
    return case_of("DPMeans", sizes)


def case_dp_mixture(store: Store, sizes: Sizes) -> CaseResult:
    return case_of("DPMixture", sizes)


def case_craft(store: Store, sizes: Sizes) -> CaseResult:
    return case_of("CRAFT", sizes)


def case_bp_means(store: Store, sizes: Sizes) -> CaseResult:
    return case_of("BPMeans", sizes)


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "dp_means": case_dp_means,
    "dp_mixture": case_dp_mixture,
    "craft": case_craft,
    "bp_means": case_bp_means,
}


if __name__ == "__main__":
    main("soak", CASES, FULL, QUICK)
