"""Files that change while they are used."""

import os

import numpy as np
import pytest

from kplus import DPMeans, DPMixture
from kplus.core.errors import DataError
from kplus.datasets import make_gaussian_blobs

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

X = make_gaussian_blobs(400, 3, 5, random_state=0)[0]


class Meddling:
    """Does something to a file after the second pass."""

    def __init__(self, meddle):
        self.meddle, self.passes = meddle, 0

    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        self.passes += 1
        if self.passes == 2:
            self.meddle()


def touch(path):
    os.utime(path, ns=(1, 1))


def write_npy(folder):
    np.save(folder / "x.npy", X)
    return folder / "x.npy", folder / "x.npy"


def write_parts(folder):
    (folder / "parts").mkdir()
    for i, part in enumerate(np.array_split(X, 3)):
        table = pa.table(dict(zip("abc", part.T.copy(), strict=True)))
        pq.write_table(table, folder / "parts" / f"{i}.parquet")
    return folder / "parts", folder / "parts" / "1.parquet"


@pytest.mark.parametrize("write", [write_npy, write_parts])
@pytest.mark.parametrize("meddle", [touch, os.unlink])
@pytest.mark.parametrize(
    "model",
    [DPMeans(penalty=4.0, batch_size=64), DPMixture(batch_size=64)],
    ids=["DPMeans", "DPMixture"],
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_file_that_changes_is_named(write, meddle, model, n_jobs, tmp_path):
    given, file = write(tmp_path)
    model = type(model)(**model.get_params()).set_params(n_jobs=n_jobs, random_state=0)
    model.set_callbacks(Meddling(lambda: meddle(file)))
    with pytest.raises(DataError, match=rf"{file.name} has changed since"):
        model.fit(given)


def test_other_files_may_change(tmp_path):
    given, _ = write_parts(tmp_path)
    model = DPMeans(penalty=4.0, batch_size=64, random_state=0)
    model.set_callbacks(Meddling(lambda: (given / "readme.txt").touch()))
    model.fit(given)
