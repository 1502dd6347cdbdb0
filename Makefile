# The project's commands; `make help` lists them. Everything runs in .venv, which `make setup` makes and keeps.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

BIN := .venv/bin
STAMP := .venv/.installed
SPARK_STAMP := .venv/.spark
NOTEBOOKS := $(wildcard notebooks/*.ipynb)
# Python compiles what it imports: compiling all of 200 packages took half of the installation.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
PYTEST := $(BIN)/python -m pytest
# JupyterLab asks nobody for news, and no one whether it may.
OVERRIDES := .venv/share/jupyter/lab/settings/overrides.json
QUIET := {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}
# An editable install leaves out what a wheel puts here: a link to the source does the same for it.
LABEXTENSION := .venv/share/jupyter/labextensions/sparkstream-nb
# Tests start some hundred processes: where none may keep what it compiles of the sources, each takes 0.6 s of CPU more,
# and pytest rewrites all tests anew in each of its own.
unexport PYTHONDONTWRITEBYTECODE
# The tiers: what starts no JVM, kernel, browser or server; what `make test` has besides; and all the rest.
PLAIN := not (spark or notebook or browser or server or thorough)
FIRST := ((contract and spark) or browser) and not (server or thorough)
REST := thorough or server or browser or hypothesis or ((spark or notebook) and not contract)
# Each commit tries a sixth of the rest, which its hash draws (tests/profiles.py). All: make thorough ALL=1
SIXTH := $(if $(ALL),,--sixth)
# Of the rest, the tests that hold elapsed time against a bound have the machine to themselves.
ALONE := timed and ($(REST))
NBVAL := -p nbval -p tests.notebooks --nbval --nbval-current-env --nbval-sanitize-with conf/nbval-sanitize.cfg --timeout 600
FIRST_NOTEBOOKS := notebooks/01_first_query.ipynb notebooks/04_alerts.ipynb
# Their JVMs live for seconds: what the second compiler and a parallel collector cost is never earned back (two files of
# tests took 125 in place of 181 s of CPU).
SHORT_LIVED := JDK_JAVA_OPTIONS='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'

# Jupyter asks to be told that root is meant, as it is in containers.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: help setup lab cluster check test thorough docs release matrix exact fuzz mutants chaos bench clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) $(SPARK_STAMP) ## Make .venv with the pinned packages, and install the project into it (quick when nothing changed)

$(STAMP): pyproject.toml constraints.txt
	@found=; for python in "$${PYTHON:-}" python3.11 python3; do \
	  [ -n "$$python" ] && "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	    && { found=$$python; break; } || :; \
	done; \
	[ -n "$$found" ] || { echo "make setup needs Python 3.11 or newer; none was found as python3.11 or python3." \
	  "Install it, or name it: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }; \
	$(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || "$$found" -m venv --clear .venv \
	  || { echo "$$found cannot make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing the packages of constraints.txt into .venv (under a minute when pip has them in its cache) ..."
	@$(PIP) pip setuptools
	@PYTHONWARNINGS=ignore $(PIP) --no-build-isolation -e '.[all,docs,release,test]'
	@mkdir -p $(dir $(OVERRIDES)) && echo '$(QUIET)' > $(OVERRIDES)
	@mkdir -p $(dir $(LABEXTENSION)) && ln -sfn "$(CURDIR)/sparkstream_nb/lab/labextension" $(LABEXTENSION)
	@echo "Compiling the engine's loops, once (under a minute on two cores) ..."
	@$(BIN)/python -m sparkstream_nb.engine.warm
	@touch $@

$(SPARK_STAMP): $(STAMP)
	@echo "Starting Spark once, so that it starts in half the time from now on (under a minute on two cores) ..."
	@$(BIN)/python -m sparkstream_nb.app.warm_spark
	@touch $@

lab: setup ## Start JupyterLab on the first notebook, on this machine only
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m jupyterlab --ip=127.0.0.1 $(AS_ROOT) notebooks/01_first_query.ipynb

cluster: setup ## A Spark cluster, Spark Connect, Kafka and PostgreSQL on this machine, until Ctrl-C (needs Maven and PostgreSQL)
	@$(BIN)/python -m tests.try_cluster

check: $(STAMP) ## Lint, types, direction of imports, plain words
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.plain_words

# Three processes where no JVM runs: some of these tests wait for a moment (two cores, cluster and stores: 133 and 113 s).
test: check setup ## check, all that needs no JVM, the contract of the runners on Spark, three browser tests, two notebooks
	$(PYTEST) tests -m "$(PLAIN)" -n 3 --dist worksteal
	$(SHORT_LIVED) $(PYTEST) tests/app tests/runners tests/sources tests/sinks tests/lab tests/operators -m "$(FIRST)" -n 2 --dist loadgroup
	$(SHORT_LIVED) $(PYTEST) $(NBVAL) $(FIRST_NOTEBOOKS) -n 2 --dist loadfile

thorough: setup ## A sixth of the rest: Spark, clusters, Kafka, databases, browsers, properties, notebooks (ALL=1: all)
	SPARKSTREAM_PROFILE=merge $(SHORT_LIVED) $(PYTEST) tests $(SIXTH) -m "not timed and ($(REST))" -n 2 --dist loadfile
	$(SHORT_LIVED) $(PYTEST) tests -m "$(ALONE)"
	$(SHORT_LIVED) $(BIN)/python -m tests.try_cluster --for kafka,spark \
	  $(PYTEST) $(NBVAL) $(SIXTH) $(filter-out $(FIRST_NOTEBOOKS),$(NOTEBOOKS)) -n 2 --dist loadfile

docs: setup ## The documentation as static pages with search, into site/, ready for any host of files (URL: its address)
	@$(BIN)/python -m docs.generator --url '$(URL)'

release: setup ## The files of a release into dist/, built twice and compared, with sums, licences and a tag; sends nothing (VERSION)
	@$(BIN)/python conf/release/make_release.py $(VERSION)

# Fewer than all: make matrix ONLY='4.0.0 emr-8', or ONE=TEXT for a pair that a hash of the text chooses
matrix: setup ## Each version of Spark and Python in an environment of its own (some 2 GB each), into docs/spark-versions.md; ONLY, ONE
	$(SHORT_LIVED) $(BIN)/python -m tests.matrix $(if $(ONLY),--only $(ONLY)) $(if $(ONE),--one $(ONE))

exact: setup ## Random feeds over shards, batches and crashes against one node (DuckDB: COUNT, PostgreSQL: a tenth)
	SPARKSTREAM_EXAMPLES=$(or $(COUNT),2000) $(PYTEST) tests/stores/test_any_split.py

# More than the defaults: make fuzz SEED=7 COUNT=5000 AREA=joins,patterns TIME=600
fuzz: setup ## Random apps through the real Siddhi and the engine (needs a JDK 17 and Maven); SEED, COUNT, AREA, TIME
	$(BIN)/python tests/fuzz/run.py --seed $(or $(SEED),1) --count $(or $(COUNT),500) --area '$(AREA)' --time $(or $(TIME),0)

# More than the defaults: make mutants AREA=joins COUNT=100 SEED=2
mutants: setup ## Small faults in the engine, one at a time: which of them no test notices; AREA, COUNT, SEED
	$(BIN)/python tests/mutation/run.py $(AREA) --count $(or $(COUNT),20) --seed $(or $(SEED),1) --tests

# More than the defaults: make chaos KILLS=50 SEED=7
chaos: setup ## 1,000 schedules of faults for each mode; kills apps: local, on a standalone cluster, over Connect, with Kafka; KILLS, SEED
	SPARKSTREAM_SCHEDULES=1000 $(PYTEST) tests/nodes tests/simulation --timeout 1800
	$(BIN)/python -m tests.chaos --kills $(or $(KILLS),140) --seed $(or $(SEED),1)
	$(BIN)/python -m tests.chaos --kills $$(( $(or $(KILLS),140) * 3 / 14 )) --seed $(or $(SEED),1) --master standalone
	$(BIN)/python -m tests.chaos --kills $$(( $(or $(KILLS),140) * 3 / 14 )) --seed $(or $(SEED),1) --master connect
	$(BIN)/python -m tests.chaos --kills $$(( $(or $(KILLS),140) * 3 / 14 )) --seed $(or $(SEED),1) --kafka 2000000

bench: setup ## Siddhi, the engine and Spark over the same events, into docs/performance.md (needs a JDK 17 and Maven)
	$(BIN)/python tests/bench/run.py $(BENCH)
	$(BIN)/python -m tests.bench.study

clean: ## Remove .venv, caches and what runs left behind
	rm -rf .venv .work site build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache \
	  spark-warehouse metastore_db derby.log
	find sparkstream_nb tests notebooks \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} + 2>/dev/null || :
