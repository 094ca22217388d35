"""Families of cases in one test: cheaper than an item for each case, and every case that fails is still named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import Any

import pytest

_SHOWN_CHARACTERS = 200
Test = Callable[..., None]


def each(names: str | Sequence[str], cases: Collection[Any]) -> Callable[[Test], Test]:
    """Call a test with each case, like ``pytest.mark.parametrize``, but in one item: the cases share its fixtures.

    All cases run. Those that failed are reported together, each with its values and traceback.

    Args:
        names: The name of the parameter, or the names of several.
        cases: Values of the parameter, or sequences with one value for each parameter.
    """
    parameters = [names] if isinstance(names, str) else list(names)

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @wraps(test)
        def run_cases(*arguments: Any, **fixtures: Any) -> None:
            failed: list[BaseException] = []
            for case in cases:
                values = dict(zip(parameters, [case] if isinstance(names, str) else case, strict=True))
                try:
                    test(*arguments, **fixtures, **values)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - raised below
                    error.add_note(f"Case: {str(values)[:_SHOWN_CHARACTERS]}")
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(cases)} cases failed", failed)

        kept = [parameter for name, parameter in signature.parameters.items() if name not in parameters]
        run_cases.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]  # pytest reads it
        return run_cases

    return decorate
