"""What the workers run: one function per library and kind of fit.

Each takes the data and a dict of arguments and returns a dict of plain numbers, with
the array of labels under ``labels`` where there is one. Libraries are imported inside,
for no environment has them all.
"""

from typing import Any

import numpy as np

Arguments = dict[str, Any]
Facts = dict[str, Any]


def kplus_dp_means(X: np.ndarray, arguments: Arguments) -> Facts:
    from kplus import DPMeans

    model = DPMeans(**arguments).fit(X)
    return {
        "labels": model.labels_,
        "n_clusters": int(model.n_clusters_),
        "reported": float(model.objective_),
        "n_iter": int(model.n_iter_),
    }


def kplus_automatic_k(X: None, arguments: Arguments) -> Facts:
    """Fit the case of the battery that the arguments describe, without a penalty."""
    from kplus import DPMeans
    from kplus.datasets import MixtureCase

    rows, _ = MixtureCase(**arguments).make()
    model = DPMeans(random_state=arguments["seed"]).fit(rows)
    return {"n_clusters": int(model.n_clusters_)}


def sklearn_k_means(X: np.ndarray, arguments: Arguments) -> Facts:
    from sklearn.cluster import KMeans

    model = KMeans(n_init=1, **arguments).fit(X)
    return {
        "labels": model.labels_,
        "n_clusters": len(model.cluster_centers_),
        "reported": float(model.inertia_),
        "n_iter": int(model.n_iter_),
    }


def pdc_dp_means(X: np.ndarray, arguments: Arguments) -> Facts:
    """Fit pdc-dp-means from one cluster; its ``delta`` is λ², a squared distance.

    It opens one cluster a pass, so its limit of 300 passes would also limit K.
    """
    from pdc_dp_means import DPMeans

    model = DPMeans(
        n_clusters=1,
        n_init=1,
        max_iter=3000,
        delta=arguments["penalty"],
        random_state=arguments["random_state"],
    ).fit(X)
    return {
        "labels": model.labels_,
        "n_clusters": len(model.cluster_centers_),
        "reported": float(model.inertia_),
        "n_iter": int(model.n_iter_),
    }


def do_nothing(X: np.ndarray | None, arguments: Arguments) -> Facts:
    """Cost nothing: what remains is the runner's own share."""
    return {"rows": 0 if X is None else len(X), **arguments}
