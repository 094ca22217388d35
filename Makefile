# The first target you run creates .venv and installs the locked dependencies; after that no network is needed.
# To use another Python: make test PYTHON=python3.13. To run some of the tests: make test ARGS="tests/storage -x"

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# uv, if it is installed, takes a fifth of pip's time.
INSTALL = $(if $(shell command -v uv),uv pip install --python $(BIN)/python,$(BIN)/python -m pip install) --quiet --no-deps

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start hundreds of processes. If this variable were set, each would compile all modules and templates again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow chaos mutants thorough frameworks queues spans sinks check coverage docs pictures bench build lock clean

demo: $(READY)  ## Watch a small RAG application go wrong, and germane detect it
	$(BIN)/germane demo $(ARGS)

test: $(READY)  ## Run the tests, three files at a time
	$(BIN)/pytest -n 3 --dist loadfile $(ARGS)

test-slow: $(READY)  ## Run the slow tests: browsers, servers and many processes
	$(BIN)/pytest -n 4 --dist loadfile -m "slow and not thorough" $(ARGS)

chaos: $(READY)  ## Kill a fleet's processes 200 times on each database and count losses
	$(BIN)/python tests/chaos/run.py $(ARGS)

mutants: $(READY)  ## Change the core at 60 random places, and check that tests fail
	$(BIN)/python tests/mutants.py $(ARGS)

thorough: $(READY)  ## Run what takes hours: all cases, 200 kills, the oldest dependencies, the frameworks (needs the network)
	.ci/thorough

frameworks: $(READY)  ## Ask the examples for frameworks 200 questions each (needs the network and Node.js)
	$(BIN)/python tests/frameworks/run.py $(ARGS)

queues: $(READY)  ## Run 200 tasks with real Celery and RQ workers, and count losses (needs the network)
	$(BIN)/python tests/frameworks/job_queues.py $(ARGS)

spans: $(READY)  ## Record the spans of the newest instrumentations (needs the network and Node.js)
	$(BIN)/python tests/spans/record.py $(ARGS)

sinks: $(READY)  ## Write scores to real Phoenix and MLflow, and pull traces, through outages and kills (needs the network)
	$(BIN)/python tests/sinks/run.py $(ARGS)
	$(BIN)/python tests/sinks/pull.py $(ARGS)

check: $(READY)  ## Run ruff, mypy, the import contracts, and the checks of prose, complexity and size
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/prose.py
	$(BIN)/python .ci/complexity.py
	$(BIN)/python .ci/size.py

coverage: $(READY)  ## Run the tests and print uncovered branches
	-$(BIN)/coverage run $(BIN)/pytest -m '' $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

docs: $(READY)  ## Build the documentation into build/docs; warnings are errors
	$(BIN)/sphinx-build -W --keep-going -n -q docs build/docs

pictures: $(READY)  ## Render the screenshots of the dashboard (needs Chromium)
	$(BIN)/python docs/pictures.py

bench: $(READY)  ## List the benchmarks
	@for file in benchmarks/*.py; do printf '%s  ' "$(BIN)/python $$file"; sed -n '1s/"""//gp' "$$file"; done

build: $(READY)  ## Build the sdist, and from it the wheel, into dist/
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m build --no-isolation

lock:  ## Update requirements.lock (needs uv)
	uv pip compile pyproject.toml --all-extras --group dev --override requirements.overrides \
		--universal --python-version 3.11 --generate-hashes --no-header --upgrade --output-file requirements.lock

clean:  ## Remove .venv, build/ and dist/
	rm -rf $(VENV) build dist

help:  ## Print this help
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile | expand -t 16

# The first Python that is new enough, unless PYTHON is set.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
python = $(or $(PYTHON),$(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$name -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$name && break; done),python3)

# Recreate .venv if it was moved, its Python is gone, or PYTHON names another version.
WHO_AM_I := import os, sys; print(os.getcwd(), sys.version_info[:2])
identity = $(shell $(1) -c '$(WHO_AM_I)' 2>/dev/null)
recorded := $(shell cat $(READY) 2>/dev/null)
ifneq ($(recorded) $(recorded),$(call identity,$(BIN)/python) $(call identity,$(or $(PYTHON),$(BIN)/python)))
recorded :=
.PHONY: $(READY)
endif

$(READY): requirements.lock pyproject.toml
ifeq ($(recorded),)
	@$(python) -c '$(NEW_ENOUGH)' 2>/dev/null || \
		{ echo 'germane needs Python 3.11 or newer. To choose one: make test PYTHON=python3.12'; exit 1; }
	@$(python) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo 'This Python cannot create virtual environments. On Debian and Ubuntu: apt install python3-venv'; exit 1; }
	@rm -rf $(VENV)
	@$(python) -m venv $(VENV)
endif
	@echo 'Installing into $(VENV) (about 1 GB, once) ...'
	@$(INSTALL) --require-hashes -r requirements.lock
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(INSTALL) --no-build-isolation --editable .
	@$(BIN)/python -c 'import xllamacpp' 2>/dev/null || \
		echo 'The embedded judge does not load on this machine. On Debian and Ubuntu: apt install libgomp1'
	@$(BIN)/python -c '$(WHO_AM_I)' > $(READY)
