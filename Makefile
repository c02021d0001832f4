# make book and make test need nothing but Python 3.11 to 3.13, git and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SITE := book/_build/html
AXE ?= node_modules/axe-core/axe.min.js
READY := $(VENV)/.ready
CORES ?= 2
export PATH := $(abspath $(BIN)):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help install book pdf check-pages demo test trust trust-quick bench lint lab results clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if (3, 11) <= v < (3, 14) else f"Python 3.11 to 3.13 is needed, got {v[0]}.{v[1]}: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the pinned packages into $(VENV) (once; some minutes)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

install: $(READY)  ## virtual environment with every pinned package

demo: $(READY)  ## the demonstration: PSD pre-training, fine-tuning with and without it, on embedded data
	$(BIN)/snakemake --snakefile experiments/Snakefile --cores $(CORES) --quiet rules host -- demo

book: demo  ## the demonstration and the built book
	$(BIN)/jupyter-book build book/
	@echo "Open $(CURDIR)/$(SITE)/index.html"

pdf: $(READY)  ## the built book as one PDF, as2.pdf next to its pages; needs Chromium or Chrome
	$(BIN)/python book/_ext/as2_pdf.py $(SITE)

check-pages: $(READY) $(AXE)  ## the built book in a browser: widths, themes, links, weight, axe; needs Chromium or Chrome, and npm for axe
	AXE=$(AXE) $(BIN)/python -m tests.book.check_pages $(SITE)

$(AXE):
	npm install --no-save --no-package-lock axe-core@4.14.1

test: $(READY)  ## the test suite (real data too, where ASUTIL_MIRROR names a folder of it)
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

trust: $(READY)  ## every promise at full size: kills, faults, hostile inputs, security, numbers, pages, mutants (takes hours)
	$(BIN)/python -m tests.trust --record results/trust

trust-quick: $(READY)  ## the same, smaller, in under 15 minutes
	$(BIN)/python -m tests.trust --quick

bench: $(READY)  ## every benchmark that a CPU can run, each with its peer; figures into results/benchmarks/
	$(BIN)/python benchmarks/record.py sampling index metrics scoring training_step cpu_step start latency search encoding

lint: $(READY)  ## style of code and notebooks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/nbstripout --verify notebooks/*.ipynb

lab: $(READY)  ## JupyterLab with the notebooks
	$(BIN)/jupyter lab --notebook-dir=. notebooks/tour.ipynb

results: $(READY)  ## records of finished runs above the laptop budget into results/, numbers only
	$(BIN)/python -m aslab.publish

clean:  ## the built book and caches; runs and the virtual environment stay
	rm -rf book/_build book/runs book/gallery book/notebooks book/data_cards .pytest_cache .ruff_cache .hypothesis .snakemake
