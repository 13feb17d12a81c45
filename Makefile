# Hermes sets itself up: every target below works on a machine with Python 3.11+, make and git.
.DEFAULT_GOAL := help
CHECKS := check-style check-types check-sentences check-layers check-docs check-web
.PHONY: help run install test test-pythons check format docs site bench lock clean $(CHECKS)

PYTHON ?= $(firstword $(foreach p,python3 python3.11 python3.12 python3.13 python3.14,$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# uv needs a quarter of pip's time, but does not read pip's settings: where it finds no packages, pip may.
INSTALL = sh -c '$(BIN)/uv pip install --quiet --python $(BIN)/python "$$@" 2>/dev/null || exec $(PIP) "$$@"' install
COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-strip-extras --no-annotate --custom-compile-command "make lock"
LOCK := $(COMPILE) pyproject.toml
EXTRAS := --extra local --extra search --extra mcp --extra acp --extra markdown --extra web --extra discord --extra slack --extra otel --extra images --extra push --extra documents --extra postgres --extra nats
ARGS ?=
unexport PYTHONDONTWRITEBYTECODE  # each test process would compile everything anew

help:          ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/locales.stamp ## set up and start Hermes (ARGS="..." are passed on)
	@$(BIN)/hermes $(ARGS)

install: $(VENV)/locales.stamp ## set up and put `hermes` on your PATH (a link in ~/.local/bin)
	@mkdir -p "$(HOME)/.local/bin" && ln -sfn "$(abspath $(BIN))/hermes" "$(HOME)/.local/bin/hermes"
	@echo "$(HOME)/.local/bin/hermes is there." >&2
	@case ":$$PATH:" in *":$(HOME)/.local/bin:"*) ;; *) echo "Add it to your PATH: export PATH=\"$(HOME)/.local/bin:\$$PATH\"" >&2 ;; esac

test: $(VENV)/dev.stamp ## set up and run all tests (ARGS="-k name" narrows)
	@$(BIN)/python -m pytest $(ARGS)

test-pythons: $(VENV)/dev.stamp ## run the tests of sockets, signals and argparse on the other Pythons found
	@$(BIN)/python scripts/test_pythons.py $(ARGS)

check: $(VENV)/dev.stamp ## format, lint, types, layers, generated docs
	@$(MAKE) --no-print-directory --jobs 2 --keep-going $(if $(filter output-sync,$(.FEATURES)),--output-sync) $(CHECKS)

$(CHECKS): $(VENV)/dev.stamp
check-style:
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
check-types:
	@$(BIN)/pyrefly check
check-layers:
	@$(BIN)/lint-imports
check-docs:
	@$(BIN)/python scripts/generate_docs.py --check
check-sentences:
	@$(BIN)/python scripts/translations.py
check-web:
	@$(BIN)/python scripts/check_web.py

format: $(VENV)/dev.stamp ## format and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@$(BIN)/python scripts/check_web.py --fix

docs: $(VENV)/dev.stamp ## write the generated pages of docs/
	@$(BIN)/python scripts/generate_docs.py

site: $(VENV)/dev.stamp ## build the documentation as a site in dist/site
	@$(BIN)/python scripts/build_site.py

bench: $(VENV)/dev.stamp ## run benchmarks/ (BENCH=bus, BENCH=store, BENCH=local ... for one)
	@$(BIN)/python -m benchmarks $(BENCH) $(ARGS)

lock: $(VENV)/dev.stamp ## refresh the lock files in requirements/
	@$(LOCK) --upgrade $(EXTRAS) --extra browser --extra matrix --extra ocr --extra voice --extra azure --extra vertex --extra bedrock --group dev -o requirements/dev.lock
	@$(LOCK) $(EXTRAS) --group build --constraint requirements/dev.lock -o requirements/run.lock
	@$(COMPILE) --group install --constraint requirements/dev.lock -o requirements/uv.lock

clean:         ## remove the environment and caches
	@rm -rf $(VENV) .venvs .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Hermes needs Python 3.11 or newer; none was found on PATH." >&2; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version) ..." >&2
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Could not make $(VENV): is Python's venv module installed (Debian: python3-venv)?" >&2; exit 1; }

$(VENV)/run.stamp: requirements/run.lock pyproject.toml | $(VENV)/bin/python
	@echo "Installing Hermes and what it runs on ..." >&2
	@$(PIP) --only-binary :all: --require-hashes -r requirements/uv.lock || true  # only for speed
	@UV_COMPILE_BYTECODE=1 $(INSTALL) --require-hashes -r requirements/run.lock
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/locales.stamp: $(wildcard src/hermes/locales/*.po) $(VENV)/run.stamp
	@$(BIN)/python scripts/compile_locales.py
	@touch $@

$(VENV)/dev.stamp: requirements/dev.lock $(VENV)/locales.stamp
	@echo "Installing what the tests and checks need ..." >&2
	@$(INSTALL) --require-hashes -r requirements/dev.lock
	@touch $@
