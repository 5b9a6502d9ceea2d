"""Fits that pass over blocks again and again, of all estimators that do."""

from kplus import (
    CRAFT,
    MEIBP,
    BPMeans,
    DPMeans,
    DPMixture,
    IBPVariational,
    KFeatures,
)
from kplus.datasets import make_binary_features, make_gaussian_blobs


def blobs(D=3):
    return make_gaussian_blobs(400, D, 5, random_state=0)[0]


def features():
    return make_binary_features(500, 8, 4, noise=1.0, random_state=0)[0]


FITS = {
    "DPMeans": (lambda: DPMeans(penalty=4.0, batch_size=64), blobs),
    "DPMeans, number": (lambda: DPMeans(n_clusters=5, batch_size=64), blobs),
    "DPMeans, serial": (
        lambda: DPMeans(penalty=4.0, algorithm="serial", batch_size=64),
        blobs,
    ),
    "DPMeans, collapsed": (
        lambda: DPMeans(penalty=4.0, collapsed=True, batch_size=64),
        blobs,
    ),
    "DPMeans, full": (
        lambda: DPMeans(penalty=30.0, covariance="full", batch_size=64),
        blobs,
    ),
    "DPMixture": (lambda: DPMixture(n_init=1, batch_size=64), blobs),
    "DPMixture, seeds": (
        lambda: DPMixture(n_components=12, moves=("merge", "delete"), batch_size=64),
        blobs,
    ),
    "BPMeans": (lambda: BPMeans(batch_size=64), features),
    "KFeatures": (lambda: KFeatures(n_components=4, batch_size=64), features),
    "CRAFT": (lambda: CRAFT(n_clusters=4, batch_size=64), features),
    "MEIBP": (lambda: MEIBP(negative="shift", batch_size=64), features),
    "IBPVariational": (
        lambda: IBPVariational(max_components=4, max_iter=9, batch_size=64),
        features,
    ),
}
