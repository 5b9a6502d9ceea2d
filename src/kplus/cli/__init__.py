"""The command line: ``kplus fit``, ``kplus predict``, ``kplus convert`` and so on.

Data go to standard output, messages to standard error. Mistakes of the user end with
one clear line and exit code 2. Everything slow is imported by the command that needs
it, so that help comes at once.
"""

import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any, NoReturn

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and exit."""
    try:
        from kplus.cli.app import run
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(
            f"kplus: the command line needs {error.name}, which is not installed: "
            f"pip install 'kplus[cli]'"
        )
    sys.modules.setdefault("scipy.stats", _LoadedWhenUsed("scipy.stats"))
    # Ends like Ctrl-C does, so that unfinished files are removed.
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(run(sys.argv[1:] if argv is None else argv))


class _LoadedWhenUsed(ModuleType):
    """Stands for a module that scikit-learn imports, and hardly ever uses.

    scipy.stats takes as long to import as all the rest of scikit-learn's base.
    """

    def __getattr__(self, name: str) -> Any:
        del sys.modules[self.__name__]
        module = import_module(self.__name__)
        self.__dict__.update(vars(module))
        return getattr(module, name)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
