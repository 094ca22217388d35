"""A Django view that streams its answer, in a project of one file.

Run: PYTHONPATH=examples/frameworks python examples/frameworks/django/observed.py, then POST a question to /ask.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator

from departures import PROMPT, search
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from openai import OpenAI

import germane

germane.start(service="django-example")
client = OpenAI()
retrieve = germane.retrieval(search)


def generate(question: str) -> Iterator[str]:
    """Yield the answer word by word."""
    messages = [
        {"role": "system", "content": PROMPT.format(context="\n".join(retrieve(question)))},
        {"role": "user", "content": question},
    ]
    for chunk in client.chat.completions.create(model="gpt-5-mini", messages=messages, stream=True):
        if chunk.choices and chunk.choices[0].delta.content:
            yield chunk.choices[0].delta.content


@csrf_exempt
@require_POST
@germane.observe(question=lambda call: json.loads(call.arguments["request"].body)["question"])
def ask(request: HttpRequest) -> StreamingHttpResponse:
    """Stream an answer from the timetable."""
    return StreamingHttpResponse(generate(json.loads(request.body)["question"]), content_type="text/plain")


urlpatterns = [path("ask", ask)]
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["127.0.0.1"], SECRET_KEY=secrets.token_hex())
app = get_wsgi_application()


if __name__ == "__main__":
    from wsgiref.simple_server import make_server

    make_server("127.0.0.1", 8000, app).serve_forever()
