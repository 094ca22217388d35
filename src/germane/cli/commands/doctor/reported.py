"""The settings that running processes report, so that ``germane doctor`` knows those that are given in code."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from germane import sanitize, storage
from germane.cli.core.command import database_setting
from germane.errors import SettingsError, StorageError
from germane.settings import Settings, load_settings

if TYPE_CHECKING:
    from germane.storage import Worker


@dataclass(frozen=True, slots=True)
class ReportedSettings:
    """The settings of a running process, where they differ from those of this command."""

    process: Worker
    settings: Settings
    """The settings of this command, with the reported ones."""
    differences: dict[str, Any]
    """The reported values that differ, by name."""

    @property
    def has_unknown_server(self) -> bool:
        """Whether the process uses a judge's server whose URL or key this command does not know."""
        return self.differences.get("server") is not None

    def __str__(self) -> str:
        """Name the process and the values that differ."""
        if not self.process.settings:
            return f"no settings reported by {describe_process(self.process)}"
        values = ", ".join(f"{name} = {value!r}" for name, value in sorted(self.differences.items()))
        return f"as reported by {describe_process(self.process)}: {sanitize.line(values, 600)}"


def load_reported_settings(settings: Settings) -> ReportedSettings | None:
    """Return the settings of a running process of this service, or None if they are the same.

    If none is running, use those of another service, because the service may be named in code. Database errors are
    reported elsewhere.
    """
    processes: list[Worker] = []
    with suppress(SettingsError, StorageError), closing(storage.TrackingStore(settings.database)) as store:
        processes = store.workers.list_workers(within=timedelta(seconds=2 * settings.task_lease))
    if not processes:
        return None
    process = min(processes, key=lambda each: (each.service != settings.service, not each.settings))
    if not process.settings:
        return ReportedSettings(process, settings, {}) if process.service == settings.service else None
    reported, own = dict(process.settings), settings.shared()
    differences = {name: reported.get(name) for name in reported | own if reported.get(name) != own.get(name)}
    if not differences:
        return None
    known = Settings.model_fields.keys() & differences
    for name in known - reported.keys():  # only values other than the default are reported
        differences[name] = Settings.model_fields[name].get_default(call_default_factory=True)
    with suppress(SettingsError):  # the process may run another version
        settings = load_settings(**{name: differences[name] for name in known} | database_setting())
    return ReportedSettings(process, settings, differences)


def describe_process(process: Worker) -> str:
    """Return the service, host and id of a process."""
    return f"{process.service} on {process.host} (process {process.pid})"
