# The two commands a newcomer needs:   make demo    make test
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PROTOC_VENV := .venv-protos
JOBS ?= 2
TASKS ?= 100000
EXTRAS := airflow,spark,examples,dev

PAGES := airflow_lance/ui/frontend/build.py

.PHONY: jvm jvm-check cluster-test spark-matrix ui ui-check ui-test pictures chromium hostile fuzz audit sbom help setup demo test test-slow simulate campaign mutants model matrix lint format types contracts check bench docs changelog protos clean driver far first-question growth large memory fragments declared

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

setup: $(VENV)/.installed ## virtual environment, packages, a Java runtime if the machine has none

$(VENV)/.installed: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  rm -rf $(VENV); \
	  echo "python3 -m venv does not work here (Debian: apt-get install python3-venv); trying virtualenv" >&2; \
	  $(PYTHON) -m pip install --quiet --user virtualenv && $(PYTHON) -m virtualenv --quiet $(VENV); }
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[$(EXTRAS)]"
	$(BIN)/python -m compileall -q lance_core airflow_lance # as pip does with what it installs
	$(BIN)/python demo/java.py --ensure
	@touch $@

demo: setup ## the main job: Airflow, Spark, 12 months of flights, one Lance table
	$(BIN)/python demo/run_demo.py

.azurite/.installed: tests/stores/emulators.py # an emulated Azure for the tests of stores; without npm they say so and skip
	@mkdir -p .azurite
	@{ command -v npm >/dev/null && npm install --silent --no-audit --no-fund --prefix .azurite \
	  "$$(sed -n 's/^AZURITE_PACKAGE = "\(.*\)"/\1/p' $<)" && touch $@; } || echo "no Azurite: its tests will be skipped" >&2

chromium: # a browser for the tests of the pages; where it cannot be installed they say so and skip
	@{ command -v chromium || command -v google-chrome; } >/dev/null && command -v chromedriver >/dev/null || { \
	  command -v apt-get >/dev/null && SUDO=$$([ "$$(id -u)" = 0 ] || echo "sudo -n") && \
	  timeout 120 $$SUDO apt-get update -qq && \
	  timeout 400 $$SUDO apt-get install -y -qq --no-install-recommends chromium chromium-driver; } >/dev/null 2>&1 || \
	  echo "no Chromium: the tests of the pages will be skipped" >&2

ui: ## build the pages of Airflow's UI from airflow_lance/ui/frontend into airflow_lance/ui/dist; needs npm
	$(PYTHON) $(PAGES)

ui-check: ## build the pages elsewhere and compare with the committed build, byte by byte
	$(PYTHON) $(PAGES) --check

jvm: setup ## build the jar of the Spark bridge from jvm/src into lance_core/spark/bridge; needs JDK 17
	$(BIN)/python jvm/build.py

jvm-check: setup ## build the jar elsewhere and compare with the committed one, byte by byte; needs JDK 17
	$(BIN)/python jvm/build.py --check

ui-test: ## the unit tests of the pages' sources
	$(PYTHON) $(PAGES) --test

pictures: setup chromium ## the screenshots of the documentation, made by the browser tests
	LANCE_PICTURES=docs/images $(BIN)/python -m pytest tests/ui/pages

test: setup $(VENV)/.site .azurite/.installed chromium ## all tests but the long ones
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow" tests

test-slow: setup $(VENV)/.site .azurite/.installed chromium ## the long tests: more seeds, more mutations, more kills
	$(BIN)/python -m pytest -m slow tests

.versitygw/versitygw: # a real S3 server for the tests of clusters, from its Go module
	GOBIN=$(CURDIR)/.versitygw go install github.com/versity/versitygw/cmd/versitygw@v1.8.0

cluster-test: setup .versitygw/versitygw ## HDFS, YARN and a real S3 server, with kills: flights on YARN in both modes, 300 appends; needs a JDK, Maven, Go
	$(BIN)/python tests/cluster/hadoop.py --fetch
	$(BIN)/python -m pytest tests/stores/test_stores_versity.py tests/cluster

matrix: setup ## one DAG of every operator on each supported Airflow, 2.11 to 3.3, in environments of their own
	$(BIN)/python -m pip install --quiet --constraint constraints.txt uv
	$(BIN)/python tests/matrix/run_matrix.py

spark-matrix: setup ## the Spark source with and without the bridge on each supported Spark, 3.5 to 4.3, in environments of their own
	$(BIN)/python -m pip install --quiet --constraint constraints.txt uv
	$(BIN)/python tests/matrix/spark_matrix.py

SCHEDULES ?= 20000
simulate: setup ## the commit protocol on every schedule: SCHEDULES of each scenario and store, then as many by chance
	PYTHONHASHSEED=0 $(BIN)/python -m tests.simulation.simulate --store all --schedules $(SCHEDULES) --stop-after 0 --processes 4
	PYTHONHASHSEED=0 $(BIN)/python -m tests.simulation.simulate --store all --random $(SCHEDULES) --stop-after 0 --processes 4

FOLDER ?= seen
SECONDS ?= 36000
campaign: setup ## simulate for SECONDS and add up in FOLDER the schedules that differ; goes on where it was ended
	$(BIN)/python -m tests.simulation.simulate --campaign $(FOLDER) --seconds $(SECONDS) --processes $(JOBS)

MUTANTS ?= 150
MUTATED ?= mutated
mutants: setup ## MUTANTS changes by rule of the commit loop and of what publishes: which scenario or unit test finds each; adds up in MUTATED
	$(BIN)/python -m tests.simulation.mutants --folder $(MUTATED) --count $(MUTANTS)

model: ## check the model of the commit protocol exhaustively with spin; fails where spin is not installed
	$(PYTHON) protocol/check.py

HOSTILE ?= 10000
FUZZ ?= 100000

hostile: setup ## HOSTILE tables by strangers, every kind of file changed by its structure, and as many forged indices, schemas and fields by reflection
	$(BIN)/python tests/security/hostile_tables.py --processes $(JOBS) --count $(HOSTILE)
	$(BIN)/python tests/security/hostile_indices.py --count $(HOSTILE)
	$(BIN)/python tests/security/forged_types.py --count $(HOSTILE)
	$(BIN)/python tests/security/hostile_structures.py --count $(HOSTILE)
	$(BIN)/python tests/security/index_bombs.py --count $(HOSTILE)

fuzz: setup ## FUZZ data, index and deletion files with changed bytes, read by kernels with bounds checks
	LANCE_KERNELS_CHECKED=1 $(BIN)/python tests/security/hostile_tables.py --processes $(JOBS) --files --count $(FUZZ)

audit: setup ## bandit, and the licences of all dependencies
	$(BIN)/python -m pip install --quiet "bandit>=1.7" "pip-licenses>=5"
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml lance_core airflow_lance
	$(BIN)/pip-licenses --order=license --format=plain

sbom: setup ## a bill of materials (CycloneDX) of the environment, in sbom.json
	$(BIN)/python -m pip install --quiet "cyclonedx-bom>=5"
	$(BIN)/cyclonedx-py environment $(BIN)/python --output-file sbom.json

.PHONY: hashes locked
hashes: setup ## write constraints-hashes.txt anew: the versions of constraints.txt with the hashes of their files (Python 3.11)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt uv
	$(BIN)/uv pip compile pyproject.toml --quiet --extra airflow --extra spark --extra examples --extra dev \
	  --constraint constraints.txt --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url \
	  --output-file constraints-hashes.txt

locked: ## a virtual environment of exactly the files that constraints-hashes.txt names, in .venv-locked (Python 3.11)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { \
	  echo "constraints-hashes.txt names the files for Python 3.11: make locked PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv .venv-locked
	.venv-locked/bin/python -m pip install --quiet --require-hashes --requirement constraints-hashes.txt
	.venv-locked/bin/python -m pip install --quiet --no-deps --editable .

lint: setup ## ruff, format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: setup ## mypy --strict on both packages, and a bound on how many expressions are Any
	$(BIN)/mypy --cache-dir /dev/null --any-exprs-report .mypy_cache/any
	$(BIN)/python .ci/any_share.py .mypy_cache/any/any-exprs.txt

contracts: setup ## import contracts
	$(BIN)/lint-imports

check: lint types contracts ## everything but the tests

far: setup ## side by side with pylance on an object store that is 30 ms away
	$(BIN)/python -m bench.far

first-question: setup ## the first question to each kind of index of 5,000,000 rows, beside pylance
	$(BIN)/python -m bench.first_question

driver: setup ## the end of a write job of 100,000 tasks, without Spark, on a store 30 ms away
	$(BIN)/python -m bench.many_tasks --tasks $(TASKS) --commit

growth: setup ## cost curves: ten and a hundred times as many fragments, versions, rows, columns, staged appends, tags
	$(BIN)/python -m bench.growth --figure docs/figures/growth.svg

ROWS ?= 100000000
LARGE ?= /tmp
large: setup ## ROWS rows on this machine: write, scan, index, merge, compact, clean up; 20 GB of disk in LARGE
	$(BIN)/python -m bench.large --rows $(ROWS) --folder $(LARGE)

memory: setup ## the peak of memory of updates, merges, compactions and index builds, beside pylance; 10 GB of disk in LARGE
	$(BIN)/python -m bench.memory --folder $(LARGE)/lance-memory

declared: setup ## what keeping a declared column of 10,000,000 rows true costs, beside its function; 5 GB of disk in LARGE
	$(BIN)/python -m bench.declared_columns --folder $(LARGE)

FRAGMENTS ?= 1000000
fragments: setup ## one append of FRAGMENTS fragments, beside pylance, and the same committed exactly once
	$(BIN)/python -m bench.many_fragments --fragments $(FRAGMENTS)

bench: setup ## side by side with pylance and Parquet; results in bench/results
	$(BIN)/python -m pip install --quiet --constraint constraints.txt matplotlib
	$(BIN)/python -m bench

$(VENV)/.site: $(VENV)/.installed # what makes the site; its test in a browser needs it, too
	$(BIN)/python -m pip install --quiet --constraint constraints.txt zensical "mkdocstrings[python]"
	@touch $@

docs: $(VENV)/.site ## the documentation as a site, in site/
	$(BIN)/python .ci/site.py

changelog: setup ## collect the fragments of changes/ into CHANGELOG.md (VERSION=x.y.z)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt towncrier
	$(BIN)/towncrier build --yes --version $(VERSION)

protos: ## regenerate lance_core/wire/pb (protoc 25: its output runs on every protobuf runtime from 4.25 on)
	@test -x $(PROTOC_VENV)/bin/python || { $(PYTHON) -m venv $(PROTOC_VENV) && \
	  $(PROTOC_VENV)/bin/pip install --quiet "grpcio-tools==1.62.3" setuptools; }
	$(PROTOC_VENV)/bin/python protos/generate.py

clean: ## remove what the targets made
	rm -rf $(VENV) $(PROTOC_VENV) .venv-matrix .venv-locked .demo bench/results .pytest_cache .mypy_cache .ruff_cache .hypothesis site
