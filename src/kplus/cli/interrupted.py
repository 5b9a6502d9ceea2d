"""Fits that end too early: the command is noted, so that ``kplus resume`` goes on."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from kplus.cli.console import CommandError, Interrupted, count
from kplus.cli.models import FitOptions
from kplus.cli.tables import Choice

__all__ = [
    "check_new",
    "go_on",
    "interruption",
    "kept_command",
    "note_command",
    "read_command",
]

_FILE = "command.json"
_CHOICES = ("index", "columns", "drop")
_PATHS = ("data", "outdir", "checkpoint", "scratch")


def check_new(options: FitOptions) -> None:
    """Refuse to begin a fit where another one left its checkpoint."""
    folder = options.checkpoint
    if folder is None or options.resume:
        return
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is a file; --checkpoint needs a folder.")
    command = (folder / _FILE).exists()
    if command or _has_begun(folder):
        how = f"by kplus resume {folder}" if command else "in Python"
        raise CommandError(
            f"{folder} holds the checkpoint of a fit that did not end: go on with it "
            f"{how}, or delete the folder."
        )


@contextmanager
def kept_command(options: FitOptions) -> Iterator[None]:
    """Keep the command beside its checkpoint until the block succeeds.

    It stays if the process is killed or interrupted, or if the block fails when there
    is something to go on from.
    """
    from kplus.io.checkpoint import remove_unused

    folder = options.checkpoint
    if folder is None:
        yield
        return
    note_command(options)
    try:
        yield
    except Interrupted:
        raise
    except Exception:
        remove_unused(folder)
        if not _has_begun(folder):
            _forget_command(folder)
        raise
    _forget_command(folder)


def note_command(options: FitOptions) -> None:
    """Write down, beside the checkpoint, what is to be done."""
    from kplus.io.atomic import atomic_file

    folder = options.checkpoint
    assert folder is not None
    folder.mkdir(parents=True, exist_ok=True)
    plain = dataclasses.asdict(options)
    for name in _PATHS:
        if plain[name] is not None:
            plain[name] = str(plain[name].absolute())
    plain["choice"] = {name: plain["choice"][name] for name in _CHOICES}
    del plain["resume"]
    with atomic_file(folder / _FILE) as file:
        file.write(json.dumps(plain, indent=1).encode())


def _forget_command(folder: Path) -> None:
    """There is nothing to go on with any more."""
    (folder / _FILE).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def read_command(folder: Path) -> FitOptions:
    """The command whose checkpoint is in a folder."""
    if not (folder / _FILE).is_file():
        if _has_begun(folder):
            why = "there is one of a fit in Python"
        else:
            from kplus.io.checkpoint import why_none

            why = why_none(folder)
        raise CommandError(f"{folder} holds no checkpoint of kplus fit: {why}.")
    try:
        plain = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        for name in _PATHS:
            if plain[name] is not None:
                plain[name] = Path(plain[name])
        plain["choice"] = Choice(**plain["choice"])
        plain["categorical"] = tuple(plain["categorical"])
        options = FitOptions(**plain)
        _check_types(options)
    except (ValueError, TypeError, KeyError) as error:
        raise CommandError(
            f"{folder / _FILE} is damaged ({error}); give the kplus fit command again, "
            f"with another --checkpoint."
        ) from error
    # The folder may have been moved since.
    return dataclasses.replace(options, checkpoint=folder, resume=True)


def _check_types(options: FitOptions) -> None:
    for name, kind in get_type_hints(FitOptions).items():
        value = getattr(options, name)
        if not isinstance(value, tuple if get_origin(kind) is tuple else kind):
            raise TypeError(f"{name} is {value!r}")


def go_on(model: Any, X: Any, folder: Path) -> None:
    """Fit from where the checkpoint stands; anew if it had not been begun."""
    from kplus.io.checkpoint import read_fit

    if not _has_begun(folder):
        model.fit(X, checkpoint=folder)
        return
    fit = read_fit(folder)
    for name, value in model.get_params(deep=False).items():
        if fit["params"].get(name) != value:
            raise CommandError(
                f"{folder} belongs to another command: {name} was "
                f"{fit['params'].get(name)!r}, and {_FILE} in it says {value!r}. Give "
                f"the kplus fit command again, with another --checkpoint."
            )
    model._go_on(folder, X)


def _has_begun(folder: Path) -> bool:
    from kplus.io.checkpoint import has_begun

    return has_begun(folder)


def interruption(options: FitOptions, passes: int | None) -> Interrupted:
    """What to say of a fit that Ctrl-C ended; without `passes` nothing was found."""
    words = "Interrupted before anything was found; nothing was written."
    if passes is not None:
        words = f"Interrupted: this is the best so far, after {count(passes, 'pass')}."
    if options.checkpoint is not None:
        words += f" kplus resume {options.checkpoint} goes on."
    return Interrupted(words)
