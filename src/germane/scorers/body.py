"""Bodies of requests and replies, sent and read as they are.

Checking the one and making models of the other takes the client longer than all that is done with them here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import openai


async def post(client: openai.AsyncOpenAI, path: str, body: Mapping[str, Any]) -> Any:
    """Return the JSON of a reply; its objects have attributes. Retries and errors of HTTP are the client's.

    Raises:
        ValueError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    import httpx2

    response = await client.post(path, body=body, cast_to=httpx2.Response)
    return json.loads(response.content, object_hook=_as_object)


def _as_object(members: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(**members)
