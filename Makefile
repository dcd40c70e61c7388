# Two commands matter: `make demo` and `make test`. Each makes its own virtual environment first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
JOBS ?= 2
COVERAGE ?=
PYTHONS ?=
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# Byte code is kept: two workers, and each process that a test starts, would compile the same thousand modules anew.
unexport PYTHONDONTWRITEBYTECODE
export CVXPRIV_CACHE ?= $(CURDIR)/.cache/datasets

.PHONY: help demo parties test lint format types check check-all mutate bench papers docs packages clean

help:            ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

demo: $(STAMPS)/demo       ## the main job on a real table; results in out/
	$(BIN)/cvxpriv demo --out out

parties: $(STAMPS)/dev     ## five made-up hospitals as processes fit one model; results in out/hospitals
	$(BIN)/python examples/hospitals/start.py --out out/hospitals

test: $(STAMPS)/dev        ## tests and doctests
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow" $(COVERAGE)

lint: $(STAMPS)/dev        ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMPS)/dev      ## let ruff rewrite
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMPS)/dev       ## mypy, strict, on both packages
	$(BIN)/mypy

check: lint types test     ## what continuous integration runs

check-all: lint types $(STAMPS)/nvflare  ## everything, the slow tests too, with the coverage gate
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --cov --cov-report=term

mutate: $(STAMPS)/dev      ## wrong changes of the code that tests must notice; half an hour
	$(BIN)/python -m tests.mutants

bench: $(STAMPS)/dev       ## the measurements, kept in benchmarks/results.md; hours
	$(BIN)/python -m benchmarks

papers: $(STAMPS)/dev      ## figures and tables of the papers, with verdicts and times (SHARING Fig. 2 wants its files); hours on one core
	$(BIN)/python examples/papers

docs:            ## the site, in site/; warnings are errors
docs: $(STAMPS)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

packages:        ## wheel and source package in dist/, installed and tried; PYTHONS="python3.12 python3.13" says where
packages: $(STAMPS)/dev
	$(BIN)/python -m tests.packages $(PYTHONS)

clean:           ## results and environments
	rm -rf $(VENV) .cache out site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "cvxpriv needs Python 3.11 or newer; say which: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	mkdir -p $(STAMPS)

$(STAMPS)/demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[report]"
	@touch $@

$(STAMPS)/docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	@touch $@

$(STAMPS)/nvflare: pyproject.toml | $(STAMPS)/dev
	$(BIN)/python -m pip install --quiet -e ".[nvflare]"
	@touch $@

$(STAMPS)/dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	@touch $@ $(STAMPS)/demo
