# ecphoria: `make demo` shows what it does, `make test` proves it, `make help` lists the rest.
# Needs Python 3.11 or newer; `make test` also Java 17 and Maven for the real servers.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/python -m pytest
STORES ?= embedded,servers
DEMO_DIR ?= .state
# the newest first that is sure to have wheels of everything
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { command -v $$python; break; }; done)

# An empty or unwritable HOME must do: pip's cache is all that would be kept there.
ifeq ($(shell test -w "$${HOME:-}" && echo yes),)
export PIP_NO_CACHE_DIR := 1
export HOME := $(CURDIR)/.state/home
$(shell mkdir -p "$(CURDIR)/.state/home")
endif

.PHONY: help demo test check bench servers install install-dev constraints clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: install ## Load a sample shop and ask it three questions over HTTP
	@$(BIN)/ecphoria demo --data-dir $(DEMO_DIR)

# a worker for each store set, and one for what needs none
test: install-dev servers ## Run all tests, on embedded stores and on real servers
	$(PYTEST) -q --numprocesses=auto tests/unit
	$(PYTEST) --stores=$(STORES) --numprocesses=3 --dist=loadgroup --ignore=tests/unit $(ARGS)

check: install-dev ## Lint, types, layers, schema, dependencies, documentation
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/ecphoria schema export --check
	$(BIN)/ecphoria schema documents --check
	$(BIN)/ecphoria schema compare
	$(BIN)/deptry .
	@shadows=$$(find graphql -maxdepth 1 -name '*.py'); test -z "$$shadows" || { \
	  echo "error: $$shadows would shadow graphql-core; move it into graphql/ecphoria_graphql"; exit 1; }
	$(PYTEST) -q tests/docs

bench: install-dev ## Measure recall and import against their raw parts
	$(BIN)/python -m benchmarks

servers: install-dev ## Fetch the real Neo4j and Milvus that the tests run against
	@for tool in java mvn; do command -v $$tool >/dev/null || { \
	  echo "error: $$tool is missing: install Java 17 and Maven," \
	    "e.g. apt install openjdk-17-jre-headless maven"; exit 1; }; done
	@$(BIN)/python tests/servers/fetch.py

install: $(VENV)/.core ## Install ecphoria into .venv

install-dev: $(VENV)/.dev ## Install ecphoria and what its development needs into .venv

$(BIN)/python:
	@test -n "$(PYTHON)" || { \
	  echo "error: Python 3.11 or newer is missing: install it," \
	    "e.g. apt install python3.11 python3.11-venv, or uv python install 3.11"; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "error: $(PYTHON) has no venv module: install it, e.g. apt install python3-venv"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing ecphoria into $(VENV) …"
	@$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing ecphoria and its development tools into $(VENV); the first time takes minutes …"
	@$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.core

constraints: ## Pin the newest versions of everything in constraints.txt
	@scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	"$(PYTHON)" -m venv "$$scratch"; \
	"$$scratch/bin/python" -m pip --disable-pip-version-check --quiet install -e '.[dev]'; \
	{ echo "# Made by \`make constraints\`: versions that passed the tests together."; \
	  "$$scratch/bin/python" -m pip freeze --exclude ecphoria \
	    | grep -E '^[A-Za-z0-9._-]+==[^ @]+$$'; } > constraints.txt

clean: ## Remove what was built, installed and fetched; .state/demo, too
	rm -rf $(VENV) .cache .state dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
