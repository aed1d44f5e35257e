# `make help` lists what there is. Everything is set up from here: a fresh machine needs Rust, Python, Node, make and a C compiler.

PYTHON ?= python3
VENV := .venv
REFEREE := tests/conformance/referee/node_modules
SCHEMA_SUITE := target/json-schema-suite
PY := $(VENV)/bin/python
FUZZ_TARGETS := engine endpoint client sse uri_template schema sealed_state dialects

# The programs that tests start.
PROGRAMS := conformance-client conformance-server demo-client docsearch hostile interop-client interop-server interop-sign-in \
	outage-client outage-server

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick test-all ready build package build-programs build-tests build-bench build-counts dev setup fmt lint stubs interop chromium proxies \
	conformance conformance-all fuzz lock-files advisories bench-stdio bench-http bench-threads bench-clients bench-payload bench-sessions \
	bench-memory bench-scale bench-victim bench-auth bench-store bench-upstream \
	coldstart update-counts \
	clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build build-programs ## every client language against every server language, both eras, on examples/docsearch
	@$(PY) tests/demo/run.py

# STAGE=python runs one stage, TEST=name the tests in it whose names contain a text.
SELECTED = $(if $(STAGE),"$(STAGE)") $(if $(TEST),--test "$(TEST)")

test: ## builds everything and runs what a change has to pass; STAGE=… and TEST=… select
	@$(PYTHON) tests/run.py $(SELECTED)

test-quick: ## after a build: static checks, all tests without IO, and one test a binding and transport; STAGE=… and TEST=… select
	@$(PYTHON) tests/run.py --quick $(SELECTED)

test-all: ## what is run before a release: also all pairs, all features, long fuzzing, all counts, and known vulnerabilities
	@$(PYTHON) tests/run.py --all $(SELECTED)

ready: fmt test ## what to run before a commit: format, lint, test

build: $(VENV)/.stamp node_modules/.stamp ## wheel, npm package and command in target/package, as they are published; installed for the tests
	@echo "build: wheel, npm package, command"
	@$(PY) packaging/build.py
	@npm run --silent build:examples

package: build build-programs ## the packages, installed into empty environments and tested there
	@$(PY) tests/package/run.py

build-programs: ## the Rust programs that tests and examples start
	@cargo build --quiet --workspace $(addprefix --exclude ,gudgeon-python gudgeon-node gudgeon-cli bench-driver gudgeon-fuzz) --bins --examples

# With one command, because tests ask for features of dependencies that programs do not.
build-tests: ## the Rust tests, and the programs that other tests start
	@cargo build --quiet --workspace $(addprefix --exclude ,gudgeon-python bench-driver) --tests --examples $(addprefix --bin ,$(PROGRAMS))

# Never measured and never published.
dev: $(VENV)/.stamp node_modules/.stamp ## both bindings with the profile `dev`, in the place of the packages, until the next `make build`
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(VENV)/bin/maturin develop --quiet
	@node bindings-node/build.mjs --profile dev
	@npm run --silent build:ts
	@npm run --silent build:examples

setup: $(VENV)/.stamp node_modules/.stamp $(REFEREE)/.stamp $(SCHEMA_SUITE)/.stamp chromium proxies ## the virtual environment, the npm packages, a browser, and proxies

$(VENV)/.stamp: tests/requirements.txt tests/requirements-uv.txt
	@echo "set-up: Python packages into $(VENV)"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@# Not beside Python, where tests would find it on their path.
	@$(PY) -m pip install --quiet --disable-pip-version-check --upgrade --target $(VENV)/uv --requirement tests/requirements-uv.txt
	@$(VENV)/uv/bin/uv pip install --quiet --system-certs --compile-bytecode --python $(PY) --requirement tests/requirements.txt
	@touch $@

node_modules/.stamp: package-lock.json
	@echo "set-up: npm packages"
	@node bindings-node/platform.mjs
	@# Not `npm ci`, which refuses a lock file without the optional packages of other platforms.
	@npm install --no-save --no-audit --no-fund --loglevel=error
	@touch $@

$(REFEREE)/.stamp: tests/conformance/referee/package-lock.json
	@echo "set-up: the official conformance suite"
	@cd tests/conformance/referee && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

$(SCHEMA_SUITE)/.stamp: tests/schema_suite.py
	@echo "set-up: the test suite of JSON Schema"
	@$(PYTHON) tests/schema_suite.py
	@touch $@

# Without one of these, the tests that need it are skipped, with the reason.
chromium:
	@$(PYTHON) tests/e2e_sign_in/chromium.py

proxies:
	@$(PYTHON) tests/debian/proxy_programs.py

# With the package that asks for all features, what `make build` compiled is not compiled again.
build-bench: build
	@$(PY) packaging/compilation.py cargo build --release --quiet --package shared-features --package bench-driver --package hostile

build-counts:
	@$(PY) packaging/compilation.py cargo build --release --quiet --package shared-features --package bench-driver --bin bench-server

fmt: setup ## format Rust and Python
	@cargo fmt --all
	@$(VENV)/bin/ruff format --quiet .
	@$(VENV)/bin/ruff check --quiet --fix .

lint: setup ## rustfmt, clippy, ruff, mypy, pyright, tsc
	@$(PY) tests/run.py lint

stubs: build ## write the generated stubs anew
	@$(PY) tests/stubs.py --write

interop: build ## our servers and clients against the official ones, as a matrix
	@$(PY) tests/interop/run.py

conformance: build $(REFEREE)/.stamp ## the official suite against our servers and clients, and one set of it against each mount
	@$(PY) tests/conformance/run.py

conformance-all: build $(REFEREE)/.stamp ## the official suite against our servers, our clients and each mount
	@$(PY) tests/conformance/run.py --all

# Only this program is instrumented, in a folder of its own; without --target, build scripts would be, too.
fuzz: HOST = $(shell rustc --print host-tuple)
fuzz: ## run fuzz targets on mutated inputs: all for 60 s each, or TARGET=engine SECONDS=600
	@RUSTFLAGS="-Awarnings -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
		-Cllvm-args=-sanitizer-coverage-inline-8bit-counters" \
		cargo build --release --quiet --package gudgeon-fuzz --features coverage --target $(HOST) --target-dir target/fuzz
	@for it in $(or $(TARGET),$(FUZZ_TARGETS)); do target/fuzz/$(HOST)/release/fuzz $$it $(or $(SECONDS),60) || exit 1; done

lock-files: ## whether dependencies come from registries only, with checksums, in exact versions
	@$(PYTHON) tests/lock_files.py

advisories: ## known vulnerabilities in dependencies, as far as the tools and databases for it are there
	@$(PYTHON) tests/advisories.py

bench-stdio: build-bench ## calls a second over stdio, against the official SDKs
	@$(PY) tests/bench/stdio.py

bench-http: build-bench ## calls a second over HTTP in each era, against the official SDKs
	@$(PY) tests/bench/http_speed.py

bench-threads: build-bench ## what 1, 2 and 4 threads of the Rust server do, and how long they wait for its lock
	@$(PY) tests/bench/threads.py

bench-clients: build-bench ## calls a second of clients over HTTP in each era, against the official SDKs'
	@$(PY) tests/bench/client_speed.py

bench-payload: build-bench ## calls a second with payloads up to 1 MiB, of servers and clients, against the official SDKs
	@$(PY) tests/bench/payload.py

bench-victim: build-bench ## what calls of 3 MiB of four connections cost the small calls of a fifth
	@$(PY) tests/bench/victim.py

bench-auth: build ## the CPU time that access tokens add to a call, when they are new and when they are repeated
	@$(PY) tests/bench/auth.py

bench-store: ## operations a second of the stores in memory, SQLite and Redis, with 1 and 32 in flight
	@$(PY) tests/bench/store.py

bench-upstream: build ## the CPU time that a call costs a server which passes it on to an upstream server, over stdio and HTTP
	@$(PY) tests/bench/upstream.py

bench-sessions: build-bench ## what 10,000 legacy sessions and 10,000 modern subscriptions cost, and whether all of it is given back
	@$(PY) tests/bench/sessions.py

bench-memory: build-bench ## whether memory stays flat over 200,000 calls
	@$(PY) tests/bench/memory.py

bench-scale: build-bench ## how costs grow with tools, sessions, streams, calls in flight and payloads; writes docs/scale.md
	@$(PY) tests/bench/scale.py

coldstart: build-bench ## from spawn to the first reply, against the official SDKs
	@$(PY) tests/bench/coldstart.py

update-counts: build ## write the instructions that a call costs, which the tests compare; read the diff
	@$(MAKE) --no-print-directory build-counts
	@$(PY) tests/counts/run.py --update

clean: ## remove what was built
	@rm -rf target bindings-node/dist node_modules $(REFEREE) $(VENV) .interop
