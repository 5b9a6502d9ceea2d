"""A line that follows a fit, in terminals and notebooks alike."""

import shutil
import sys
import threading
import time
from typing import Any, TextIO

from kplus.base.progress import PassReporter, clock

__all__ = ["ProgressBar"]

_REDRAWN = 0.2  # seconds
_LOGGED = 30.0  # between two lines where none can be drawn over
_CELLS = 12  # of the bar
_NOTEBOOK_WIDTH = 120


class ProgressBar:
    """Shows how far a fit has got, in a terminal or a notebook.

    The line has the pass under way and how much of it is done, the number of groups,
    the objective, the rows visited in a second, and the time left: of the pass, as
    nobody knows how many there will be, or of the whole fit where that is known. In a
    log file, where no line can be drawn over, it is written every half minute.

    It is a callback of scikit-learn: see ``set_callbacks`` of every estimator. It needs
    no other package.

    Parameters
    ----------
    file : text file, optional
        Where to write; by default standard error, in notebooks standard output.

    Examples
    --------
    >>> import sys
    >>> from sklearn.datasets import make_blobs
    >>> from kplus import DPMeans, ProgressBar
    >>> X, _ = make_blobs(300, centers=3, random_state=1)
    >>> model = DPMeans(random_state=0).set_callbacks(ProgressBar(file=sys.stdout))
    >>> model = model.fit(X)  # doctest: +ELLIPSIS
    DPMeans: ... passes in 0:0..., 3 clusters, objective ...
    """

    max_propagation_depth = None  # also on a pipeline, or on a search

    def __init__(self, file: TextIO | None = None) -> None:
        self.file = file
        self._lines: dict[int, _Line] = {}  # by the context of the fit

    def __getstate__(self) -> dict[str, Any]:
        return {"file": None, "_lines": {}}  # elsewhere files and threads are others

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing is to be shown before the fit begins."""

    def on_fit_task_begin(
        self, estimator: Any, context: Any, *, metadata: Any = None
    ) -> None:
        """Follow a fit that says how far it is."""
        reporter = (metadata or {}).get("reporter")
        if reporter is not None:
            alone = not self._lines  # of several fits at a time the first is drawn
            self._lines[id(context)] = _Line(reporter, context, self.file, alone)

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: Any = None
    ) -> None:
        """Note the end of a pass, or of the fit."""
        if "report" in (metadata or {}) and id(context.parent) in self._lines:
            self._lines[id(context.parent)].log()
        if id(context) in self._lines:
            self._lines.pop(id(context)).end()

    def teardown(self, estimator: Any, context: Any) -> None:
        """End what an error left open."""
        for key, line in list(self._lines.items()):
            if line.context.root_uuid == context.root_uuid:
                self._lines.pop(key).end()


class _Line:
    """The line of one fit, redrawn by a thread of its own."""

    def __init__(
        self, reporter: PassReporter, context: Any, file: TextIO | None, alone: bool
    ) -> None:
        self._reporter, self.context = reporter, context
        self._file = _place() if file is None else file
        self._name = type(reporter.estimator).__name__
        self._begun = self._logged = time.monotonic()
        self._drawn = 0  # letters
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        if alone and _can_redraw(self._file):
            self._thread = threading.Thread(target=self._redraw, daemon=True)
            self._thread.start()

    def _redraw(self) -> None:
        while not self._ended.wait(_REDRAWN):
            self._draw(self._text())

    def _draw(self, text: str, end: str = "") -> None:
        """Write over what was drawn before."""
        if not end:
            tty = self._file.isatty()
            text = text[: _terminal_width() if tty else _NOTEBOOK_WIDTH]
        over = f"\r{text:<{self._drawn}}" if self._drawn else text
        self._file.write(over + end)
        self._file.flush()
        self._drawn = max(self._drawn, len(text))

    def _text(self) -> str:
        """The fit under way."""
        reporter, latest = self._reporter, self._reporter.latest
        visited, pace = reporter.meter.visited, reporter.meter.pace()
        if latest is None and not visited:
            elapsed = clock(time.monotonic() - self._begun)
            return f"{self._name}: searching a sample, {elapsed}"
        number, left, of = 1, None, " of this pass"
        done = min(1.0, reporter.rows_of_pass / max(reporter.n_rows, 1))
        if pace > 0.0:
            left = (1.0 - done) * reporter.n_rows / pace
        if latest is not None:
            number = latest.number + 1
        if latest is not None and latest.seconds_left is not None:
            done, left, of = latest.number / reporter.passes, latest.seconds_left, ""
        words = f"{self._name} {_bar(done, self._file)} pass {number}"
        words += "" if left is None else f", {clock(left)} left{of}"
        return words if latest is None else f"{words}, {latest}"

    def log(self) -> None:
        """Write the line where it cannot be redrawn, if it is long ago."""
        now = time.monotonic()
        if self._thread is None and now - self._logged >= _LOGGED:
            self._logged = now
            self._file.write(self._text() + "\n")
            self._file.flush()

    def end(self) -> None:
        """Say what the fit came to."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        latest = self._reporter.latest
        elapsed = clock(time.monotonic() - self._begun)
        text = f"{self._name}: ended after {elapsed}"
        if latest is not None:
            passes = f"{latest.number} pass{'es' * (latest.number != 1)}"
            text = f"{self._name}: {passes} in {elapsed}, {latest}"
        self._draw(text, "\n")


def _place() -> TextIO:
    """Notebooks show standard error in red."""
    return sys.stdout if _in_notebook(sys.stderr) else sys.stderr


def _in_notebook(file: Any) -> bool:
    return type(file).__module__.startswith("ipykernel")


def _can_redraw(file: TextIO) -> bool:
    return file.isatty() or _in_notebook(file)


def _terminal_width() -> int:
    return shutil.get_terminal_size().columns - 1  # in the last column it might wrap


def _bar(done: float, file: TextIO) -> str:
    full, empty = "█░"
    try:
        full.encode(file.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        full, empty = "#-"
    n = round(done * _CELLS)
    return full * n + empty * (_CELLS - n)
