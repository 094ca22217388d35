"""The dashboard mounted in a FastAPI application.

Run: python examples/dashboard_mounted.py, then open http://127.0.0.1:8000/germane/
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from pydantic import BaseModel

import germane
from germane.dashboard import create_app


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Start and stop germane and the dashboard with the application."""
    async with germane.lifespan(app, service="mounted-example"), dashboard.router.lifespan_context(dashboard):
        yield


app = FastAPI(lifespan=lifespan)
# Without a token, the dashboard accepts requests from this machine only. To give others access, see docs/dashboard.md.
dashboard = create_app()
app.mount("/germane", dashboard)


class Body(BaseModel):
    """The request body."""

    question: str


@app.post("/ask")
@germane.observe(question="body.question", answer="answer")
def ask(body: Body) -> dict[str, str]:
    """Return the same answer to every question."""
    return {"answer": f"Shoes can be returned within thirty days of delivery. ({len(body.question)})"}


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=8000)
