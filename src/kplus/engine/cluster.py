"""Work on the workers of a distributed.Client, watched so that it never hangs."""

import contextlib
import logging
import pickle
import socket
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kplus.core.errors import WorkersError

__all__ = ["Watch", "active_client", "check_shared"]

NO_WORKERS_SECONDS = 20.0  # without any worker before a fit is given up
STALL_SECONDS = 60.0  # without any result before tasks are sent once more ...
STALL_TIMES = 20.0  # ... or so many times as long as the longest task took
ATTEMPTS = 4  # at a task
_POLL_SECONDS = 0.5
_LOG = logging.getLogger("kplus")


def active_client() -> Any:
    """The distributed.Client that is in use, if there is one; none is started."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    client = distributed.client._get_global_client()
    return client if client is not None and client.status == "running" else None


def check_shared(client: Any) -> None:
    """Refuse workers on other machines, where nobody said which folder is shared."""
    here = {"127.0.0.1", "localhost", "::1", socket.gethostname(), _own_address()}
    for address, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        if worker.get("host", "") not in here and "inproc" not in address:
            raise WorkersError(
                f"The worker {address} is on another machine. Name a folder that all "
                f"workers reach: with kplus.resources(scratch=...), or --scratch."
            )


def _own_address() -> str:
    from distributed.utils import get_ip

    return str(get_ip())


class Watch:
    """Runs calls on workers; yields what they return, and seconds taken, in order.

    Workers may die, and so may those who restart them, without anybody being told. So
    nobody is waited for without end: calls of lost workers are sent again, also those
    of which nothing is heard for long, and without workers an error says so.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.longest = 0.0

    @property
    def n_threads(self) -> int:
        """Threads of all workers."""
        return sum(worker["nthreads"] for worker in self._workers().values())

    def _workers(self) -> dict[str, Any]:
        info = self.client.scheduler_info(n_workers=-1)
        workers: dict[str, Any] = info["workers"]
        return workers

    def run(
        self, function: Callable[..., Any], calls: Sequence[tuple[str, Any]]
    ) -> Iterator[Any]:
        """Call the function with each argument; calls are (what errors say, argument).

        Arguments travel as bytes: a scheduler that looked into them would take long.
        """
        names = [name for name, _ in calls]
        packed = [pickle.dumps((function, argument), 5) for _, argument in calls]
        pending = {self._submitted(call): i for i, call in enumerate(packed)}
        attempts = [1] * len(calls)
        done: dict[int, Any] = {}
        heard = time.monotonic()
        try:
            for number in range(len(calls)):
                while number not in done:
                    lost: dict[int, str] = {}
                    finished = self._finished(pending)
                    for future, outcome in self._outcomes(finished):
                        which = pending.pop(future)
                        if isinstance(outcome, _Lost):
                            lost[which] = outcome.why
                        else:
                            done[which] = outcome
                            self.longest = max(self.longest, outcome[1])
                    if finished:
                        heard = time.monotonic()
                    else:
                        self._check()
                        if time.monotonic() - heard > self._patience():
                            lost = dict.fromkeys(pending.values(), "nothing was heard")
                            self._give_up(pending)
                            heard = time.monotonic()
                    for which, why in lost.items():
                        attempts[which] += 1
                        _refuse_again(names[which], attempts[which], why)
                        pending[self._submitted(packed[which])] = which
                yield done.pop(number)
        finally:
            self._give_up(pending)

    def _give_up(self, pending: dict[Any, int]) -> None:
        if pending and self.client.status == "running":
            self.client.cancel(list(pending), force=True)
        pending.clear()

    def _submitted(self, packed: bytes) -> Any:
        self._check_scheduler()
        key = f"kplus-{uuid.uuid4().hex}"  # a key once used may be remembered as lost
        with warnings.catch_warnings():  # parameters of many megabytes go this way
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.client.submit(_call, packed, key=key, pure=False)

    def _patience(self) -> float:
        return max(STALL_SECONDS, STALL_TIMES * self.longest)

    def _finished(self, pending: dict[Any, int]) -> list[Any]:
        """Futures that are not pending any more, after a short wait."""
        from distributed import wait

        finished = [future for future in pending if future.status != "pending"]
        if not finished:
            # Time is up, or a future was cancelled: statuses tell.
            with contextlib.suppress(Exception):
                wait(
                    list(pending), timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED"
                )
            finished = [future for future in pending if future.status != "pending"]
        return finished

    def _outcomes(self, futures: Sequence[Any]) -> list[tuple[Any, Any]]:
        """What calls returned with their seconds, or that they must be repeated."""
        good = [future for future in futures if future.status == "finished"]
        try:  # all at once, as asking for one takes milliseconds
            results = dict(zip(good, self.client.gather(good), strict=True))
        except Exception:  # a worker went with its result
            results = {}
        return [
            (future, results[future] if future in results else self._outcome(future))
            for future in futures
        ]

    def _outcome(self, future: Any) -> Any:
        if future.status == "finished":
            try:
                return future.result(timeout=STALL_SECONDS)
            except Exception as error:
                self._check()
                return _Lost(f"the result was lost ({error})")
        if future.status == "error":
            cause = future.exception()
            if type(cause).__name__ != "KilledWorker":
                raise cause
            return _Lost("they died at it, perhaps for want of memory; see their logs")
        self._check()
        return _Lost("it was lost with a worker")

    def _check_scheduler(self) -> None:
        if self.client.status != "running":
            raise WorkersError(
                f"The connection to the scheduler {_address(self.client)} is lost; a "
                f"fit with a checkpoint can be resumed."
            )

    def _check(self) -> None:
        """Raise an error if there is nobody to wait for."""
        end = time.monotonic() + NO_WORKERS_SECONDS
        while True:
            self._check_scheduler()
            if self._workers():
                return
            if time.monotonic() > end:
                raise WorkersError(
                    f"No worker is left at {_address(self.client)}; none came back in "
                    f"{NO_WORKERS_SECONDS:g} s. Start workers and fit again; with a "
                    f"checkpoint the fit can be resumed."
                )
            time.sleep(_POLL_SECONDS)


def _refuse_again(name: str, attempt: int, why: str) -> None:
    if attempt > ATTEMPTS:
        raise WorkersError(f"Workers failed {ATTEMPTS} times at {name}: {why}.")
    _LOG.warning("%s is done again: %s", name, why)


class _Lost:
    """A call that must be repeated, and why."""

    def __init__(self, why: str) -> None:
        self.why = why


def _call(packed: bytes) -> tuple[Any, float]:
    """On a worker: call the function, and tell how long it took."""
    begun = time.perf_counter()
    function, argument = pickle.loads(packed)
    return function(argument), time.perf_counter() - begun


def _address(client: Any) -> str:
    return str(getattr(client.scheduler, "address", "of the cluster"))
