# Everything runs in .venv, made here from requirements-dev.txt; nothing is installed outside this folder.

PYTHON ?= python3
# For a part of the tests, and no coverage: make test PYTEST_ARGS="tests/handler -k fifo"
PYTEST_ARGS ?=
# make demo KEEP=1 leaves the emulator running.
KEEP ?=
# For some of the checks: make check CHECK_ARGS="tables links"
CHECK_ARGS ?=
# For a part of the exploration: make explore EXPLORE_ARGS='--scope "twice"'
EXPLORE_ARGS ?=
# For some of the planted faults: make plant PLANT_ARGS="--only lease-not-checked"
PLANT_ARGS ?=
# For a shorter soak: make soak SOAK_ARGS="--events 1000"
SOAK_ARGS ?=
# For a part of the benchmark: make bench BENCH_ARGS="--only cpu"; --quick for fewer turns, --publish for docs/.
BENCH_ARGS ?=

VENV := .venv/bin/python
READY := .venv/requirements.ok

.DEFAULT_GOAL := help
.PHONY: help demo test check docs emulator explore plant soak bench import-budget zip clean prerequisites

help:
	@echo "make demo          run 1,000 messages through the module on this machine, and show what became of them"
	@echo "make demo KEEP=1   the same, and leave everything up to look around"
	@echo "make test          all tests"
	@echo "make check         all static checks: Terraform, Python, docs, links, security"
	@echo "make docs          write again what is generated in the docs"
	@echo "make emulator      an AWS emulator for root modules of your own, until Ctrl-C"
	@echo "make explore       play a million schedules of crashes, races and faults, in a quarter of an hour"
	@echo "make plant         plant faults in a copy of the code, and see that the tests catch each"
	@echo "make soak          10,000 events through an emulator on which everything fails now and then"
	@echo "make bench         measure the function beside Powertools for AWS Lambda, in some minutes"
	@echo "make import-budget compare the function's cold start with its budget"
	@echo "make zip           build the function's zip again"
	@echo "make clean         remove what the other targets made"
	@echo
	@echo "Smaller forms: EXPLORE_ARGS='--scope \"twice\"', PLANT_ARGS=\"--only lease-not-checked\", SOAK_ARGS=\"--events 300\""
	@echo
	@echo "They need Python 3.11 or newer (another than python3: PYTHON=python3.12) and Terraform 1.9 or newer."

demo: $(READY)
	@$(VENV) -m local.demo $(if $(filter-out 0 no false,$(KEEP)),--keep)

# Three on two cores: the end-to-end tests mostly wait.
test: $(READY)
	@$(VENV) -m pytest -n 3 --dist loadscope --no-loadscope-reorder \
	  $(if $(PYTEST_ARGS),$(PYTEST_ARGS),--cov --cov-report=term-missing:skip-covered)

check: $(READY)
	@$(VENV) -m checks $(CHECK_ARGS)

docs: $(READY)
	@$(VENV) -m checks --write

emulator: $(READY)
	@$(VENV) -m local.playground

explore: $(READY)
	@$(VENV) -m tests.exploration $(EXPLORE_ARGS)

plant: $(READY)
	@$(VENV) -m tests.plant $(PLANT_ARGS)

soak: $(READY)
	@$(VENV) -m local.soak $(SOAK_ARGS)

bench: $(READY)
	@$(VENV) -m benchmarks $(BENCH_ARGS)

import-budget: $(READY)
	@$(VENV) -m benchmarks.import_budget

zip: $(READY)
	@$(VENV) lambda/build.py

clean:
	rm -rf build .venv .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name .terraform -type d -prune -exec rm -rf {} +

# Said first: finding out after a minute of installing would be late.
prerequisites:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "$(PYTHON) is not installed. Python 3.11 or newer is needed: https://www.python.org/downloads/" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -V 2>&1 | cut -d" " -f2)." \
	    "Name a newer one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m local.terraform

$(READY): requirements-dev.txt pyproject.toml | prerequisites
	@echo "Making .venv from requirements-dev.txt, once: this takes about a minute…"
	@rm -rf .venv
	@$(PYTHON) -m venv .venv || { \
	  echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(VENV) -m pip install -qq --disable-pip-version-check --requirement requirements-dev.txt
	@$(VENV) -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
