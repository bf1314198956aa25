# Each target sets up all it needs: Python 3.11+, make and PyPI are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
.DEFAULT_GOAL := help

# Versions known to be good of what a group of pyproject.toml needs; there is a file for each Python
# it was made on.
GROUP := dev
CONSTRAINTS := constraints/$(GROUP)-$(shell $(PYTHON) -c 'import sys; print("py%d%d" % sys.version_info[:2])').txt
KNOWN := $(wildcard $(CONSTRAINTS))

# The libraries that people train with have an environment of their own. TORCH= is another build of
# PyTorch than PyPI's, which brings several GB for GPUs: a requirement, a wheel, a place of wheels.
INTEGRATIONS := .venv-integrations
INTEGRATIONS_KNOWN := $(wildcard $(CONSTRAINTS:constraints/$(GROUP)-%=constraints/integrations-%))
TORCH ?=

# The site has an environment of its own too: Sphinx, and what the gallery and the comparison run.
DOCS := .venv-docs
DOCS_KNOWN := $(wildcard $(CONSTRAINTS:constraints/$(GROUP)-%=constraints/docs-%))

# Recorded curves that some tests read; a folder `shared` beside the checkout is found by itself.
export LATEBLOOMER_DATA ?= $(abspath $(wildcard ../shared))

.PHONY: help
help:
	@echo "make demo               race twelve models of handwritten digits, then train all of them to compare"
	@echo "make test               lint, types, import rules, tests and doctests"
	@echo "make quick              what a change breaks first: decisions, sessions, journals; under half a minute"
	@echo "make lint               the first four of these alone: format, style, types, import rules"
	@echo "make test-all           all of make test, and the tests that take long"
	@echo "make test-integrations  what is made for Ray, XGBoost, PyTorch, MLflow and others, with the real ones"
	@echo "make test-browser       the live page and the report in a headless Chromium"
	@echo "make docs               the site, in docs/_build/html: warnings are errors, every link is checked"
	@echo "make release-check      sdist and wheel: built, checked, installed elsewhere, README run"
	@echo "make format             rewrite the sources in the house style"
	@echo "make measure            what sessions, simulations and races cost on this machine"
	@echo "make storm              kill races at random moments and resume them (up to an hour)"
	@echo "make fuzz               random calls of sessions, random damage to journals"
	@echo "make test-versions      the quick tests with the newest and the oldest dependencies allowed"
	@echo "make upgrade            renew the versions that are installed: $(CONSTRAINTS)"
	@echo "make clean              remove the virtual environment and caches"

# Installed once; again when the dependencies change or a clean removed it.
$(READY): pyproject.toml $(KNOWN)
	$(if $(KNOWN),,$(info there is no $(CONSTRAINTS), made on this Python: installing by the lower bounds of pyproject.toml))
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade $(KNOWN:%=--constraint %) 'pip>=25.1'
	$(PIP) $(KNOWN:%=--constraint %) $(KNOWN:%=--build-constraint %) --editable . --group $(GROUP)
	@sh constraints/install_openmp.sh $(BIN)/python
	@touch $(READY)

.PHONY: demo
demo: $(READY)
	$(BIN)/python examples/race_digits.py

# Format, rules of style, import layers and types.
.PHONY: lint
lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# One thread for OpenMP (LightGBM): the tests share the cores.
.PHONY: test
test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "not slow and not ray"

# For people at work: what a change is likely to break first, without lint.
QUICK := tests/recordings tests/session tests/policies/test_policies.py tests/racing/test_race.py \
  tests/racing/test_callbacks.py tests/racing/test_extension.py tests/racing/journal/test_journal.py
.PHONY: quick
quick: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --quiet --numprocesses auto -m "not slow" $(QUICK)

# Everything: before a release, and in CI.
.PHONY: test-all
test-all: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "not ray"

$(INTEGRATIONS)/.ready: pyproject.toml $(INTEGRATIONS_KNOWN)
	$(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python constraints/environments.py install integrations '$(INTEGRATIONS_KNOWN)' $(TORCH)
	@sh constraints/install_openmp.sh $(INTEGRATIONS)/bin/python
	@touch $@

# Warnings of so many others are no errors here; a library that could not be installed is skipped.
# One thread each: the tests share the cores, and sums over threads may differ in the last digit.
.PHONY: test-integrations
test-integrations: $(INTEGRATIONS)/.ready
	@$(INTEGRATIONS)/bin/python -m pip list
	OMP_NUM_THREADS=1 $(INTEGRATIONS)/bin/python -m pytest tests -m "ray or libraries" -W default --disable-warnings \
	  --numprocesses auto --dist loadfile
	@cat $(INTEGRATIONS)/not-installed.txt

# Screenshots are in build/browser; without a Chromium the tests are skipped, and counted.
.PHONY: test-browser
test-browser: $(READY)
	@sh tools/install_chromium.sh
	LATEBLOOMER_BROWSER=1 $(BIN)/python -m pytest tests/browser

$(DOCS)/.ready: pyproject.toml $(DOCS_KNOWN)
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python constraints/environments.py install docs '$(DOCS_KNOWN)'
	@sh constraints/install_openmp.sh $(DOCS)/bin/python
	@touch $@

# Formulas, fonts and scripts lie beside the pages: they open from the file system. Pages are written
# anew each time, from what was read and executed before: old ones would keep links to what is gone.
.PHONY: docs
docs: $(DOCS)/.ready
	$(DOCS)/bin/codespell
	rm -rf docs/_build/html
	MPLBACKEND=Agg OMP_NUM_THREADS=1 $(DOCS)/bin/python -m sphinx --fail-on-warning --keep-going --quiet \
	  -b html -d docs/_build/cache docs docs/_build/html
	$(DOCS)/bin/python docs/tools/check_site.py docs/_build/html

# LATEBLOOMER_HOME is the repository's address, for the links of the README on PyPI.
.PHONY: release-check
release-check:
	$(PYTHON) tools/release_check.py

.PHONY: format
format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: measure
measure: $(READY)
	$(BIN)/python -m measurements

.PHONY: storm
storm: $(READY)
	$(BIN)/python -m tools.storm

.PHONY: fuzz
fuzz: $(READY)
	$(BIN)/python -m tools.fuzz

.PHONY: test-versions
test-versions:
	$(PYTHON) constraints/environments.py test $(GROUP)

.PHONY: upgrade
upgrade:
	$(PYTHON) constraints/environments.py upgrade $(GROUP) $(CONSTRAINTS) $(TORCH)

.PHONY: clean
clean:
	rm -rf $(VENV) $(INTEGRATIONS) $(DOCS) docs/_build docs/_made .mypy_cache .ruff_cache .pytest_cache .hypothesis
