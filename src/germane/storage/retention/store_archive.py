"""The archive's part of the store: moves closed days to the archive, and verifies it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from germane.errors import ArchiveError, UsageError
from germane.sanitize import count_noun
from germane.storage.archive.days import ONE_DAY, ArchivedDay, load_days
from germane.storage.archive.files import find_damaged, verify_files, verify_manifest
from germane.storage.archive.location import ArchiveLocation
from germane.storage.archive.manifest import Manifest
from germane.storage.db.component import StoreComponent
from germane.storage.retention.archive_lease import hold_archive
from germane.storage.retention.archiving import DayArchiver, DayBusy, find_next_day, find_obstacle


@dataclass(frozen=True, slots=True)
class DayResult:
    """The result of archiving one day or, in a dry run, the expected result."""

    day: datetime
    manifest: Manifest | None
    """The archived files; None if the day was not archived."""
    waiting_for: str | None = None
    """Why the day cannot be archived yet, such as "2 open tasks"."""
    problem: str | None = None
    """Why archiving the day failed, such as a damaged file."""


@dataclass(frozen=True, slots=True)
class ArchiveSummary:
    """The size of an archive."""

    days: Sequence[ArchivedDay] = field(default_factory=list)
    """Oldest first."""

    @property
    def scores(self) -> int:
        """Number of archived scores."""
        return sum(day.manifest.rows("score") for day in self.days)

    @property
    def exchanges(self) -> int:
        """Number of archived exchanges."""
        return sum(day.manifest.rows("exchange") for day in self.days)

    @property
    def size(self) -> int:
        """Size of the files in bytes."""
        return sum(day.manifest.size for day in self.days)


class ArchiveStore(StoreComponent):
    """Moves closed days to an archive. An interrupted call is continued by the next one.

    Methods raise :class:`~germane.errors.ArchiveError` if the archive cannot be accessed or is damaged, and
    :class:`~germane.errors.UsageError` if the ``archive`` extra is not installed.
    """

    def archive_days(
        self,
        location: str,
        *,
        before: datetime,
        has_text: bool = False,
        dry_run: bool = False,
        stopping: Callable[[], bool] = lambda: False,
        on_day: Callable[[DayResult], None] = lambda _: None,
    ) -> list[DayResult]:
        """Move all days that ended before a given time to the archive, oldest first.

        A day waits while it has exchanges without a sampling decision, open tasks, or hours to be rolled up. Rows that
        arrived late for an archived day are added to it.

        Args:
            location: Folder or ``s3://`` URL, as in the ``archive.location`` setting.
            before: Archive the UTC days that ended before this time.
            has_text: Whether to archive questions, answers, contexts, explanations and comments.
            dry_run: Change nothing, and return the days that would be archived.
            stopping: Called between transactions. If it returns True, the call ends early.
            on_day: Called after each day.

        Raises:
            ArchiveError: Another process is archiving, or some days could not be archived. A day whose earlier files
                are damaged does not stop later days.
            UsageError: The time has no time zone.
        """
        if before.tzinfo is None:
            raise UsageError(f"{before} has no time zone")
        before = min(before.astimezone(UTC), self._context.read_clock())
        if dry_run:
            results = [DayResult(day, None, obstacle) for day, obstacle in self._closed_days(before, stopping)]
            for result in results:
                on_day(result)
            return results
        with hold_archive(self._context) as lease:
            return self._archive_days(
                ArchiveLocation(location), before, lambda: lease.is_lost or stopping(), on_day, has_text=has_text
            )

    def _closed_days(self, before: datetime, stopping: Callable[[], bool]) -> Iterator[tuple[datetime, str | None]]:
        """Yield each day before a given time that has rows in the database, and why it cannot be archived yet."""
        after = datetime(1970, 1, 2, tzinfo=UTC)
        while not stopping():
            with self._database.read() as connection:
                day = find_next_day(connection, after, before)
                obstacle = None if day is None else find_obstacle(connection, day)
            if day is None:
                return
            yield day, obstacle
            after = day + ONE_DAY

    def _archive_days(
        self,
        location: ArchiveLocation,
        before: datetime,
        stopping: Callable[[], bool],
        on_day: Callable[[DayResult], None],
        *,
        has_text: bool,
    ) -> list[DayResult]:
        results: list[DayResult] = []
        archived = {record.day for record in self.list_days()}
        for day, obstacle in self._closed_days(before, stopping):
            result = DayResult(day, None, obstacle)
            if obstacle is None:
                try:
                    result = self._archive_day(location, day, stopping, has_text=has_text)
                except ArchiveError as error:
                    if day not in archived:  # nothing was read that could be damaged: later days would fail too
                        raise
                    result = DayResult(day, None, problem=str(error))
            results.append(result)
            on_day(result)
        failed = {result.day: result.problem for result in results if result.problem is not None}
        failed |= self._continue_days(stopping, except_for=failed)
        if failed:
            labeled = ((f"{day:%Y-%m-%d}", problem) for day, problem in sorted(failed.items()))
            named = "; ".join(problem if day in problem else f"{day}: {problem}" for day, problem in labeled)
            raise ArchiveError(f"{count_noun(len(failed), 'day')} could not be archived: {named}")
        return results

    def _continue_days(self, stopping: Callable[[], bool], *, except_for: Container[datetime]) -> dict[datetime, str]:
        """Continue days interrupted after the removal of their last row. Return the problems of the others."""
        problems: dict[datetime, str] = {}
        for record in self.list_days():
            is_unfinished = record.state != "removed" or record.has_stale_files
            if not stopping() and is_unfinished and record.day not in except_for:
                try:
                    self._archive_day(record.files, record.day, stopping, has_text=record.manifest.has_text)
                except ArchiveError as error:
                    problems[record.day] = str(error)
        return problems

    def _archive_day(
        self, location: ArchiveLocation, day: datetime, stopping: Callable[[], bool], *, has_text: bool
    ) -> DayResult:
        archiver = DayArchiver(self._context, location, day, has_text=has_text, pause=self._database.let_others_write)
        try:
            return DayResult(day, archiver.run(stopping).manifest)
        except DayBusy as busy:
            return DayResult(day, None, str(busy))

    def list_days(self) -> list[ArchivedDay]:
        """Return the archived days, oldest first."""
        with self._database.read() as connection:
            return load_days(connection)

    def summarize(self) -> ArchiveSummary:
        """Return the archived days and their size."""
        return ArchiveSummary(self.list_days())

    def find_missing(self) -> list[str]:
        """Return a description for each archived file that is missing or has another size."""
        return find_damaged(((record.files, record.manifest) for record in self.list_days()), by_listing=True)

    def verify(self, *, on_day: Callable[[ArchivedDay, str | None], None] = lambda *_: None) -> dict[datetime, str]:
        """Read all files of the archive, and compare their bytes and rows with the checksums in the database.

        ``on_day`` is called after each day with its problem, or None.

        Returns:
            The problems by day, oldest first. Empty if the archive is complete and undamaged.
        """
        problems: dict[datetime, str] = {}
        for record in self.list_days():
            problem = None
            try:
                if not record.has_stale_files:  # otherwise, the next run writes the manifest file
                    verify_manifest(record.files, record.manifest)
                verify_files(record.files, record.manifest)
            except ArchiveError as error:
                problem = problems[record.day] = str(error)
            on_day(record, problem)
        return problems
