# Every target that needs the environment makes it first, in .venv; when that is up to
# date, this takes a moment.
PYTHON ?=
RUN := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help venv quickstart-venv quickstart notebooks test test-all fuzz kill-test lint docs
.PHONY: peers requirements audit clean

help:
	@echo "make quickstart    install into .venv, then run a small federated experiment"
	@echo "make notebooks     install, then open notebooks/ in JupyterLab (LAB=--no-browser)"
	@echo "make test          run the tests"
	@echo "make test-all      run all tests, with the slow ones"
	@echo "make fuzz          try changed files on the readers of data, an hour or SECONDS=60"
	@echo "make kill-test     kill runs (KILLS=50) and compare what becomes of them"
	@echo "make lint          ruff and mypy"
	@echo "make docs          the site of the documents, into build/site"
	@echo "make venv          only install (WITH=mlflow or WITH=wandb adds that package)"
	@echo "make peers         install what is compared with: PyTorch, Flower, pfl-research"
	@echo "make requirements  write requirements.txt anew (UPGRADE=1: with new releases)"
	@echo "make audit         list known vulnerabilities of what requirements.txt pins"
	@echo "make clean         remove .venv, caches and build leftovers; runs are kept"
	@echo
	@echo "PYTHON=python3.10  the Python to install with: 3.9, 3.10 or 3.11"

# Any Python can run the bootstrap, which looks for one that serves. 127: there is a
# command of that name, but no Python behind it (a version manager's shim).
venv: BOOTSTRAP := --all
venv quickstart-venv:
	@for python in python3 python3.11 python3.10 python3.9 '$(PYTHON)'; do \
		command -v "$$python" >/dev/null || continue; \
		"$$python" tools/bootstrap.py $(BOOTSTRAP) $(if $(PYTHON),--python '$(PYTHON)') \
			$(if $(WITH),--with '$(WITH)'); \
		code=$$?; [ $$code = 127 ] || exit $$code; \
	done; \
	echo "No python3 runs here: install Python 3.11."; exit 2

quickstart: quickstart-venv
	$(RUN) run_experiments.py --flagfile=experiments/quickstart.flags

# Another Jupyter, an editor's say, opens them too: .venv/bin/python is their kernel.
notebooks: venv
	$(RUN) -m jupyterlab $(LAB) notebooks

# A file's tests stay together: they share runs and data. One process more than cores,
# because many tests wait for others of their own; more than four would want more memory
# than they save time.
PROCESSES := $(shell expr $$(nproc) + 1)
PYTEST := $(RUN) -m pytest -q --numprocesses=$(PROCESSES) --maxprocesses=4 --dist=loadfile

test: venv
	$(PYTEST) -m "not slow"

test-all: venv
	$(PYTEST)

fuzz: venv
	FUZZ_SEED=$$(date +%s) FUZZ_SECONDS=$(or $(SECONDS),3600) $(RUN) -m pytest -q tests/fuzz

KILLS ?= 50
kill-test: venv
	$(RUN) tools/kill_test.py --kills=$(KILLS)

lint: venv
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

# The variable silences what the theme says of its successor.
docs: venv
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --quiet
	$(RUN) tools/check_site.py build/site
	@echo "The site is in build/site: open build/site/index.html"

# With pip, which knows where this machine's index has the CPU builds of PyTorch. Flower
# needs Python 3.11.
PEERS := benchmarks/peers
peers: venv
	for name in torch flower pfl; do \
		$(RUN) -m venv $(PEERS)/.venv/$$name && \
		$(PEERS)/.venv/$$name/bin/python -m pip install -q -r $(PEERS)/$$name.txt || exit; \
	done

# Without the target venv: it would install the old hashes of a pin that was changed.
requirements:
	$(or $(wildcard $(RUN)),python3) tools/compile_requirements.py $(if $(UPGRADE),--upgrade)

# Without a network: DATABASE=a checkout of the Python Packaging Advisory Database.
audit: venv
	$(RUN) tools/audit.py $(if $(DATABASE),--database '$(DATABASE)')

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
