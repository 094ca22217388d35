"""The dashboard inside an application of your own, under a path of its own.

Run: python examples/dashboard_mounted.py, then look at http://127.0.0.1:8000/germane/
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
    """Run germane for as long as the application lives, and close what the dashboard has opened."""
    async with germane.lifespan(app, service="mounted-example"), dashboard.router.lifespan_context(dashboard):
        yield


app = FastAPI(lifespan=lifespan)
# Without a token it answers this machine only. With token= visitors sign in, and hosts= names the application's own
# name; trusted=True leaves to middleware of yours who comes.
dashboard = create_app()
app.mount("/germane", dashboard)


class Body(BaseModel):
    """What is asked."""

    question: str


@app.post("/ask")
@germane.observe(question="body.question", answer="answer")
def ask(body: Body) -> dict[str, str]:
    """Answer; here it is always the same."""
    return {"answer": f"Shoes can be returned within thirty days of delivery. ({len(body.question)})"}


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=8000)
