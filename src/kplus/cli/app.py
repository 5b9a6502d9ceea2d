"""Running a command line."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from kplus import __version__
from kplus.cli.console import (
    CommandError,
    Interrupted,
    note,
    report_error,
    report_missing,
    report_usage,
)
from kplus.cli.options import COMMANDS, HELP, as_command
from kplus.core.errors import CheckpointError, DataError, ModelFormatError

__all__ = ["run"]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"kplus {__version__}")
        raise typer.Exit


_version = typer.Option(
    "--version",
    callback=_print_version,
    is_eager=True,
    metavar="",
    help="Print the version.",
)


def _make_app(argv: Sequence[str]) -> typer.Typer:
    app = typer.Typer(
        help="Clustering where the data decide how many groups there are.",
        epilog="kplus COMMAND --help tells more.",
        add_completion=False,
        pretty_exceptions_enable=False,
        add_help_option=False,
    )

    @app.callback()
    def root(
        version: Annotated[bool, _version] = False,
        help: Annotated[bool, HELP] = False,
    ) -> None:
        pass

    help_texts = {}
    if "fit" in argv and {"--help", "-h"} & set(argv):  # the only one that shows them
        from kplus.cli.models import option_help

        help_texts = option_help()
    for name, (module, text, options) in COMMANDS.items():
        command = as_command(_runner(module, name), options.split(), help_texts)
        app.command(name, help=text, add_help_option=False)(command)
    return app


def _runner(module: str, name: str) -> Any:
    """The function of a command, imported when it is called."""
    return lambda options: getattr(import_module(f"kplus.cli.{module}"), name)(options)


def run(argv: Sequence[str]) -> int:
    """Run a command line; return its exit code."""
    try:
        # Without arguments one wants to know what there is.
        words = list(argv) or ["--help"]
        code = _make_app(words)(words, prog_name="kplus", standalone_mode=False)
    except (CommandError, CheckpointError, DataError, ModelFormatError) as error:
        report_error(error)
        return 2
    except Interrupted as stop:
        note(str(stop))
        return 130
    except BrokenPipeError:  # such as kplus predict ... | head
        sys.stderr.close()
        return 1
    except OSError as error:
        report_error(error)
        return 2
    except ImportError as error:
        return report_missing(error)
    except (KeyboardInterrupt, typer.Abort):  # newer versions of typer return 130
        note("Interrupted; nothing was written.")
        return 130
    except Exception as error:
        return report_usage(error)
    return code if isinstance(code, int) else 0
