# The two commands a newcomer needs: `make demo` runs the main job, `make test` passes the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
export PATH := $(BIN):$(PATH)
SOURCES := flows tasks training audit

.PHONY: help install demo test test-long test-gpu check lock bench bench-chain bench-dedup bench-text bench-tokens bench-loader bench-stall kill-demo clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

install: $(VENV)/.installed ## .venv with the tested versions (about 2.5 GB, once)

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --constraint constraints.txt
	touch $@

demo: install ## build, release and train on the texts this machine has, in ./demo
	gristmill demo

test: install ## every test that takes under 12 minutes together on two cores
	python -m pytest -n 2 --dist loadfile -m "not long and not gpu"

test-long: install ## what takes longer: kill -9 at random moments, millions of documents
	python -m pytest -m long

test-gpu: install ## what needs a CUDA device
	python -m pytest -m gpu

check: install ## formatting, lint, types and who may import whom
	ruff format --check .
	ruff check .
	mypy
	lint-imports

lock: install ## build samples/ here, refresh dvc.lock and reports/, and say the golden content digest
	gristmill build
	python -c "import tests.test_golden as g; print('content', g.content_of(g.ROOT))"

bench: install ## speeds as ratios against peers or limits, one JSON line each
	python -m benchmarks

bench-dedup: install ## dedup and decontamination; GRISTMILL_PEERS names an environment with benchmarks/dedup-requirements.txt
	python -m benchmarks dedup decontaminate 2>&1 $(if $(LOG),| tee $(LOG))

bench-tokens: install ## tokenize, pack and shard against the bare libraries and peers; GRISTMILL_PEERS names an environment with benchmarks/packing-requirements.txt
	python -m benchmarks tokens packing 2>&1 >/dev/null | tee docs/logs/bench-tokens.txt

bench-chain: install ## files to mixture.json beside DataTrove, 300 MB, into docs/logs/bench-chain.txt; GRISTMILL_PEERS as for bench-text
	python -m benchmarks chain 2>&1 >/dev/null | tee docs/logs/bench-chain.txt

bench-loader: install ## batches against the memory's own speed and other loaders
	python -m benchmarks loader

bench-stall: install ## how long a GPU waits for data; needs one
	python -m benchmarks stall

bench-text: install ## text in, into docs/logs/bench-text.txt; GRISTMILL_PEERS names an environment with benchmarks/requirements.txt
	python -m benchmarks text ingest chain_text 2>&1 >/dev/null | tee docs/logs/bench-text.txt

kill-demo: install ## ten kill -9 at random moments of a build of ./demo's recipe, then one run to the end
	python -m tests.kill_demo

clean: ## what `make demo` and the tests leave behind
	rm -rf demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
