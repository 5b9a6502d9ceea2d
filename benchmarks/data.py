"""Data sets of the benchmarks, written once a run as .npy files for the workers."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kplus.datasets import (
    make_binary_features,
    make_edge_patches,
    make_gaussian_blobs,
    make_grid_clusters,
)
from runner import REPOSITORY


class DataMissing(RuntimeError):
    """A data set that is not part of the project is not on this machine."""


class Store:
    """Keeps arrays as .npy files in a folder; makes each on first use."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, name: str, make: Callable[[], np.ndarray]) -> Path:
        path = self.folder / f"{name}.npy"
        if not path.exists():
            np.save(path, np.ascontiguousarray(make()))
        return path

    def blobs(self, n_samples: int, n_features: int, n_clusters: int) -> Path:
        def make() -> np.ndarray:
            return make_gaussian_blobs(
                n_samples, n_features, n_clusters, random_state=0
            )[0]

        return self.path(f"blobs-{n_samples}-{n_features}-{n_clusters}", make)

    def grid(self, n_samples: int, n_clusters: int) -> Path:
        def make() -> np.ndarray:
            return make_grid_clusters(n_samples, n_clusters, random_state=0)[0]

        return self.path(f"grid-{n_samples}-{n_clusters}", make)

    def edge_patches(self, n_samples: int, noise: float) -> Path:
        def make() -> np.ndarray:
            return make_edge_patches(n_samples, random_state=0, noise=noise)[0]

        return self.path(f"edge-{n_samples}-{noise:g}", make)

    def mnist(self, n_samples: int) -> Path:
        return self.path(f"mnist-{n_samples}", lambda: load_mnist()[:n_samples])

    def patches(self, stride: int, side: int = 8) -> Path:
        """Patches of the training pictures, less their mean, in float32."""
        return self.path(
            f"patches-{stride}",
            lambda: np.concatenate(
                [regular_patches(one, stride, side) for one in load_pictures()]
            ),
        )

    def tiny(self, n_samples: int) -> Path:
        return self.path(f"tiny-{n_samples}", lambda: load_tiny()[:n_samples])

    def tabletop(self) -> Path:
        return self.path("tabletop", load_tabletop)

    def dice(self) -> Path:
        return self.path("dice", load_dice)

    def faces(self, centred: bool) -> Path:
        return self.path(f"faces-{centred}", lambda: load_faces(centred))

    def features(self, n_samples: int, n_features: int, n_components: int) -> Path:
        def make() -> np.ndarray:
            return make_binary_features(
                n_samples, n_features, n_components, random_state=0
            )[0]

        return self.path(f"features-{n_samples}-{n_features}-{n_components}", make)

    def large_map(self, n_samples: int, n_features: int = 20) -> Path:
        path = self.folder / f"map-{n_samples}-{n_features}.npy"
        if not path.exists():
            write_large_map(path, n_samples, n_features)
        return path


def shared_data(name: str) -> Path:
    """Path of a data file kept beside the project, which is too large to bundle."""
    default = REPOSITORY.parent / "shared" / "data"
    path = Path(os.environ.get("KPLUS_SHARED_DATA", default)) / name
    if not path.exists():
        raise DataMissing(f"{name} not found; set KPLUS_SHARED_DATA to its folder")
    return path


def load_mnist() -> np.ndarray:
    """The 60,000 training digits: pixels / 255, centred, on 50 principal axes."""
    with np.load(shared_data("mnist_train.npz"), allow_pickle=False) as file:
        return leading_axes(file["X"].reshape(len(file["X"]), -1) / 255.0)


def leading_axes(pixels: np.ndarray, n_axes: int = 50) -> np.ndarray:
    """Centred, on the principal axes; `pixels` are overwritten.

    Not whitened: the scale of the pixels is what penalties and priors refer to.
    """
    pixels -= pixels.mean(axis=0)
    _, axes = np.linalg.eigh(pixels.T @ pixels)
    return np.asarray(pixels @ axes[:, ::-1][:, :n_axes])


def load_digits(n_samples: int) -> np.ndarray:
    """Which digit each of the first rows of `load_mnist` shows."""
    with np.load(shared_data("mnist_train.npz"), allow_pickle=False) as file:
        return np.asarray(file["y"][:n_samples], np.int64)


def load_pictures() -> np.ndarray:
    """The 200 training pictures of BSDS in grey, 321 × 481 bytes each."""
    parts = ("bsds_train_part1of2.npz", "bsds_train_part2of2.npz")
    return np.concatenate([np.load(shared_data(part))["X"] for part in parts])


def load_test_pictures() -> np.ndarray:
    """30 of the test pictures of BSDS, as `load_pictures` has those for training."""
    return np.asarray(np.load(shared_data("bsds_test30.npz"))["X"])


def regular_patches(picture: np.ndarray, stride: int, side: int) -> np.ndarray:
    """Every patch at rows and columns 0, stride, ..., pixels / 255, less its mean."""
    windows = np.lib.stride_tricks.sliding_window_view(picture, (side, side))
    rows = windows[::stride, ::stride].reshape(-1, side * side) / np.float32(255)
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


def load_tiny() -> np.ndarray:
    """2,500 small pictures in colour: pixels / 255, centred, on 50 principal axes."""
    with np.load(shared_data("cifar10_subset2500.npz"), allow_pickle=False) as file:
        return leading_axes(file["X"].reshape(len(file["X"]), -1) / 255.0)


def load_kinds(n_samples: int) -> np.ndarray:
    """Which of ten kinds of things each of the first pictures of `load_tiny` shows."""
    with np.load(shared_data("cifar10_subset2500.npz"), allow_pickle=False) as file:
        return np.asarray(file["y"][:n_samples], np.int64)


def load_tabletop() -> np.ndarray:
    """The 100 pictures of four objects on a table, on 100 principal axes."""
    with np.load(shared_data("tabletop.npz"), allow_pickle=False) as file:
        return _principal_axes(file["X"])[0]


def load_objects() -> np.ndarray:
    """Which of the four objects each picture of `load_tabletop` shows."""
    with np.load(shared_data("tabletop.npz"), allow_pickle=False) as file:
        return np.asarray(file["Z_derived"], np.float64)


def load_faces(centred: bool) -> np.ndarray:
    """The 400 Olivetti faces, on 100 principal axes; without their mean, or with it.

    With it there is one more column, for what of the mean lies off these axes.
    """
    with np.load(shared_data("olivetti.npz"), allow_pickle=False) as file:
        X, mean = _principal_axes(file["X"])
    return X if centred else np.column_stack([X, np.zeros(len(X))]) + mean


def load_dice() -> np.ndarray:
    """The 100 simulated pictures of 14 × 14 pixels, black or white; not centred."""
    with np.load(shared_data("dice_simulated.npz"), allow_pickle=False) as file:
        return np.asarray(file["X"].reshape(len(file["X"]), -1) / 255.0)


def _principal_axes(
    pictures: np.ndarray, n_axes: int = 100
) -> tuple[np.ndarray, np.ndarray]:
    """Pixels / 255, divided by √(N−1) as the paper's authors do, centred.

    Also the mean that was taken away: along the axes, and its length off them.
    """
    X = pictures.reshape(len(pictures), -1) / (255.0 * np.sqrt(len(pictures) - 1))
    mean = X.mean(axis=0)
    X -= mean
    values, vectors = np.linalg.eigh(X @ X.T)
    vectors = vectors[:, ::-1][:, :n_axes]
    lengths = np.sqrt(np.maximum(values[::-1][:n_axes], 1e-300))
    along = (X @ mean) @ vectors / lengths
    off = np.sqrt(max(mean @ mean - along @ along, 0.0))
    return vectors * lengths, np.append(along, off)


def edge_truth(n_samples: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """True components of `Store.edge_patches`, and the likeliest of each row."""
    X, y, covariances = make_edge_patches(
        n_samples, random_state=0, noise=noise, return_covariances=True
    )
    scores = np.empty((len(X), len(covariances)))
    for k, covariance in enumerate(covariances):
        factor = np.linalg.cholesky(covariance)
        whitened = np.linalg.solve(factor, X.T)
        log_det = 2 * np.log(np.diag(factor)).sum()
        scores[:, k] = -0.5 * ((whitened**2).sum(axis=0) + log_det)
    return y, scores.argmax(axis=1)


def write_large_map(path: Path, n_samples: int, n_features: int) -> None:
    """Thirty clusters of unit variance as a float32 .npy file, written in blocks."""
    rng = np.random.default_rng(0)
    centers = 5 * rng.standard_normal((30, n_features), dtype=np.float32)
    X = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float32, shape=(n_samples, n_features)
    )
    for start in range(0, n_samples, 500_000):
        block = X[start : start + 500_000]
        block[:] = rng.standard_normal(block.shape, dtype=np.float32)
        block += centers[rng.integers(30, size=len(block))]
    X.flush()
