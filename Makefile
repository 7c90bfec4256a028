# The five commands: demo, test, check, bench, up. Each installs what it needs first; only Python 3.11+ and make must be there.
PYTHON ?= python3
BIN := .venv/bin
# One more than the cores of CI: one has the Spark session, and many tests wait for a lease or a server.
JOBS ?= 3
# A run whose worker was killed would wait for ever.
LIMIT ?= 85m
# The suite starts some hundred Python processes; where no bytecode may be kept, each compiles the library anew.
KEEP_BYTECODE := env -u PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check bench bench-peers bench-tpc explore campaign test-lowest test-newest journey docs up format clean

help:   ## list the commands
	@sed -n 's/^\([a-z-]*\): *## */  make \1\t/p' Makefile | expand -t 20

demo:   ## load real flights through Dagster and Spark, change them every way, check every count
	@$(PYTHON) tools/bootstrap
	@$(BIN)/lakehouse demo

test:   ## the whole test suite, as CI runs it
	@$(PYTHON) tools/bootstrap --tests
	@$(KEEP_BYTECODE) timeout --foreground --kill-after=30 $(LIMIT) $(BIN)/pytest -n $(JOBS) $(PYTEST_ARGS)

check:  ## lint, format, types and layering, in seconds; the TLA+ model of the rules, in a minute when it changed
	@$(PYTHON) tools/bootstrap --tests
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(PYTHON) tools/model || [ $$? -eq 69 ]  # 69: there is no Java or no checker to be had, and a line said so

bench:  ## the measurements, each against its plain counterpart in the same run and beside benchmarks/baseline.json
	@$(PYTHON) tools/bootstrap --tests
	@$(BIN)/python benchmarks $(BENCH_ARGS)

# Which systems and works (all if empty), and rows of the large tables; PEERS_ARGS: --quick, --full, --repeats N.
SYSTEMS ?=
WORK ?=
ROWS ?=

bench-peers: ## the same work by Delta Lake, Iceberg and others in turn, into benchmarks/README.md (SYSTEMS= WORK= ROWS=)
	@$(PYTHON) tools/bootstrap
	@$(BIN)/python -m benchmarks.peers --page $(if $(SYSTEMS),--systems $(SYSTEMS)) $(if $(WORK),--work $(WORK)) \
		$(if $(ROWS),--rows $(ROWS)) $(PEERS_ARGS)

bench-tpc: ## every query of TPC-H and TPC-DS over a lake and over plain files (TPC_ARGS="--engine spark --scale 0.1")
	@$(PYTHON) tools/bootstrap
	@$(BIN)/python -m benchmarks.tpc $(TPC_ARGS)

# N schedules of the seed SEED (a random one if it is empty).
N ?= 100000
SEED ?=

explore: ## run N random schedules of operations side by side (make explore N=100000 SEED=1) against the model
	@$(PYTHON) tools/bootstrap --tests
	@$(BIN)/python -m lakehouse.testing.explore --schedules $(N) $(if $(SEED),--seed $(SEED))

campaign: ## every differential check by the hundred thousand, with 0 wrong (CAMPAIGN_ARGS="--minutes 30 --seed 1")
	@$(PYTHON) tools/bootstrap --tests
	@$(BIN)/python -m lakehouse.testing.campaign $(CAMPAIGN_ARGS)

# Another interpreter: RANGE_ARGS="--python /path/to/python3.13"; one package: RANGE_ARGS="--with pyspark==4.1.*"
RANGE_ARGS ?=

test-lowest: ## the core part of the suite with the least versions that pyproject.toml allows
	@$(PYTHON) tools/bootstrap --tests
	@$(PYTHON) tools/ranges lowest $(RANGE_ARGS)

test-newest: ## the same with the newest versions that it allows
	@$(PYTHON) tools/bootstrap --tests
	@$(PYTHON) tools/ranges newest $(RANGE_ARGS)

journey: ## from the wheel to a project of one's own, outside this tree, in Dagster and the console (minutes)
	@$(PYTHON) tools/bootstrap --tests
	@$(BIN)/python -m tests.browser.journey

docs:   ## the documentation as a site in build/docs/site, with every link checked (DOCS_ARGS=--links: the check alone)
	@$(PYTHON) tools/bootstrap --tests
	@$(BIN)/python -m tools.docs_site $(DOCS_ARGS)

up:     ## Dagster's web server and daemon and the console, on loopback, until Ctrl-C
	@$(PYTHON) tools/bootstrap
	@$(BIN)/python tools/up

format: ## rewrite the code in the common form
	@$(PYTHON) tools/bootstrap --tests
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:  ## remove what the commands made in this tree: environment, caches, local lake
	rm -rf .venv .tools .dagster .lakehouse build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
