"""Engines: processes on this machine or on a cluster that run partitions. No other module imports Dask or Ray.

An engine has the ``submit`` method of :class:`concurrent.futures.Executor`. Functions and arguments must be picklable.
Functions must be safe to repeat: an engine may run a function again if it loses the process that runs it.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.connection import wait as wait_for_objects
from typing import Any, Final, Literal, TypeVar, get_args

from germane.errors import GermaneError, UsageError
from germane.installation import install_command

EngineName = Literal["local", "dask", "ray"]
ENGINE_NAMES: Final[tuple[EngineName, ...]] = get_args(EngineName)
DEFAULT_WORKERS: Final = os.cpu_count() or 1
"""Number of processes that an engine starts by default."""
LOCAL_HOST: Final = "127.0.0.1"
_ENDED: Final = "the process that scored this partition ended unexpectedly; the system may have run out of memory"

Result = TypeVar("Result")


class WorkerLost(GermaneError):
    """The process that ran a function ended before it returned, for example because it was killed."""


class Engine(ABC):
    """Runs functions in other processes."""

    workers: int
    """The number of functions that run at the same time."""
    is_remote: bool = False
    """Whether the processes belong to a cluster that this process did not start."""
    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)
    """The exceptions that say that the process that ran a function has ended."""

    def submit(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        """Run a function, and return its future. The future raises :class:`WorkerLost` if the process has ended."""
        outer: Future[Result] = Future()
        outer.set_running_or_notify_cancel()

        def pass_on(done: Future[Result]) -> None:
            try:
                outer.set_result(done.result())
            except CancelledError:
                outer.set_exception(WorkerLost("the engine canceled this partition"))
            except self.lost:
                outer.set_exception(WorkerLost(_ENDED))
            except BaseException as error:  # noqa: BLE001 - whatever the function raised belongs to the caller
                outer.set_exception(self.unwrap(error))

        self.start(function, *args).add_done_callback(pass_on)
        return outer

    def unwrap(self, error: BaseException) -> BaseException:
        """Return the exception that the function raised."""
        return error

    @abstractmethod
    def start(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        """Run a function, and return the engine's future."""

    @abstractmethod
    def close(self, *, abandon: bool) -> None:
        """Stop the processes that this engine started, after the running functions unless they are abandoned."""


@contextmanager
def open_engine(
    engine: EngineName | Executor, *, workers: int | None = None, scheduler: str | None = None
) -> Iterator[Engine]:
    """Open an engine, and close it at the end of the context. After an exception, running functions are abandoned.

    The arguments are those of :func:`germane.evaluate_to_parquet`.

    Raises:
        UsageError: The engine is not installed or cannot be reached, or the arguments contradict each other.
    """
    if scheduler is not None and engine not in {"dask", "ray"}:
        given = "local" if engine == "local" else "an executor"
        raise UsageError(f"scheduler must be the address of a Dask or Ray cluster, but the engine is {given}")
    if scheduler is not None and workers is not None:
        raise UsageError("workers must not be given with a scheduler: its cluster has its own workers")
    if workers is not None and workers < 1:
        raise UsageError(f"workers must be at least 1, not {workers}")
    opened: Engine
    if isinstance(engine, Executor):
        if workers is None:
            raise UsageError("workers must be the number of functions that the executor runs at the same time")
        opened = _ExecutorEngine(engine, workers)
    elif engine in ENGINE_NAMES:
        engines: dict[EngineName, Callable[[int, str | None], Engine]]
        engines = {"local": _LocalEngine, "dask": _DaskEngine, "ray": _RayEngine}
        opened = engines[engine](workers or DEFAULT_WORKERS, scheduler)
    else:
        raise UsageError(f"engine must be one of {', '.join(ENGINE_NAMES)}, or an executor, not {engine!r:.60}")
    abandon = True
    try:
        yield opened
        abandon = False
    finally:
        opened.close(abandon=abandon)


class _LocalEngine(Engine):
    """Processes on this machine, each with a pool of its own, because a pool breaks if one of its processes dies."""

    def __init__(self, workers: int, _scheduler: str | None) -> None:
        self.workers = workers
        self._pools = [_new_pool() for _ in range(workers)]
        self._submitted: Counter[int] = Counter()
        self._lock = threading.Lock()

    def start(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        with self._lock:
            number = min(range(self.workers), key=self._submitted.__getitem__)
            self._submitted[number] += 1
            try:
                future = self._pools[number].submit(function, *args)
            except BrokenProcessPool:
                self._pools[number] = _new_pool()
                future = self._pools[number].submit(function, *args)

        def count_finished(_future: Future[Result]) -> None:
            with self._lock:
                self._submitted[number] -= 1

        future.add_done_callback(count_finished)
        return future

    def close(self, *, abandon: bool) -> None:
        if abandon:
            for pool in self._pools:
                # The executor has no public way to end a process that is still starting.
                for process in list((pool._processes or {}).values()):  # noqa: SLF001
                    process.terminate()
        for pool in self._pools:
            pool.shutdown(wait=True, cancel_futures=abandon)


def _new_pool() -> ProcessPoolExecutor:
    # Threads and connections do not survive a fork.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=_prepare_local_process)


def _prepare_local_process() -> None:
    """Let only the parent handle Ctrl-C, and end this process if the parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        thread = threading.Thread(target=_exit_after, args=(parent.sentinel,), name="germane-parent", daemon=True)
        thread.start()


def _exit_after(sentinel: int) -> None:
    wait_for_objects([sentinel])
    os._exit(1)


class _ExecutorEngine(Engine):
    """An executor of the caller, who shuts it down."""

    def __init__(self, executor: Executor, workers: int) -> None:
        self.workers = workers
        # Nothing is known about other executors, so they get no secrets.
        self.is_remote = not isinstance(executor, (ProcessPoolExecutor, ThreadPoolExecutor))
        self._executor = executor

    def start(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        try:
            return self._executor.submit(function, *args)
        except RuntimeError as error:  # it is shut down, or one of its processes has ended
            raise UsageError(f"the executor accepts no more work, so pass a new one: {error}") from None

    def close(self, *, abandon: bool) -> None:
        """Do nothing."""


_LOCAL_CLUSTER: Final = {
    # Report each lost process, instead of repeating its functions in other processes.
    "distributed.scheduler.allowed-failures": 0,
    # Dask's own measurements take about a sixth of the CPU time by default.
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}
"""Dask's settings for a cluster on this machine."""


class _DaskEngine(Engine):
    """A Dask cluster."""

    def __init__(self, workers: int, scheduler: str | None) -> None:
        distributed = _import_engine("distributed", "dask")
        dask = import_module("dask")
        self.is_remote = scheduler is not None
        self.lost = (import_module("distributed.scheduler").KilledWorker,)
        self._cluster: Any = None
        try:
            if scheduler is None:
                with dask.config.set(_LOCAL_CLUSTER):
                    self._cluster = distributed.LocalCluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        host=LOCAL_HOST,
                        # The scheduler always has an HTTP server, by default on port 8787, which others may use.
                        scheduler_kwargs={"dashboard": False, "dashboard_address": f"{LOCAL_HOST}:0"},
                        silence_logs=logging.CRITICAL,
                        config=_LOCAL_CLUSTER,  # of processes that replace others later
                    )
                # Dask does not replace a process that dies while it starts, unless the cluster is adaptive.
                self._cluster.adapt(minimum=workers, maximum=workers)
            self._client = distributed.Client(self._cluster or scheduler, set_as_default=False)
        except (OSError, ValueError, RuntimeError) as error:
            what = "a Dask cluster cannot be started" if scheduler is None else f"{scheduler} is not a Dask scheduler"
            raise UsageError(f"{what}: {error}") from None
        self._executor: Executor = self._client.get_executor(pure=False)
        threads = sum(self._client.nthreads().values())
        if not threads:
            self.close(abandon=True)
            raise UsageError(
                f"the Dask scheduler at {scheduler} has no workers: start some with 'dask worker {scheduler}'"
            )
        self.workers = threads

    def start(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        return self._executor.submit(function, *args)

    def close(self, *, abandon: bool) -> None:
        self._executor.shutdown(wait=not abandon)
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


class _RayEngine(Engine):
    """A Ray cluster."""

    def __init__(self, workers: int, scheduler: str | None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray sends statistics about its use otherwise
        if scheduler is None:
            # Ray reads this variable when it is imported. Without a cluster, it listens on 127.0.0.1 alone.
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        self._ray = _import_engine("ray", "ray")
        errors = import_module("ray.exceptions")
        self.lost = (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError)
        self._wrapped = errors.RayTaskError
        self.is_remote = scheduler is not None
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        if scheduler is None:
            options |= {"num_cpus": workers, "include_dashboard": False}
        try:
            self._ray.init(scheduler or "local", **options)
        except (ConnectionError, OSError, ValueError, RuntimeError) as error:
            what = "a Ray cluster cannot be started" if scheduler is None else f"{scheduler} is not a Ray cluster"
            raise UsageError(f"{what}: {error}") from None
        self.workers = int(self._ray.cluster_resources().get("CPU", 1))
        self._functions: dict[Callable[..., Any], Any] = {}

    def start(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        if function not in self._functions:
            self._functions[function] = self._ray.remote(num_cpus=1, max_retries=0)(function)
        future: Future[Result] = self._functions[function].remote(*args).future()
        return future

    def unwrap(self, error: BaseException) -> BaseException:
        cause = getattr(error, "cause", None)
        return cause if isinstance(error, self._wrapped) and isinstance(cause, BaseException) else error

    def close(self, *, abandon: bool) -> None:  # noqa: ARG002 - shutdown() ends running functions in any case
        self._ray.shutdown()


def _import_engine(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise UsageError(f"the engine {extra} is not installed; install it with: {install_command(extra)}") from None
