# make book, make demo and make test need nothing but Python 3.11 to 3.13, git and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SITE := book/_build/html
AXE ?= node_modules/axe-core/axe.min.js
READY := $(VENV)/.ready
BUILT := $(SITE)/.built
CORES ?= 2
ON_ALL_CORES := --numprocesses auto --dist loadfile --no-loadscope-reorder
# What the book is made from, without what its build writes into book/.
WRITTEN := _build runs reports gallery notebooks data_cards
FIND = find asutil aslab experiments notebooks book data_cards results -type d \
	\( -name __pycache__ -o -name .ipynb_checkpoints $(WRITTEN:%=-o -path book/%) \) -prune -o -type f -print; \
	ls *.md CITATION.cff runs/*/record.json 2>/dev/null
LIST := book/_build/sources
export PATH := $(abspath $(BIN)):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help install book pdf check-pages demo test test-slow trust trust-quick bench bench-gpu lint lab results clean always

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

demo: $(READY)  ## PSD and SSP pre-training, fine-tuning with and without it, on embedded data (minutes); make book shows the runs
	$(BIN)/snakemake --snakefile experiments/Snakefile --cores $(CORES) --quiet rules host -- demo

book: $(BUILT)  ## the book, from committed records and the runs of this machine; built again where one of its sources changed
	@echo "Open $(CURDIR)/$(SITE)/index.html"

# Its time is that of the beginning: what changes while it is built is built by the next call.
$(BUILT): $(READY) $(LIST) $(shell $(FIND))
	@touch $(LIST).begun
	$(BIN)/jupyter-book build -W --keep-going book/
	@mv $(LIST).begun $@

# Newer where a source was added, removed or renamed, or where the book is built for another place or with other data at hand.
$(LIST): always
	@mkdir -p $(@D)
	@{ echo "$(AS2_SITE) $(AS2_REPOSITORY) $(ASUTIL_MIRROR)"; { $(FIND); } | sort; } > $@.now
	@cmp -s $@.now $@ && rm $@.now || mv $@.now $@

pdf: $(READY)  ## the built book as one PDF, as2.pdf next to its pages; needs Chromium or Chrome
	$(BIN)/python book/_ext/as2_pdf.py $(SITE)

check-pages: $(READY) $(AXE)  ## the built book in a browser: widths, themes, links, weight, axe; needs Chromium or Chrome, and npm for axe
	AXE=$(AXE) $(BIN)/python -m tests.book.check_pages $(SITE)

$(AXE):
	npm install --no-save --no-package-lock axe-core@4.14.1

test: $(READY)  ## the quick tests, in some four minutes (real data too, where ASUTIL_MIRROR names a folder of it)
	$(BIN)/python -m pytest $(ON_ALL_CORES) -m "not slow"

test-slow: $(READY)  ## the other tests: books, whole notebooks, trainings, killed processes (a quarter of an hour)
	$(BIN)/python -m pytest $(ON_ALL_CORES) -m slow

trust: $(READY)  ## every promise at full size: kills, faults, hostile inputs, security, numbers, pages, mutants (takes hours)
	$(BIN)/python -m tests.trust --record results/trust

trust-quick: $(READY)  ## the same, smaller, in under 15 minutes
	$(BIN)/python -m tests.trust --quick

bench: $(READY)  ## every benchmark that a CPU can run, each with its peer (two hours; ROUNDS=2 for less); figures into results/benchmarks/
	$(BIN)/python benchmarks/record.py $(if $(ROUNDS),--arguments="--rounds $(ROUNDS)") \
		sampling index metrics scoring training_step cpu_step start book latency search encoding contention own_questions

bench-gpu: $(READY)  ## the benchmarks of a GPU (NVIDIA with bf16): 20 minutes at most, no download; figures into results/benchmarks/*-gpu.json
	$(BIN)/python -c 'import torch; torch.cuda.is_available() or exit("bench-gpu: torch finds no GPU: install the CUDA build of the torch in requirements.lock")'
	$(BIN)/python benchmarks/record.py --minutes 20 training_step scoring latency encoding

lint: $(READY)  ## style of code and notebooks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/nbstripout --verify notebooks/*.ipynb notebooks/lessons/*.ipynb

lab: $(READY)  ## JupyterLab with the notebooks
	$(BIN)/jupyter lab --notebook-dir=. notebooks/tour.ipynb

results: $(READY)  ## records of finished runs above the laptop budget into results/, numbers only, and the table of claims
	$(BIN)/asutil publish
	$(BIN)/asutil claims results/claims.csv

clean:  ## the built book and caches; runs and the virtual environment stay
	rm -rf book/_build book/runs book/reports book/gallery book/notebooks book/data_cards .pytest_cache .ruff_cache .hypothesis .snakemake
