# People and CI call the same commands. `make help` lists them.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup demo test quick check bench soak peers lock clean

help:
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | sort

$(VENV)/.done: requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: $(VENV)/.done ## build .venv with the commands in .venv/bin

lock: ## compile requirements.txt anew from pyproject.toml
	$(BIN)/python -m piptools compile --quiet --strip-extras --no-emit-index-url --no-emit-trusted-host --no-header --annotation-style=line --extra dev --allow-unsafe --no-emit-find-links -o requirements.txt pyproject.toml
