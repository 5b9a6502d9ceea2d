"""Calls that are watched while workers do them, so that nobody waits for ever."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kplus.core.errors import WorkersError
from kplus.engine.cluster import SEEN_SECONDS, Answer, Cluster, Lost, packed_call

__all__ = ["Call", "Watch"]

STALL_SECONDS = 60.0  # without any answer before workers are asked after their calls
STALL_TIMES = 20.0  # ... or so many times as long as the longest call took
AT_WORK_SECONDS = 900.0  # the same for workers who say that they are there
ATTEMPTS = 4  # at a call
_LOG = logging.getLogger("kplus")


@dataclass(frozen=True)
class Call:
    """What errors call it, the argument, and the worker that had best do it."""

    name: str
    argument: Any
    home: str | None = None


class Watch:
    """Runs calls on workers; yields their answers in order.

    Workers may die, and so may those who restart them, without notice. So every
    wait has an end: calls of lost workers are sent again, also those
    of which nothing is heard for long, and without workers an error says so.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._longest = 0.0  # seconds that a call took
        self._quiet: set[str] = set()  # calls that nobody was at when last asked

    def run(
        self, function: Callable[..., Any], calls: Sequence[Call]
    ) -> Iterator[Answer]:
        """Call the function with each argument."""
        packed = [packed_call(function, call.argument) for call in calls]
        homes = shared_out(calls, self.cluster.workers(SEEN_SECONDS))
        futures = self.cluster.submit(packed, homes)
        pending = {future: number for number, future in enumerate(futures)}
        attempts = [1] * len(calls)
        done: dict[int, Answer] = {}
        heard = time.monotonic()
        try:
            for number in range(len(calls)):
                while number not in done:
                    finished = self.cluster.finished(list(pending))
                    if finished:
                        lost = self._received(finished, pending, done)
                        there: list[str] = []
                    else:
                        self.cluster.check()
                        lost, there = self._silent(pending, time.monotonic() - heard)
                    if finished or lost:
                        heard = time.monotonic()
                    for which, why in lost.items():
                        self._refuse_last(calls[which].name, attempts[which], why)
                        attempts[which] += 1
                        (again,) = self.cluster.submit([packed[which]], [there])
                        pending[again] = which
                yield done.pop(number)
        finally:
            self.cluster.cancel(list(pending))

    def _received(
        self, finished: Sequence[Any], pending: dict[Any, int], done: dict[int, Answer]
    ) -> dict[int, str]:
        """Move calls from pending to done; return those that were lost, and why."""
        lost: dict[int, str] = {}
        answers = self.cluster.answers(finished)
        for future, answer in zip(finished, answers, strict=True):
            which = pending.pop(future)
            if isinstance(answer, Lost):
                lost[which] = answer.why
            else:
                done[which] = answer
                self._longest = max(self._longest, answer.seconds)
        return lost

    def _silent(
        self, pending: dict[Any, int], seconds: float
    ) -> tuple[dict[int, str], list[str]]:
        """Calls that must be taken for lost, and the workers who are there.

        A worker at a long call answers in the meantime; one that hangs does not.
        """
        patience = max(STALL_SECONDS, STALL_TIMES * self._longest)
        if seconds <= patience:
            return {}, []
        working, there = self.cluster.at_work(list(pending))
        if seconds > max(AT_WORK_SECONDS, patience):
            working = set()
        quiet = {future.key for future in pending if future.key not in working}
        # Twice, as one that has just ended is at work no more, nor told of yet.
        silent = [future for future in pending if future.key in quiet & self._quiet]
        self._quiet = quiet
        self.cluster.cancel(silent)
        return {pending.pop(future): "nothing was heard" for future in silent}, list(
            there
        )

    def _refuse_last(self, name: str, attempts: int, why: str) -> None:
        """Refuse what failed too often."""
        if attempts >= ATTEMPTS:
            why += self.cluster.troubles()
            raise WorkersError(f"Workers failed {ATTEMPTS} times at {name}: {why}.")
        _LOG.warning("%s is done again: %s", name, why)


def shared_out(calls: Sequence[Call], workers: dict[str, int]) -> list[list[str]]:
    """A worker for each call: its home, unless that has its share of calls already."""
    threads = sum(workers.values())
    if not threads:
        return [[] for _ in calls]
    share = -(-len(calls) // threads)
    room = {address: share * n for address, n in workers.items()}
    homes: list[list[str]] = [[] for _ in calls]
    for home, call in zip(homes, calls, strict=True):
        if call.home is not None and room.get(call.home, 0):
            home.append(call.home)
            room[call.home] -= 1
    for home in homes:
        if not home:
            home.append(max(room, key=room.__getitem__))
            room[home[0]] -= 1
    return homes
