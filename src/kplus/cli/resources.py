"""What a command may use: memory, a folder for scratch files, workers."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from kplus.cli.console import CommandError

__all__ = ["Allowing", "allowed"]

_ADDRESS = re.compile(r"inproc://.+|(tcp|tls|ws|wss|ucx)://.+:\d+")
_SECONDS = 10


class Allowing(Protocol):
    """Options of a command that say what it may use."""

    @property
    def memory_limit(self) -> str | None: ...

    @property
    def scratch(self) -> Path | None: ...

    @property
    def scheduler(self) -> str | None: ...


@contextmanager
def allowed(options: Allowing) -> Iterator[None]:
    """Let fits and answers use what the options allow."""
    from kplus.engine.resources import as_bytes, resources

    limit = options.memory_limit
    if limit is not None:
        try:
            as_bytes(limit)
        except ValueError:
            raise CommandError(
                f"--memory-limit must be a size such as 2GB or 512MiB, not {limit!r}."
            ) from None
    if options.scratch is not None and options.scratch.is_file():
        raise CommandError(f"{options.scratch} is a file; --scratch needs a folder.")
    with ExitStack() as stack:
        stack.enter_context(resources(memory_limit=limit, scratch=options.scratch))
        if options.scheduler is not None:
            stack.enter_context(_connected(options.scheduler))
        yield


@contextmanager
def _connected(address: str) -> Iterator[None]:
    """A client of a scheduler, which is found without being named."""
    if not _ADDRESS.fullmatch(address):
        raise CommandError(
            f"--scheduler must be an address such as tcp://10.0.0.1:8786, not "
            f"{address!r}."
        )
    client = _client(address)
    try:
        yield
    finally:
        client.close()


def _client(address: str) -> Any:
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
