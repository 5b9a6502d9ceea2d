"""Ctrl-C in a terminal reaches all its processes; workers there should go on.

Who fits ends the fit after the pass under way, and for that pass needs them.
"""

import os
import signal
import socket
import threading
from typing import Any

__all__ = ["Terminal", "heed_interrupts", "ignore_interrupts", "own_terminal"]

Terminal = tuple[str, int, int]


def own_terminal() -> Terminal:
    """Machine, process group and process: Ctrl-C goes to a whole group."""
    group = os.getpgrp() if hasattr(os, "getpgrp") else 0
    return socket.gethostname(), group, os.getpid()


def ignore_interrupts(of: Terminal) -> None:
    """On a worker: from now on, if it is another process of the same group."""
    host, group, process = own_terminal()
    if (host, group) == of[:2] and process != of[2] and group:
        _in_main_thread(_ignore)


def heed_interrupts() -> None:
    """On a worker: as before."""
    _in_main_thread(_heed)


_before: Any = None


def _ignore() -> None:
    global _before
    if _before is None:
        _before = signal.signal(signal.SIGINT, signal.SIG_IGN)


def _heed() -> None:
    global _before
    if _before is not None:
        signal.signal(signal.SIGINT, _before)
        _before = None


def _in_main_thread(action: Any) -> None:
    """Only there signals can be set; workers wait for messages there."""
    from distributed import get_worker

    def act() -> None:
        if threading.current_thread() is threading.main_thread():
            action()

    get_worker().loop.add_callback(act)
