"""What the doctor finds of the processes that score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from germane.cli.doctor.finding import Finding
from germane.settings import Settings

if TYPE_CHECKING:
    from germane.storage import OpenTasks, Store, Worker

LEASES: Final = 2
"""Who was not seen for so many is gone, or holds still."""
NAMED: Final = 5
"""Processes that are told one by one."""


def look_at_processes(store: Store, settings: Settings) -> Iterator[Finding]:
    """Tell which processes score, which have fallen silent, and what none of them scores."""
    patience = timedelta(seconds=LEASES * settings.lease)
    alive = store.workers(within=patience)
    names = {one.id for one in alive}
    silent = [one for one in store.workers() if one.id not in names]
    if alive:
        yield Finding("processes", "ok", f"{_count(alive)} scores: {_listed([_at_work(one) for one in alive])}")
        yield from _look_at_abandoned(store, patience)
    if silent:
        told = _listed([f"{_name(one)}, seen last at {one.seen_at:%Y-%m-%d %H:%M} UTC" for one in silent])
        becomes = "is scored by others" if alive else "waits until one starts: nobody scores now"
        message = f"{_count(silent)} fell silent without having stopped: {told}; what it held {becomes}"
        yield Finding("processes", "note", message, "look for what ended or halted it; start it again if none is left")


def _look_at_abandoned(store: Store, patience: timedelta) -> Iterator[Finding]:
    waiting = {(one.scorer, one.fingerprint): _total(one) for one in store.outstanding().tasks}
    for scorer, fingerprint in store.abandoned(after=patience):
        told = f"{waiting.get((scorer, fingerprint), 0)} tasks wait for its fingerprint {fingerprint}"
        message = f"{told}, which no process runs; after an hour without one they are skipped as expired"
        fix = "run a process with that version of it, or leave them: what comes now is scored by those that run"
        yield Finding(f"scorer {scorer}", "note", message, fix)


def _total(tasks: OpenTasks) -> int:
    return tasks.candidates + tasks.ready + tasks.postponed + tasks.running


def _at_work(worker: Worker) -> str:
    busy = f"{worker.in_flight} at work" if worker.problem is None else f"waits: {worker.problem}"
    return f"{_name(worker)}, germane {worker.version}, {', '.join(sorted(worker.scorers))}, {busy}"


def _name(worker: Worker) -> str:
    return f"{worker.service} on {worker.host} (process {worker.pid})"


def _count(workers: Sequence[Worker]) -> str:
    return "1 process" if len(workers) == 1 else f"each of {len(workers)} processes"


def _listed(told: Sequence[str]) -> str:
    more = [f"and {len(told) - NAMED} more"] if len(told) > NAMED else []
    return "; ".join([*told[:NAMED], *more])
