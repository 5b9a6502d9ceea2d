"""Ctrl-C during a fit: the first ends it after the pass, the second at once."""

import signal
import sys
import threading
from typing import Any, Self

__all__ = ["Interrupt"]


class Interrupt:
    """Catches the first Ctrl-C while a fit runs.

    Attributes
    ----------
    asked : bool
        Whether there was one.
    """

    def __init__(self) -> None:
        self.asked = False
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
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print(
            "Stopping after this pass with the best so far; Ctrl-C again: at once.",
            file=sys.stderr,
            flush=True,
        )
