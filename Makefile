# Two commands do all the set-up: `make travel` runs the main job, `make test` passes the tests.
PYTHON ?= python3
PY := .venv/bin/python
export TOKENIZERS_PARALLELISM := false

.PHONY: setup travel topology test test-slow lint clean

setup:
	@PYTHON=$(PYTHON) bash .ci/setup

travel: setup
	$(PY) -m arena_lightning fit --config configs/travel.yaml $(ARGS)

topology: setup
	$(PY) studies/topology_fidelity.py $(ARGS)

test: setup lint
	$(PY) -m pytest -q $(ARGS)

test-slow: setup
	$(PY) -m pytest -q -m slow $(ARGS)

lint: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

clean:
	rm -rf .venv runs wandb
