# Everything runs in .venv, which the first target that needs it makes from plain python3 (with venv and pip).
# Stamps inside .venv remember what is installed, so a second run starts at once.

PYTHON ?= python3
VENV := .venv
CODE := src gauntlet classroom tests bench tools
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.installed-runtime
TOOLS := $(VENV)/.installed-test
TABLES := $(VENV)/.installed-bench
SHIPPING := $(VENV)/.installed-release
SITE := $(VENV)/.installed-docs
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
# one more than the two cores: a fifth of the time a test waits for a lock, a server or a clock
WORKERS ?= 3
# processes that tests start, and the next run, read compiled modules, also where a container forbids to keep them
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: release docs help demo test near far check slow cluster bench bench-peers gauntlet side-by-side reference format clean

help:  ## list every target
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(RUNTIME)  ## install what is needed and show what Tacit does
	@$(BIN)/tacit demo

test: $(TOOLS)  ## install the test tools and run the tests (about 8 minutes on 2 cores)
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup

near: $(TOOLS)  ## the tests of the rooms that differ from the main branch, and the planted bugs of those rooms
	$(BIN)/python -m tests.near -q -n $(WORKERS) --dist loadgroup

far: $(TOOLS)  ## what make test has only a smoke test of: Spark, a browser, a notebook, the guide's other pages
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup -m "far and not slow"

check: $(TOOLS)  ## format, lint, types and the tidy rules
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy --strict src gauntlet/src classroom/src
	$(BIN)/python -m pytest -q tests/test_tidy.py tests/test_house.py
	$(BIN)/python -m tests.house

slow: $(TOOLS)  ## everything: full sizes, every seed, kill, gauntlet case and planted bug
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup -m "slow or not slow" --hypothesis-profile=searching

cluster: $(TOOLS)  ## several machines on one: a Spark master, workers and drivers on loopback, killed at chosen moments (part of slow)
	$(BIN)/python -m pytest -q -n 0 -m slow tests/engine/test_cluster.py

bench: $(TOOLS) $(TABLES)  ## ratios against baselines measured in the same run (one subject: make bench ONLY=noise)
	$(BIN)/python bench/run.py $(ONLY)

bench-peers: $(TOOLS)  ## ours beside eleven other libraries, into docs/benchmarks.md (some subjects: ONLY="noise start")
	$(if $(ONLY),,-$(BIN)/python bench/peers/environments.py)
	$(BIN)/python bench/peers/run.py $(ONLY)

gauntlet: $(TOOLS)  ## every published attack on this checkout, then every published bug planted in it
	$(BIN)/tacit gauntlet
	$(BIN)/tacit gauntlet --mutants

side-by-side: $(TOOLS)  ## the gauntlet's comparable cases on ours and on three peers, into docs/side-by-side.md
	$(BIN)/python bench/peers/gauntlet/run.py

reference: $(TOOLS)  ## write docs/reference.md from the code's own words
	$(BIN)/python -m tests.reference_page

format: $(TOOLS)  ## rewrite the code in the one format
	$(BIN)/ruff check --fix --select I .
	$(BIN)/ruff format $(CODE)

release: $(SHIPPING)  ## build, check and try out what would be published, in a clean environment; nothing is uploaded
	$(BIN)/python tools/release.py

docs: $(SITE)  ## the site, into build/site, with every link checked
	$(BIN)/python tools/site.py

clean:  ## remove .venv, caches and what was built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .peers bench/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): pyproject.toml classroom/pyproject.toml | $(BIN)/python
	@echo "installing tacit and its classroom into $(VENV) (once; a minute or two)"
	$(PIP) install --editable . --editable ./classroom
	@touch $@

$(TOOLS): pyproject.toml gauntlet/pyproject.toml classroom/pyproject.toml | $(BIN)/python
	@echo "installing tacit, its classroom, its gauntlet and its test tools into $(VENV) (once; a minute or two)"
	$(PIP) install --upgrade 'pip>=25.1'
	$(PIP) install --editable '.[all]' --editable ./classroom --editable ./gauntlet --group test
	@# nets: a CPU build of torch if there is one (others are gigabytes); sympy says that mpmath must be older than the tests' own
	@$(PIP) install --no-deps 'torch==2.13.0+cpu' sympy networkx filelock fsspec 2>/dev/null || echo "no CPU build of torch here: the tests of nets are skipped"
	@touch $@ $(RUNTIME)

$(SHIPPING): pyproject.toml | $(TOOLS)
	$(PIP) install --group release
	@touch $@

$(SITE): pyproject.toml | $(TOOLS)
	$(PIP) install --group docs
	@touch $@

$(TABLES): pyproject.toml | $(TOOLS)
	@echo "installing the tables that the bench of learned bounds asks about"
	$(PIP) install --group bench
	@touch $@
