"""A fit that crashes after some passes, is resumed, and ends where it would have."""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kplus import DPMixture
from kplus.datasets import make_gaussian_blobs
from kplus.io import checkpoint

checkpoint.SECONDS = 0  # after every pass: this fit takes no ten seconds


class PowerCut:
    """A callback that ends the program, so to speak, after the sixth pass."""

    def __init__(self):
        self.bounds = []

    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.bounds.append(fitted_estimator.lower_bound_)
        if len(self.bounds) == 6:
            raise RuntimeError("the lights are out")


folder = Path(tempfile.mkdtemp())
np.save(folder / "rows.npy", make_gaussian_blobs(3000, 2, 12, random_state=1)[0])

whole = DPMixture(random_state=0).fit(folder / "rows.npy")
cut = PowerCut()
try:
    DPMixture(random_state=0).set_callbacks(cut).fit(
        folder / "rows.npy", checkpoint=folder / "progress"
    )
except RuntimeError:
    pass
resumed = DPMixture.resume(folder / "progress", folder / "rows.npy")
assert (resumed.labels_ == whole.labels_).all()

passes = np.arange(1, resumed.n_iter_ + 1)
_, ax = plt.subplots()
ax.plot(passes, whole.lower_bound_history_, color="0.7", lw=5, label="never interrupted")
ax.plot(passes[:6], cut.bounds, "o", label="before the crash")
ax.plot(passes[6:], resumed.lower_bound_history_[6:], "s", label="resumed")
ax.set(xlabel="pass", ylabel="lower bound")
ax.legend()
