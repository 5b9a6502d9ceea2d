"""BLAS held to one thread while any engine is at work."""

import os
from threading import Lock
from typing import Any

import scipy.linalg.cython_blas  # noqa: F401  the BLAS of the kernels
import threadpoolctl

__all__ = ["SINGLE_THREAD"]


class _SingleThread:
    """A limit that the first user sets and the last one lifts.

    Engines overlap when starts run side by side, and not always the last to come is
    the first to go, so each cannot restore what it found.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._controller: threadpoolctl.ThreadpoolController | None = None
        self._limit: Any = None

    def take(self) -> None:
        with self._lock:
            if self._users == 0:
                if self._controller is None:
                    self._controller = threadpoolctl.ThreadpoolController()
                _let_any_thread_set_limits()
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._users += 1

    def renew_lock(self) -> None:
        """A forked process would wait for ever for a thread that it has not."""
        self._lock = Lock()

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *exc: object) -> None:
        self.give_back()

    def give_back(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _let_any_thread_set_limits()
                self._limit.restore_original_limits()
                _let_any_thread_set_limits()


def _let_any_thread_set_limits() -> None:
    """From threadpoolctl 3.8 on a limit can be lifted by the thread that set it only.

    Another would be ignored, and BLAS stay at one thread for good.
    """
    openblas = getattr(threadpoolctl, "OpenBLASController", None)
    clear = getattr(openblas, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


SINGLE_THREAD = _SingleThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SINGLE_THREAD.renew_lock)
