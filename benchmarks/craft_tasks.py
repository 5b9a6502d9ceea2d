"""What the workers of mixed tables run: one function per library and kind of fit.

As in ``tasks.py``, each takes a dict of arguments and returns plain numbers, with the
labels under ``labels``. Tables are Parquet files, named by ``data``; they are read and
coded before the clock starts, but for CRAFT, which takes frames as they are. ``fit_s``
is CPU time of the fit alone. Libraries are imported inside, as no environment has all.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

Arguments = dict[str, Any]
Facts = dict[str, Any]
THRESHOLDS = {"category_threshold", "variance_threshold"}  # instead of a fixed budget


def timed(fit: Callable[..., Any], *table: Any) -> tuple[Any, float]:
    """What a fit returns, and its CPU seconds; warnings are not of interest here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        found = fit(*table)
        return found, time.process_time() - started


def kplus_craft(X: None, arguments: Arguments) -> Facts:
    """Fit a frame; ``order``, if there is one, seeds a shuffle of its rows."""
    arguments = dict(arguments)
    frame = pd.read_parquet(arguments.pop("data"))
    order = arguments.pop("order", None)
    rows = np.arange(len(frame))
    if order is not None:
        rows = np.random.default_rng(order).permutation(rows)
        frame = frame.iloc[rows].reset_index(drop=True)
    facts = craft_facts(frame, arguments)
    labels = np.empty(len(rows), dtype=np.int64)
    labels[rows] = facts["labels"]
    return facts | {"labels": labels}


def craft_facts(rows: Any, arguments: Arguments) -> Facts:
    from kplus import CRAFT

    model = CRAFT(**arguments)
    _, seconds = timed(lambda: model.fit(rows))
    return {
        "labels": np.asarray(model.labels_),
        "fit_s": seconds,
        "n_clusters": int(model.n_clusters_),
        "objective": float(model.objective_),
        "n_iter": int(model.n_iter_),
        "selected": np.asarray(model.selected_features_).astype(int).tolist(),
    }


def kplus_subspaces(X: None, arguments: Arguments) -> Facts:
    """Fit one of the paper's made tables; is the partition exact, are the subspaces?"""
    from craft_scores import same_partition, same_subspaces
    from kplus.datasets import make_subspace_clusters

    arguments, seed = dict(arguments), arguments["random_state"]
    rows, labels, subspaces = make_subspace_clusters(
        arguments.pop("figure"), arguments.pop("n_rows"), random_state=seed
    )
    if rows.dtype.kind == "i":
        arguments["categorical_features"] = list(range(rows.shape[1]))
    facts = craft_facts(rows, arguments)
    found, selected = facts.pop("labels"), np.array(facts.pop("selected"), dtype=bool)
    exact = same_partition(labels, found)
    at_most = None
    if arguments.get("feature_fraction") and not THRESHOLDS & set(arguments):
        at_most = round(arguments["feature_fraction"] * rows.shape[1])
    return facts | {
        "partition": exact,
        "subspaces": exact
        and same_subspaces(labels, found, subspaces, selected, at_most),
    }


def kplus_structureless(X: None, arguments: Arguments) -> Facts:
    """Fit rows of independent columns, in which there is nothing to find."""
    arguments = dict(arguments)
    rng = np.random.default_rng(arguments["random_state"])
    rows = independent(arguments.pop("kind"), arguments.pop("shape"), rng)
    facts = craft_facts(rows, arguments)
    return {name: facts[name] for name in ("n_clusters", "fit_s")}


def independent(
    kind: str, shape: tuple[int, int], rng: np.random.Generator
) -> pd.DataFrame:
    makers = {
        "Gaussian": lambda size: rng.standard_normal(size),
        "Bernoulli": lambda size: (rng.uniform(size=size) < 0.3).astype(int),
        "five levels": lambda size: rng.choice(5, size, p=[0.4, 0.25, 0.2, 0.1, 0.05]),
    }
    n, d = shape
    kinds = list(makers) if kind == "mixed" else [kind]
    columns = {}
    for i in range(d):
        name = kinds[i % len(kinds)]
        column = pd.Series(makers[name](n))
        columns[f"c{i}"] = column if name == "Gaussian" else column.astype("category")
    return pd.DataFrame(columns)


def kplus_open(X: None, arguments: Arguments) -> Facts:
    """What a fit does with a frame before it begins: find and code categories."""
    from kplus import CRAFT
    from kplus.base.tables import open_mixed_table

    frame = pd.read_parquet(arguments["data"])
    _, seconds = timed(lambda: open_mixed_table(CRAFT(), frame, reset=True))
    return {"fit_s": seconds}


def kplus_file(X: None, arguments: Arguments) -> Facts:
    """Fit a Parquet file where it lies."""
    arguments = dict(arguments)
    facts = craft_facts(arguments.pop("data"), arguments)
    facts.pop("selected")
    return facts


def kplus_dp_means(X: None, arguments: Arguments) -> Facts:
    from kplus import DPMeans

    arguments = dict(arguments)
    rows = plain(arguments.pop("data"))
    model = DPMeans(**arguments)
    _, seconds = timed(lambda: model.fit(rows))
    found = {"labels": model.labels_, "fit_s": seconds}
    return found | {"n_clusters": int(model.n_clusters_)}


def farthest_dp_means(X: None, arguments: Arguments) -> Facts:
    """Sequential DP-means, λ by farthest-first from ``start``: a row or the mean."""
    from baselines import farthest_first, sequential_dp_means

    rows = plain(arguments["data"])
    rng = np.random.default_rng(arguments["random_state"])
    row = rows[rng.integers(len(rows))]
    first = row if arguments["start"] == "row" else rows.mean(axis=0)
    penalty = farthest_first(rows, arguments["n_clusters"], first)
    return labelled(lambda: sequential_dp_means(rows, penalty, first, 1.0, rng))


def baseline(X: None, arguments: Arguments) -> Facts:
    """Fit the baseline that ``name`` says: mcfs, ndfs or dp_means_rf."""
    import baselines

    arguments = dict(arguments)
    fit = getattr(baselines, arguments.pop("name"))
    rows = plain(arguments.pop("data"))
    return labelled(lambda: fit(rows, **arguments))


def one_hot_k_means(X: None, arguments: Arguments) -> Facts:
    """scikit-learn's KMeans on standardised numbers and one column a category."""
    from sklearn.cluster import KMeans

    arguments = dict(arguments)
    numbers, codes = coded(arguments.pop("data"))
    columns = [standardised(numbers), *(one_hot(column) for column in codes.T)]
    rows = np.column_stack(columns)
    return labelled(lambda: KMeans(**arguments).fit(rows).labels_)


def k_prototypes(X: None, arguments: Arguments) -> Facts:
    """k-prototypes, k-modes where there are no numbers, k-means where only numbers.

    It takes no missing values: a missing category is one of its own, a missing number
    the mean.
    """
    from kmodes.kmodes import KModes
    from kmodes.kprototypes import KPrototypes

    arguments = dict(arguments)
    data = arguments["data"]
    numbers, codes = coded(arguments.pop("data"))
    if codes.shape[1] == 0:
        return one_hot_k_means(None, arguments | {"data": data})
    if numbers.shape[1] == 0:
        return labelled(lambda: KModes(**arguments).fit_predict(codes))
    rows = np.column_stack([standardised(numbers).astype(object), codes])
    categorical = list(range(numbers.shape[1], rows.shape[1]))
    model = KPrototypes(**arguments)
    return labelled(lambda: model.fit_predict(rows, categorical=categorical))


def step_mix(X: None, arguments: Arguments) -> Facts:
    """stepmix, by its models for missing values where there are any."""
    from stepmix.stepmix import StepMix
    from stepmix.utils import get_mixed_descriptor

    arguments = dict(arguments)
    numbers, codes = coded(arguments.pop("data"))
    scale = np.where(np.nanstd(numbers, axis=0) > 0, np.nanstd(numbers, axis=0), 1.0)
    numbers = (numbers - np.nanmean(numbers, axis=0)) / scale
    codes = np.where(codes < 0, np.nan, codes)
    frame = pd.DataFrame(np.column_stack([numbers, codes]))
    frame.columns = [f"c{i}" for i in frame.columns]
    kinds = {}
    for kind, part, first in (
        ("continuous", numbers, 0),
        ("categorical", codes, numbers.shape[1]),
    ):
        if part.shape[1]:
            kind += "_nan" if np.isnan(part).any() else ""
            names = list(frame.columns[first : first + part.shape[1]])
            kinds[kind] = names
    frame, descriptor = get_mixed_descriptor(frame, **kinds)
    model = StepMix(
        n_components=arguments["n_clusters"],
        measurement=descriptor,
        n_init=arguments.get("n_init", 1),
        random_state=arguments["random_state"],
        progress_bar=0,
    )
    return labelled(lambda: model.fit(frame).predict(frame))


def export_tables(X: None, arguments: Arguments) -> Facts:
    """Write the tables that packages bring along as Parquet files into a folder."""
    from craft_sets import export

    return {"sources": export(arguments["folder"])}


def labelled(fit: Callable[[], np.ndarray]) -> Facts:
    labels, seconds = timed(fit)
    labels = np.asarray(labels)
    return {
        "labels": labels,
        "fit_s": seconds,
        "n_clusters": len(np.unique(labels)),
    }


def coded(path: str) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a table, NaN where missing, and its categories as codes, or -1."""
    frame = pd.read_parquet(path)
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]
    numbers = frame.loc[:, numeric].to_numpy(dtype=float)
    names = [
        name for name, is_number in zip(frame, numeric, strict=True) if not is_number
    ]
    codes = np.empty((len(frame), len(names)), dtype=np.int64)
    for i, name in enumerate(names):
        codes[:, i] = frame[name].astype("category").cat.codes
    return numbers, codes


def plain(path: str) -> np.ndarray:
    """Numbers as they are and codes of categories, as if those were numbers, too."""
    numbers, codes = coded(path)
    numbers = np.where(np.isnan(numbers), np.nanmean(numbers, axis=0), numbers)
    return np.column_stack([numbers, codes]).astype(float)


def standardised(numbers: np.ndarray) -> np.ndarray:
    """Mean 0 and variance 1; missing numbers are at the mean."""
    scale = np.nanstd(numbers, axis=0)
    centred = numbers - np.nanmean(numbers, axis=0)
    return np.nan_to_num(centred / np.where(scale > 0, scale, 1.0))


def one_hot(codes: np.ndarray) -> np.ndarray:
    return (codes[:, None] == np.arange(codes.max() + 1)).astype(float)
