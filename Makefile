# People and CI call the same commands. `make help` lists them.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
PROVIDER := tests/flow/oidc
COVERAGE := .coverage-tool
COVERED ?= tests/unit tests/contract
PYTEST := $(BIN)/python -m pytest
# One more than there are cores: flow tests wait for most of their time, for a delay, a lease or a dead server.
WORKERS ?= $(shell expr $$(nproc) + 1)
SHARED_OUT := --dist loadfile --no-loadscope-reorder

TOGETHER := --no-print-directory --output-sync=target

# A test run starts a thousand processes of Python: without its compiled modules each compiles all that it loads.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: docs help setup web services demo test quick quick-contract quick-unit check types lint pages house suite coverage reload bench soak peers lock clean

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | sort | expand -t 12

$(VENV)/.done: requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: $(VENV)/.done ## build .venv with the commands in .venv/bin, and the browser application
	@$(BIN)/python tools/web.py build --if-possible

web: $(VENV)/.done ## build the browser application (Node 20 or later, from this machine or from PyPI)
	@$(BIN)/python tools/web.py build

services: ## install PostgreSQL, Redis, Chromium, nginx and wget where missing (root), or name what is missing
	@tools/services

demo: setup ## make an archive of an invented town's website on this machine, serve it, and say what to try
	@$(BIN)/holdfast demo

check: setup ## lint, formatting, types and the house rules, of Python and of the browser application
	@$(MAKE) $(TOGETHER) -j 2 types lint pages house

types: setup
	$(BIN)/mypy

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Types from the committed OpenAPI document, lint, logic, and what a first visit loads.
pages: web
	@$(BIN)/python tools/web.py npm run --silent check

house: setup
	$(PYTEST) tests/house

quick: setup ## unit and contract tests on SQLite that take no second each, and the house rules; no service needed
	@$(MAKE) --no-print-directory -j 2 quick-contract quick-unit

# Two runs beside each other: workers that share one would each collect all tests first, which costs half a minute.
quick-contract quick-unit: QUICK := -m "not postgres and not slow and not soak"
quick-contract: setup
	$(PYTEST) tests/contract $(QUICK)

quick-unit: setup
	$(PYTEST) tests/house tests/unit $(QUICK)

test: export HOLDFAST_REQUIRE_SERVICES = 1
test: ## everything: what CI runs
	@$(MAKE) $(TOGETHER) -j 3 setup services peers
	@$(MAKE) --no-print-directory -j 3 types lint pages suite

# One run, and the types beside it: no core is idle while a last file ends. The long flow tests come first, the many
# small ones fill up the end.
suite: setup
	$(PYTEST) tests/flow tests/house tests/contract tests/unit -n $(WORKERS) $(SHARED_OUT) -m "not soak" --durations 30

soak: export HOLDFAST_REQUIRE_SERVICES = 1
soak: setup services ## the long fault tests, up to 20 minutes
	$(PYTEST) tests -m soak --timeout 1200

# Beside .venv, not in it: nothing but this target needs it.
$(COVERAGE)/.done: Makefile
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --target $(COVERAGE) --upgrade coverage
	@touch $@

# In this process only: what child processes run is not counted.
coverage: setup $(COVERAGE)/.done ## lines of src that the unit and contract tests on SQLite run, with a report in .coverage-report
	PYTHONPATH=$(COVERAGE) $(BIN)/python -m coverage run --source src/holdfast --data-file $(COVERAGE)/data -m pytest $(COVERED) -m "not postgres and not slow and not soak"
	PYTHONPATH=$(COVERAGE) $(BIN)/python -m coverage html --quiet --data-file $(COVERAGE)/data --directory .coverage-report
	PYTHONPATH=$(COVERAGE) $(BIN)/python -m coverage report --data-file $(COVERAGE)/data --skip-covered --sort cover

reload: setup ## serve the API from HOLDFAST_HOME and start it again whenever a file of src changes
	$(BIN)/holdfast migrate up
	$(BIN)/uvicorn holdfast.api.app:application --factory --reload --reload-dir src --host 127.0.0.1 --port 8060

bench: setup services peers ## measure beside Scrapy and wget, in one run
	$(BIN)/python -m bench

$(PEERS)/.done: Makefile
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check scrapy warcio pywb wacz beautifulsoup4
	@touch $@

$(PROVIDER)/node_modules/.done: $(PROVIDER)/package.json $(PROVIDER)/package-lock.json
	cd $(PROVIDER) && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

peers: $(PEERS)/.done $(PROVIDER)/node_modules/.done ## build .venv-peers with Scrapy, warcio, pywb, wacz and BeautifulSoup, and an identity provider, to compare with and to validate by

docs: setup ## write docs/cli.md, settings.md and api.md from the code
	$(BIN)/python tools/write_docs.py

lock: ## compile requirements.txt anew from pyproject.toml
	$(BIN)/python -m piptools compile --quiet --strip-extras --no-emit-index-url --no-emit-trusted-host --no-header --annotation-style=line --extra dev --allow-unsafe --no-emit-find-links -o requirements.txt pyproject.toml

clean: ## remove everything that these commands built
	rm -rf $(VENV) $(PEERS) $(COVERAGE) .coverage-report $(PROVIDER)/node_modules .node web/node_modules src/holdfast/api/web_app .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist src/holdfast.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
