"""Small estimators, registered as if they were kplus's, and a zip workbench."""

import json
import sys
import types
import zipfile
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from kplus.core import storable
from kplus.core.errors import ModelFormatError
from kplus.persist import load, save

HOME = "kplus_io_stubs"


@dataclass(frozen=True)
class StubPath:
    penalties: np.ndarray
    names: tuple
    best: float


class StubModel(BaseEstimator):
    """Nearest of some rows; only as much of a clusterer as the files need."""

    def __init__(self, penalty="auto", *, n_clusters=None, extra=None, random_state=0):
        self.penalty = penalty
        self.n_clusters = n_clusters
        self.extra = extra
        self.random_state = random_state

    def fit(self, X, y=None):
        X = np.asarray(X, dtype=float)
        self.cluster_centers_ = np.asfortranarray(X[: self.n_clusters or 2])
        self.n_clusters_ = len(self.cluster_centers_)
        self.n_features_in_ = X.shape[1]
        names = [f"größe {i}" for i in range(X.shape[1])]
        self.feature_names_in_ = np.array(names, dtype=object)
        self.labels_ = self.predict(X)
        self.objective_ = np.float32(0.1)
        self.penalty_ = np.inf
        self.path_ = StubPath(np.array([3.0, 1.0]), ("a", None), np.nan)
        return self

    def predict(self, X):
        scores = np.asarray(X, dtype=float) @ self.cluster_centers_.T
        return scores.argmax(axis=1).astype(np.int32)


class StubStream(StubModel):
    """Keeps private state, and checks it when it comes back."""

    def fit(self, X, y=None):
        super().fit(X)
        self._sums = {"größe/..": np.arange(3.0)}
        self._n_seen = len(self.labels_)
        return self

    def _to_state(self):
        return {"sums": self._sums, "n_seen": self._n_seen}

    def _from_state(self, state):
        if len(self.labels_) != state["n_seen"]:
            raise ValueError("labels and n_seen disagree")
        self._sums = state["sums"]
        self._n_seen = state["n_seen"]


@pytest.fixture(scope="session", autouse=True)
def stubs():
    """A module of stub classes that the tables of storable classes point to."""
    module = types.ModuleType(HOME)
    for cls in (StubModel, StubStream, StubPath):
        setattr(module, cls.__name__, cls)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, HOME, module)
        patch.setitem(storable.ESTIMATORS, "StubModel", HOME)
        patch.setitem(storable.ESTIMATORS, "StubStream", HOME)
        patch.setitem(storable.RECORDS, "StubPath", HOME)
        yield module


@pytest.fixture
def data():
    return np.random.default_rng(0).normal(size=(6, 3))


@pytest.fixture
def model(data):
    return StubModel(n_clusters=3, extra=np.arange(4)).fit(data)


@pytest.fixture
def saved(model, tmp_path):
    path = tmp_path / "model.npz"
    save(model, path)
    return path


class Workbench:
    """Takes a model file apart and puts another together."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            self.members = {n: archive.read(n) for n in archive.namelist()}
        self.manifest = json.loads(self.members.pop("manifest.json"))

    def pack(self, path, *, text=None, compression=zipfile.ZIP_STORED):
        text = json.dumps(self.manifest) if text is None else text
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, content in self.members.items():
                archive.writestr(zipfile.ZipInfo(name), content, compression)
            archive.writestr(zipfile.ZipInfo("manifest.json"), text, compression)
        return path


@pytest.fixture
def take_apart():
    return Workbench


@pytest.fixture
def bench(saved):
    return Workbench(saved)


@pytest.fixture
def refuse():
    """Checks that a file is refused, in words that match and name the file."""

    def check(path, message):
        with pytest.raises(ModelFormatError, match=message) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}: ")

    return check


@pytest.fixture
def forge(tmp_path):
    """Makes a model file whose manifest was changed after it was written."""

    def make(model, change):
        path = tmp_path / "forged.npz"
        save(model, path)
        bench = Workbench(path)
        change(bench.manifest)
        return bench.pack(path)

    return make
