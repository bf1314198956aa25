# Each target sets up all it needs: Python 3.11+, make and PyPI are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
.DEFAULT_GOAL := help

# Recorded curves that some tests read; a folder `shared` beside the checkout is found by itself.
export LATEBLOOMER_DATA ?= $(abspath $(wildcard ../shared))

.PHONY: help
help:
	@echo "make demo    race nine learners on handwritten digits, and halving on the same budget"
	@echo "make test    lint, types, import rules, tests and doctests"
	@echo "make format  rewrite the sources in the house style"
	@echo "make bench   measure what the library costs on this machine"
	@echo "make clean   remove the virtual environment and caches"

# Installed once; again when the dependencies change or a clean removed it.
$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=24'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

.PHONY: demo
demo: $(READY)
	$(BIN)/python examples/race_digits.py

.PHONY: test
test: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

.PHONY: format
format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: bench
bench: $(READY)
	$(BIN)/python -m benchmarks

.PHONY: clean
clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
