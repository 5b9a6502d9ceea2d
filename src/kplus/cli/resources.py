"""What a command may use: memory, a folder for scratch files, workers."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kplus.cli.console import CommandError
from kplus.cli.options import Options

__all__ = ["allowed"]

_ADDRESS = re.compile(r"inproc://.+|(tcp|tls|ws|wss|ucx)://.+:\d+")
_SECONDS = 10


@contextmanager
def allowed(options: Options) -> Iterator[None]:
    """Let fits and answers use what the options allow."""
    from kplus.engine.resources import resources

    limit, scratch = options.memory_limit, options.scratch
    if scratch is not None and scratch.is_file():
        raise CommandError(f"{scratch} is a file; --scratch needs a folder.")
    with ExitStack() as stack:
        try:
            stack.enter_context(resources(memory_limit=limit, scratch=scratch))
        except ValueError as error:
            message = str(error).replace("memory_limit", "--memory-limit")
            raise CommandError(message) from None
        if options.scheduler is not None:
            # Fits find the client without being told.
            stack.callback(_connect(options.scheduler).close)
        yield


def _connect(address: str) -> Any:
    """A client of a scheduler."""
    if not _ADDRESS.fullmatch(address):
        raise CommandError(
            f"--scheduler must be an address such as tcp://10.0.0.1:8786, not "
            f"{address!r}."
        )
    try:
        from distributed import Client
    except ImportError as error:
        raise CommandError(
            "--scheduler needs distributed, which is not installed: "
            "pip install 'kplus[dask]'"
        ) from error
    try:
        return Client(address, timeout=_SECONDS, set_as_default=True)
    except (OSError, ValueError) as error:  # a TimeoutError is an OSError
        raise CommandError(
            f"No scheduler answers at {address} within {_SECONDS} s; start one with "
            f"dask scheduler, or check the address."
        ) from error
