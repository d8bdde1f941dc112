# Every target that needs the environment makes it first, in .venv; when that is up to
# date, this takes a moment.
PYTHON ?=
RUN := .venv/bin/python
ifneq ($(filter-out mlflow wandb,$(WITH)),)
$(error WITH=$(WITH): it is mlflow or wandb)
endif

.DEFAULT_GOAL := help
.PHONY: help venv quickstart-venv quickstart notebooks test test-all fuzz kill-test lint
.PHONY: format docs peers requirements audit clean

help:
	@echo "make quickstart    install into .venv, then run a small federated experiment"
	@echo "make notebooks     install, then open notebooks/ in JupyterLab (LAB=--no-browser)"
	@echo "make test          run the tests"
	@echo "make test-all      run all tests, with the slow ones"
	@echo "make fuzz          try changed files on the readers of data, an hour or SECONDS=60"
	@echo "make kill-test     kill runs (KILLS=50) and compare what becomes of them"
	@echo "make lint          ruff, mypy and nbstripout, which finds outputs in notebooks"
	@echo "make format        ruff and nbstripout, which remove what make lint finds"
	@echo "make docs          the site of the documents, into build/site"
	@echo "make venv          only install (WITH=mlflow or WITH=wandb adds that package)"
	@echo "make peers         install what is compared with: PyTorch, Flower, pfl-research"
	@echo "make requirements  write requirements.txt anew (UPGRADE=1 or NAME==VERSION)"
	@echo "make audit         list known vulnerabilities of what requirements.txt pins"
	@echo "make clean         remove .venv, caches and build leftovers; runs are kept"
	@echo
	@echo "PYTHON=python3.10  the Python to install with: 3.9, 3.10 or 3.11"

# Any Python can run the bootstrap, which lets uv look for one that serves. 127: there is
# a command of that name, but no Python behind it (a version manager's shim).
venv: EXTRAS := dev $(WITH)
quickstart-venv: EXTRAS := cluster
venv quickstart-venv:
	@for python in python3 python3.11 python3.10 python3.9 '$(PYTHON)'; do \
		command -v "$$python" >/dev/null || continue; \
		"$$python" tools/bootstrap.py $(EXTRAS) $(if $(PYTHON),--python '$(PYTHON)'); \
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

# Jupyter puts outputs, and the release of Python, into a notebook that it saves.
STRIP := -m nbstripout --keep-id --extra-keys=metadata.language_info
lint: venv
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) $(STRIP) --verify notebooks/*.ipynb

format: venv
	$(RUN) -m ruff format .
	$(RUN) $(STRIP) notebooks/*.ipynb

# The variable silences what the theme says of its successor. With --quiet MkDocs would not
# count the warnings that end a strict build.
docs: venv
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build
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
RENEW = $(if $(filter 1,$(UPGRADE)),--upgrade,$(addprefix --upgrade-package=,$(UPGRADE)))
requirements:
	uv=$$($(or $(wildcard $(RUN)),python3) tools/bootstrap.py --uv) && \
	"$$uv" pip compile --quiet --universal --python-version=3.9 $(RENEW) --extra=dev \
		--generate-hashes --only-binary=:all: --emit-build-options \
		--annotation-style=line --custom-compile-command="make requirements" \
		--output-file=requirements.txt pyproject.toml

# pip-audit, in its newest release, asks OSV. What the table under "Old pins" names, with
# the reason, is ignored.
OLD_PINS = $(shell sed -n '/^\#\# Old pins/,$$p' docs/dependencies.md | grep -oE 'CVE-[0-9]+-[0-9]+')
audit: venv
	@code=0; for python in 3.9 3.10 3.11; do \
		echo "The pins for Python $$python:"; \
		.venv/bin/uv pip compile --quiet --no-deps --generate-hashes --no-header --upgrade \
			--python-version=$$python --output-file=build/audit.txt requirements.txt >/dev/null && \
		.venv/bin/uv tool run --quiet pip-audit --requirement=build/audit.txt --disable-pip --strict \
			--vulnerability-service=osv --progress-spinner=off --desc=off \
			$(OLD_PINS:%=--ignore-vuln=%) 2>build/audit.log || code=1; \
		tail -n 1 build/audit.log; \
	done; exit $$code

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
