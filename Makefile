PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check lock clean

demo: $(READY)  ## Watch a small RAG application go wrong, and be told
	$(BIN)/germane demo

test: $(READY)  ## Run the tests
	$(BIN)/pytest

check: $(READY)  ## Lint, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "germane needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(READY)

lock:  ## Resolve requirements.lock anew (needs uv)
	uv pip compile pyproject.toml --all-extras --group dev --override requirements.overrides \
		--universal --python-version 3.11 --generate-hashes --no-header --upgrade --output-file requirements.lock

clean:
	rm -rf $(VENV) build dist
