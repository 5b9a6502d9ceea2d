"""Data to try things on: seeded generators and two small real data sets.

- `mixtures`: Gaussian clusters, and a battery of spherical mixtures.
- `patches`: image patches with edges, for full covariances.
- `features`: sums of binary latent features.
- `subspaces`: clusters with features of their own.
- `real`: the bundled data sets.
"""

from kplus.datasets.features import make_binary_features, make_nonnegative_features
from kplus.datasets.mixtures import (
    MixtureCase,
    make_gaussian_blobs,
    make_grid_clusters,
    make_spherical_mixture,
    spherical_battery,
)
from kplus.datasets.patches import make_edge_patches
from kplus.datasets.real import Dataset, csv_path, load_banknote, load_wine
from kplus.datasets.subspaces import make_subspace_clusters

__all__ = [
    "Dataset",
    "MixtureCase",
    "csv_path",
    "load_banknote",
    "load_wine",
    "make_binary_features",
    "make_edge_patches",
    "make_gaussian_blobs",
    "make_grid_clusters",
    "make_nonnegative_features",
    "make_spherical_mixture",
    "make_subspace_clusters",
    "spherical_battery",
]
