"""Is what stability says true?  ``python benchmarks/how_sure.py``.

The battery is half of Gagolewski's clustering-data-v1. A fit counts as right if its
adjusted Rand index is above .8. What stability is one number of, the mean by rows of
the index corrected for chance, was chosen on the sets in odd places (1st, 3rd, ...),
among the others in the table; those in even places were looked at afterwards.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from command import main
from data import Store
from kplus import DPMeans, DPMixture, stability, validate
from kplus.datasets import make_gaussian_blobs
from real_data import battery, score
from report import CaseResult, Check, Row

RIGHT = 0.8  # adjusted Rand index above which a fit is right


@dataclass(frozen=True)
class Sizes:
    """How much of each case is run."""

    sets: int | None  # of the battery; None: all
    most_rows: int  # of a set, for DPMeans; the fit that is judged is to these, too
    mixture_rows: int  # the same for DPMixture, of which a fit takes longer
    resamples: int
    mixture_resamples: int
    gaussians: int
    mixtures: int
    rows: int


FULL = Sizes(None, 2_000, 400, 10, 5, 3, 3, 10_000)
QUICK = Sizes(4, 100, 80, 3, 2, 1, 1, 300)


def quietly(run: Callable[[], Any]) -> tuple[Any, float]:
    """What `run` returns, without warnings, and its CPU seconds."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(), time.process_time() - start


# ------------------------------------------------------------- right and wrong

SUMMARIES: dict[str, Callable[[Any], float]] = {
    "stability": lambda s: s.overall,
    "mean of clusters": lambda s: float(np.nanmean(s.group_stability)),
    "least cluster": lambda s: float(np.nanmin(s.group_stability)),
    "plain Jaccard, by rows": lambda s: float(
        np.average(np.nan_to_num(s.group_jaccard), weights=s.sizes)
    ),
    "least plain Jaccard": lambda s: float(np.nanmin(s.group_jaccard)),
    "same number": lambda s: s.number_agreement,
}


def case_means(store: Store, sizes: Sizes) -> CaseResult:
    """Sets of the battery, standardised, by the default of `DPMeans`."""
    model = DPMeans(random_state=0, n_jobs=1)
    return _case_of(model, sizes.sets, sizes.most_rows, sizes.resamples)


def case_mixture(store: Store, sizes: Sizes) -> CaseResult:
    """The same by the default of `DPMixture`."""
    model = DPMixture(random_state=0, n_jobs=1)
    return _case_of(model, sizes.sets, sizes.mixture_rows, sizes.mixture_resamples)


def _case_of(model: Any, sets: int | None, most: int, fits: int) -> CaseResult:
    judged = [_judged(model, name, X, y, most, fits) for name, X, y in battery(sets)]
    return _right_or_wrong(f"{type(model).__name__}()", judged)


def _judged(
    model: Any, name: str, X: np.ndarray, y: list[np.ndarray], most: int, fits: int
) -> Row:
    """Stability, and how good the fit is in truth; of a sample where rows are many."""
    rng = np.random.default_rng(1)
    some = np.arange(len(X))
    if len(X) > most:
        some = np.sort(rng.choice(len(X), most, replace=False, shuffle=False))
    Z = StandardScaler().fit_transform(X[some])
    fitted, _ = quietly(lambda: model.fit(Z))
    found, seconds = quietly(
        lambda: stability(fitted, Z, n_resamples=fits, random_state=0, n_jobs=1)
    )
    validity, _ = quietly(lambda: validate(fitted.labels_, Z, random_state=0))
    row: Row = {
        "set": name.replace("__", "/"),
        "rows": len(Z),
        "clusters": fitted.n_clusters_,
        "ARI": score([each[some] for each in y], fitted.labels_),
    }
    row |= {words: summary(found) for words, summary in SUMMARIES.items()}
    density = validity.density if fitted.n_clusters_ > 1 else None
    return row | {"DBCV": density, "CPU s": seconds}


def _right_or_wrong(model: str, rows: list[Row]) -> CaseResult:
    """The sets, and below how well each summary tells right from wrong (AUC)."""
    parts = {
        "AUC, 1st, 3rd, … (chosen on)": rows[::2],
        "AUC, others (untouched)": rows[1::2],
        "AUC, all": rows,
        "AUC, all with two clusters or more": [r for r in rows if r["clusters"] != 1],
    }
    below: list[Row] = []
    for title, part in parts.items():
        line: Row = dict.fromkeys(rows[0]) | {"set": title, "rows": len(part)}
        below.append(line | {words: _auc(part, words) for words in SUMMARIES})
    whole = below[2]["stability"]
    target = f"{model}: AUC of stability for ARI > .8, all sets, at least .80"
    met = whole is not None and float(whole) >= 0.80
    checks = [Check(target, "none" if whole is None else f"{whole:.3f}", met)]
    n_right = sum(float(row["ARI"]) > RIGHT for row in rows)
    note = (
        f"{n_right} of {len(rows)} fits are right. A single cluster that comes back "
        f"is stable, though no set has one cluster only."
    )
    return CaseResult(f"{model}: stability of right and wrong fits", rows + below,
                      checks, [note])  # fmt: skip


def _auc(rows: list[Row], words: str) -> float | None:
    right = [float(row["ARI"]) > RIGHT for row in rows]
    if len(set(right)) < 2:
        return None
    return float(roc_auc_score(right, [float(row[words]) for row in rows]))


# ---------------------------------------------------------------- known truth


def case_truth(store: Store, sizes: Sizes) -> CaseResult:
    """Groups that are there, and one Gaussian that was cut in two by request."""
    rows, found = [], {}
    for D in (2, 5, 10):
        for title, make in {"four groups": _four, "one, cut in two": _one}.items():
            K = 4 if title == "four groups" else 2
            for name, model in {
                "DPMeans": DPMeans(n_clusters=K, random_state=0, n_jobs=1),
                "DPMixture": DPMixture(n_clusters=K, random_state=0, n_jobs=1),
            }.items():
                fits = sizes.mixture_resamples if name == "DPMixture" else 20
                values = [
                    quietly(
                        lambda model=model, make=make, D=D, seed=seed, fits=fits:
                        stability(model, make(300, D, seed), n_resamples=fits,
                                  random_state=seed, n_jobs=1)
                    )[0]
                    for seed in range(sizes.gaussians)
                ]  # fmt: skip
                overall = [each.overall for each in values]
                plain = [float(np.nanmean(each.group_jaccard)) for each in values]
                found[title, name, D] = float(np.mean(overall))
                rows.append(
                    {"table": title, "columns": D, "model": name,
                     "stability, mean": float(np.mean(overall)),
                     "lowest": min(overall), "highest": max(overall),
                     "plain Jaccard, mean": float(np.mean(plain))}
                )  # fmt: skip
    least = min(v for (title, *_), v in found.items() if title == "four groups")
    checks = [Check("true groups: mean above .85", f"{least:.3f}", least > 0.85)]
    for (title, name, D), value in found.items():
        if title != "four groups":
            target = f"halves of one Gaussian, {D} columns, {name}: mean below .6"
            checks.append(Check(target, f"{value:.3f}", value < 0.6))
    return CaseResult("Known truth: 300 rows", rows, checks)


def _four(n: int, D: int, seed: int) -> np.ndarray:
    """Four groups, 6 standard deviations and more from each other."""
    centers = 6.0 / np.sqrt(2.0) * np.eye(4)[:, :D] if D >= 4 else 6.0 * np.array(
        [[0, 0], [0, 1], [1, 0], [1, 1.0]]
    )  # fmt: skip
    return np.asarray(make_blobs(n, centers=centers, random_state=seed)[0])


def _one(n: int, D: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, D))


# ---------------------------------------------------------------- calibration


def case_calibration(store: Store, sizes: Sizes) -> CaseResult:
    """What `predict_proba` expects to be wrong, and what is."""
    rows, errors = [], []
    for apart in (2.5, 3.0, 4.0):
        for seed in range(sizes.mixtures):
            X, y = _overlapping(min(sizes.rows, 1_500), apart, seed)
            model, _ = quietly(
                lambda X=X: DPMixture(
                    "gaussian", n_clusters=3, random_state=0, n_jobs=1
                ).fit(X)
            )
            row = _calibrated(f"3 Gaussians, {apart:g} sd, seed {seed}", model, X, y)
            errors.append(abs(float(row["expected wrong"]) - float(row["wrong"])))
            rows.append(row)
    rows.append(_digits(sizes))
    off = float(np.mean(errors))
    checks = [Check("simulated: expected and observed within .02, mean",
                    f"{off:.4f}", off <= 0.02)]  # fmt: skip
    note = (
        "Each cluster stands for the class that is most frequent in it. ECE is the "
        "expected calibration error, of ten bins of equal width. Digits: the model is "
        "not true, rows are no draws from Gaussians, so that it is too sure."
    )
    return CaseResult("Calibration of predict_proba", rows, checks, [note])


def _overlapping(n: int, apart: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    corners = apart * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.866]])
    return corners[y] + rng.normal(size=(n, 2)), y


def _digits(sizes: Sizes) -> Row:
    X, y = load_digits(return_X_y=True)
    X, y = X[: sizes.rows], y[: sizes.rows]
    model, _ = quietly(
        lambda: DPMixture("factor_gaussian", random_state=0, n_jobs=1).fit(X)
    )
    return _calibrated("digits", model, X, y)


def _calibrated(title: str, model: Any, X: np.ndarray, y: np.ndarray) -> Row:
    shares = model.predict_proba(X)
    found, sure = shares.argmax(axis=1), shares.max(axis=1)
    table = np.zeros((shares.shape[1], y.max() + 1))
    np.add.at(table, (found, y), 1.0)
    right = table.argmax(axis=1)[found] == y
    bins = np.minimum((10 * sure).astype(int), 9)
    gaps = [
        abs(float(right[bins == b].mean() - sure[bins == b].mean()))
        * float(np.mean(bins == b))
        for b in np.unique(bins)
    ]
    return {
        "table": title,
        "clusters": int(model.n_clusters_),
        "expected wrong": float(1.0 - sure.mean()),
        "wrong": float(1.0 - right.mean()),
        "ECE": float(np.sum(gaps)),
    }


# ----------------------------------------------------------------------- speed


def case_speed(store: Store, sizes: Sizes) -> CaseResult:
    """Twenty resamples of a table of 10,000 × 10, and the indices without fits."""
    X, _ = make_gaussian_blobs(sizes.rows, 8, 10, random_state=0)
    rows: list[Row] = []
    for model in (
        DPMeans(random_state=0, n_jobs=1),
        DPMixture(random_state=0, n_jobs=1),
    ):
        fitted, one = quietly(lambda model=model: model.fit(X))
        result, twenty = quietly(
            lambda fitted=fitted: stability(
                fitted, X, n_resamples=20, random_state=0, n_jobs=1
            )
        )
        _, indices = quietly(lambda fitted=fitted: validate(fitted, X, random_state=0))
        rows.append(
            {"model": type(model).__name__, "rows": len(X), "clusters":
             int(fitted.n_clusters_), "fit, CPU s": one, "20 resamples, CPU s": twenty,
             "validate, CPU s": indices, "stability": result.overall}
        )  # fmt: skip
    seconds = float(rows[0]["20 resamples, CPU s"])
    checks = [Check("DPMeans, 20 resamples: 10 CPU-s, 5 s on two cores",
                    f"{seconds:.2f}", seconds <= 10.0)]  # fmt: skip
    note = "Fits are to a sample of 5,000 rows, of which each draws about 3,160."
    return CaseResult("Speed", rows, checks, [note])


CASES: dict[str, Callable[[Store, Sizes], CaseResult]] = {
    "means": case_means,
    "mixture": case_mixture,
    "truth": case_truth,
    "calibration": case_calibration,
    "speed": case_speed,
}

if __name__ == "__main__":
    main("how_sure", CASES, FULL, QUICK)
