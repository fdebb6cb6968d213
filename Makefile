# Everything a checkout needs: the first call makes .venv, later calls reuse it; VENV=FOLDER is another one, e.g. of another Python.
# uv does the work if it is on PATH, else venv and pip, both held to constraints.txt.
.POSIX:
.SUFFIXES:
.PHONY: run help test test-slow site charts flink lint envelope blind answers performance mutations mutants nightly clean

PY ?= python3
VENV ?= .venv
SCENARIO ?= scenarios/p4-severe.yaml
PROFILE ?= dev
TESTS ?= not slow
WORLDS ?= 10000
EXPERIMENT ?= shuffle
SWEEPS ?=
AGAINST ?=
SAMPLE ?= 100
SEED ?= 1
BIN = $(VENV)/bin

# One scenario, SCENARIO=FILE: sets up the environment first, if need be.
run: $(VENV)/.made-core
	$(BIN)/ckptsim run $(SCENARIO)

# What make can do.
help:
	@awk '/^# / { if (text == "") text = substr($$0, 3) } /^[a-z-]+:/ { split($$1, name, ":"); print name[1] "\t" text } !/^#/ { text = "" }' Makefile | expand -t 14
	@echo "Variables, e.g. make PY=python3.13 VENV=build/venv-3.13 test:"
	@sed -n 's/^\([A-Z]*\) ?= */    \1=/p' Makefile

# Compiling the kernel takes three seconds and is kept on disk: once here, not in every process of the suite.
# So is bytecode, which every `ckptsim` of a test would make again where PYTHONDONTWRITEBYTECODE is set, and every process of pytest, for
# its own form of the tests: 15 CPU seconds in each.
PYTEST = PYTHONDONTWRITEBYTECODE= HYPOTHESIS_PROFILE=$(PROFILE) $(BIN)/python -m pytest -n 2
WARM = $(BIN)/python -m compileall -q sim tests benchmarks && $(BIN)/python -c "from sim.plane import warm; warm()"

# The quick tests; ruff and mypy run among them (tests/test_lint.py): one summary says all.
test: $(VENV)/.made-test
	$(WARM)
	$(PYTEST) -m "$(TESTS)"

# The tests that need Spark, Jupyter, a browser or a real Flink.
test-slow: $(VENV)/.made-slow
	$(WARM)
	$(PYTEST) --dist loadgroup -m "(slow or extra) and not nightly"

# A real job: imported while it runs, its other protocols predicted, switched to each and compared.  Needs a JDK 17 or newer.
flink: $(VENV)/.made-flink
	PYTHONPATH=. $(BIN)/python -m benchmarks.flink $(EXPERIMENT)

# The documentation as pages to read in a browser; any web server serves them, e.g. python -m http.server -d build/site.
site: $(VENV)/.made-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

# The part of Apache ECharts that reports bring along, again from its packages.  Needs npm.
charts:
	benchmarks/charts.sh

# ruff and mypy alone.
lint: $(VENV)/.made-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What predictions are worth, from the recordings in tests/data: sim/jobs/evidence/envelope.json and its table in docs/truth.md.
envelope: $(VENV)/.made-core
	PYTHONPATH=. $(BIN)/python -m benchmarks.lab.envelope

# Predictions that were written down before the runs they are about, beside them: their table in docs/truth.md.
blind: $(VENV)/.made-core
	PYTHONPATH=. $(BIN)/python -m benchmarks.blind --again

# Runs the ready sweeps and writes their answers into the pages beside them; SWEEPS="NAME NAME" only those.
answers: $(VENV)/.made-core
	PYTHONPATH=. $(BIN)/python -m benchmarks.answers $(SWEEPS)

# What runs cost, measured here: rows of benchmarks/history.csv and the tables of docs/performance.md.  AGAINST=FOLDER: an older checkout, too.
performance: $(VENV)/.made-core
	$(WARM)
	against='$(AGAINST)'; PYTHONPATH=. $(BIN)/python -m benchmarks.performance --measure --write $${against:+--against "$$against"}

# Breaks each rule of the protocols in a copy and runs the test that must notice; writes the table beside the list of rules.
mutations: $(VENV)/.made-test
	PYTHONPATH=. $(BIN)/python -m tests.mutations.runner

# Breaks operators, numbers and conditions by the hundred, says how many breaks some test notices and shows the others; nothing is written.
mutants: $(VENV)/.made-test
	PYTHONPATH=. $(BIN)/python -m tests.mutations.score --sample $(SAMPLE) --seed $(SEED)

# Everything with thousands of examples, WORLDS random worlds, and bugs that checkers must notice: hours.
nightly: $(VENV)/.made-slow
	HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest -n 2 --dist loadgroup
	PYTHONPATH=. $(BIN)/python -m tests.worlds.nightly --count $(WORLDS)
	PYTHONPATH=. $(BIN)/python -m tests.worlds.metamorphic --count 1000
	PYTHONPATH=. $(BIN)/python -m tests.injections --worlds 300

# Which extras a stamp stands for.  Later ones include the earlier ones, so that `make test` never undoes `make test-slow`.
$(VENV)/.made-core: pyproject.toml constraints.txt
	@sh .ci/venv "$(PY)" . "$(VENV)" && touch $@

$(VENV)/.made-flink: pyproject.toml constraints.txt
	@sh .ci/venv "$(PY)" '.[flink]' "$(VENV)" && touch $(VENV)/.made-core $@

$(VENV)/.made-docs: pyproject.toml constraints.txt
	@sh .ci/venv "$(PY)" '.[docs]' "$(VENV)" && touch $(VENV)/.made-core $@

$(VENV)/.made-test: pyproject.toml constraints.txt
	@sh .ci/venv "$(PY)" '.[test]' "$(VENV)" && touch $(VENV)/.made-core $@

$(VENV)/.made-slow: pyproject.toml constraints.txt
	@sh .ci/venv "$(PY)" '.[test,spark,notebook,docs,package]' "$(VENV)"
	@{ sh .ci/venv "$(PY)" '.[flink]' "$(VENV)" && touch $(VENV)/.made-flink; } || echo "No Flink can be installed here: tests/live will be skipped." >&2
	@touch $(VENV)/.made-core $(VENV)/.made-docs $(VENV)/.made-test $@

# Removes environments and caches; runs and results stay.
clean:
	rm -rf .venv build/venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis
