"""The paper's experiment with faces, on faces that may be had: features or clusters."""

from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from compare import value_range
from data import Store
from feature_fits import FeatureFits, Sizes, exactly, fit_features
from report import CaseResult, Row, claim
from runner import Job, Run, run_job


def case_faces(store: Store, sizes: Sizes) -> CaseResult:
    """The experiment with faces, on others than the paper's."""
    errors, fits = {}, {}
    for centred in (False, True):
        path = store.faces(centred)
        penalty, errors[centred] = penalty_for_three(path, sizes)
        name = f"KFeatures(penalty={penalty:.3g})"
        settings = {name: {"kind": "KFeatures", "penalty": penalty}}
        fits[centred] = fit_features(settings, sizes.face_seeds, path)[name]
    rows: list[Row] = [
        {
            "features": k,
            "error, mean kept": exactly(kept),
            "error, centred": exactly(centred),
        }
        for k, (kept, centred) in enumerate(zip(*errors.values(), strict=True), 1)
    ]
    codes = {centred: combinations(fit) for centred, fit in fits.items()}
    means = {k: best_means(store.faces(False), k, sizes) for k in (2, 3, 4)}
    two = {"2": {"kind": "KFeatures", "n_components": 2}}
    pair = fit_features(two, 3, store.faces(False))["2"].best
    notes = [cross_table(codes[False], means[k].labels) for k in (3, 4)]
    notes.append(
        f"Centred faces, {fits[True].name}: K = {value_range(fits[True].components)}, "
        f"combinations {counted(codes[True])}."
    )
    fit = fits[False]
    n_pair = len(np.unique(pair.labels, axis=0))
    found = (
        f"Olivetti faces, {fit.name}: K = {value_range(fit.components)}, "
        f"{'with' if all(fit.facts('base')) else 'not always with'} a base; "
        f"combinations {counted(codes[False])}; two features make {n_pair} groups, "
        f"error {pair.facts['error']:.3f}, two means {means[2].facts['reported']:.3f}"
    )
    says = (
        "faces: a base and two features in four combinations (139, 106, 80, 75), other "
        "groups than those of K-means with 3 and 4; with two, both make the same two"
    )
    differ = adjusted_rand_score(codes[False], means[4].labels) < 0.9
    return CaseResult(
        "Faces (400 × 100): stepwise K-features and K-means",
        rows,
        [],
        notes,
        fit.versions,
        [
            claim(
                "MB-16",
                says,
                found,
                set(fit.components) == {3} and all(fit.facts("base")),
                len(np.unique(codes[False])) == 4 and differ,
                n_pair == 2 and close(pair.facts["error"], means[2].facts["reported"]),
            )
        ],
    )


def close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-4 * abs(b)


def combinations(fit: FeatureFits) -> np.ndarray:
    """Which features each row has in the best run, as text; a base comes first."""
    Z = fit.best.labels
    assert Z is not None
    order = np.argsort(~Z.all(axis=0), kind="stable")
    return np.array(["".join(map(str, row)) for row in Z[:, order]])


def counted(codes: np.ndarray) -> str:
    groups, counts = np.unique(codes, return_counts=True)
    return ", ".join(f"{g}: {c}" for g, c in zip(groups, counts, strict=True))


def best_means(path: Path, k: int, sizes: Sizes) -> Run:
    asked = [{"n_clusters": k, "random_state": s} for s in range(sizes.face_seeds)]
    runs = run_job(Job("sklearn_k_means", asked, path)).runs
    return min(runs, key=lambda run: float(run.facts["reported"]))


def penalty_for_three(path: Path, sizes: Sizes) -> tuple[float, list[float]]:
    """A penalty at which a third feature pays and a fourth does not; the errors."""
    settings = {str(k): {"kind": "KFeatures", "n_components": k} for k in range(1, 5)}
    fits = fit_features(settings, min(3, sizes.face_seeds), path)
    errors = [fit.best.facts["error"] for fit in fits.values()]
    third, fourth = errors[1] - errors[2], errors[2] - errors[3]
    return float(np.sqrt(third * fourth)), errors


def cross_table(codes: np.ndarray, labels: np.ndarray | None) -> str:
    """Counts of each combination of features by cluster, as a sentence."""
    assert labels is not None
    clusters = np.argsort(-np.bincount(labels), kind="stable")
    parts = []
    for code in np.unique(codes):
        mine = [int(np.sum((codes == code) & (labels == k))) for k in clusters]
        parts.append(f"{code}: {', '.join(map(str, mine))}")
    sizes = ", ".join(str(int(np.sum(labels == k))) for k in clusters)
    return (
        f"K-means with {len(clusters)} clusters of {sizes}; of these, by combination "
        f"of features, {'; '.join(parts)}."
    )
