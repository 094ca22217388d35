"""Kills at random moments, and what is left of the promises afterwards."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from accounts import Accounts, unbalanced_now
from fleet import Fleet, Member, failures

FEW = 0.001
"""Share of the tasks that kills alone may exhaust: each of them was claimed five times by processes that died."""
OF_ALL = 0.5
"""Share of the kills for which age does not count."""
SHOWN = 10


@dataclass(frozen=True)
class Report:
    """What kills have left."""

    figures: dict[str, object]
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{name:44} {value}" for name, value in self.figures.items()]
        more = len(self.faults) - SHOWN
        faults = [f"FAULT: {fault}" for fault in self.faults[:SHOWN]] + ([f"and {more} more"] if more > 0 else [])
        return "\n".join([*lines, *faults])


def kill_and_drain(fleet: Fleet, *, kills: int, seed: int, pause: float) -> Report:
    """Kill members of a fleet at random, about ``pause`` seconds apart, score what is left, and add up."""
    began, chance, unbalanced = time.monotonic(), random.Random(seed), []
    fleet.until_at_work()
    for _ in range(kills):
        time.sleep(chance.uniform(0, 2 * pause))  # a random moment is the point
        fleet.kill(_victim(fleet, chance))
        unbalanced += unbalanced_now(fleet.url)
    killed = time.monotonic()
    fleet.drain()
    accounts, committed = Accounts(fleet.url), fleet.committed()
    figures = {
        **_figures(fleet, accounts),
        "known to be committed": len(committed),
        "seconds of kills, of draining": f"{killed - began:.0f}, {time.monotonic() - killed:.0f}",
    }
    faults = [*accounts.faults(committed), *unbalanced, *_requested(fleet, accounts), *failures(fleet)]
    return Report(figures, [*faults, *_exhausted(accounts)])


def _victim(fleet: Fleet, chance: random.Random) -> Member:
    """Choose anybody, and every other time among the half that has lived longest: who has just begun holds little."""
    eldest = sorted(fleet.members, key=lambda member: member.born)
    return chance.choice(eldest if chance.random() < OF_ALL else eldest[: len(eldest) // 2])


def _figures(fleet: Fleet, accounts: Accounts) -> dict[str, object]:
    workers = [kill for kill in fleet.kills if kill.role == "worker"]
    held, asked = sum(len(kill.held) for kill in workers), sum(kill.asked for kill in workers)
    requests, scored = len(fleet.judge.chats), accounts.outcomes["scored", ""]
    return {
        "kills of workers, of applications": f"{len(workers)}, {len(fleet.kills) - len(workers)}",
        "kills of workers that held something": sum(bool(kill.held) for kill in workers),
        "exchanges": len(accounts.exchanges),
        "outcomes": ", ".join(f"{' '.join(key).strip()} {n}" for key, n in sorted(accounts.outcomes.items())),
        "judge requests": f"{requests}: {requests - scored} more than scores",
        "at the kills: held, asked about just then": f"{held}, {asked}",
        "kills of workers x concurrency": len(workers) * fleet.concurrency,
        "most attempts at one task": max(work.attempts for work in accounts.works),
    }


def _requested(fleet: Fleet, accounts: Accounts) -> Iterator[str]:
    """Each exchange may be judged once, and once more for each kill of a process that was at it.

    A request without a body is of a process that died while it sent it.
    """
    asked = Counter(
        request.answer for request in fleet.judge.chats if request.body
    )  # else its sender died in the middle
    allowed = Counter(work.answer for work in accounts.works if work.answer)
    allowed.update(answer for kill in fleet.kills for answer in kill.held)
    for answer, count in (asked - allowed).items():
        yield f"judged {count} times too often: {answer!r}"
    scored = Counter(work.answer for work in accounts.works if work.state == "done")
    yield from (f"scored without a judge: {answer}" for answer in scored - asked)


def _exhausted(accounts: Accounts) -> Iterator[str]:
    failed = [work for work in accounts.works if work.state == "failed"]
    if len(failed) > FEW * len(accounts.works) + 1:
        yield f"{len(failed)} tasks have failed, such as {failed[0]}"
