"""Digests of what every estimator finds, to show that a rearrangement changed no bit.

    python tools/digests.py before.json            # write them down
    python tools/digests.py after.json before.json # and compare
    python tools/digests.py after.json before.json --only CRAFT  # one class

Every estimator is fitted in several settings to several kinds of input, through the
public names only, so that the same script runs before and after modules have moved.
Digests depend on the processor and on the versions of BLAS and the compiler: compare
those of one machine.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

import kplus

CHAIN = {"n_samples": 8, "burn_in": 8}


def feature_rows(n: int = 600, offset: float = 0.0) -> np.ndarray:
    """Three binary features in six columns, nonnegative."""
    rng = np.random.default_rng(5)
    A = np.array([[5.0, 5, 0, 0, 0, 1], [0, 0, 4, 0, 4, 0], [0, 3, 0, 3, 0, 2]])
    Z = rng.random((n, 3)) < (0.6, 0.45, 0.3)
    return Z @ A + rng.uniform(0.0, 0.4, size=(n, 6)) + offset


def blobs(n: int = 3000, K: int = 8, D: int = 5) -> np.ndarray:
    rng = np.random.default_rng(7)
    return rng.normal(0, 6, (K, D))[rng.integers(0, K, n)] + rng.normal(size=(n, D))


def gaps(X: np.ndarray, share: float = 0.08) -> np.ndarray:
    rng = np.random.default_rng(11)
    return np.where(rng.random(X.shape) < share, np.nan, X)


def mixed_frame(n: int = 900) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    z = rng.integers(0, 4, n)
    age = rng.normal(25.0 + 12.0 * z, 3.0)
    age[rng.random(n) < 0.1] = np.nan
    color = np.array(["red", "green", "blue", "grey"])[(z + (rng.random(n) < 0.1)) % 4]
    size = pd.Categorical(np.array(["S", "M", "L"])[z % 3], ["S", "M", "L"])
    return pd.DataFrame(
        {
            "age": age,
            "color": color,
            "size": size,
            "old": z > 1,
            "visits": rng.poisson(2.0 + 5.0 * z),
            "noise": rng.normal(size=n),
        }
    )


def counts(n: int = 800) -> np.ndarray:
    rng = np.random.default_rng(9)
    rates = rng.gamma(1.0, 6.0, (4, 7))
    return rng.poisson(rates[rng.integers(0, 4, n)]).astype(float)


def estimators() -> Iterator[tuple[str, Any, str]]:
    """Estimators with the kind of input that suits them."""
    k = kplus
    for model in (
        k.DPMeans(),
        k.DPMeans(n_clusters=6),
        k.DPMeans(n_clusters=6, n_init=3),
        k.DPMeans(penalty=60.0),
        k.DPMeans(penalty=60.0, max_clusters=5, n_init=2),
        k.DPMeans(penalty=60.0, algorithm="serial"),
        k.DPMeans(penalty=60.0, collapsed=True),
        k.DPMeans(n_clusters=6, collapsed=True),
        k.DPMeans(penalty=30.0, covariance="full"),
        k.DPMixture(),
        k.DPMixture(n_init=2),
        k.DPMixture("diag_gaussian", concentration="infer"),
        k.DPMixture("spherical_gaussian", max_components=6),
        k.DPMixture("zero_mean_gaussian", max_iter=20),
        k.DPMixture(algorithm="full"),
        k.DPMixture(algorithm="stochastic", n_components=6, moves=()),
        k.DPMixture(k.observations.Gaussian(covariance=0.5), n_active=None),
        k.CRAFT(),
        k.CRAFT(n_clusters=4, feature_fraction=0.5),
    ):
        yield repr(model), model, "blobs"
    for family in ("poisson", "negative_binomial", "multinomial"):
        yield family, k.DPMixture(family), "counts"
    yield "bernoulli", k.DPMixture("bernoulli"), "bits"
    yield "categorical", k.DPMixture("categorical"), "codes"
    for model in (
        k.DPMixture("mixed"),
        k.CRAFT(),
        k.CRAFT(numeric="quantile", sharing=0.3),
        k.CRAFT(numeric="yeo-johnson", n_init=2),
        k.CRAFT(n_clusters=3, variant="paper"),
        k.CRAFT(categorical_features=["visits"], handle_unknown="missing"),
    ):
        yield f"mixed {model!r}", model, "mixed"
    for model in (
        k.BPMeans(),
        k.BPMeans(2.0, init="++"),
        k.BPMeans(2.0, max_components=4, collapsed=True),
        k.KFeatures(),
        k.KFeatures(3, sparse_output=True, n_init=2),
        k.KFeatures(penalty=2.0, assignment="exact", max_components=5),
        k.MEIBP(),
        k.MEIBP(3, init="random", n_init=2),
        k.MEIBP(prior="gaussian"),
        k.MEIBP(maximizer="double_greedy"),
        k.MEIBP(4, sweep="rows", max_iter=10),
        k.IBPVariational(),
        k.IBPVariational(4, process="infinite"),
        k.IBPVariational(3, init="random", n_init=2, max_iter=40),
        k.IBPGibbs(**CHAIN),
        k.IBPGibbs(4, sampler="collapsed", new_features="metropolis", **CHAIN),
        k.IBPGibbs(sampler="uncollapsed", alpha=1.0, noise_scale=0.5, **CHAIN),
        k.IBPGibbs(sampler="uncollapsed", prior="nonnegative", **CHAIN),
    ):
        yield repr(model), model, "features"


def inputs(kind: str, folder: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    """A table in the forms in which people have it, and what to set with it."""
    if kind == "mixed":
        frame = mixed_frame()
        frame.to_parquet(folder / "mixed.parquet")
        frame.to_csv(folder / "mixed.csv", index=False)
        return {
            "frame": (frame, {}),
            "parquet": (folder / "mixed.parquet", {"batch_size": 200}),
            "csv": (folder / "mixed.csv", {}),
        }
    rows = {
        "blobs": blobs(),
        "counts": counts(),
        "bits": (feature_rows() > 2).astype(float),
        "codes": np.round(np.clip(blobs(800, 4, 4), -3, 3)) + 3,
        "features": feature_rows(),
    }[kind]
    np.save(folder / f"{kind}.npy", rows)
    weights = 1.0 + np.arange(len(rows)) % 3
    return {
        "array": (rows, {}),
        "float32, blocks, two threads": (
            rows.astype(np.float32),
            {"batch_size": 250, "n_jobs": 2},
        ),
        "sparse": (sp.csr_array(rows), {}),
        "frame": (pd.DataFrame(rows).add_prefix("c"), {}),
        "npy": (folder / f"{kind}.npy", {"batch_size": 300}),
        "weights": (rows, {"sample_weight": weights}),
        "gaps": (gaps(rows), {}),
        "large offset": (rows + 1e5, {}),
    }


def bits(value: Any) -> bytes:
    """What a value is made of."""
    if isinstance(value, dict):
        return b"".join(
            str(key).encode() + bits(part) for key, part in sorted(value.items())
        )
    if isinstance(value, (tuple, list)):
        return b"(" + b",".join(map(bits, value)) + b")"
    if hasattr(value, "__dataclass_fields__"):
        return bits({name: getattr(value, name) for name in value.__dataclass_fields__})
    if sp.issparse(value):
        value = value.toarray()
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state).encode()
    if isinstance(value, np.ndarray) and value.dtype != object:
        array = np.ascontiguousarray(value)
        return f"{array.dtype}{array.shape}".encode() + array.tobytes()
    if isinstance(value, np.ndarray):
        return bits(value.tolist())
    if isinstance(value, (pd.DataFrame, pd.Series)):
        return value.to_csv().encode()
    return repr(value).encode()


def fitted(model: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and name[0] != "_" and name != "fit_report_"
    }


def said(model: Any, X: Any) -> dict[str, Any]:
    """What a fitted model says of rows, and draws."""
    names = ("predict", "predict_proba", "transform", "score", "score_samples")
    found = {n: getattr(model, n)(X) for n in (*names, "impute") if hasattr(model, n)}
    if hasattr(model, "sample"):
        found["sample"] = model.sample(5)
    if hasattr(model, "describe"):
        found["describe"] = model.describe()
    return found


def digest(work: Callable[[], Any]) -> str:
    """The digest of what some work gives, or of the error that it ends with."""
    try:
        value = bits(work())
    except Exception as error:
        return f"{type(error).__name__}"
    return hashlib.blake2b(value, digest_size=8).hexdigest()


def digests(folder: Path, only: str) -> dict[str, str]:
    from sklearn.base import clone

    found = {}
    for name, model, kind in estimators():
        if only not in ("", type(model).__name__):
            continue
        for form, (X, settings) in inputs(kind, folder).items():
            settings = dict(settings)
            weights = settings.pop("sample_weight", None)
            if not isinstance(model, kplus.IBPGibbs):
                one = clone(model).set_params(random_state=0, **settings)
            else:
                one = clone(model).set_params(random_state=0)
            more = {} if weights is None else {"sample_weight": weights}

            def fit(one: Any = one, X: Any = X, more: Any = more) -> Any:
                return fitted(one.fit(X, **more))

            key = f"{name} | {form}"
            found[key] = digest(fit)
            if hasattr(one, one._result):
                found[f"{key} | answers"] = digest(lambda one=one, X=X: said(one, X))
                path = folder / "model.kplus"

                def again(one: Any = one, X: Any = X, path: Path = path) -> Any:
                    kplus.save(one, path)
                    loaded = kplus.load(path)
                    path.unlink()
                    return fitted(loaded), said(loaded, X)

                found[f"{key} | saved"] = digest(again)
        if hasattr(model, "partial_fit"):
            X = mixed_frame() if kind == "mixed" else inputs(kind, folder)["array"][0]

            def stream(model: Any = model, X: Any = X) -> Any:
                one = clone(model).set_params(random_state=0)
                for start in range(0, 600, 200):
                    one.partial_fit(X[start : start + 200])
                return fitted(one)

            found[f"{name} | stream"] = digest(stream)
    if only:
        return found
    X = blobs()
    found["penalty_path"] = digest(
        lambda: kplus.penalty_path(kplus.DPMeans(random_state=0), X)
    )
    found["penalty_for"] = digest(lambda: kplus.penalty_for(X, 5))
    found.update(command_line(folder))
    return found


def command_line(folder: Path) -> dict[str, str]:
    """Labels and answers that the command line writes."""
    runs = {
        "dp-means": ["mixed.csv", "--columns", "noise,visits"],
        "dp-mixture": ["blobs.npy"],
        "craft": ["mixed.parquet"],
        "k-features": ["features.npy"],
        "meibp": ["features.npy"],
    }
    found = {}
    for model, (data, *options) in runs.items():
        out = folder / f"out-{model}"
        command = [sys.executable, "-m", "kplus.cli", "fit", str(folder / data)]
        command += ["--model", model, *options, "--seed", "0", "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True)
        files = {
            path.name: path.read_bytes()
            for path in sorted(out.glob("*"))
            if path.suffix in (".csv", ".parquet", ".npy")
        }
        found[f"kplus fit --model {model}"] = digest(lambda files=files: files)
        if done.returncode:
            print(f"{model}: {done.stderr[-400:]}", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("after", type=Path)
    parser.add_argument("before", type=Path, nargs="?")
    parser.add_argument("--only", default="", help="a class")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        found = digests(Path(folder), asked.only)
    asked.after.write_text(json.dumps(found, indent=1))
    errors = sum(len(value) != 16 for value in found.values())
    print(f"{len(found)} digests, {errors} of them errors")
    if asked.before is not None:
        before = json.loads(asked.before.read_text())
        keys = found if asked.only else before
        changed = [key for key in keys if found.get(key) != before.get(key)]
        for key in changed:
            print(f"  {key}: {before.get(key)} -> {found.get(key)}")
        print(f"{len(changed)} of {len(keys)} differ")
        sys.exit(bool(changed))


if __name__ == "__main__":
    main()
