"""Progress of a fit: Ctrl-C, lines and callbacks after passes, and `fit_report_`.

Callbacks, which are those of scikit-learn, are told more by their ``metadata``: when a
fit begins its "reporter", and after each pass the "report" of it. `ProgressBar` shows
these, and so does the command line.
"""

import logging
import math
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from kplus.core.types import Blocks, PassInfo
from kplus.engine.meter import Meter, resident_bytes

__all__ = [
    "FitReport",
    "Interrupt",
    "PassReport",
    "PassReporter",
    "Watch",
    "clock",
    "report_of",
]


class Interrupt:
    """Catches the first Ctrl-C while a fit runs.

    Attributes
    ----------
    requested : bool
        Whether there was one: the fit ends after the pass.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: Any = None

    def __enter__(self) -> Self:
        ours = threading.current_thread() is threading.main_thread()
        # Who has a handler of their own knows what they want.
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, signum: int, frame: Any) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        print(
            "Stopping after this pass with the best so far; Ctrl-C again: at once.",
            file=sys.stderr,
            flush=True,
        )


@dataclass(frozen=True)
class FitReport:
    """What a fit took; in a stream, its latest batch.

    Attributes
    ----------
    n_rows, n_columns : int
    n_passes : int
        Passes over all rows.
    seconds : float
        From the first look at the data to the end.
    pass_seconds : float
        Of these, passes over all rows; the rest is the search on samples.
    rows_per_second : float
        Visits of rows in a second of these passes.
    read_share : float
        Share of the passes' time that went to reading and decoding rows. Mapped files
        are read where they are used, which counts as computing.
    peak_memory : int
        Bytes that the process had at most, after a part of a pass, without mapped
        files.
    n_workers : int
        Threads that worked at once, of this process or of a cluster.
    checkpoint_seconds : float
        Time to write checkpoints.
    groups : tuple of int
        How many groups there were in each pass, components where clusters are made of
        these; () where passes of several starts, or of an earlier process, count.
    """

    n_rows: int
    n_columns: int
    n_passes: int
    seconds: float
    pass_seconds: float
    rows_per_second: float
    read_share: float
    peak_memory: int
    n_workers: int
    checkpoint_seconds: float = 0.0
    groups: tuple[int, ...] = ()

    def __str__(self) -> str:
        parts = [
            f"{self.n_rows:,} rows, {self.n_columns:,} columns: {self.n_passes} passes "
            f"in {self.seconds:.3g} s",
            f"{self.rows_per_second:,.0f} rows per second, {self.read_share:.0%} of it "
            f"reading",
            f"at most {self.peak_memory / 1e6:,.0f} MB",
        ]
        if self.checkpoint_seconds:
            parts.append(f"checkpoints {self.checkpoint_seconds:.2g} s")
        return "; ".join(parts)


def report_of(source: Blocks, n_passes: int, watch: "Watch") -> FitReport:
    """Put together what was noted on the way."""
    seconds, meter = watch.seconds(), watch.meter
    threads = meter.seconds * max(meter.workers, 1)
    return FitReport(
        n_rows=source.n_rows,
        n_columns=source.n_features,
        n_passes=n_passes,
        seconds=seconds,
        pass_seconds=meter.seconds,
        rows_per_second=meter.rows / meter.seconds if meter.seconds else 0.0,
        read_share=min(1.0, meter.read_seconds / threads) if threads else 0.0,
        peak_memory=meter.peak,
        n_workers=max(meter.workers, 1),
        checkpoint_seconds=getattr(watch.journal, "seconds", 0.0),
        groups=tuple(watch.groups) if len(watch.groups) == n_passes else (),
    )


_LOG = logging.getLogger("kplus")

_LOOK_SECONDS = 0.05


class SparingMeter(Meter):
    """A meter for batches of streams: looks at memory would cost more than some take.

    A look serves all batches of the moments after it.
    """

    looked: ClassVar[tuple[float, int]] = (-math.inf, 0)  # when, and what was seen

    def look(self, rows: int = 0) -> None:
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
        self.stopped = False  # by a callback
        self.meter = SparingMeter() if meter is None else meter
        self._begun = time.monotonic()
        self.groups: list[int] = []

    def __call__(self, info: PassInfo) -> bool:
        """Report a pass; True, for a callback wants so or by Ctrl-C, ends the fit."""
        self.stopped = self._tell(info)
        return self.ended

    @property
    def ended(self) -> bool:
        """Whether a callback, or Ctrl-C, wants the fit to end."""
        return self.stopped or self.interrupt.requested

    def _tell(self, info: PassInfo) -> bool:
        estimator = self.estimator
        self.groups.append(int(info.params.K))
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


@dataclass(frozen=True)
class PassReport:
    """How far a fit has got after a pass.

    Attributes
    ----------
    number : int
        Of the pass, from 1.
    n_groups : int
        Clusters, components or features, as `groups` says.
    objective : float
        What is optimised, or followed; `measure` is its name.
    rows_per_second : float
        Visits of rows in a second, since the first of all passes began.
    seconds_left : float or None
        To the end of the fit, where the number of its passes is known.
    """

    number: int
    n_groups: int
    groups: str
    objective: float
    measure: str
    rows_per_second: float
    seconds_left: float | None

    def __str__(self) -> str:
        words = f"{self.n_groups:,} {self.groups}, {self.measure} {self.objective:.6g}"
        if self.rows_per_second > 0.0:
            words += f", {_short(self.rows_per_second)} rows/s"
        return words


def clock(seconds: float) -> str:
    """As in 0:07, 12:30 or 3:02:11."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    start = f"{hours}:{minutes:02d}" if hours else str(minutes)
    return f"{start}:{seconds:02d}"


def _short(number: float) -> str:
    """As in 870, 12k or 3.4M."""
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.{1 if number < 10 * size else 0}f}{name}"
    return f"{number:.0f}"


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
    n_rows : int
        Of the table.

    Attributes
    ----------
    latest : PassReport or None
        Of the latest pass.
    rows_of_pass : int
        Rows that the pass under way has visited.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        fitted: Callable[[PassInfo], dict[str, Any]],
        journal: Any = None,
        n_rows: int = 0,
    ) -> None:
        super().__init__(estimator, Meter())
        self.X, self.fitted = X, fitted
        self.journal, self.n_rows = journal, n_rows
        self.latest: PassReport | None = None
        self._rows_before = 0  # of the pass
        self.passes = estimator._n_passes
        self.context = estimator._init_callback_context(max_subtasks=self.passes)
        self.context.call_on_fit_task_begin(
            estimator=estimator, X=X, metadata={"reporter": self}
        )

    @property
    def rows_of_pass(self) -> int:
        return self.meter.visited - self._rows_before

    def _tell(self, info: PassInfo) -> bool:
        super()._tell(info)
        estimator, report = self.estimator, self._report(info)
        self.latest, self._rows_before = report, self.meter.visited
        if estimator.verbose:
            left = report.seconds_left
            print(
                f"[{type(estimator).__name__}] pass {report.number}: "
                f"{report.n_groups} {report.groups}, "
                f"{report.measure} {report.objective:.6g}"
                + ("" if left is None else f", {clock(left)} left"),
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
                metadata={"report": report},
                reconstruction_attributes=lambda: self.fitted(info),
            )
        )

    def _report(self, info: PassInfo) -> PassReport:
        estimator, done = self.estimator, info.iteration
        left = None
        if self.passes is not None:
            left = self.seconds() / done * (self.passes - done)
        return PassReport(
            number=done,
            n_groups=info.params.K,
            groups=estimator._groups,
            objective=float(info.objective),
            measure=estimator._measure,
            rows_per_second=self.meter.pace(),
            seconds_left=left,
        )

    def close(self) -> None:
        self.context.call_on_fit_task_end(estimator=self.estimator, X=self.X)
