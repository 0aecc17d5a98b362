"""The Ray engine: workers live in actors, on this machine or on others.

A few actors (`Host`) hold all workers, several each if there are more parts than actors. Messages to all workers are
pickled once. The coordinator records the calls of a crew (`RayCrew`): when an actor is lost, another takes its place,
builds its workers from their parts and repeats the calls. Actors have as many threads as torch uses here, so that a
learner gives the same bits there as here. They are kept from crew to crew, and end when there has been none for a
while: idle actors would keep everybody else, this driver included, from the CPUs they hold.
"""

from __future__ import annotations

import atexit
import itertools
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, NamedTuple

import torch

from ally.checks import check_count
from ally.errors import BrokenPart, EngineError, MissingPart
from ally.execution.engine import Shared, T
from ally.execution.processes import end_with_parent

INLINE = 2**16
"""Larger messages are put where all actors can read them."""
LOSSES = 10
"""How often an actor may be lost in one call."""
PATIENCE = 300.0
"""Seconds to wait for an actor to start."""
PLACE = 30.0
"""Seconds to wait for free CPUs for an actor that replaces another."""
IDLE = 10.0
"""Seconds after which actors without a crew end."""
STORE = 2**28
"""Size in bytes of the object store when a cluster is started here; more spills to disk."""
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class RayEngine:
    """Workers on a Ray cluster.

    Attributes:
        address: the address of the cluster; None is ``RAY_ADDRESS`` if set, else a cluster started on this machine.
        workers: the number of actors; None is as many as the cluster has CPUs for, each with as many CPUs as torch has
            threads here.
        shards: the number of parts; None is one per actor.
    """

    address: str | None = None
    workers: int | None = None
    shards: int | None = None

    def __post_init__(self) -> None:
        for name in ("workers", "shards"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        _ray()

    @property
    def holds(self) -> bool:
        return True

    def parts(self, rows: int) -> int:
        return self.shards or self._width

    def crew(self, parts: Sequence[Any], build: Callable[[Any], Any]) -> RayCrew:
        connect(self.address)
        return RayCrew(hosts(self._width), parts, build)

    def share(self, value: T) -> Shared[T]:
        connect(self.address)
        return _Put(_put(value))

    @property
    def _width(self) -> int:
        if self.workers:
            return self.workers
        connect(self.address)
        return max(1, int(_ray().cluster_resources().get("CPU", 1)) // torch.get_num_threads())


class _Put:
    """A value in the object store."""

    def __init__(self, ref: Any) -> None:
        self._ref = ref

    def __call__(self) -> Any:
        return _ray().get(self._ref)


def _put(value: Any) -> Any:
    """A reference to a value in the object store."""
    ray = _ray()
    try:
        return ray.put(value)
    except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError) as error:
        raise EngineError(_FULL) from error


_FULL = (
    "Ray's object store is full, and so is the disk it spills to; free that disk (/tmp/ray, unless Ray was given "
    "another folder), give Ray a larger store, or pass the pool as a folder of parts or a memory map, which is not sent"
)


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingPart("engine='ray' needs Ray; install it with: pip install 'ally-learn[ray]'") from error
    return ray


def connect(address: str | None = None) -> Any:
    """Ray, connected to a cluster: the one this process is already connected to, the one at the address, or one started
    on this machine that ends with the process."""
    ray = _ray()
    if ray.is_initialized():
        return ray
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # The driver waits for its actors, so they are not background work.
    os.environ.setdefault("RAY_worker_niceness", "0")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    place = address or os.environ.get("RAY_ADDRESS")
    try:
        if place:
            ray.init(place, **quiet)
        else:
            ray.init("local", num_cpus=os.cpu_count(), include_dashboard=False, object_store_memory=STORE, **quiet)
    except Exception as error:
        raise EngineError(
            f"no Ray cluster could be reached or started at {place or 'this machine'} ({error}); check the address "
            "(RAY_ADDRESS) and, if the cluster wants a token, RAY_AUTH_MODE and the token here, or use engine='local'"
        ) from error
    return ray


class Host:
    """An actor that holds workers of any crew, by crew number and part number."""

    def __init__(self, threads: int, modules: Sequence[str]) -> None:
        # Busy actors may outlive a node that was killed by minutes.
        end_with_parent()
        torch.set_num_threads(threads)
        for name in modules:
            import_module(name)
        self._workers: dict[tuple[int, int], Any] = {}

    def ready(self) -> int:
        """The id of its process."""
        return os.getpid()

    def build(self, crew: int, build: Callable[[Any], Any], parts: dict[int, Any]) -> _Answer:
        def work() -> list[Any]:
            for number, part in parts.items():
                self._workers[crew, number] = build(part)
            return []

        return _answer(work)

    def call(self, crew: int, numbers: Sequence[int], message: bytes) -> _Answer:
        """Calls the same method on several workers."""
        from ray import cloudpickle

        method, args = cloudpickle.loads(message)
        return _answer(lambda: [getattr(self._workers[crew, number], method)(*args) for number in numbers])

    def end(self, crew: int) -> None:
        self._workers = {key: worker for key, worker in self._workers.items() if key[0] != crew}


class _Answer(NamedTuple):
    results: list[Any]
    error: Exception | None = None


def _answer(work: Callable[[], list[Any]]) -> _Answer:
    try:
        return _Answer(work())
    except Exception as error:
        return _Answer([], _portable(error))


def _portable(error: Exception) -> Exception:
    """The error itself if it can be sent, else one with its message."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    try:
        return pickle.loads(pickle.dumps(error)) and error
    except Exception:
        return BrokenPart(f"a worker failed: {type(error).__name__}: {error}")


class Hosts:
    """The actors of one cluster. A lost actor is replaced by another. They end when no crew has used them for `IDLE`
    seconds."""

    def __init__(self, count: int) -> None:
        ray, threads = _ray(), torch.get_num_threads()
        share = ray.cluster_resources().get("CPU", 1.0) / count
        self._cpus = float(threads if share >= threads else int(share) if share >= 1 else share)
        self.actors = [self._new(self._cpus) for _ in range(count)]
        if not self._started(self.actors, PATIENCE):
            self.end(range(count))
            raise EngineError(
                f"the Ray cluster had no room for {count} actors of {self._cpus:g} CPUs within {PATIENCE:g} seconds; "
                "free some, or use fewer: RayEngine(workers=1)"
            )
        self.lives = [0] * count
        """How often each has been replaced."""
        self.crews = 0
        self._clock: threading.Timer | None = None
        self.leave(0)

    def __len__(self) -> int:
        return len(self.actors)

    def replace(self, number: int, life: int) -> None:
        """Replaces an actor that was lost in that life, unless it has been replaced since."""
        if self.lives[number] == life:
            self.end([number])
            self.actors[number] = self._new(self._cpus)
            if not self._started([self.actors[number]], PLACE):
                # Its CPUs were lost with a machine, so it shares those that are left.
                self.end([number])
                self.actors[number] = self._new(0.0)
            self.lives[number] += 1

    def enter(self) -> None:
        """A crew begins."""
        with _LOCK:
            self.crews += 1
            self._stop_clock()

    def leave(self, crews: int = 1) -> None:
        """So many crews have ended."""
        with _LOCK:
            self.crews -= crews
            self._stop_clock()
            if not self.crews:
                self._clock = threading.Timer(IDLE, _let_go, [self])
                self._clock.daemon = True
                self._clock.start()

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()

    def end(self, numbers: Sequence[int]) -> None:
        ray = _ray()
        for number in numbers if ray.is_initialized() else ():
            with suppress(Exception):  # its cluster may be gone
                ray.kill(self.actors[number])

    def _new(self, cpus: float) -> Any:
        options = {"num_cpus": cpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        # Messages will need the modules that the driver has imported, so load them at the start.
        modules = sorted(name for name in sys.modules if name.startswith("ally."))
        return _ray().remote(Host).options(**options).remote(torch.get_num_threads(), modules)

    def _started(self, actors: Sequence[Any], seconds: float) -> bool:
        ready, _ = _ray().wait([actor.ready.remote() for actor in actors], num_returns=len(actors), timeout=seconds)
        return len(ready) == len(actors)


_POOLS: dict[tuple[str, int], Hosts] = {}
"""By connection and number of actors."""
_LOCK = threading.RLock()
"""Held while `_POOLS` or a number of crews is read and changed, but not while actors start."""
_STARTING = threading.Lock()


def hosts(count: int) -> Hosts:
    """This many actors. They are reused between crews, because starting one takes seconds."""
    key = _ray().get_runtime_context().get_job_id(), count
    with _LOCK:
        found = _POOLS.get(key)
    if found is None:
        with _STARTING:
            found = _POOLS.get(key)
            if found is None:
                release()
                found = _POOLS[key] = Hosts(count)
    return found


def release() -> None:
    """Ends all actors that no crew uses. The next crew starts new ones."""
    for pool in list(_POOLS.values()):
        _let_go(pool)


def _let_go(pool: Hosts, busy: bool = False) -> None:
    """Ends the actors if no crew uses them, or even so (`busy`). A crew that loses them this way starts others."""
    with _LOCK:
        if pool.crews and not busy:
            return
        for key in [key for key, one in _POOLS.items() if one is pool]:
            del _POOLS[key]
    pool.end(range(len(pool)))


@atexit.register
def _end_all() -> None:
    for pool in list(_POOLS.values()):
        _let_go(pool, busy=True)


def ensure_room(work: str) -> None:
    """Raises unless a task of one CPU can run within `PATIENCE` seconds, since Ray would wait for one without end."""
    ray = _ray()
    release()
    task = ray.remote(num_cpus=1)(lambda: None).remote()
    ready, _ = ray.wait([task], timeout=PATIENCE)
    if not ready:
        ray.cancel(task)
        raise EngineError(
            f"the Ray cluster had no CPU free for {work} within {PATIENCE:g} seconds; end what holds its CPUs, or try "
            "again when they are free"
        )


class _Call(NamedTuple):
    """A past call: what was sent to each actor, None where nothing was."""

    messages: dict[int, list[tuple[list[int], Any]]]


class RayCrew:
    """Workers in actors: part k in actor k modulo their number."""

    def __init__(self, hosts: Hosts, parts: Sequence[Any], build: Callable[[Any], Any]) -> None:
        self._number, self._hosts, self._open = next(_NUMBERS), hosts, True
        self._parts, self._build = list(parts), _put(build)
        self._used = range(min(len(hosts), len(self._parts)))
        self._calls: list[_Call] = []
        self._lives = list(hosts.lives)
        hosts.enter()
        try:
            self._collect({host: [(self._numbers(host), self._start(host))] for host in self._used}, None)
        except BaseException as error:
            self._close(error)
            raise

    def __len__(self) -> int:
        self._ensure_open()
        return len(self._parts)

    def each(self, method: str, *args: Any) -> list[Any]:
        self._ensure_open()
        message = _message(method, args)
        return self._call({host: [(self._numbers(host), message)] for host in self._used})

    def one(self, worker: int, method: str, *args: Any) -> Any:
        self._ensure_open()
        number = range(len(self._parts))[worker]
        return self._call({number % len(self._hosts): [([number], _message(method, args))]})[0]

    def scatter(self, method: str, args: Sequence[tuple[Any, ...]]) -> list[Any]:
        self._ensure_open()
        messages = [_message(method, own) for _, own in zip(self._parts, args, strict=True)]
        return self._call(
            {host: [([number], messages[number]) for number in self._numbers(host)] for host in self._used}
        )

    @contextmanager
    def passing(self) -> Iterator[None]:
        mark = len(self._calls)
        try:
            yield
        finally:
            del self._calls[mark:]

    def __enter__(self) -> RayCrew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(error)

    def _ensure_open(self) -> None:
        if not self._open:
            raise BrokenPart("the workers have stopped; use them inside the `with` block")

    def _close(self, error: BaseException | None) -> None:
        """After an interrupt, ends the actors, which may be busy; otherwise they only drop this crew."""
        if not self._open:
            return
        self._open = False
        self._calls.clear()
        if error is not None and not isinstance(error, Exception):
            _let_go(self._hosts, busy=True)
        elif _ray().is_initialized():
            for host in self._used:
                if self._hosts.lives[host] == self._lives[host]:
                    self._hosts.actors[host].end.remote(self._number)
        self._hosts.leave()

    def _numbers(self, host: int) -> list[int]:
        return list(range(host, len(self._parts), len(self._hosts)))

    def _call(self, messages: dict[int, list[tuple[list[int], Any]]]) -> list[Any]:
        call = _Call(messages)
        self._calls.append(call)
        return self._collect(
            {
                host: [(numbers, self._send(host, numbers, message)) for numbers, message in own]
                for host, own in messages.items()
            },
            call,
        )

    def _send(self, host: int, numbers: list[int], message: Any) -> Any:
        if self._hosts.lives[host] != self._lives[host]:
            return None
        return self._hosts.actors[host].call.remote(self._number, numbers, message)

    def _start(self, host: int) -> Any:
        parts = {number: self._parts[number] for number in self._numbers(host)}
        return self._hosts.actors[host].build.remote(self._number, self._build, parts)

    def _collect(self, sent: dict[int, list[tuple[list[int], Any]]], call: _Call | None) -> list[Any]:
        """Results in the order of the parts. An error is raised once no actor is busy."""
        found: dict[int, Any] = {}
        errors: list[Exception] = []
        for host, own in sent.items():
            for place, (numbers, ref) in enumerate(own):
                answer = self._answer(host, ref)
                if answer is None:
                    answers = self._revived(host, call)
                    rest = [answers[k] for k in range(place, len(own))] if call is not None else []
                    for (some, _), late in zip(own[place:], rest, strict=False):
                        _take(found, errors, some, late)
                    break
                _take(found, errors, numbers, answer)
        if errors:
            raise errors[0]
        return [found[number] for number in sorted(found)]

    def _answer(self, host: int, ref: Any) -> _Answer | None:
        """None if the actor is lost."""
        ray = _ray()
        if ref is None:
            return None
        try:
            answer: _Answer = ray.get(ref)
            return answer
        except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError, ray.exceptions.WorkerCrashedError):
            return None
        except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError) as error:
            raise EngineError(_FULL) from error

    def _revived(self, host: int, call: _Call | None) -> list[_Answer]:
        """Rebuilds the workers of a lost actor in another, as they were before `call`. Returns its answers to it."""
        for _ in range(LOSSES):
            self._hosts.replace(host, self._lives[host])
            self._lives[host] = self._hosts.lives[host]
            answer = self._answer(host, self._start(host))
            if answer is None:
                continue
            if answer.error is not None:
                raise answer.error
            refs = [
                (earlier is call, self._send(host, numbers, message))
                for earlier in self._calls
                for numbers, message in earlier.messages.get(host, [])
            ]
            answers = [(now, self._answer(host, ref)) for now, ref in refs]
            if all(one is not None for _, one in answers):
                return [one for now, one in answers if now and one is not None]
        raise EngineError(
            f"a worker was lost {LOSSES} times in one call; it may need more memory than there is: use more shards or "
            "workers, or a smaller memory_budget"
        )


def _take(found: dict[int, Any], errors: list[Exception], numbers: list[int], answer: _Answer) -> None:
    if answer.error is not None:
        errors.append(answer.error)
    else:
        found.update(zip(numbers, answer.results, strict=False))


def _message(method: str, args: tuple[Any, ...]) -> Any:
    """The pickled call, or a reference to it if it is large."""
    from ray import cloudpickle

    message: bytes = cloudpickle.dumps((method, args))  # type: ignore[no-untyped-call]
    return message if len(message) < INLINE else _put(message)
