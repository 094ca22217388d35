"""The options of commands that run on an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from germane.evaluation import Engine, EngineName

ENGINE_NAMES: Final = ("local", "dask", "ray")
"""The names in ``germane.evaluation.ENGINE_NAMES``, whose module is not imported for help texts."""
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """An engine, as chosen on the command line."""

    name: EngineName
    workers: int | None
    scheduler: str | None

    def open(self) -> AbstractContextManager[Engine]:
        """Open the engine."""
        from germane.evaluation import open_engine

        return open_engine(self.name, workers=self.workers, scheduler=self.scheduler)


def engine_options(command: Command) -> Command:
    """Add the options ``--engine``, ``--workers`` and ``--scheduler`` to a command."""
    for option in (
        click.option("--scheduler", metavar="ADDRESS", help="Address of a running Dask scheduler or Ray cluster."),
        click.option(
            "--workers",
            type=click.IntRange(1),
            metavar="N",
            help="Number of processes to start. Defaults to one per CPU.",
        ),
        click.option(
            "--engine",
            type=click.Choice(ENGINE_NAMES),
            help="Run in processes on this machine, or on Dask or Ray.",
        ),
    ):
        command = option(command)
    return command


def read_engine_options(
    engine: EngineName | None, workers: int | None, scheduler: str | None, **others: object
) -> EngineOptions | None:
    """Return the engine; None if the command does not run on an engine.

    Args:
        engine: The value of ``--engine``.
        workers: The value of ``--workers``.
        scheduler: The value of ``--scheduler``.
        others: Values of other options that require ``--engine``, by option name without dashes.

    Raises:
        click.UsageError: An option is given that requires ``--engine``.
    """
    if engine is not None:
        return EngineOptions(engine, workers, scheduler)
    for name, value in {"workers": workers, "scheduler": scheduler, **others}.items():
        if value:
            raise click.UsageError(f"--{name.replace('_', '-')} requires --engine")
    return None
