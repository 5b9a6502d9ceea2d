"""Reports of a fit's passes: `verbose` lines and scikit-learn callbacks."""

import logging
import math
import sys
import time
from collections.abc import Callable
from typing import Any, ClassVar

from kplus.base.interrupt import Interrupt
from kplus.core.types import PassInfo
from kplus.engine.memory import resident_bytes
from kplus.engine.meter import Meter

__all__ = ["PassReporter", "Watch"]

_LOG = logging.getLogger("kplus")

_LOOK_SECONDS = 0.05


class SparingMeter(Meter):
    """A meter for batches of streams: looks at memory would cost more than some take.

    A look serves all batches of the moments after it.
    """

    looked: ClassVar[tuple[float, int]] = (-math.inf, 0)  # when, and what was seen

    def look(self) -> None:
        now = time.monotonic()
        when, seen = SparingMeter.looked
        if now - when >= _LOOK_SECONDS:
            seen = resident_bytes()
            SparingMeter.looked = now, seen
        self.peak = max(self.peak, seen)


class Watch:
    """Who watches a batch of a stream: the log, the report, and Ctrl-C.

    Parameters
    ----------
    estimator : Estimator
        Its `_measure` and `_groups` are what lines call the objective and the groups.
    """

    journal: Any = None

    def __init__(self, estimator: Any, meter: Meter | None = None) -> None:
        self.estimator = estimator
        self.interrupt = Interrupt()
        self.meter = SparingMeter() if meter is None else meter
        self._begun = time.monotonic()

    def __call__(self, info: PassInfo) -> bool:
        """Report a pass; True, for a callback wants so or by Ctrl-C, ends the fit."""
        stop = self._tell(info)
        return stop or self.interrupt.asked

    def _tell(self, info: PassInfo) -> bool:
        estimator = self.estimator
        _LOG.debug(
            "%s: pass %d, %d %s, %s %.10g",
            type(estimator).__name__,
            info.iteration,
            info.params.K,
            estimator._groups,
            estimator._measure,
            info.objective,
        )
        return False

    def seconds(self) -> float:
        """Since the fit began."""
        return time.monotonic() - self._begun


class PassReporter(Watch):
    """The one adapter between the loop of a fit and those who watch it.

    Parameters
    ----------
    estimator : Estimator
        Where `_n_passes` tells how many passes there will be, lines tell the time left,
        and so can callbacks.
    fitted : callable
        From a pass, the attributes that make a fitted estimator, for callbacks that
        ask for one.
    journal : Journal or None
        Where searches write down how far they are.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        fitted: Callable[[PassInfo], dict[str, Any]],
        journal: Any = None,
    ) -> None:
        super().__init__(estimator, Meter())
        self.X, self.fitted = X, fitted
        self.journal = journal
        self.passes = estimator._n_passes
        self.context = estimator._init_callback_context(max_subtasks=self.passes)
        self.context.call_on_fit_task_begin(estimator=estimator, X=X)

    def _tell(self, info: PassInfo) -> bool:
        super()._tell(info)
        estimator = self.estimator
        if estimator.verbose:
            print(
                f"[{type(estimator).__name__}] pass {info.iteration}: "
                f"{info.params.K} {estimator._groups}, "
                f"{estimator._measure} {info.objective:.6g}"
                f"{self._time_left(info.iteration)}",
                file=sys.stdout,
            )
        if not hasattr(estimator, "_skl_callbacks"):
            return False
        task = self.context.subcontext(task_name="pass")
        task.call_on_fit_task_begin(estimator=estimator, X=self.X)
        return bool(
            task.call_on_fit_task_end(
                estimator=estimator,
                X=self.X,
                reconstruction_attributes=lambda: self.fitted(info),
            )
        )

    def _time_left(self, done: int) -> str:
        if self.passes is None:
            return ""
        seconds = (time.monotonic() - self._begun) / done * (self.passes - done)
        minutes, seconds = divmod(round(seconds), 60)
        return f", {minutes}:{seconds:02d} left"

    def close(self) -> None:
        self.context.call_on_fit_task_end(estimator=self.estimator, X=self.X)
