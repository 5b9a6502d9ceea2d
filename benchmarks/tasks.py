"""What the workers run: one function per library and kind of fit.

Each takes the data and a dict of arguments and returns a dict of plain numbers, with
the array of labels under ``labels`` where there is one. Libraries are imported inside,
for no environment has them all.
"""

import time
import warnings
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


def kplus_dp_mixture(X: np.ndarray, arguments: Arguments) -> Facts:
    """Fit a mixture; ``observations`` holds the name of a class and its settings.

    ``merged_in`` lists the pass of each merge.
    """
    from kplus import DPMixture

    arguments = dict(arguments)
    if "observations" in arguments:
        arguments["observations"] = _likelihood(arguments["observations"])
    if "moves" in arguments:
        arguments["moves"] = tuple(arguments["moves"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = DPMixture(**arguments).fit(X)
    accepted = model.moves_[model.moves_["accepted"]]
    return {
        "labels": model.labels_,
        "n_components": int(model.n_components_),
        "bound": float(model.lower_bound_),
        "history": model.lower_bound_history_.tolist(),
        "n_iter": int(model.n_iter_),
        "merged_in": accepted["pass"][accepted["kind"] == "merge"].tolist(),
        "warnings": [str(warning.message) for warning in caught],
    }


def split_mixture(X: np.ndarray, arguments: Arguments) -> Facts:
    """Kurihara's splits, with a prior that is given, or else learned by a fit of ours.

    The bound with a learned prior has its hyperprior, as that of the fit.
    """
    from baselines import NormalWishart, kd_mixture

    arguments = dict(arguments)
    given, seed = arguments.pop("prior"), arguments.pop("random_state")
    if given is None:
        from kplus import DPMixture

        learn = {"concentration": 1.0, "n_clusters": None, "random_state": seed}
        family = DPMixture("gaussian", **learn).fit(X).observations_
        rows = (X - family.origin) * family.inv
        centre = np.broadcast_to(family.mean, rows.shape[1])
        strength, dof, scatter = family.mean_strength, family.dof, family.scatter
        rest = len(X) * np.log(family.inv).sum() + family.log_hyperprior
    else:
        D, rows, rest, centre = X.shape[1], X, 0.0, X.mean(axis=0)
        strength, dof, scatter = given["mean_strength"], D + 2.0, np.eye(D)
        scatter *= given["covariance"]
    found = kd_mixture(rows, NormalWishart(centre, strength, dof, scatter), **arguments)
    return {
        "labels": found.labels,
        "n_components": found.n_components,
        "bound": float(found.bound + rest),
        "history": [float(bound + rest) for _, bound in found.history],
        "n_iter": len(found.history),
    }


def kplus_small_mixture(X: None, arguments: Arguments) -> Facts:
    """Fit a small data set by its name, with default settings."""
    from sklearn.metrics import adjusted_rand_score

    rows, classes = _small_data(arguments["name"])
    facts = kplus_dp_mixture(rows, {"random_state": 0})
    return facts | {
        "n_rows": rows.shape[0],
        "n_columns": rows.shape[1],
        "n_classes": int(classes.max()) + 1,
        "ari": float(adjusted_rand_score(classes, facts["labels"])),
    }


def _small_data(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_iris

    from kplus.datasets import load_banknote, load_wine

    if name == "two groups":
        # Like the eruptions of Old Faithful: 272 rows, two groups, two columns.
        rng = np.random.default_rng(0)
        classes = np.repeat([0, 1], [97, 175])
        means = np.array([[2.0, 54.0], [4.3, 80.0]])[classes]
        z = rng.standard_normal((272, 2))
        z[:, 1] = 0.5 * z[:, 0] + 0.85 * z[:, 1]
        return means + z * [0.35, 5.9], classes
    found = {"iris": load_iris, "wine": load_wine, "banknote": load_banknote}[name]()
    return found.data, found.target


def kplus_greedy_merges(X: np.ndarray, arguments: Arguments) -> Facts:
    """Merges that are judged on the current batch."""
    import ablations

    likelihood = _likelihood(arguments["observations"])
    components, bounds = ablations.run_greedy(X, likelihood, arguments)
    return {"components": components, "history": bounds}


def kplus_births(X: np.ndarray, arguments: Arguments) -> Facts:
    """A fit from one component with unusual settings of births."""
    import ablations

    likelihood = _likelihood(arguments["observations"])
    fit = ablations.run_births(X, likelihood, arguments)
    return {
        "labels": fit.labels,
        "n_components": int(fit.params.K),
        "bound": float(fit.history[-1]),
        "history": fit.history.tolist(),
        "n_iter": len(fit.history),
    }


def _likelihood(settings: Arguments) -> Any:
    from kplus import observations

    settings = dict(settings)
    return getattr(observations, settings.pop("kind"))(**settings)


def sklearn_bayesian_mixture(X: np.ndarray, arguments: Arguments) -> Facts:
    """Full covariances from random responsibilities, so many iterations exactly."""
    from sklearn.mixture import BayesianGaussianMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it did not converge: it was not meant to
        model = BayesianGaussianMixture(
            weight_concentration_prior_type="dirichlet_process",
            covariance_type="full",
            init_params="random",
            tol=0.0,
            **arguments,
        ).fit(X)
    return {"n_iter": int(model.n_iter_)}


def kplus_features(X: np.ndarray, arguments: Arguments) -> Facts:
    """Fit the class that ``kind`` names; only the fit is part of ``fit_s``.

    ``labels`` is Z.
    """
    import kplus
    from feature_fits import has_base

    arguments = dict(arguments)
    model = getattr(kplus, arguments.pop("kind"))(**arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no feature pays, as it may be meant to
        started = time.process_time()
        model.fit(X)
        seconds = time.process_time() - started
    Z = model.transform(X)
    return {
        "labels": Z.astype(np.uint8),
        "fit_s": seconds,
        "n_components": int(model.n_components_),
        "objective": float(model.objective_),
        "error": float(model.reconstruction_err_**2),
        "base": has_base(Z),
        "n_iter": int(model.n_iter_),
    }


def kplus_made_features(X: None, arguments: Arguments) -> Facts:
    """Fit features to data made on the spot; ``data`` says how to make them."""
    from feature_fits import agreement
    from kplus.datasets import make_binary_features

    arguments, seed = dict(arguments), arguments["random_state"]
    rows, truth, _ = make_binary_features(**arguments.pop("data"), random_state=seed)
    facts = kplus_features(rows, arguments)
    return facts | {"agreement": agreement(facts.pop("labels"), truth)}


def kplus_feature_passes(X: np.ndarray, arguments: Arguments) -> Facts:
    """Seconds of fits of so many passes, and of the bare product X Aᵀ.

    The first fit of few passes is not timed: it loads what is compiled, and pages.
    """
    arguments = dict(arguments)
    few, many = arguments.pop("passes")
    repeats = arguments.pop("repeats")
    seconds: dict[str, list[float]] = {str(few): [], str(many): [], "product": []}
    made = {}
    kplus_features(X[:5000], arguments | {"max_iter": few})
    for _ in range(repeats):
        for n in (few, many):
            facts = kplus_features(X, arguments | {"max_iter": n})
            seconds[str(n)].append(facts["fit_s"])
            made[str(n)] = facts["n_iter"]
        A = np.random.default_rng(0).standard_normal(
            (facts["n_components"], X.shape[1])
        )
        started = time.process_time()
        X @ A.T
        seconds["product"].append(time.process_time() - started)
    passes = made[str(many)] - made[str(few)]
    if passes == 0:
        raise ValueError(f"The fits converged in {few} passes: no slope to take.")
    saved = min(seconds[str(many)]) - min(seconds[str(few)])
    return {
        "product_s": min(seconds["product"]),
        "pass_s": saved / passes,
        "fit_s": min(seconds[str(many)]),
    }


def do_nothing(X: np.ndarray | None, arguments: Arguments) -> Facts:
    """Cost nothing: what remains is the runner's own share."""
    return {"rows": 0 if X is None else len(X), **arguments}
