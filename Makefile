PY := .venv/bin/python

# Tests start many processes: where Python may not keep what it compiles, each of them compiles everything again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help run test test-long test-spark setup check fuzz bench mutants faults docs console vscode highlighters lock fmt clean
.DEFAULT_GOAL := help

help: ## list what there is
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

run: setup ## set up and run an application (make run NAME=brokerage for another; augury demo lists them)
	@.venv/bin/augury demo $(or $(NAME),wildfire) $(ARGS)

test: setup ## set up and run the tests
	@$(PY) -m pytest -n 2 --dist loadgroup $(ARGS)

test-long: setup ## set up and run all tests, those that take long on Spark included
	@AUGURY_LONG=1 $(PY) -m pytest -n 2 --dist loadgroup $(ARGS)

# Another PySpark beside that of .venv: its folder goes first on the path of the tests and of the workers.
test-spark: setup ## the tests on Spark with another PySpark: make test-spark VERSION=4.0
	@test -n "$(VERSION)" || { echo 'say which PySpark: make test-spark VERSION=4.0'; exit 2; }
	@test -d .venv/pyspark-$(VERSION) || $(PY) -m pip install -q --no-deps --target .venv/pyspark-$(VERSION) "pyspark==$(VERSION).*"
	@PYTHONPATH=$(CURDIR)/.venv/pyspark-$(VERSION):$(CURDIR)/src $(PY) -m pytest -q $(or $(ARGS),tests/spark)

setup: ## create .venv and install everything
	@scripts/setup

check: setup ## lint, format and types
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

fuzz: setup ## the property tests, many more examples
	@AUGURY_FUZZ=1 $(PY) -m pytest -n 2 tests/differential/test_laws.py tests/unit/test_print.py tests/differential/test_equations.py tests/differential/test_differential.py tests/differential/test_disturbances.py

bench: setup ## measure the engine (make bench ARGS="P1 latency" for some of it)
	@.venv/bin/augury bench $(ARGS)

mutants: setup ## whether the tests notice when the engine is broken
	@$(PY) scripts/mutants $(ARGS)

faults: setup ## kills, full disks, flipped bits, poisoned rows, races: whether what is promised holds
	@$(PY) scripts/faults $(ARGS)

services: setup ## fetch and start Kafka, PostgreSQL, MQTT, Redis and NATS, for trying out connectors
	@$(PY) scripts/services $(ARGS)

fmt: setup ## format the code
	@$(PY) -m ruff check --fix -q . ; $(PY) -m ruff format -q .

docs: setup ## build the documentation as a site, in build/site
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.docs
	@$(PY) scripts/site

console: ## build the page of the console, which is checked in (needs npm)
	@cd console/web && npm ci --silent --ignore-scripts && node build.mjs

vscode: ## build the extension for VS Code, in build/ (needs npm)
	@mkdir -p build && cd editors/vscode && npm ci --silent --ignore-scripts --no-audit --no-fund && npm run --silent package

highlighters: setup ## write the grammars of editors from the vocabulary
	@$(PY) scripts/highlighters --write

lock: setup ## lock the dependencies anew
	@$(PY) -m pip install --quiet uv && $(PY) -m uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --extra dev pyproject.toml requirements.build -o requirements.lock
	@$(PY) -m uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --extra docs -c requirements.lock pyproject.toml -o requirements.docs

clean: ## remove what setup and the tools made
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
