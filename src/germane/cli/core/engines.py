"""The option of commands that run on an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import click

from germane import evaluation
from germane.cli.core.params import TextType

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from germane.evaluation import Engine, EngineName

EXAMPLE: Final = "dask@tcp://scheduler:8786"
ENGINE_NAMES: Final = ("local", "dask", "ray")
"""The names in ``germane.evaluation.ENGINE_NAMES``, whose module is not imported for help texts."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """An engine, as chosen on the command line."""

    name: EngineName = "local"
    workers: int | None = None
    """Number of processes to start. None means one per CPU."""
    scheduler: str | None = None
    """Address of a running Dask scheduler or Ray cluster."""

    def open(self) -> AbstractContextManager[Engine]:
        """Open the engine."""
        return evaluation.open_engine(self.name, workers=self.workers, scheduler=self.scheduler)


def _parse_engine(text: str) -> EngineOptions:
    engine, at, address = text.partition("@")
    name, colon, count = engine.partition(":")
    is_count = count.isascii() and count.isdecimal() and int(count) > 0
    if name not in ENGINE_NAMES or (colon and (at or not is_count)) or (at and not (address and name != "local")):
        raise click.BadParameter(f"{text!r:.100} is not an engine such as local, local:8, dask:8, ray or {EXAMPLE}")
    return EngineOptions(cast("EngineName", name), int(count) if count else None, address or None)


engine_option = click.option(
    "--engine",
    type=TextType("engine", _parse_engine),
    metavar="NAME[:N|@ADDRESS]",
    help="Run in N processes on this machine (local, dask, ray; one per CPU by default), or on the Dask or Ray "
    "cluster at ADDRESS.",
)


def require_engine(**options: object) -> None:
    """Check that no option is given that has an effect only with ``--engine``.

    The names are without dashes.

    Raises:
        click.UsageError: One is given.
    """
    for name, value in options.items():
        if value:
            raise click.UsageError(f"--{name.replace('_', '-')} requires --engine")
