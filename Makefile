# `make run` and `make test` are the two commands of the README; both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_DIR ?= runs/maths-0
NAME ?= verifier
TEST_WORKERS ?= 3
TORCH := torch==$(shell sed -n 's/^torch==//p' constraints.txt)

.PHONY: setup run test test-slow lint reproduce-smoke smollm2 bench cluster-demo docs docs-serve dist check-dist clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt plugins/redqueen-proofs/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$(TORCH)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,dashboard]" -e plugins/redqueen-proofs
	touch $@

run: setup
	$(BIN)/redqueen train configs/maths.toml --run-dir $(RUN_DIR)

test: setup
	$(BIN)/python -m pytest -q -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder

# An hour or more on two cores: fifty killed runs, five hundred steps, all items of the benchmarks, wheels, browsers.
test-slow: setup
	@echo "test-slow takes an hour or more on two cores"
	$(BIN)/python -m pytest -q -m slow

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_house.py

reproduce-smoke: setup
	$(BIN)/redqueen experiment experiments/smoke.toml

smollm2: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[gguf]"
	$(BIN)/python configs/get_smollm2.py

bench: setup
	$(BIN)/python bench/$(NAME).py

cluster-demo: $(VENV)/.ray
	$(BIN)/python experiments/cluster_demo.py

$(VENV)/.ray: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[ray]"
	touch $@

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

docs-serve: $(VENV)/.docs
	$(BIN)/mkdocs serve

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

dist: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dist]"
	rm -rf dist
	$(BIN)/python -m build --outdir dist

# The wheel with the pinned, the lowest and the newest releases (/dev/null: no constraints) of all that it needs but torch.
check-dist: dist
	mkdir -p build
	for pins in constraints.txt constraints-lowest.txt /dev/null; do \
		echo "check-dist: $$pins" && \
		$(PYTHON) -m venv --clear build/check && \
		build/check/bin/python -m pip install --quiet --disable-pip-version-check -c $$pins "$(TORCH)" dist/*.whl && \
		build/check/bin/python tests/check_wheel.py || exit 1; \
	done

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
