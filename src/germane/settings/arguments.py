"""The settings as typed keyword arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, get_type_hints

from pydantic import SecretStr

from germane.settings.channels import ChannelSettings
from germane.settings.nested import AlwaysScore, Budget, ExchangeFilter, Price, Retention
from germane.settings.rules import AnyRule
from germane.settings.settings import Capture


class EvaluationSettingsArguments(TypedDict, total=False):
    """Keyword arguments of :func:`germane.evaluate`: every setting except ``scorers``, which is its own argument."""

    database: str
    service: str
    role: Literal["all", "capture"]
    judge: str
    embedder: str | None
    api_key: str | SecretStr | None
    base_url: str | SecretStr | None
    local_judge_path: str | Path | None
    judge_timeout: float
    generated_questions: int
    judge_detects_refusals: bool
    scorer_options: Mapping[str, Mapping[str, Any]]
    imports: Sequence[str]
    requests_per_minute: float | None
    tokens_per_minute: float | None
    prices: Mapping[str, Price | Mapping[str, Any]]
    sample_rate: float
    budget: Budget | Mapping[str, Any] | None
    always_score: Sequence[AlwaysScore | Mapping[str, Any]]
    filters: Mapping[str, ExchangeFilter | Mapping[str, Any]]
    proxy_cpu: float
    poll_interval: float
    concurrency: int
    task_lease: float
    retry_timeout: float
    capture: Capture
    queue_size: int
    max_exchanges_per_minute: int
    max_span_delay: float
    max_text_length: int
    retention: Retention | Mapping[str, Any]
    erase_after_scoring: bool
    breakdowns: Sequence[str]
    rules: Sequence[AnyRule | Mapping[str, Any]]
    channels: Mapping[str, ChannelSettings | Mapping[str, Any]] | None
    alert_url: str | None
    trace_url: str | None
    dashboard_token: str | SecretStr | None
    allowed_hosts: Sequence[str]


class SettingsArguments(EvaluationSettingsArguments, total=False):
    """Keyword arguments of :func:`germane.start`: every field of :class:`Settings`, in the forms that it accepts."""

    scorers: Sequence[str] | None


def signature_with_settings(function: Callable[..., Any], arguments: type) -> inspect.Signature:
    """Return a function's signature with the settings as keywords instead of ``**``; ``...`` means "not given"."""
    signature = inspect.signature(function)
    parameters = [
        parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD
    ]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=..., annotation=annotation)
        for name, annotation in get_type_hints(arguments).items()
    ]
    return signature.replace(parameters=parameters)
