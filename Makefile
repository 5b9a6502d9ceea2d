# Everything a user or a contributor runs. `make` alone lists the targets.
# Needs Python 3.11 or newer with venv and pip; the rest is installed into .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install -qq --disable-pip-version-check
DEMO   := kplus-demo

# Pictures are written to files, never to a screen.
export MPLBACKEND := Agg

.DEFAULT_GOAL := help
# Two pips in one environment would get in each other's way under `make -j`.
.NOTPARALLEL:

.PHONY: help demo test test-slow test-benchmarks test-bounds coverage mutants lint format types layers docs wheel bench-peers reproduce benchmark clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1	\2/p' $(MAKEFILE_LIST) | \
	while IFS='	' read -r target text; do printf '  make %-15s %s\n' "$$target" "$$text"; done

# --- environments: one stamp file for each set of packages -----------------------------

$(VENV)/.pip:
	@echo "Creating $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kplus needs Python 3.11 or newer; try make PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade "pip>=25.1"
	@touch $@

# A machine without a C compiler gets one that comes as a Python package.
ifeq ($(shell command -v cc || command -v gcc || command -v clang),)
export CC := $(abspath $(BIN))/python -m ziglang cc
ZIG := ziglang
endif

# What compiles the kernels is kept, so that a changed kernel is built in seconds.
KERNELS := $(shell find src -name 'kernels*.p[yx]*')
$(VENV)/.cython: $(VENV)/.pip pyproject.toml
	@echo "Installing numpy, scipy and Cython"
	@$(PIP) $$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])') $(ZIG)
	@touch $@

$(VENV)/.app: $(VENV)/.cython setup.py $(KERNELS)
	@echo "Installing kplus and compiling its kernels (a minute the first time)"
	@$(PIP) --no-build-isolation --editable ".[cli,plot]"
	@$(BIN)/python -c 'import kplus.core.compiled as kernels; kernels.level()'
	@touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.docs $(VENV)/.build $(VENV)/.coverage $(VENV)/.mutants: $(VENV)/.%: $(VENV)/.app
	@echo "Installing the $* tools"
	@$(PIP) --group $*
	@touch $@

# --- for users --------------------------------------------------------------------------

demo: $(VENV)/.app ## cluster the bundled wine data and draw the result
	$(BIN)/kplus fit src/kplus/datasets/wine.csv --model dp-means --scale --plot --force -o $(DEMO)
	@echo "Look at $(DEMO)/clusters.png"

# --- for contributors -------------------------------------------------------------------

test: $(VENV)/.test ## run the test suite and the docstring examples
	$(BIN)/python -m pytest -n 2 -q -m "not slow"

test-slow: $(VENV)/.test ## run the tests that take longer
	$(BIN)/python -m pytest -n 2 -q -m slow

test-benchmarks: $(VENV)/.test ## run the tests of the benchmark scripts
	$(BIN)/python -m pytest -n 2 -q benchmarks/tests

# Compiled loops do not notice an index out of range; this compilation does. The kernels'
# own tests, the laws, whole passes and small fits of every estimator reach all of them.
BOUNDED := tests/test_small_fits.py tests/linear tests/tree $(wildcard \
	tests/*/test_kernels*.py tests/*/test_*_kernels.py tests/*/test_*laws.py tests/*/test_passes.py)
test-bounds: $(VENV)/.test ## run the tests of compiled code with bounds checked
	KPLUS_KERNELS=bounds $(BIN)/python setup.py -q build_ext --inplace
	KPLUS_KERNELS=bounds $(BIN)/python -m pytest -n 2 -q -m "not slow" $(BOUNDED)

# Compiled lines cannot be seen: kernels are counted where small fits and their own tests
# run uncompiled. C does not warn of what a division by 0 gives.
UNCOMPILED := tests/test_small_fits.py tests/craft/test_paper_kernels.py \
	tests/dp_mixture/test_kernels.py tests/dp_mixture/test_kernels_counts.py \
	$(patsubst %,tests/ibp/test_kernels_%.py, factors rows submodular)
coverage: $(VENV)/.test $(VENV)/.coverage ## count the lines that tests execute, kernels included
	$(BIN)/coverage erase
	KPLUS_KERNELS=python $(BIN)/coverage run -m pytest -n 2 -q -W ignore::RuntimeWarning $(UNCOMPILED)
	$(BIN)/coverage run -m pytest -n 2 -q -m "not slow"
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --fail-under=97

# Sampled changes of models and moves that no test notices; an hour or more.
mutants: $(VENV)/.test $(VENV)/.mutants ## find small changes that no test notices
	$(BIN)/python tools/mutants.py

lint: $(VENV)/.lint ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.lint ## mend style and formatting in place
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.lint ## check the type annotations
	$(BIN)/mypy

layers: $(VENV)/.lint ## check that imports between the layers go down only
	$(BIN)/lint-imports

docs: $(VENV)/.docs ## build docs/_build/html and run every example in it
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/sphinx-build -q -W --keep-going -b doctest docs docs/_build/doctest
	@echo "Built docs/_build/html/index.html"

wheel: $(VENV)/.build ## build sdist and wheel, then try the README on the wheel
	@rm -rf dist build/wheel-venv && mkdir -p build
	$(BIN)/python -m build --outdir dist . > build/wheel.log 2>&1 || { cat build/wheel.log; exit 1; }
	$(BIN)/python .ci/dist_contents.py dist
	$(PYTHON) -m venv build/wheel-venv
	build/wheel-venv/bin/python -m pip install -qq --disable-pip-version-check "$$(ls dist/*.whl)[cli,plot]"
	build/wheel-venv/bin/python .ci/readme_examples.py README.md
	$(BIN)/python .ci/try_wheel.py dist
	@ls dist | sed 's/^/  dist\//'

.venv-peers/.peers: benchmarks/peers-requirements.txt
	@echo "Creating .venv-peers"
	@$(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python -m pip install -qq --disable-pip-version-check -r $<
	@touch $@

# Without dependencies: all are listed, and orange3 would bring a graphical interface.
.venv-craft-peers/.peers: benchmarks/craft-requirements.txt
	@echo "Creating .venv-craft-peers"
	@$(PYTHON) -m venv .venv-craft-peers
	@.venv-craft-peers/bin/python -m pip install -qq --disable-pip-version-check --no-deps -r $<
	@touch $@

bench-peers: .venv-peers/.peers .venv-craft-peers/.peers ## make the environments of the libraries compared with

reproduce: $(VENV)/.app bench-peers ## measure everything again, or PART=craft,ibp:cost (hours)
	$(BIN)/python benchmarks/reproduce.py --part "$(PART)"

benchmark: $(VENV)/.app bench-peers ## race against other libraries (half an hour)
	$(BIN)/python benchmarks/reproduce.py --race

clean: ## remove what these targets made
	rm -rf $(VENV) src/kplus/_compiled src/kplus/_cyutility* .venv-peers .venv-craft-peers $(DEMO) dist build docs/_build docs/api/generated docs/examples \
	  .coverage* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +
