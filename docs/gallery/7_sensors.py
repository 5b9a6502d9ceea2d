"""
A stream of sensor readings: states that come and go
====================================================

A machine sends its temperature and vibration all day. It idles, it works, and one
afternoon a bearing fails. ``partial_fit`` takes the readings batch by batch and keeps
sums only, never rows. A new state opens a new component when it comes, and readings
that fit nothing seen so far have a low score.
"""

# %%
# 80 batches of 100 readings. The third state begins in the 56th.

import matplotlib.pyplot as plt
import numpy as np

from kplus import DPMixture

rng = np.random.default_rng(0)
states = {  # mean temperature, mean vibration, their spreads and correlation
    "idle": ((40, 0.2), (1.5, 0.04), 0.0),
    "working": ((65, 1.0), (3.0, 0.15), 0.7),
    "failing": ((80, 2.2), (2.0, 0.30), 0.3),
}


def readings(state, n):
    mean, (a, b), r = states[state]
    return rng.multivariate_normal(mean, [[a * a, r * a * b], [r * a * b, b * b]], n)


batches = [
    np.concatenate(
        [readings("idle", 30), readings("working", 70)]
        if number < 56
        else [readings("idle", 30), readings("working", 55), readings("failing", 15)]
    )
    for number in range(80)
]

# %%
# Before a batch is learned from, its readings are scored: the log density under all
# that came before. What is below nearly everything seen so far is an alarm.

model = DPMixture(random_state=0).partial_fit(batches[0])
n_states, strange = [model.n_clusters_], [0]
limit = np.quantile(model.score_samples(batches[0]), 0.01) - 5
for batch in batches[1:]:
    strange.append((model.score_samples(batch) < limit).sum())
    model.partial_fit(batch)
    n_states.append(model.n_clusters_)
print(f"first alarm in batch {np.flatnonzero(np.array(strange) > 5)[0]}")
print(f"{n_states[-1]} states, of {model.weights_.round(2)} of the readings")

# %%
# In the batch in which the bearing fails its readings stand out; from the next one on
# they are a state of their own, and known.

fig, (above, below) = plt.subplots(
    2, 1, sharex=True, figsize=(8, 3.6), layout="constrained"
)
above.bar(range(80), strange, width=1.0)
above.set_ylabel("strange readings")
below.step(range(80), n_states, where="mid")
below.set(xlabel="batch", ylabel="states", yticks=[1, 2, 3])
plt.show()

# %%
# The states as the model sees them:

for mean, spread, share in zip(
    model.means_, model.covariances_, model.weights_, strict=True
):
    print(
        f"{share:4.0%} of readings: {mean[0]:.1f} ± {np.sqrt(spread[0, 0]):.1f} °C, "
        f"vibration {mean[1]:.2f} ± {np.sqrt(spread[1, 1]):.2f}"
    )

# %%
# Where the states themselves drift, ``DPMeans(half_life=...)`` lets earlier rows fade:
# see :doc:`/guide/dp-means`. ``CRAFT``, ``BPMeans`` and ``KFeatures`` have
# ``partial_fit``, too.
