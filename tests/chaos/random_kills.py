"""Kills at random moments, followed by an audit of the delivery guarantees."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from audit import DatabaseAudit, find_current_imbalances
from cluster import Cluster, ClusterProcess, log_errors

MAX_EXHAUSTED_SHARE = 0.001
"""The share of tasks that may fail because five consecutive processes were killed while holding them."""
RANDOM_VICTIM_SHARE = 0.5
"""The share of kills that hit any process. The others hit a process from the older half."""
MAX_VIOLATIONS_SHOWN = 10


@dataclass(frozen=True)
class KillReport:
    """The measurements, and the violated guarantees."""

    measurements: dict[str, object]
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{name:44} {value}" for name, value in self.measurements.items()]
        more = len(self.violations) - MAX_VIOLATIONS_SHOWN
        lines += [f"VIOLATION: {violation}" for violation in self.violations[:MAX_VIOLATIONS_SHOWN]]
        return "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])


def kill_and_drain(cluster: Cluster, *, kills: int, seed: int, pause: float) -> KillReport:
    """Kill random processes in a cluster, about ``pause`` seconds apart, score the remaining tasks, and audit the
    result."""
    started, chance = time.monotonic(), random.Random(seed)
    imbalances: list[str] = []
    cluster.wait_until_busy()
    for _ in range(kills):
        time.sleep(chance.uniform(0, 2 * pause))  # kills must be at random moments
        cluster.kill(_choose_victim(cluster, chance))
        imbalances += find_current_imbalances(cluster.url)
    killed = time.monotonic()
    cluster.drain()
    audit, committed = DatabaseAudit(cluster.url), cluster.committed()
    measurements = {
        **_measure(cluster, audit),
        "known to be committed": len(committed),
        "seconds of killing, draining": f"{killed - started:.0f}, {time.monotonic() - killed:.0f}",
    }
    violations = [*audit.violations(committed), *imbalances, *_excess_requests(cluster, audit), *log_errors(cluster)]
    return KillReport(measurements, [*violations, *_exhausted_tasks(audit)])


def _choose_victim(cluster: Cluster, chance: random.Random) -> ClusterProcess:
    """Choose any process, or one from the older half, because a process that has just started holds few tasks."""
    oldest_first = sorted(cluster.processes, key=lambda process: process.started)
    is_any = chance.random() < RANDOM_VICTIM_SHARE
    return chance.choice(oldest_first if is_any else oldest_first[: len(oldest_first) // 2])


def _measure(cluster: Cluster, audit: DatabaseAudit) -> dict[str, object]:
    workers = [kill for kill in cluster.kills if kill.role == "worker"]
    held, in_flight = sum(len(kill.held) for kill in workers), sum(kill.in_flight for kill in workers)
    requests, scored = len(cluster.judge.chat_requests), audit.outcomes["scored", ""]
    return {
        "kills of workers, applications": f"{len(workers)}, {len(cluster.kills) - len(workers)}",
        "kills of workers that held tasks": sum(bool(kill.held) for kill in workers),
        "exchanges": len(audit.exchanges),
        "outcomes": ", ".join(f"{' '.join(key).strip()} {n}" for key, n in sorted(audit.outcomes.items())),
        "judge requests": f"{requests}: {requests - scored} more than scores",
        "tasks held, judge requests in flight at kills": f"{held}, {in_flight}",
        "kills of workers x concurrency": len(workers) * cluster.concurrency,
        "most claims of one task": max(task.claims for task in audit.tasks),
    }


def _excess_requests(cluster: Cluster, audit: DatabaseAudit) -> Iterator[str]:
    """Yield violations: an exchange may be judged once, and once more for each kill of a process that held it.

    A request without a body comes from a process that was killed while sending it.
    """
    requested = Counter(request.answer for request in cluster.judge.chat_requests if request.body)
    allowed = Counter(task.answer for task in audit.tasks if task.answer)
    allowed.update(answer for kill in cluster.kills for answer in kill.held)
    for answer, count in (requested - allowed).items():
        yield f"{count} judge requests too many: {answer!r}"
    scored = Counter(task.answer for task in audit.tasks if task.state == "done")
    yield from (f"scored without a judge: {answer}" for answer in scored - requested)


def _exhausted_tasks(audit: DatabaseAudit) -> Iterator[str]:
    failed = [task for task in audit.tasks if task.state == "failed"]
    if len(failed) > MAX_EXHAUSTED_SHARE * len(audit.tasks) + 1:
        yield f"{len(failed)} tasks have failed, such as {failed[0]}"
