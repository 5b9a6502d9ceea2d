"""Natural image patches: ``python benchmarks/denoising.py [--only CASE,...]``.

``race`` fits mixtures to patches of pictures from one component on and with a given
number, as section 4.4 of the paper on memoized inference. ``denoise`` restores noisy
pictures with such mixtures. ``large`` is the race on 8.64 million patches.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from command import main
from data import Store, load_test_pictures
from mixtures import RATES
from report import CaseResult, Check, Row, claim
from runner import REPOSITORY, Job, Run, Runs, git, run_job
from scale import patches as scattered_patches

TASKS = "denoising_tasks"
MIXTURES = REPOSITORY / "build" / "patch_mixtures"
SIGMA = 25.0  # of the noise, in grey levels
PAPER_DB = 28.537
GIVEN_PRIOR = 1e-3  # E[Σ] of the race is that multiple of the identity
GROWING = "births and merges, from K = 1"
SPLITS = "Kurihara's splits"


@dataclass(frozen=True)
class Sizes:
    """Patches by their stride, components, passes, and pictures to restore."""

    stride: int
    passes: int
    given: int
    given_stride: int
    given_passes: int
    pictures: int
    size: int  # most rows and columns of a picture
    race_stride: int
    race_given: int
    race_passes: int
    splits: dict[str, Any]
    large: int
    large_passes: int


FULL = Sizes(
    stride=4,
    passes=12,
    given=200,
    given_stride=16,
    given_passes=15,
    pictures=30,
    size=500,
    race_stride=16,
    race_given=100,
    race_passes=20,
    splits={"depth": 10, "max_iter": 10},
    large=8_640_000,
    large_passes=6,
)
QUICK = Sizes(
    stride=60,
    passes=2,
    given=3,
    given_stride=60,
    given_passes=2,
    pictures=1,
    size=24,
    race_stride=60,
    race_given=4,
    race_passes=2,
    splits={"depth": 2, "max_iter": 2, "max_components": 2},
    large=2_000,
    large_passes=2,
)


def worker(task: str, asked: dict[str, Any], data: Path | None = None) -> Runs:
    """One run in a process of its own."""
    return run_job(Job(task, [asked], data, tasks=TASKS, timeout=4 * 3600.0))


def fit(path: Path, **settings: Any) -> Runs:
    asked = {"path": str(path), "random_state": 0, "n_jobs": 1} | settings
    return worker("fit_patches", asked)


# ------------------------------------------------------------------------ race


def ways(k: int, passes: int, batch: int) -> dict[str, dict[str, Any]]:
    """From one component, and with K given: memoized and at three rates."""
    common = {"max_iter": passes, "batch_size": batch, "concentration": 1.0}
    common |= {"prior": {"covariance": GIVEN_PRIOR, "learn": False}}
    keep = common | {"moves": (), "n_components": k}
    out = {GROWING: common, f"memoized, K = {k}": keep}
    for rate, (decay, delay) in RATES.items():
        step = {"learning_decay": decay, "learning_delay": delay}
        name = f"stochastic {rate}, K = {k}"
        out[name] = keep | {"algorithm": "stochastic"} | step
    return out


def race_row(name: str, run: Run, marks: list[int]) -> Row:
    """Bound, K and seconds after some passes and at the end."""
    facts = run.facts
    by_pass = {}
    for mark in marks:
        at = min(mark, len(facts["history"])) - 1
        by_pass[f"bound, pass {mark}"] = facts["history"][at]
        by_pass[f"K, pass {mark}"] = facts["components"][at]
        by_pass[f"CPU s, pass {mark}"] = facts["seconds"][at]
    end = {"K": facts["n_components"], "bound": facts["bound"], "CPU s": run.cpu_s}
    return {"fit": name, "passes": facts["n_iter"]} | end | by_pass


def splits_row(run: Run, marks: list[int]) -> Row:
    facts = run.facts
    row = {"fit": SPLITS, "passes": None, "K": facts["n_components"]}
    row |= {"bound": facts["bound"], "CPU s": run.cpu_s}
    empty = {
        f"{what}, pass {m}": None for m in marks for what in ("bound", "K", "CPU s")
    }
    return row | empty


def race(path: Path, k: int, passes: int, splits: dict[str, Any] | None) -> CaseResult:
    """One fit of each kind on these patches, with one prior."""
    n = len(np.load(path, mmap_mode="r"))
    answers = {
        name: fit(path, **settings)
        for name, settings in ways(k, passes, -(-n // 100)).items()
    }
    runs = {name: answer.runs[0] for name, answer in answers.items()}
    marks = sorted({1, 2, max(2, passes // 4), max(2, passes // 2)})
    rows = [race_row(name, run, marks) for name, run in runs.items()]
    bounds = {name: run.facts["bound"] for name, run in runs.items()}
    ours = bounds.pop(GROWING)
    if splits is not None:
        asked = {"path": str(path), "covariance": GIVEN_PRIOR, "settings": splits}
        other = worker("split_patches", asked).runs[0]
        rows.append(splits_row(other, marks))
        bounds[SPLITS] = other.facts["bound"]
    second = max(bounds, key=lambda name: bounds[name])
    above = (ours - bounds[second]) / n
    K = runs[GROWING].facts["n_components"]
    found = (
        f"{n:,} patches, {passes} passes: from K = 1 to {K}, {above:+.2f} nats a patch "
        f"beside the best other, {second}"
    )
    says = "births and merges from K = 1 end with a higher bound than all others"
    return CaseResult(
        f"Patches of pictures ({n:,} × 64): bounds by pass",
        rows,
        [Check("a higher bound than any other", f"{above:+.3f} nats", above > 0)],
        [
            f"One start each, 100 batches, E[Σ] = {GIVEN_PRIOR:g}·I, α = 1. The splits "
            "are our own implementation: a tree of nodes, at last each row by itself. "
            "A fit that converges before a pass shows its last one."
        ],
        answers[GROWING].versions,
        [claim("MO-18", says, found, above > 0)],
    )


def case_race(store: Store, sizes: Sizes) -> CaseResult:
    path = store.patches(sizes.race_stride)
    return race(path, sizes.race_given, sizes.race_passes, sizes.splits)


def case_large(store: Store, sizes: Sizes) -> CaseResult:
    path = scattered_patches(store, sizes.large)
    return race(path, sizes.race_given, sizes.large_passes, None)


# --------------------------------------------------------------------- denoise


@dataclass(frozen=True)
class Restored:
    """A mixture, how it was fitted, and what it makes of the noisy pictures."""

    name: str
    n_patches: int
    fitted: dict[str, Any]
    cpu_s: float
    run: Run
    versions: dict[str, str]

    @property
    def psnr(self) -> float:
        return statistics.mean(self.run.facts["psnr"])

    def row(self) -> Row:
        facts = self.run.facts
        return {
            "mixture": self.name,
            "patches": self.n_patches,
            "K": self.fitted["n_components"],
            "passes": self.fitted["n_iter"],
            "CPU s of the fit": self.cpu_s,
            "PSNR, mean": f"{self.psnr:.3f}",
            "least": f"{min(facts['psnr']):.2f}",
            "most": f"{max(facts['psnr']):.2f}",
            "of the noisy": f"{statistics.mean(facts['noisy']):.2f}",
            "CPU s a picture": statistics.mean(facts["seconds"]),
        }


def mixture(name: str, path: Path, keep: bool, **settings: Any) -> Path:
    """File of a fitted mixture; one of many patches stays for other runs.

    A fit of millions of patches takes long. It is used again with the same `src`.
    """
    code = git("log", "-1", "--format=%h", "--", ":/src")
    changed = git("status", "--porcelain", "--", ":/src")
    folder = path.parent if changed or not keep else MIXTURES
    folder.mkdir(parents=True, exist_ok=True)
    words = [str(value) for value in settings.values() if value]
    model = folder / "-".join([name, path.stem, *words, f"{code}.npz"])
    if not model.exists():
        fit(path, model=str(model), **settings)
    return model


def restore(name: str, patches: Path, model: Path, pictures: Path) -> Restored:
    asked = {"model": str(model), "sigma": SIGMA}
    answer = worker("denoise_pictures", asked, pictures)
    with np.load(model) as file:
        fitted = {"n_components": len(file["weights"]), "n_iter": len(file["seconds"])}
        seconds = float(file["seconds"][-1])
    n_patches = len(np.load(patches, mmap_mode="r"))
    return Restored(name, n_patches, fitted, seconds, answer.runs[0], answer.versions)


def case_denoise(store: Store, sizes: Sizes) -> CaseResult:
    def noisy() -> np.ndarray:
        return load_test_pictures()[: sizes.pictures, : sizes.size, : sizes.size]

    pictures = store.path(f"test-{sizes.pictures}-{sizes.size}", noisy)
    keep = sizes is FULL
    many, fewer = store.patches(sizes.stride), store.patches(sizes.given_stride)
    ours = mixture("grown", many, keep, max_iter=sizes.passes)
    given = mixture(
        "given",
        fewer,
        keep,
        moves=(),
        n_components=sizes.given,
        max_iter=sizes.given_passes,
    )
    name = f"K = {sizes.given} given"
    found = [
        restore(GROWING, many, ours, pictures),
        restore(name, fewer, given, pictures),
    ]
    return denoise_result(found, sizes)


def denoise_result(found: list[Restored], sizes: Sizes) -> CaseResult:
    ours, given = found
    behind = given.psnr - ours.psnr
    slowest = max(max(one.run.facts["seconds"]) for one in found)
    text = (
        f"{ours.psnr:.3f} dB on 30 other pictures of the same collection, with K = "
        f"{ours.fitted['n_components']} from {ours.n_patches:,} patches; {behind:+.3f} "
        f"dB with K = {sizes.given} given"
    )
    says = (
        "the mixture as a prior for denoising 30 pictures: 28.537 dB, within .05 dB of "
        "a published mixture with K = 200"
    )
    return CaseResult(
        f"Denoising {sizes.pictures} pictures, noise of {SIGMA:g} grey levels",
        [one.row() for one in found],
        [
            Check("28.5 dB or more", f"{ours.psnr:.3f} dB", ours.psnr >= 28.5),
            Check(
                f"within .05 dB of K = {sizes.given} given or above",
                f"{ours.psnr:.3f} against {given.psnr:.3f} dB",
                behind <= 0.05,
            ),
            Check("below 10 CPU-s a picture", f"{slowest:.1f} s at most", slowest < 10),
        ],
        [
            "Expected patch log-likelihood with half-quadratic splitting (Zoran & "
            "Weiss 2011), β = 1, 3, 6, 12, 24, 48 and 96 over σ²; all patches of "
            "8 × 8 less their mean, the likeliest component, its Wiener filter. PSNR "
            "in dB over 30 of the test pictures of BSDS, which need not be those of "
            f"the paper ({PAPER_DB} dB). One start each."
        ],
        {},
        [claim("MO-18", says, text, abs(ours.psnr - PAPER_DB) <= 0.5, behind <= 0.05)],
    )


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "race": case_race,
    "denoise": case_denoise,
    "large": case_large,
}


if __name__ == "__main__":
    main("denoising", CASES, FULL, QUICK)
