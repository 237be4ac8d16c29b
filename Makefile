# Folio's tasks. Bare `make` lists them.
#
# The first task that needs it makes .venv and installs requirements/base.txt into it, again only when that file changes.
# `make models` adds requirements/cross-encoders.txt; `make test` and `make check` add everything.
# To use an environment that you have already, name its interpreter; nothing is then installed:
#
#     make ask PYTHON=python
#
# Another Python for .venv:  make ask PYTHON3=python3.12

Q ?= What happens to the index when the computer loses power during an ingest?
PYTHON3 ?= python3
export Q

ifeq ($(origin PYTHON),command line)
READY := check-python
MODELS := check-python
DEV := check-python
RAY := check-python
BASE := $(PYTHON)
else
PYTHON := .venv/bin/python
READY := .venv/.installed .venv/bin/folio
MODELS := .venv/.installed-models .venv/bin/folio
DEV := .venv/.installed-dev .venv/bin/folio
RAY := .venv/.installed-ray
BASE := $(PYTHON3)
endif
# The files are whole closures: pip need not look for what else their packages require.
PIP := .venv/bin/python -m pip install -qq --disable-pip-version-check --require-hashes --no-deps
UV := uv==0.13.9
PIP_AUDIT := pip-audit==2.10.1
LINT_IMPORTS := $(PYTHON) -c 'from importlinter.cli import lint_imports_command as lint; lint(["--no-logo"])'

.DEFAULT_GOAL := help
.PHONY: help ask serve test ray check bench models sample schema docs requirements audit licences clean check-python

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ingest.py ends with 1 when some file gave no text, which is no reason not to ask about the others.
ask: $(READY) ## Ingest papers/ and answer one question: make ask Q="your question"
	@$(PYTHON) ingest.py || [ $$? -eq 1 ]
	@printf '%s\n\n' "$$Q"
	@$(PYTHON) query.py "$$Q"

serve: $(READY) ## Ask in a browser, at http://127.0.0.1:8420/, until Ctrl-C
	@$(PYTHON) serve.py --open

# What runs on one core is beside the tests, which often wait; these are in front, so that Ctrl-C reaches them.
test: $(DEV) tests/page/node_modules/.installed ## Run everything that CI runs: ruff, strict types, imports, all tests
	@$(PYTHON) -m ruff check .
	@{ $(PYTHON) -m mypy && $(LINT_IMPORTS); } & static=$$!; \
	$(PYTHON) scripts/run_tests.py -n auto; tests=$$?; \
	wait $$static && exit $$tests

# Apart from the others, so that these show that Folio needs none of its packages on one computer.
ray: $(RAY) ## Run the tests of `ingest --on ray`, with the packages of requirements/ray.txt; QUICK=1: most
	@$(PYTHON) -m pytest -n auto $(if $(QUICK),-m "not slow") tests/shared/test_ray_ingest.py tests/shared/test_paper_worker.py

check: $(DEV) tests/page/node_modules/.installed ## Run the quick part of that, 45 seconds: ruff, strict types, imports, the tests marked as fast
	@{ $(PYTHON) -m ruff check . && $(PYTHON) -m mypy && $(LINT_IMPORTS) >/dev/null; } & static=$$!; \
	$(PYTHON) -m pytest -n auto -m "fast and not slow"; tests=$$?; \
	wait $$static && exit $$tests

bench: $(DEV) ## Compare the speed with the plain design's, most of an hour: make bench PAPERS=folder ARTICLES=file
	@$(PYTHON) benchmarks/speed.py $(if $(PAPERS),--papers "$(PAPERS)") $(if $(ARTICLES),--articles "$(ARTICLES)")

models: $(MODELS) ## Download the Ollama models and the cross-encoders
	@$(PYTHON) scripts/fetch_models.py

sample: $(READY) ## Rebuild the sample paper in papers/ from its script
	@$(PYTHON) scripts/make_sample.py

schema: $(READY) ## Regenerate docs/answer.schema.json, and the page's types, from the models in folio/schema/
	@$(PYTHON) scripts/make_schema.py
	@$(PYTHON) scripts/make_page_types.py

docs: $(READY) ## Regenerate the generated parts of docs/
	@$(PYTHON) scripts/make_docs.py

requirements: check-python ## Regenerate the requirements files from pyproject.toml: UPGRADE=--upgrade
	@set -e; fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	$(BASE) -m venv "$$fresh"; \
	"$$fresh/bin/python" -m pip install -qq --disable-pip-version-check $(UV); \
	"$$fresh/bin/python" scripts/lock_requirements.py $(UPGRADE)

audit: check-python ## Check the pinned packages for known vulnerabilities, while there is a network
	@set -e; fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	$(BASE) -m venv "$$fresh"; \
	"$$fresh/bin/python" -m pip install -qq --disable-pip-version-check $(PIP_AUDIT) 2>/dev/null \
	  || { echo "The audit needs a network: pip-audit could not be installed. Try again where pypi.org can be reached." >&2; \
	       exit 2; }; \
	"$$fresh/bin/python" -m pip_audit --disable-pip --progress-spinner off -r requirements/everything.txt

licences: $(READY) ## List the licences of every installed package, and fail for one that is not allowed
	@$(PYTHON) scripts/list_licences.py

clean: ## Remove .venv and caches; papers/, models/, vectorstore/ and ingested.json stay
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

check-python:
	@$(BASE) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	{ echo "Folio needs Python 3.11 or newer, and '$(BASE)' is not. Try: make PYTHON3=python3.12" >&2; exit 1; }

.venv/.installed: requirements/base.txt | check-python
	@echo "Installing the packages that Folio needs into .venv, about 700 MB; this takes a minute or two the first time." >&2
	@$(PYTHON3) -m venv .venv
	@$(PIP) -r requirements/base.txt
	@touch $@

.venv/bin/folio: scripts/install_command.py .venv/.installed
	@$(PYTHON) scripts/install_command.py

.venv/.installed-models: requirements/cross-encoders.txt .venv/.installed
	@$(PIP) -r requirements/cross-encoders.txt
	@touch $@

# For Linux, everything.txt has torch's CPU build; where pip finds PyPI's, that and what it brings is installed first.
.venv/.installed-dev: requirements/everything.txt requirements/cuda.txt requirements/postgres.txt requirements/development.txt .venv/.installed
	@echo "Installing everything that the tests use into .venv; this takes some minutes the first time." >&2
	@torch="$$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' requirements/everything.txt)"; \
	[ "$$(uname)" != Linux ] \
	|| .venv/bin/python -m pip install -qq --disable-pip-version-check --dry-run --ignore-installed --no-deps --report - "$$torch" \
	   | grep -q '+cpu' \
	|| $(PIP) -r requirements/cuda.txt
	@$(PIP) -r requirements/everything.txt
	@$(PIP) -r requirements/postgres.txt -r requirements/development.txt
	@touch $@

# The compiler and the linter of the page's modules come from npm. Without it, tests/web/test_page_modules.py skips them.
tests/page/node_modules/.installed: tests/page/package-lock.json
	@if command -v npm >/dev/null; then npm --prefix tests/page ci --silent && touch $@; \
	else echo "npm is not installed: the types of the page's modules are not checked." >&2; fi

.venv/.installed-ray: requirements/ray.txt .venv/.installed-dev
	@$(PIP) -r requirements/ray.txt
	@touch $@
