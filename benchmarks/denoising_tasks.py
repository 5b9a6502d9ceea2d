"""What the workers of ``denoising.py`` run."""

import logging
import time
import warnings
from typing import Any

import numpy as np

Arguments = dict[str, Any]
Facts = dict[str, Any]


class Passes(logging.Handler):
    """Notes number of components, bound and CPU seconds after each pass of a fit."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.begun = time.process_time()
        self.components: list[int] = []
        self.bounds: list[float] = []
        self.seconds: list[float] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno != logging.DEBUG or not isinstance(record.args, tuple):
            return  # the report at the end of a fit
        _, _, K, *_, bound = record.args
        self.components.append(int(str(K)))
        self.bounds.append(float(str(bound)))
        self.seconds.append(time.process_time() - self.begun)


def fit_patches(X: None, arguments: Arguments) -> Facts:
    """Fit a mixture to a file of patches; it is stored where ``model`` says, if so."""
    from kplus import DPMixture
    from kplus.observations import ZeroMeanGaussian

    arguments = dict(arguments)
    path, model = arguments.pop("path"), arguments.pop("model", None)
    prior = ZeroMeanGaussian(**arguments.pop("prior", {}))
    mixture = DPMixture(prior, n_clusters=None, **arguments)
    log, passes = logging.getLogger("kplus"), Passes()
    level = log.level
    log.addHandler(passes)
    log.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # passes are few on purpose
            mixture.fit(path)
    finally:
        log.removeHandler(passes)
        log.setLevel(level)
    if model is not None:
        np.savez(
            model,
            weights=mixture.weights_,
            covariances=mixture.covariances_,
            seconds=passes.seconds,
        )
    return {
        "n_components": int(mixture.n_components_),
        "bound": float(mixture.lower_bound_),
        "n_iter": int(mixture.n_iter_),
        "components": passes.components,
        "history": passes.bounds,
        "seconds": passes.seconds,
    }


def split_patches(X: None, arguments: Arguments) -> Facts:
    """Kurihara's splits on a file of patches, with the same prior."""
    from baselines import NormalWishart, kd_mixture

    rows = np.load(arguments["path"]).astype(np.float64)
    D = rows.shape[1]
    prior = NormalWishart(
        np.zeros(D), np.inf, D + 2.0, arguments["covariance"] * np.eye(D)
    )
    found = kd_mixture(rows, prior, **arguments["settings"])
    return {
        "n_components": found.n_components,
        "bound": found.bound,
        "history": found.history,
    }


def denoise_pictures(X: np.ndarray, arguments: Arguments) -> Facts:
    """Restore noisy pictures with a stored mixture; decibels and seconds of each."""
    from epll import PatchPrior, denoise, psnr

    with np.load(arguments["model"]) as file:
        prior = PatchPrior.of(file["weights"], file["covariances"])
    sigma = arguments["sigma"] / 255.0
    decibels, noisy_decibels, seconds = [], [], []
    for i, picture in enumerate(X):
        clean = picture / 255.0
        noise = np.random.default_rng(i).standard_normal(clean.shape)
        noisy = clean + sigma * noise
        begun = time.process_time()
        restored = denoise(noisy, prior, sigma)
        seconds.append(time.process_time() - begun)
        decibels.append(psnr(restored, clean))
        noisy_decibels.append(psnr(noisy, clean))
    return {"psnr": decibels, "noisy": noisy_decibels, "seconds": seconds}
