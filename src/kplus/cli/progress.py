"""What a fit is doing, for people at a terminal."""

import time
from collections.abc import Callable
from typing import Any

__all__ = ["PassProgress"]


class PassProgress:
    """A scikit-learn callback that gives `show` a line after every pass."""

    def __init__(self, show: Callable[[str], None], doing: str = "Clustering") -> None:
        self._show, self._doing = show, doing
        self._passes, self._begun = 0, time.monotonic()

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing is to be told before a pass has ended."""

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, fitted_estimator: Any = None
    ) -> None:
        if context.parent is None:  # the whole fit, not a pass
            return
        self._passes += 1
        words = [f"{self._doing}: pass {self._passes}", *self._time_left(context)]
        if hasattr(fitted_estimator, "n_clusters_"):
            words.append(f"{fitted_estimator.n_clusters_} clusters")
        elif hasattr(fitted_estimator, "n_components_"):
            words.append(f"{fitted_estimator.n_components_} features")
        if hasattr(fitted_estimator, "objective_"):
            words.append(f"objective {fitted_estimator.objective_:.6g}")
        self._show(", ".join(words))

    def _time_left(self, context: Any) -> list[str]:
        """When the fit will be done, if the number of its passes is known."""
        passes = getattr(context.parent, "max_subtasks", None)
        if passes is None:
            return []
        pace = (time.monotonic() - self._begun) / self._passes
        minutes, seconds = divmod(round(pace * (passes - self._passes)), 60)
        return [f"{minutes}:{seconds:02d} left"]
