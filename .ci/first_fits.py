"""Fit every estimator once in this process; fail if kernels are not compiled."""

import time
import warnings

import numpy as np

import kplus
from kplus.core.compiled import level

NAMES = "DPMeans DPMixture CRAFT BPMeans KFeatures MEIBP IBPVariational IBPGibbs"


def main() -> None:
    assert level() in ("avx2", "baseline"), f"kernels are {level()}"
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(150, 4)) + 6.0 * rng.integers(0, 3, (150, 1)))
    warnings.simplefilter("ignore")  # of chains that are short
    for name in NAMES.split():
        estimator = getattr(kplus, name)
        few = {"n_samples": 5, "burn_in": 5} if name == "IBPGibbs" else {}
        start = time.perf_counter()
        estimator(**few).fit(X)
        print(f"    {name}: first fit in {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
