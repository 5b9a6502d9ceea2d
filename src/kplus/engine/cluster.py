"""The workers of a distributed.Client; every request has a time limit."""

import asyncio
import contextlib
import math
import pickle
import socket
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from kplus.core.errors import WorkersError

__all__ = [
    "SEEN_SECONDS",
    "Answer",
    "Cluster",
    "Lost",
    "active_client",
    "check_shared",
    "packed_call",
]

NO_WORKERS_SECONDS = 20.0  # without any worker before a fit is given up
FETCH_SECONDS = 20.0  # for an answer to come, of workers or of the scheduler
_TRANSFER_SECONDS = 600.0  # for a part of a collection
_PING_SECONDS = 5.0
_TELL_SECONDS = 2.0
_POLL_SECONDS = 0.5
SEEN_SECONDS = 2.0  # between two looks at who the workers are


def active_client() -> Any:
    """The distributed.Client that is in use, if there is one; none is started.

    None within a task: it would wait for work that waits for its own worker.
    """
    distributed = sys.modules.get("distributed")
    if distributed is None or hasattr(
        distributed.worker.thread_state, "execution_state"
    ):
        return None
    client = distributed.client._get_global_client()
    ready = client is not None and client.status == "running"
    return client if ready and not client.asynchronous else None


def check_shared(client: Any) -> None:
    """Refuse workers on other machines, where nobody said which folder is shared."""
    from distributed.utils import get_ip

    here = {"127.0.0.1", "localhost", "::1", socket.gethostname(), get_ip()}
    for address in Cluster(client).workers():
        if urlsplit(address).hostname not in here and "inproc" not in address:
            raise WorkersError(
                f"The worker {address} is on another machine. Name a folder that all "
                f"workers reach: with kplus.resources(scratch=...), or --scratch."
            )


@dataclass(frozen=True)
class Answer:
    """What a call returned, how long it took, and the worker that did it."""

    value: Any
    seconds: float
    worker: str


@dataclass(frozen=True)
class Lost:
    """A call that must be repeated, and why."""

    why: str


class Cluster:
    """Workers that run calls and return answers.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._seen: tuple[float, dict[str, int]] = -math.inf, {}
        self._answered: list[Any] = []  # let go with the next calls, in one message

    # ------------------------------------------------------------ who is there

    def workers(self, age: float = 0.0) -> dict[str, int]:
        """Addresses and threads of workers, as they were at most `age` seconds ago."""
        if time.monotonic() - self._seen[0] > age:
            try:
                threads = self.client.nthreads(callback_timeout=FETCH_SECONDS)
            except TimeoutError:
                raise WorkersError(
                    f"The scheduler {self} does not answer; a fit with a checkpoint "
                    f"can be resumed."
                ) from None
            except OSError:  # it is gone, as the client will tell soon
                threads = {}
            self._seen = time.monotonic(), threads
        return self._seen[1]

    def __str__(self) -> str:
        return str(getattr(self.client.scheduler, "address", "of the cluster"))

    def check(self) -> None:
        """Raise an error if there is nobody to wait for."""
        end = time.monotonic() + NO_WORKERS_SECONDS
        while True:
            self._check_scheduler()
            if self.workers():
                return
            if time.monotonic() > end:
                raise WorkersError(
                    f"No worker is left at {self}; none came back in "
                    f"{NO_WORKERS_SECONDS:g} s. Start workers and fit again; with a "
                    f"checkpoint the fit can be resumed."
                )
            time.sleep(_POLL_SECONDS)

    def _check_scheduler(self) -> None:
        if self.client.status != "running":
            raise WorkersError(
                f"The connection to the scheduler {self} is lost; a fit with a "
                f"checkpoint can be resumed."
            )

    def at_work(self, futures: Sequence[Any]) -> tuple[set[str], set[str]]:
        """Keys of calls that workers hold who answer, and all who answer."""

        async def ask() -> dict[str, set[str]]:
            held = await self.client.processing()
            pings = [self.client.run(_ping, workers=[address]) for address in held]
            waits = [asyncio.wait_for(ping, _PING_SECONDS) for ping in pings]
            replies = await asyncio.gather(*waits, return_exceptions=True)
            return {
                address: set(keys)
                for (address, keys), reply in zip(held.items(), replies, strict=True)
                if not isinstance(reply, BaseException)
            }

        try:
            held = self.client.sync(ask, callback_timeout=FETCH_SECONDS)
        except (TimeoutError, OSError):  # `check` tells what is wrong
            held = {}
        asked = {future.key for future in futures}
        return asked & set().union(*held.values()), set(held)

    def troubles(self) -> str:
        """What workers say of their condition, if it is not good."""
        with contextlib.suppress(Exception):
            identity = partial(self.client.scheduler.identity, n_workers=-1)
            info = self.client.sync(identity, callback_timeout=_PING_SECONDS)
            for address, worker in info["workers"].items():
                if worker.get("status") == "paused":
                    return f"; {address} is paused, as it is short of memory"
        return ""

    # -------------------------------------------------------------------- calls

    def submit(
        self, packed: Sequence[bytes], homes: Sequence[Sequence[str]]
    ) -> list[Any]:
        """Send calls; each to one of its homes if those are there, else to anybody."""
        self._check_scheduler()

        # In the thread that sends them, or it would send the first and, as a client
        # sends at most every 10 ms, the others so much later.
        async def submit_all() -> list[Any]:
            return [self._submit(*call) for call in zip(packed, homes, strict=True)]

        with warnings.catch_warnings():  # parameters of many megabytes go this way
            warnings.filterwarnings("ignore", message="Sending large graph")
            futures: list[Any] = self.client.sync(submit_all)
        self._answered.clear()
        return futures

    def _submit(self, packed: bytes, homes: Sequence[str]) -> Any:
        key = f"kplus-{uuid.uuid4().hex}"  # a key once used may be remembered as lost
        where = {"workers": list(homes), "allow_other_workers": True} if homes else {}
        return self.client.submit(_call, packed, key=key, pure=False, **where)

    def tell_all(self, function: Callable[[Any], None], argument: Any) -> None:
        """Have every worker call a function; nobody is waited for long."""
        from distributed import wait

        self._answered.clear()
        addresses = [[address] for address in self._seen[1]]
        with contextlib.suppress(Exception):  # there may be nobody to tell any more
            packed = packed_call(function, argument)
            futures = self.submit([packed] * len(addresses), addresses)
            with self.client.as_current():
                wait(futures, timeout=_TELL_SECONDS)

    def cancel(self, futures: Sequence[Any]) -> None:
        if futures and self.client.status == "running":
            self.client.cancel(list(futures), force=True)

    def compute(self, collection: Any) -> Any:
        """What a dask collection is, as long as anybody is there to compute it."""
        future = self.client.compute(collection)
        while not self.finished([future]):
            self.check()
        try:
            return future.result(timeout=_TRANSFER_SECONDS)
        except TimeoutError:
            raise WorkersError(
                f"A part of the dask collection did not come from the workers at "
                f"{self} in {_TRANSFER_SECONDS:g} s; make its parts smaller."
            ) from None

    # ------------------------------------------------------------------ answers

    def finished(self, futures: Sequence[Any]) -> list[Any]:
        """Those that are not pending any more, after a short wait if all are."""
        from distributed import wait

        if all(future.status == "pending" for future in futures):
            # Time is up, or a future was cancelled: statuses tell.
            with contextlib.suppress(Exception), self.client.as_current():
                wait(futures, timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED")
        return [future for future in futures if future.status != "pending"]

    def answers(self, futures: Sequence[Any]) -> list[Answer | Lost]:
        """What calls returned, or that they must be repeated; their errors are raised.

        All at once, as asking for one takes milliseconds.
        """
        good = [future for future in futures if future.status == "finished"]
        gather = partial(self.client.gather, good, asynchronous=True)
        try:
            answers = self.client.sync(gather, callback_timeout=FETCH_SECONDS)
            results = dict(zip(good, answers, strict=True))
        except Exception:  # a worker went with its result, or is silent
            results = {}
        self._answered += results
        return [results.get(future) or self._answer(future) for future in futures]

    def _answer(self, future: Any) -> Answer | Lost:
        if future.status == "finished":
            try:
                return future.result(timeout=FETCH_SECONDS)  # type: ignore[no-any-return]
            except Exception as error:
                self.check()
                return Lost(f"the result was lost ({error})")
        if future.status == "error":
            return _explained(future.exception(timeout=FETCH_SECONDS))
        self.check()
        return Lost("it was lost with a worker")


def _explained(cause: BaseException | None) -> Lost:
    """Raise the error of a call, unless it was not the call's."""
    if cause is None or type(cause).__name__ == "KilledWorker":
        return Lost("they died at it, perhaps for want of memory; see their logs")
    if isinstance(cause, ModuleNotFoundError):
        raise WorkersError(
            f"Workers cannot do it: {cause}. Install kplus there, the same version and "
            f"with all that the files need."
        ) from cause
    raise cause


def packed_call(function: Callable[..., Any], argument: Any) -> bytes:
    """A call as bytes: a scheduler that looked into it would take long."""
    return pickle.dumps((function, argument), 5)


def _call(packed: bytes) -> Answer:
    """On a worker: call the function, and tell how long it took."""
    from distributed import get_worker

    begun = time.perf_counter()
    function, argument = pickle.loads(packed)
    value = function(argument)
    return Answer(value, time.perf_counter() - begun, get_worker().address)


def _ping() -> None:
    """On a worker: nothing, which shows that it is there."""
