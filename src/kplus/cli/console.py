"""Words to the user: messages, errors and progress, all on standard error."""

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from kplus.cli.options import FITTED, PARAMETERS, Options
from kplus.core.errors import MissingPackageError

__all__ = [
    "CommandError",
    "Interrupted",
    "PassProgress",
    "count",
    "note",
    "notes_for_warnings",
    "report",
    "report_error",
    "report_missing",
    "report_usage",
    "status",
]

_FLAGS = {
    parameter: f"--{option.replace('_', '-')}"
    for option in (*FITTED, "dtype")
    for parameter in PARAMETERS.get(option, (option,))
    if parameter != "n_samples"  # which mostly is the number of rows
} | {
    "n_components": "--components",
    "max_components": "--max-components",
    "handle_unknown": "--unknown",
    "skip_first": "--skip-first",
    "skip_last": "--skip-last",
}
_SETTING = re.compile(  # not in quotes: columns may have such names
    rf"""(?<![\w'"/-])({"|".join(_FLAGS)})(?:='?([\w.-]*\w)'?)?(?![\w='"/])"""
)
_NAME = re.compile(r"""\b(categorical|drop|index)=\[?('[^']*'|"[^"]*")\]?""")


class CommandError(Exception):
    """The user asked for something that cannot be; the message says why."""


class Interrupted(Exception):
    """The user pressed Ctrl-C; the message says what came of it."""


def note(message: str) -> None:
    print(message, file=sys.stderr)


def report(
    options: Options,
    result: dict[str, Any],
    lines: Iterable[str],
    indent: int | None = None,
) -> None:
    """Print a result as JSON, if asked for; else say it in lines, unless quiet."""
    if options.json:
        print(json.dumps(result, indent=indent, allow_nan=False))
    elif not options.quiet:
        for line in lines:
            note(line)


def count(number: int, noun: str) -> str:
    """As in: 1 row, 1,024 rows."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def report_error(error: Exception) -> None:
    """Print an error as one line, however it was worded."""
    message = str(error)
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        message = f"{place}{error.strerror}."
    note(f"Error: {_plain(message)}")


def report_missing(error: ImportError) -> int:
    """Report that an optional package is not installed."""
    if isinstance(error, MissingPackageError):
        report_error(error)
    elif error.name in ("pyarrow", "rich"):
        note(f"Error: {error.name} is not installed: pip install 'kplus[cli]'")
    else:
        raise error
    return 2


def report_usage(error: Exception) -> int:
    """Report what typer has to say about a command line, in one line."""
    # Its exceptions have no public name, but they all can format themselves.
    words = getattr(error, "format_message", None)
    if words is None:
        raise error
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "kplus"
    message = words().rstrip(".").replace("\n", " ")
    note(f"Error: {message}. See {command} --help.")
    return 2


@contextmanager
def notes_for_warnings(quiet: bool) -> Iterator[None]:
    """Show warnings meant for users as plain lines, and no others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not quiet:
            warnings.filterwarnings("default", category=UserWarning)
            warnings.showwarning = lambda message, *_, **__: note(
                f"Warning: {_plain(str(message))}"
            )
        yield


def _plain(message: str) -> str:
    """One line, with parameters as options: --prior gaussian, --max-iter."""
    line = _NAME.sub(r"--\1 \2", " ".join(message.split()))
    return _SETTING.sub(_as_option, line)


def _as_option(match: re.Match[str]) -> str:
    name, value = match.groups()
    if value is None:  # a word such as "prior" may mean anything
        return _FLAGS[name] if "_" in name else name
    return f"{_FLAGS[name]} {value}"


@contextmanager
def status(text: str, quiet: bool) -> Iterator[Any]:
    """Show that a command is working, at a terminal; yields what replaces the text."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(text) as spinner:
        yield spinner.update


class PassProgress:
    """A scikit-learn callback that gives `show` a line after every pass."""

    def __init__(self, show: Callable[[str], None], doing: str = "Clustering") -> None:
        self._show, self._doing = show, doing

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing is to be told before a pass has ended."""

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: Any = None
    ) -> None:
        report = (metadata or {}).get("report")
        if report is not None:  # else it is the whole fit, not a pass
            from kplus.base.progress import clock

            left = report.seconds_left
            words = "" if left is None else f", {clock(left)} left"
            self._show(f"{self._doing}: pass {report.number}{words}, {report}")
