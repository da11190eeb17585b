# Two commands do all set-up: `make demo` and `make test`. Everything stays in this folder: .venv, .home, .stamps.
SHELL := /bin/bash
BIN := .venv/bin
PIP := $(BIN)/pip install -q --disable-pip-version-check
export STATIONMASTER_HOME ?= $(CURDIR)/.home/demo
# Keep compiled files (git ignores them): without them, each of the thousand processes of a test run compiles again.
unexport PYTHONDONTWRITEBYTECODE

# Tests that need nothing but the code; the samples of the docs run trainings.
QUICK := tests/unit tests/docs tests/contract/notify --ignore tests/docs/test_samples.py --ignore tests/docs/test_api_samples.py
# More than there are cores, because tests wait for other processes.
PROCESSES ?= 5

.PHONY: help setup page dev demo test test-quick test-slow check bench chaos corpus contract-live docs screenshots lock clean test-trainers test-integrations

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*##/\t/' | expand -t 16

demo: .stamps/demo  ## run a real, small training on this computer
	@$(BIN)/python web/build.py
	@$(BIN)/stationmaster demo

setup: .stamps/dev .stamps/system  ## install everything for development

test: setup page  ## run all tests and checks; PROCESSES=5 by default
	@$(call checks_beside,$(BIN)/pytest --processes $(PROCESSES) -q)

test-quick: setup  ## run the checks and the tests that start no machine and no server
	@$(call checks_beside,$(BIN)/pytest --processes $(PROCESSES) -q $(QUICK))

# While tests are collected, and whenever they wait for something, the checks use the processor.
checks_beside = $(MAKE) --no-print-directory check & checks=$$!; \
	$(1); passed=$$?; \
	wait $$checks || { echo "make check failed; its messages are above"; exit 1; }; exit $$passed

page: .stamps/dev  ## build the page from web/
	@$(BIN)/python web/build.py --with-tools

dev: page  ## develop the page: hot reload at http://localhost:5173, data from STATIONMASTER_SERVER (http://127.0.0.1:8080)
	@$(BIN)/python web/npm.py run dev

check: .stamps/dev web-check  ## check types, lint and import contracts
	$(BIN)/ruff check -q .
	$(BIN)/ruff format -q --check .
	$(BIN)/mypy
	@for folder in $$(dirname src/stationmaster/recipes/builtin/*/*.py | sort -u); do (cd $$folder && $(CURDIR)/$(BIN)/mypy \
		--strict --ignore-missing-imports --cache-dir $(CURDIR)/.mypy_cache/recipes *.py) || exit 1; done
	$(BIN)/lint-imports --no-cache >.stamps/layers || { cat .stamps/layers; exit 1; }

# The page's types are made from the API's own description, so that a renamed field is an error here. What has passed is
# not checked again until a file of the page, or that description, has changed.
web-check: page .stamps/web

.stamps/web: web/openapi.json $(shell find web -name node_modules -prune -o -name __pycache__ -prune -o -type f -print) | page
	@$(BIN)/python web/npm.py run -s all >$@ || { cat $@; rm $@; exit 1; }
	@touch $@

web/openapi.json: .stamps/dev always
	@$(BIN)/python -m scripts.write_openapi $@

.PHONY: always
always:

test-slow: setup  ## run the slow tests, and those that draw examples with many new ones
	$(BIN)/pytest -q -m "slow or hypothesis" --slow

test-trainers: setup  ## run the recipes with their real trainers: AI_TOOLKIT=DIR AI_TOOLKIT_PYTHON=PYTHON, or SD_SCRIPTS, TRL
	@test -n "$(AI_TOOLKIT_PYTHON)$(SD_SCRIPTS_PYTHON)$(TRL_PYTHON)" || { echo "name at least one trainer: AI_TOOLKIT=DIR \
		AI_TOOLKIT_PYTHON=PYTHON, SD_SCRIPTS=DIR SD_SCRIPTS_PYTHON=PYTHON, TRL_PYTHON=PYTHON"; exit 2; }
	@$(foreach name,AI_TOOLKIT AI_TOOLKIT_PYTHON SD_SCRIPTS SD_SCRIPTS_PYTHON TRL_PYTHON,$(if $($(name)),$(name)='$($(name))')) \
		$(BIN)/pytest -q tests/trainers

test-integrations: setup  ## train with transformers, accelerate, Lightning and Keras; INTEGRATIONS_PYTHON=PYTHON takes yours
	@test -n "$(INTEGRATIONS_PYTHON)" || $(MAKE) --no-print-directory .stamps/integrations
	@INTEGRATIONS_PYTHON=$(or $(INTEGRATIONS_PYTHON),$(CURDIR)/.home/integrations/bin/python) $(BIN)/pytest -q tests/integrations

chaos: setup  ## run hundreds of seeded crashes and fault storms; SEEDS=500 STORMS=300 SEED=1 LANES=6 by default
	$(BIN)/python -m tests.chaos.marathon --runs $${SEEDS:-500} --storms $${STORMS:-300} --seed $${SEED:-1} --lanes $${LANES:-6}
	$(BIN)/pytest -q tests/chaos -m slow --slow
	$(BIN)/python -m tests.chaos.link_marathon
	$(BIN)/python -m tests.chaos.delivery_marathon --runs $${DELIVERIES:-200} --seed $${SEED:-1}
	$(BIN)/python -m tests.chaos.money_marathon --runs 200
	$(BIN)/python -m tests.chaos.watched_marathon

bench: .stamps/dev  ## measure performance: one JSON line for each budget
	@for script in benchmarks/[a-z]*.py; do $(BIN)/python $$script || exit 1; done

corpus: .stamps/dev  ## read labelled logs, stall traces and analysis cases: make corpus CORPUS=DIR
	@test -n "$(CORPUS)" || { echo "make corpus needs CORPUS=DIR, with training-logs, stall-traces and analysis-cases"; exit 2; }
	$(BIN)/python $(CORPUS)/training-logs/score.py $(CORPUS)/training-logs '$(CURDIR)/$(BIN)/stationmaster parse {log} --framework auto --json'
	$(BIN)/python $(CORPUS)/stall-traces/score.py --quiet --cmd '$(CURDIR)/$(BIN)/stationmaster replay {trace} --json' $(CORPUS)/stall-traces
	$(BIN)/python $(CORPUS)/analysis-cases/score.py --quiet --cmd '$(CURDIR)/$(BIN)/stationmaster analyze {db} --log {log} --config {config} --job {job} --json' $(CORPUS)/analysis-cases

contract-live: setup  ## run the contract suites against real services, with your keys
	$(BIN)/pytest -q tests/contract --live

docs: .stamps/dev  ## generate the reference pages from the code
	$(BIN)/python -m scripts.make_reference

screenshots: setup page  ## write the pictures of docs/images, with real Chromium and the terminal app
	$(BIN)/python -m scripts.make_terminal_pictures
	$(BIN)/python -m scripts.make_screenshots

lock: .stamps/venv  ## pin the packages of pyproject.toml, with hashes; UPGRADE=1 takes the newest versions
	@$(PIP) 'uv>=0.8'
	@mkdir -p locks
	@for extra in dev demo; do $(BIN)/uv pip compile -q pyproject.toml --extra $$extra --group build \
		--universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock' \
		$(if $(UPGRADE),--upgrade) $$(test $$extra = dev || echo -c locks/dev.txt) -o locks/$$extra.txt || exit 1; done

clean:           ## remove everything that make created
	rm -rf web/node_modules web/openapi.json web/src/api/schema.ts src/stationmaster/api/page src/stationmaster/api/.page-* .venv .stamps .home .mypy_cache .ruff_cache .pytest_cache .hypothesis

.stamps/venv:
	@mkdir -p .stamps
	@test -x $(BIN)/python || PYTHON="$(PYTHON)" scripts/make_environment
	@touch $@

# Installs the locked versions, then Stationmaster itself, from this folder.
.stamps/demo .stamps/dev: .stamps/%: .stamps/venv pyproject.toml locks/%.txt
	@$(PIP) --require-hashes -r locks/$*.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@ .stamps/demo

# The frameworks that the integrations are tested with: some 2 GB, apart from the packages of development.
.stamps/integrations: tests/integrations/requirements.txt .stamps/venv
	@test -x .home/integrations/bin/python || $(BIN)/python -m venv .home/integrations
	@.home/integrations/bin/pip install -q --disable-pip-version-check -r tests/integrations/requirements.txt
	@touch $@

.stamps/system: scripts/install_system_packages
	@mkdir -p .stamps
	@scripts/install_system_packages
	@touch $@
