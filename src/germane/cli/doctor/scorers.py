"""What the doctor finds of scorers, the judge and the embedder, whom it asks something tiny."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from germane.cli.doctor.finding import ADDRESS, EMBEDDED, FIXES, MANY, NO_JUDGE, Finding
from germane.errors import GermaneError, ScoringError, SettingsError, StorageError
from germane.settings import LOCAL, Settings

if TYPE_CHECKING:
    from germane.calibration import Calibration
    from germane.scorers import Workbench


def look_at_scorers(settings: Settings, *, offline: bool) -> Iterator[Finding]:
    """Tell what scores, and whether judge and embedder answer."""
    from germane.scorers import build

    try:
        workbench = build(settings)
    except GermaneError as error:
        yield Finding("scorers", "fault", str(error), "install what is missing, or correct the setting")
        return
    if workbench.problem is not None:
        yield Finding("judge", "fault", "no judge is configured", workbench.problem)
        return
    yield Finding("scorers", "ok", ", ".join(scorer.name for scorer in workbench.scorers))
    yield from _look_at_choices(settings, workbench)
    yield from _look_at_calibration(settings, workbench)
    if workbench.judge is None and settings.scorers is None:  # who names scorers has chosen to do without
        yield Finding("judge", "note", "no judge is configured: answer_relevancy is not scored", NO_JUDGE)
    if not offline:
        yield from asyncio.run(_ask(workbench))


def _look_at_choices(settings: Settings, workbench: Workbench) -> Iterator[Finding]:
    """Look at what chooses exchanges: whether predicates are there, and filters are of scorers that run."""
    from germane.monitor.fitness import Fitness

    try:
        Fitness(workbench.scorers, filters=settings.filters, always=settings.always)
    except SettingsError as error:
        yield Finding("choices", "fault", str(error), "correct the name; its module is imported from where this runs")
    names = {scorer.name for scorer in workbench.scorers}
    for name in settings.filters.keys() - names:
        message = f"chooses exchanges for a scorer that does not run here: {', '.join(sorted(names))}"
        yield Finding(f"filters.{name}", "note", message, "correct the name, or run that scorer")


def _look_at_calibration(settings: Settings, workbench: Workbench) -> Iterator[Finding]:
    """Say on which scale labels stand. A database that is not there is told elsewhere."""
    from germane.scorers import COSINES
    from germane.scorers.floors import LEAST

    embedders = {scorer.name: getattr(scorer, "embedder", None) for scorer in workbench.scorers}
    models = {name: embedder.model for name, embedder in embedders.items() if name in COSINES and embedder}
    if not models:
        return
    calibrations, captured = _calibrations(settings)
    floors = {(one.embedder, one.scorer): one for one in calibrations}
    for name, model in models.items():
        if floor := floors.get((model, name)):
            yield Finding(f"labels of {name}", "ok", str(floor))
        elif captured >= LEAST:
            message = f"are not calibrated for {model}: each embedder's cosines have a scale of their own"
            yield Finding(f"labels of {name}", "note", message, "germane calibrate --save")


def _calibrations(settings: Settings) -> tuple[list[Calibration], int]:
    """Return the floors that are known, and how many exchanges there are."""
    from germane.storage import Store

    try:
        store = Store(settings.database)
    except SettingsError:
        return [], 0
    try:
        return store.calibrations(), store.counts(at_most=MANY).captured
    except StorageError:
        return [], 0
    finally:
        store.close()


async def _ask(workbench: Workbench) -> list[Finding]:
    """Ask judge and embedder something tiny: only their servers know whether key and model are good."""
    findings = []
    try:
        if workbench.judge is not None:
            findings.append(await _answers("judge", workbench.judge.model, workbench.try_judge()))
        if workbench.embedder is not None:
            asked = workbench.embedder.embed(["ok"])
            findings.append(await _answers("embedder", workbench.embedder.model, asked))
    finally:
        await workbench.aclose()
    return findings


async def _answers(about: str, model: str, asked: Any) -> Finding:
    try:
        await asked
    except ScoringError as error:
        fix = EMBEDDED if model.startswith(f"{LOCAL}:") else FIXES.get(str(error.reason), ADDRESS)
        return Finding(about, "fault", str(error), fix)
    except GermaneError as error:
        return Finding(about, "fault", str(error), "install what is missing")
    return Finding(about, "ok", f"{model} answers")
