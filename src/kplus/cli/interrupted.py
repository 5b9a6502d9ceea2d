"""What ``kplus resume`` needs to know: the command that was interrupted."""

import dataclasses
import json
from pathlib import Path

from kplus.cli.console import CommandError
from kplus.cli.models import FitOptions
from kplus.cli.tables import Choice

__all__ = ["forget_command", "note_command", "read_command"]

_FILE = "command.json"
_CHOICES = ("index", "columns", "drop")
_PATHS = ("data", "outdir", "checkpoint")


def note_command(options: FitOptions) -> None:
    """Write down, beside the checkpoint, what is to be done."""
    folder = options.checkpoint
    if folder is None or options.resume:
        return
    if (folder / _FILE).exists():
        raise CommandError(
            f"{folder} holds the checkpoint of a fit that did not end: go on with it "
            f"by kplus resume {folder}, or delete the folder."
        )
    folder.mkdir(parents=True, exist_ok=True)
    plain = dataclasses.asdict(options)
    plain |= {name: str(plain[name].absolute()) for name in _PATHS}
    plain["choice"] = {
        name: plain["choice"][name] for name in ("index", "columns", "drop")
    }
    (folder / _FILE).write_text(json.dumps(plain, indent=1), encoding="utf-8")


def forget_command(options: FitOptions) -> None:
    """There is nothing to go on with any more."""
    if options.checkpoint is not None:
        (options.checkpoint / _FILE).unlink(missing_ok=True)
        if options.checkpoint.is_dir() and not any(options.checkpoint.iterdir()):
            options.checkpoint.rmdir()


def read_command(folder: Path) -> FitOptions:
    """The command whose checkpoint is in a folder."""
    if not (folder / _FILE).is_file():
        raise CommandError(
            f"{folder} holds no checkpoint of kplus fit: there never was one, or the "
            f"fit ended."
        )
    try:
        plain = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        plain |= {name: Path(plain[name]) for name in _PATHS}
        plain["choice"] = Choice(**plain["choice"])
        plain["categorical"] = tuple(plain["categorical"])
        return dataclasses.replace(FitOptions(**plain), resume=True)
    except (ValueError, TypeError, KeyError) as error:
        raise CommandError(
            f"{folder / _FILE} is damaged ({error}); give the kplus fit command again, "
            f"with another --checkpoint."
        ) from error
