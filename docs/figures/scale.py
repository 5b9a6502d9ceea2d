"""A fit that crashes after some passes, is resumed, and ends where it would have."""

import tempfile
from contextlib import suppress
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kplus import DPMixture
from kplus.datasets import make_spherical_mixture
from kplus.persist import checkpoint

checkpoint.SECONDS = 0  # this fit takes no ten seconds


class PowerCut:
    """A callback that ends the program, so to speak, after the sixth pass."""

    left = 6

    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        self.left -= 1
        if not self.left:
            raise RuntimeError("the lights are out")


folder = Path(tempfile.mkdtemp())
X, _ = make_spherical_mixture(3000, 2, 9, separation=6, random_state=1)
np.save(folder / "rows.npy", X)

whole = DPMixture(random_state=0).fit(folder / "rows.npy")
model = DPMixture(random_state=0).set_callbacks(PowerCut())
with suppress(RuntimeError):
    model.fit(folder / "rows.npy", checkpoint=folder / "progress")
resumed = DPMixture.resume(folder / "progress", folder / "rows.npy")
assert (resumed.labels_ == whole.labels_).all()

passes, bounds = np.arange(1, resumed.n_iter_ + 1), resumed.lower_bound_history_
_, ax = plt.subplots()
ax.plot(
    passes, whole.lower_bound_history_, color="0.7", lw=5, label="never interrupted"
)
ax.plot(passes[:6], bounds[:6], "o", label="before the crash")
ax.plot(passes[6:], bounds[6:], "s", label="resumed")
ax.set(xlabel="pass", ylabel="lower bound")
ax.legend()
