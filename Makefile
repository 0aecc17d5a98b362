PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= $(ALLY_DATA)
# Tests and benchmarks start many processes: each would compile the sources anew where this is set.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-only test-slow test-ray hostile fuzz lint bench bench-full label-efficiency bench-store kill-test docs clean

# Large packages of which little is imported: what is, is compiled then.
SELDOM := aiohttp|lightning_fabric|pytorch_lightning|torchmetrics|tests|testing|mypy|mypyc|networkx|pip|plotly|ray|setuptools|torch/_inductor|transformers/models|sympy|statsmodels|fontTools|pygments|sentence_transformers|huggingface_hub|graphql|openpyxl|formulaic|torchgen|google|grpc
PIP := $(BIN)/python -m pip install --quiet --no-compile

# The environment is complete when its stamp is newer than the files that describe it. Two installers unpack the pinned
# versions side by side, every second one each; the third adds what is missing and checks the whole, while what is there
# is compiled. pip would compile everything, on one core.
$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	sed -n '/==/p' constraints.txt | sed -n 'p;n' > $(VENV)/odd.txt
	sed -n '/==/p' constraints.txt | sed -n 'n;p' > $(VENV)/even.txt
	$(PIP) --no-deps --requirement $(VENV)/odd.txt & \
	$(PIP) --no-deps --requirement $(VENV)/even.txt && wait $$!
	$(BIN)/python -m compileall -q -j 0 -x '/($(SELDOM))/' $(VENV)/lib & \
	$(PIP) --constraint constraints.txt --editable '.[test,parquet]' && { wait $$! || true; }
	touch $@

demo: $(VENV)/.ready
	$(BIN)/ally demo --out demo

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# With -j 2 both at once.
test: lint test-only

# Tests that share work go to one worker (loadgroup); those known to be long go first, by tests/conftest.py. More workers
# than cores: many tests wait for servers, browsers and processes. A query by every strategy comes before, with all
# tests collected: loops are compiled on their first call, tests when they are collected, and both are kept on disk, so
# that not every worker compiles them at the same time.
WORKERS ?= 3
test-only: $(VENV)/.ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --quiet -k exactly_n_from_arrays
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder -m 'not slow' --durations=25

test-slow: $(VENV)/.ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m 'slow and not ray' --durations=0

# All strategies, two nodes, killed actors and drivers, on Ray clusters of this machine.
test-ray: $(VENV)/.ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/ray --durations=10

# Every file of somebody else through every command that reads it, and then files and requests changed at random.
hostile: $(VENV)/.ready
	$(BIN)/python -m pytest tests/hostile --durations=10

MINUTES ?= 10
fuzz: $(VENV)/.ready
	$(BIN)/python tests/hostile/fuzz.py --minutes $(MINUTES) --out runs/fuzz

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/pdcl_overhead.py
	$(BIN)/python benchmarks/selection.py --scale small

# PEERS is an interpreter with benchmarks/requirements-peers.txt, DATA a folder that holds mnist/; both may be left out.
bench-full: $(VENV)/.ready
	$(BIN)/python benchmarks/selection.py --scale full $(if $(DATA),--data-dir $(DATA)) $(if $(PEERS),--peers $(PEERS))

# Goes on where it was; DATA is a folder of data sets, and may be left out for those that ship or are in the cache.
label-efficiency: $(VENV)/.ready
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/label_efficiency.py --scale small --results runs/label-efficiency $(if $(DATA),--data-dir $(DATA))

bench-store: $(VENV)/.ready
	$(BIN)/python benchmarks/store_commits.py
	$(BIN)/python benchmarks/store_million.py
	$(BIN)/python benchmarks/campaign_load.py
	$(BIN)/python benchmarks/page_load.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/campaign_million.py

kill-test: $(VENV)/.ready
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/campaign_kill.py --kills 10000

docs: $(VENV)/.ready
	OMP_NUM_THREADS=1 $(BIN)/python docs/build_strategies.py --figure
	$(BIN)/python docs/build_settings.py
	$(BIN)/python docs/build_duals.py

clean:
	rm -rf $(VENV) demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
