# Everything runs in a virtual environment of its own; all that is needed is Python 3.11 or newer, and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: help demo test lint bench bench-gpu clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(VENV)/ready: pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; found " + sys.version.split()[0] + " (choose another with PYTHON=...)" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/ready ## make a small dataset, compare rvs with rvs+cwbc on it, write a report
	$(BIN)/cwbc demo

test: $(VENV)/ready ## run the tests
	$(BIN)/python -m pytest

lint: $(VENV)/ready ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/ready ## measure speed and memory, beside their limits
	$(BIN)/python -m benchmarks $(addprefix --against ,$(wildcard benchmarks/baseline-cpu.json))

bench-gpu: $(VENV)/ready ## the same on an NVIDIA GPU, which needs jax's CUDA packages
	$(BIN)/python -m benchmarks --gpu $(addprefix --against ,$(wildcard benchmarks/baseline-gpu.json))

clean: ## remove the virtual environment and caches, not your runs
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache build src/*.egg-info
