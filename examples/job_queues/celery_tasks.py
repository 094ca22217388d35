"""A Celery application: celery -A celery_tasks worker."""

from __future__ import annotations

import os

from celery import Celery

import germane

app = Celery("celery_tasks", broker=os.environ["BROKER_URL"])
germane.start(role="capture")


@germane.observe
def answer(question: str) -> str:
    return f"Thirty days, as for {question!r}."


@app.task
def ask(question: str) -> str:
    return answer(question)
