"""Start and stop germane in an application: ``start``, ``flush``, ``stop`` and ``lifespan``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Unpack

from germane.arguments import explain_unknown_arguments
from germane.errors import UsageError
from germane.process import STOP_TIMEOUT, Runtime, flush_runtime, install_runtime, stop_runtime
from germane.settings import Settings, SettingsArguments, load_settings, signature_with_settings
from germane.tracer import is_async

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from germane.monitor import Alert


def start(
    settings: Settings | None = None,
    *,
    redact: Callable[[str], str] | None = None,
    on_alert: Callable[[Alert], object] | None = None,
    tracer_provider: TracerProvider | None = None,
    **arguments: Unpack[SettingsArguments],
) -> None:
    """Start capturing, scoring and alerting in this process. A second call replaces the first.

    If the database or the judge is unreachable, a warning is logged, and exchanges are queued until it is reachable
    again.

    Args:
        settings: Complete settings, which replace ``arguments``, the environment and the files.
        redact: A function that is called with each text before it is stored or exported. If it raises an exception, the
            text is dropped.
        on_alert: A function or coroutine function that is called in the background with each
            :class:`~germane.alert.Alert`. Only one process per database evaluates rules. If that process has no such
            function, its alerts go to the other channels only.
        tracer_provider: The OpenTelemetry provider for spans, instead of the global one.
        **arguments: Fields of :class:`germane.Settings`. They override environment variables and files.

    Raises:
        SettingsError: A setting is invalid or unknown. If germane is already running, it continues unchanged.
        UsageError: ``redact`` or ``on_alert`` is not callable, ``redact`` is async, or both settings and arguments are
            given. If germane is already running, it continues unchanged.
    """
    for name, function in {"redact": redact, "on_alert": on_alert}.items():
        if function is not None and not callable(function):
            raise UsageError(f"{name} must be a function, not {function!r:.100}")
    if redact is not None and is_async(redact):
        raise UsageError(f"redact must not be async, because its result is needed immediately: {redact!r:.100}")
    if settings is None:
        settings = load_settings(**arguments)
    elif not isinstance(settings, Settings):
        raise UsageError(
            f"settings must be a Settings object, not {settings!r:.100}; pass individual settings by keyword"
        )
    elif arguments:
        raise UsageError(f"pass a Settings object or individual settings, not both: {', '.join(arguments)}")
    install_runtime(Runtime(settings, redact=redact, on_alert=on_alert, tracer_provider=tracer_provider))


@explain_unknown_arguments
def flush(timeout: float = STOP_TIMEOUT) -> bool:
    """Write captured data to the database now, and export spans. Does nothing if germane is not running.

    Call it before a process is frozen or killed, for example at the end of each invocation of a serverless function.
    Exchanges are captured when the handler returns, so call it outside the handler. It blocks: in a coroutine, use
    ``await asyncio.to_thread(germane.flush)``.

    Args:
        timeout: Maximum time in seconds.

    Returns:
        Whether everything that was captured before the call is in the database. Otherwise, writing continues in the
        background.
    """
    return flush_runtime(timeout)


@explain_unknown_arguments
def stop(timeout: float = STOP_TIMEOUT, *, drain_timeout: float = 0.0) -> bool:
    """Write captured data, stop background work and export spans. Does nothing if germane is not running.

    Called automatically at interpreter exit.

    Args:
        timeout: Maximum shutdown time in seconds.
        drain_timeout: Seconds to wait for captured exchanges to be scored before stopping. Useful in scripts. The
            progress is shown on a terminal, or logged every ten seconds. The wait ends early if no judge can answer,
            for example because its server rejects the key. Exchanges that are still unscored stay in the database for
            the next start; their number and the reason are logged. Candidates that the budget may select later are not
            waited for.

    Returns:
        Whether everything stopped in time and no data was left in memory.
    """
    return stop_runtime(timeout, drain_timeout)


@asynccontextmanager
async def lifespan(
    app: object = None,  # noqa: ARG001 - frameworks pass the application
    settings: Settings | None = None,
    *,
    redact: Callable[[str], str] | None = None,
    on_alert: Callable[[Alert], object] | None = None,
    tracer_provider: TracerProvider | None = None,
    **arguments: Unpack[SettingsArguments],
) -> AsyncIterator[None]:
    """Run germane for the lifetime of an ASGI application. Takes the arguments of :func:`start`.

    ::

        app = FastAPI(lifespan=germane.lifespan)
    """
    import asyncio

    await asyncio.to_thread(
        start, settings, redact=redact, on_alert=on_alert, tracer_provider=tracer_provider, **arguments
    )
    try:
        yield
    finally:
        await asyncio.to_thread(stop)


# Type checkers read Unpack[SettingsArguments]; inspect, and tools built on it, read __signature__.
start.__signature__ = signature_with_settings(start, SettingsArguments)  # type: ignore[attr-defined]
lifespan.__signature__ = signature_with_settings(lifespan, SettingsArguments)  # type: ignore[attr-defined]
