"""Work on the workers of a distributed.Client, watched so that it never hangs."""

import contextlib
import logging
import math
import pickle
import socket
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kplus.core.errors import WorkersError

__all__ = ["Answer", "Call", "Watch", "active_client", "check_shared"]

NO_WORKERS_SECONDS = 20.0  # without any worker before a fit is given up
STALL_SECONDS = 60.0  # without any result before tasks are sent once more ...
STALL_TIMES = 20.0  # ... or so many times as long as the longest task took
ATTEMPTS = 4  # at a task
_POLL_SECONDS = 0.5
_SEEN_SECONDS = 2.0  # workers come and go not too often to be asked for so seldom
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


@dataclass(frozen=True)
class Call:
    """What errors call it, the argument, and the worker that had best do it."""

    name: str
    argument: Any
    home: str | None = None


@dataclass(frozen=True)
class Answer:
    """What a call returned, how long it took, and the worker that did it."""

    value: Any
    seconds: float
    worker: str


class Watch:
    """Runs calls on workers; yields their answers in order.

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
        self._seen: tuple[float, dict[str, int]] = -math.inf, {}
        self._answered: list[Any] = []  # let go with the next calls, in one message

    @property
    def n_threads(self) -> int:
        """Threads of all workers, as they were a moment ago."""
        return sum(self._workers(_SEEN_SECONDS).values())

    def _workers(self, age: float = 0.0) -> dict[str, int]:
        """Addresses and threads of workers, as they were at most `age` seconds ago."""
        if time.monotonic() - self._seen[0] > age:
            try:
                found = self.client.nthreads(callback_timeout=NO_WORKERS_SECONDS)
            except TimeoutError:
                raise WorkersError(
                    f"The scheduler {_address(self.client)} does not answer; a fit "
                    f"with a checkpoint can be resumed."
                ) from None
            except OSError:  # it is gone, as the client will tell soon
                found = {}
            self._seen = time.monotonic(), found
        return self._seen[1]

    def run(
        self, function: Callable[..., Any], calls: Sequence[Call]
    ) -> Iterator[Answer]:
        """Call the function with each argument.

        Arguments travel as bytes: a scheduler that looked into them would take long.
        """
        packed = [pickle.dumps((function, call.argument), 5) for call in calls]
        homes = _shared_out(calls, self._workers(_SEEN_SECONDS))
        futures = self._submitted(packed, homes)
        pending = {future: i for i, future in enumerate(futures)}
        self._answered.clear()
        attempts = [1] * len(calls)
        done: dict[int, Answer] = {}
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
                            self._answered.append(future)
                            self.longest = max(self.longest, outcome.seconds)
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
                        _refuse_again(calls[which].name, attempts[which], why)
                        pending[self._submitted([packed[which]], [None])[0]] = which
                yield done.pop(number)
        finally:
            self._give_up(pending)

    def tell_all(self, function: Callable[[Any], None], argument: Any) -> None:
        """Have every worker call a function some time; nobody waits for it."""
        from distributed import fire_and_forget

        if self.client.status == "running":
            packed = pickle.dumps((function, argument), 5)
            addresses = list(self._seen[1])
            fire_and_forget(self._submitted([packed] * len(addresses), addresses))

    def _give_up(self, pending: dict[Any, int]) -> None:
        if pending and self.client.status == "running":
            self.client.cancel(list(pending), force=True)
        pending.clear()

    def _submitted(
        self, packed: Sequence[bytes], homes: Sequence[str | None]
    ) -> list[Any]:
        """Send calls; each to its home if that is still there, else to anybody."""
        self._check_scheduler()

        # In the thread that sends them, or it would send the first and, as a client
        # sends at most every 10 ms, the others so much later.
        async def submit_all() -> list[Any]:
            return [self._submit(*call) for call in zip(packed, homes, strict=True)]

        with warnings.catch_warnings():  # parameters of many megabytes go this way
            warnings.filterwarnings("ignore", message="Sending large graph")
            futures: list[Any] = self.client.sync(submit_all)
        return futures

    def _submit(self, packed: bytes, home: str | None) -> Any:
        key = f"kplus-{uuid.uuid4().hex}"  # a key once used may be remembered as lost
        where = {} if home is None else {"workers": [home], "allow_other_workers": True}
        return self.client.submit(_call, packed, key=key, pure=False, **where)

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
        """The answers of calls, or that they must be repeated."""
        good = [future for future in futures if future.status == "finished"]
        gather = partial(self.client.gather, good, asynchronous=True)
        try:  # all at once, as asking for one takes milliseconds
            answers = self.client.sync(gather, callback_timeout=STALL_SECONDS)
            results = dict(zip(good, answers, strict=True))
        except Exception:  # a worker went with its result, or is silent
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
            cause = future.exception(timeout=STALL_SECONDS)
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


def _call(packed: bytes) -> Answer:
    """On a worker: call the function, and tell how long it took."""
    from distributed import get_worker

    begun = time.perf_counter()
    function, argument = pickle.loads(packed)
    value = function(argument)
    return Answer(value, time.perf_counter() - begun, get_worker().address)


def _shared_out(calls: Sequence[Call], workers: dict[str, int]) -> list[str | None]:
    """A worker for each call: its home, unless that has its share of calls already."""
    threads = sum(workers.values())
    if not threads:
        return [None] * len(calls)
    share = -(-len(calls) // threads)
    room = {address: share * n for address, n in workers.items()}
    homes: list[str | None] = [None] * len(calls)
    for i, call in enumerate(calls):
        if call.home is not None and room.get(call.home, 0):
            homes[i] = call.home
            room[call.home] -= 1
    for i, home in enumerate(homes):
        if home is None:
            homes[i] = roomiest = max(room, key=room.__getitem__)
            room[roomiest] -= 1
    return homes


def _address(client: Any) -> str:
    return str(getattr(client.scheduler, "address", "of the cluster"))
