"""A Flask application with a selector that reads the request, and an answer inside a dictionary.

Run: python examples/flask_app.py, then
curl http://127.0.0.1:8000/ask -H 'content-type: application/json' -d '{"q": "Can I return these shoes?"}'
"""

from __future__ import annotations

import flask

import germane

app = flask.Flask(__name__)


@app.post("/ask")
@germane.observe(question=lambda: flask.request.json["q"], answer="answer")
def ask() -> dict[str, str]:
    """Return the answer. The germane decorator is below the framework's, directly above the function."""
    germane.set_attribute("prompt_version", "7")
    germane.add_contexts(["Shoes can be returned within thirty days of delivery."])
    exchange = germane.current_exchange()
    return {"answer": "Yes, within thirty days of delivery.", "exchange": exchange.id or ""}


if __name__ == "__main__":
    germane.start(service="flask-example")
    app.run(host="127.0.0.1", port=8000)
