"""Fits that end too early: the command is noted, so that ``kplus resume`` continues."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kplus.base.checkpointing import resume_fit
from kplus.cli.console import CommandError, Interrupted, count
from kplus.cli.options import OPTIONS, Options
from kplus.cli.tables import Table
from kplus.persist.atomic import atomic_file
from kplus.persist.checkpoint import has_begun, read_fit, remove_unused, why_none

__all__ = [
    "check_new",
    "fit_or_resume",
    "interruption",
    "read_command",
    "save_command",
    "saved_command",
]

_FILE = "command.json"


def check_new(folder: Path | None) -> None:
    """Refuse to begin a fit where another one left its checkpoint."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is a file; --checkpoint needs a folder.")
    command = (folder / _FILE).exists()
    if command or has_begun(folder):
        how = f"by kplus resume {folder}" if command else "in Python"
        raise CommandError(
            f"{folder} holds the checkpoint of a fit that did not end: resume it "
            f"{how}, or delete the folder."
        )


@contextmanager
def saved_command(options: Options) -> Iterator[None]:
    """Keep the command beside its checkpoint until the block succeeds.

    It stays if the process is killed or interrupted, or if the block fails when there
    is something to resume.
    """
    folder = options.checkpoint
    if folder is None:
        yield
        return
    save_command(options)
    try:
        yield
    except Interrupted:
        raise
    except Exception:
        remove_unused(folder)
        if not has_begun(folder):
            _delete_command(folder)
        raise
    _delete_command(folder)


def save_command(options: Options) -> None:
    """Write down, beside the checkpoint, what is to be done."""
    options.checkpoint.mkdir(parents=True, exist_ok=True)
    plain = {
        name: str(value.absolute()) if isinstance(value, Path) else value
        for name, value in vars(options).items()
    }
    with atomic_file(options.checkpoint / _FILE) as file:
        file.write(json.dumps(plain, indent=1).encode())


def _delete_command(folder: Path) -> None:
    """There is nothing to resume any more."""
    (folder / _FILE).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def read_command(folder: Path, names: list[str]) -> Options:
    """The command whose checkpoint is in a folder, which has options of `names`."""
    if not (folder / _FILE).is_file():
        python = "there is one of a fit in Python"
        why = python if has_begun(folder) else why_none(folder)
        raise CommandError(f"{folder} holds no checkpoint of kplus fit: {why}.")
    try:
        plain = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        options = Options(**{name: _value(name, plain[name]) for name in names})
    except (ValueError, TypeError, KeyError) as error:
        raise CommandError(
            f"{folder / _FILE} is damaged ({error}); give the kplus fit command again, "
            f"with another --checkpoint."
        ) from error
    options.checkpoint = folder  # which may have been moved since
    return options


def _value(name: str, value: Any) -> Any:
    """A value as the command line had it, checked."""
    kind = OPTIONS[name].kind
    if value is None and OPTIONS[name].default is None:
        return None
    if not isinstance(value, str if kind is Path else kind):
        raise TypeError(f"{name} is {value!r}")
    return Path(str(value)) if kind is Path else value


def fit_or_resume(model: Any, table: Table, folder: Path | None, begun: bool) -> None:
    """Fit, or continue from a checkpoint, if there is one already."""
    weighted = {} if table.weights is None else {"sample_weight": table.weights}
    if folder is None or not begun or not has_begun(folder):
        model.fit(table.data, checkpoint=folder, **weighted)
        return
    then = read_fit(folder)["params"]
    for name, value in model.get_params(deep=False).items():
        if then.get(name) != value:
            raise CommandError(
                f"{folder} belongs to another command: {name} was {then.get(name)!r}, "
                f"and {_FILE} in it says {value!r}. Give the kplus fit command again, "
                f"with another --checkpoint."
            )
    resume_fit(model, folder, table.data, **weighted)


def interruption(options: Options, passes: int | None) -> Interrupted:
    """What to say of a fit that Ctrl-C ended; without `passes` nothing was found."""
    words = "Interrupted before anything was found; nothing was written."
    if passes is not None:
        words = f"Interrupted: this is the best so far, after {count(passes, 'pass')}."
    if options.checkpoint is not None:
        words += f" kplus resume {options.checkpoint} resumes it."
    return Interrupted(words)
