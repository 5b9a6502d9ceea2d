"""Pictures made of parts: which parts are seen together."""

import numpy as np

from kplus import MEIBP
from kplus.plots import CombinationDisplay

parts = np.zeros((4, 6, 6))
parts[0, :3, :3] = [[0, 1, 0], [1, 1, 1], [0, 1, 0]]  # a cross
parts[1, :3, 3:] = [[1, 1, 1], [1, 0, 1], [1, 1, 1]]  # a ring
parts[2, 3:, :3] = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]  # stairs
parts[3, 3:, 3:] = [[1, 1, 1], [0, 1, 0], [0, 1, 0]]  # a hammer
rng = np.random.default_rng(0)
has_part = rng.random((400, 4)) < (0.6, 0.5, 0.4, 0.2)
X = has_part @ parts.reshape(4, 36) + rng.normal(0, 0.3, (400, 36))

model = MEIBP(negative="noise", random_state=0).fit(X)
CombinationDisplay.from_estimator(model, X)
