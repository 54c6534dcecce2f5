# Everything runs from .venv; each target makes what it needs. Only python3 (3.11 or newer), pip and make are presumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --require-hashes --only-binary :all:

PRETTIER := $(BIN)/node $(VENV)/npm/node_modules/prettier/bin/prettier.cjs
STYLED := 'static/css/*.css' 'static/js/*.js'

.PHONY: setup run test check format docs screenshots audit wheel installed bench soak lock clean
.DEFAULT_GOAL := help

help:
	@echo "make run    start evalsite with its demo data      make test   run the whole test suite"
	@echo "make check  lint, types, imports, migrations, audit       make bench  speed, as ratios       make soak  the long checks"
	@echo "make format Python, templates, styles and scripts as make check wants them"
	@echo "make docs   the documentation as a site, in site/         make screenshots  the pictures in it, taken anew"
	@echo "make wheel  evalsite as a tool for uvx, pipx or pip, in dist/"
	@echo "make audit  known faults of every locked package, asked of the package index"

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "evalsite needs Python 3.11 or newer; set PYTHON=/path/to/it")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip uninstall --disable-pip-version-check --quiet --yes setuptools  # nothing here needs it
	@touch $@

$(VENV)/base: requirements/base.txt $(VENV)/made
	@echo "Installing what evalsite runs on (about a minute, once) ..."
	@$(PIP) -r requirements/base.txt
	@touch $@

$(VENV)/dev: requirements/dev.txt $(VENV)/base
	@echo "Installing the tools for tests and checks ..."
	@$(PIP) -r requirements/dev.txt
	@touch $@

$(VENV)/postgres $(VENV)/parquet $(VENV)/sentry $(VENV)/bleu $(VENV)/s3 $(VENV)/sso: $(VENV)/%: requirements/%.txt $(VENV)/base
	@$(PIP) -r $<
	@touch $@

# EXTRAS="postgres parquet": what an installation may have besides
setup: $(VENV)/base $(EXTRAS:%=$(VENV)/%)

run: setup
	@exec $(BIN)/python manage.py serve

# Both rounds run whatever the first one finds, and the last lines tell which of them failed.
test: $(VENV)/dev
	@$(BIN)/python -m pytest; first=$$?; $(BIN)/python -m tests.on_postgres; second=$$?; \
	test $$first = 0 || echo "The first round, on SQLite, failed ($$first)."; \
	test $$second = 0 || echo "The second round, on PostgreSQL, failed ($$second)."; \
	test $$first = 0 && test $$second = 0

# POSTGRES=1 tries the API on PostgreSQL instead of SQLite.
# Where no index can be asked, the audit says so and the check goes on; make audit by itself fails then.
check: AUDIT := --may-be-offline
check: $(VENV)/dev $(VENV)/npm/made $(VENV)/api/made audit
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/djangofmt --check templates
	$(BIN)/djangofmt check templates
	$(PRETTIER) --check --log-level warn $(STYLED)
	EVALSITE_DATA=$(VENV)/check-data $(BIN)/python manage.py makemigrations --check --dry-run
	EVALSITE_DATA=$(VENV)/check-data $(BIN)/python manage.py check --fail-level WARNING
	$(BIN)/python -m tests.api_check $(VENV)/api/bin $(if $(POSTGRES),--postgres)

format: $(VENV)/dev $(VENV)/npm/made
	$(BIN)/ruff format .
	$(BIN)/djangofmt templates
	$(PRETTIER) --write --log-level warn $(STYLED)

$(VENV)/npm/made: package.json package-lock.json $(VENV)/dev
	@mkdir -p $(@D)
	@cp package.json package-lock.json $(@D)
	@cd $(@D) && PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --include=dev --silent
	@touch $@

$(VENV)/audit/made: requirements/audit.txt
	@$(PYTHON) -m venv $(VENV)/audit
	@$(VENV)/audit/bin/python -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements/audit.txt
	@touch $@

$(VENV)/api/made: requirements/api.txt
	@$(PYTHON) -m venv $(VENV)/api
	@$(VENV)/api/bin/python -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements/api.txt
	@touch $@

$(VENV)/docs/made: requirements/docs.txt
	@$(PYTHON) -m venv $(VENV)/docs
	@$(VENV)/docs/bin/python -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements/docs.txt
	@touch $@

docs: $(VENV)/docs/made
	@NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --quiet
	@echo "site/index.html, or $(VENV)/docs/bin/mkdocs serve to read it"

# Of a fresh demo, with Debian's chromium.
screenshots: $(VENV)/dev
	@$(BIN)/python -m tests.screenshots

# A tool for uvx, pipx or pip: dist/evalsite-*.whl.
wheel: $(VENV)/dev
	@rm -rf dist
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist . > /dev/null
	@ls dist/*.whl

# That wheel in an empty environment, with the newest packages that its bounds allow.
installed: wheel
	@$(BIN)/python -m tests.installed dist/*.whl

# Known faults of what evalsite runs on; it asks the package index for each package.
audit: $(VENV)/dev $(VENV)/audit/made
	@$(BIN)/python -m tests.audit $(AUDIT) $(VENV)/audit/bin/pip-audit

bench: $(VENV)/dev
	$(BIN)/python -m tests.bench

soak: $(VENV)/dev
	EVALSITE_SOAK=1 $(BIN)/python -m pytest -n 0 -m soak
	$(BIN)/python -m tests.on_postgres --all

# Locks of pyproject.toml without addresses: hashes only. Everything together first; the others take its versions.
LOCK := uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate
EXTRA := import sys, tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"][sys.argv[1]], sep="\n")
lock:
	$(LOCK) pyproject.toml --all-extras --group dev -o requirements/dev.txt
	$(LOCK) pyproject.toml -c requirements/dev.txt -o requirements/base.txt
	for extra in postgres parquet sentry bleu s3 sso; do \
		$(PYTHON) -c '$(EXTRA)' $$extra | $(LOCK) - -c requirements/dev.txt -o requirements/$$extra.txt || exit 1; \
	done
	$(LOCK) --group audit -o requirements/audit.txt
	$(LOCK) --group api -o requirements/api.txt
	$(LOCK) --group docs -o requirements/docs.txt

clean:
	rm -rf $(VENV)
