# Every command here works in a fresh clone with Rust, Python 3 and a C++ compiler. tools/setup.py gets what else it needs: into this
# clone when a command needs it, into the machine by `make setup` alone, which `make run` and `make test` call first.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Outside the clone, so that the next clone finds RocksDB compiled: it takes 10 to 20 minutes on two cores, once.
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ranktree/target

# One profile for everything, so that RocksDB is compiled for one.
PROFILE := --release
# The lock file says what was tested.
CARGO_FLAGS := $(PROFILE) --locked

SETUP := python3 -B tools/setup.py
VENV := .venv
TOOLS := .tools

# Tests wait for servers and for disks most of their time, so that a few for each core fill it. With more than 16 at a time, what
# they start takes more memory than a laptop has to spare.
CORES := $(or $(shell getconf _NPROCESSORS_ONLN 2>/dev/null),2)
TEST_THREADS ?= $(shell echo $$(( $(CORES) > 16 ? $(CORES) : ($(CORES) > 4 ? 16 : 4 * $(CORES)) )))

DATA ?= ./data
ARGS ?=

.PHONY: help
help: ## Says what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12
	@echo; echo "What make setup FOR=NAME gets:"; $(SETUP) --list | sed 's/^/  /'
	@echo
	@echo "Compiled files go to $(CARGO_TARGET_DIR); set CARGO_TARGET_DIR to have them elsewhere."

.PHONY: run
run: ## Starts the service, with its data in ./data; make run ARGS="--shards 3" passes flags on
	$(MAKE) --no-print-directory setup FOR=build
	@$(MAKE) --no-print-directory build
	exec bin/ranktree serve --data-dir $(DATA) $(ARGS)

# Tools of tools/table.py, or `build` or `test` for all that these need. Where CI is set, one that cannot be had is an error, unless
# TESTS_WITHOUT names it, as for the tests (tests/it/support/tools.rs).
FOR ?= test

.PHONY: setup
setup: ## Gets what `make run` and `make test` need, as root by sudo where it must, and says so; FOR=build or FOR="valkey helm" gets others
	@$(SETUP) --root $(FOR)

BUILT := $(CARGO_TARGET_DIR)/release/ranktree

# Debuggers, profilers and backtraces find the line numbers in bin/ranktree.debug; they would more than double the program.
# So are the names of C++ functions, of the compilers' tables, and of code that only drops values, an eighth of it; all other names
# of Rust stay, for backtraces.
# Put into place by renaming, because the one that is there may be running.
STRIP := --strip-debug --wildcard --strip-symbol='_Z*7rocksdb*' --strip-symbol='_ZNSt*' --strip-symbol='_ZNKSt*' --strip-symbol='_ZSt*' \
	--strip-symbol='_ZT*' --strip-symbol='_Z41__static_init*' --strip-symbol='_ZN4core3ptr*drop_in_place*' \
	--strip-symbol='GCC_except_table*' --strip-symbol='anon.*'
.PHONY: build
build: ready ## Builds bin/ranktree, and bin/ranktree.debug with its line numbers
	cargo build $(CARGO_FLAGS) --bin ranktree
	@mkdir -p bin
	@if [[ ! bin/ranktree -nt $(BUILT) ]]; then \
		cp -f $(BUILT) bin/ranktree.new; \
		if command -v objcopy >/dev/null && objcopy --only-keep-debug $(BUILT) bin/ranktree.debug 2>/dev/null; then \
			objcopy $(STRIP) --add-gnu-debuglink=bin/ranktree.debug bin/ranktree.new; \
		fi; \
		mv -f bin/ranktree.new bin/ranktree; \
	fi

.PHONY: cluster
cluster: build nats ## Starts three nats-servers and three nodes to try, and stops them on Ctrl-C; ARGS="--help" says more
	exec python3 deploy/cluster/run.py $(ARGS)

.PHONY: test
test: ## Checks the format and the lints, and runs all tests, against a real nats-server and redis-server too
	$(MAKE) --no-print-directory setup FOR=test
	@$(MAKE) --no-print-directory lint deploy-check generated-check pins-check setup-check
	RUST_TEST_THREADS=$(TEST_THREADS) cargo test $(CARGO_FLAGS)
	@if [[ "$$(uname -s)" == Linux ]]; then \
		$(MAKE) --no-print-directory test-dist RANKTREE_BIN=$(BUILT); \
	else \
		echo "The packages were NOT checked: they are for Linux" >&2; \
	fi

# Kills and disturbances by the dozen, and models for longer: what `make test` does in a shorter form.
.PHONY: test-long
test-long: ## As `make test`, with more rounds of what is repeated
	RANKTREE_TESTS=long $(MAKE) --no-print-directory test

# `make test` runs as whoever calls it, and mostly that is not root.
.PHONY: test-root
test-root: ready ## Runs the tests of what root does, which others cannot try: sudo -E make test-root
	cargo test $(CARGO_FLAGS) --test it -- operations::restored_by_root operations::root_below_others

MINUTES ?= 10

.PHONY: soak
soak: ready nats ## Disturbs a cluster for MINUTES=10, and says what it did; every answer is checked
	RANKTREE_SOAK_MINUTES=$(MINUTES) cargo test $(CARGO_FLAGS) --test it -- disturbed_cluster::disturbed::soak --exact --ignored --nocapture

.PHONY: lint
lint: ready ## Checks the format, the lints, and the links of comments
	cargo fmt --check
	cargo clippy $(CARGO_FLAGS) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(CARGO_FLAGS) --quiet --no-deps --document-private-items
	$(RUST_CLIENT_CARGO) clippy --locked --quiet --all-features -- -D warnings

.PHONY: bench
bench: ready nats ## Runs the benchmarks; make bench ARGS="--bench tree" runs one
	cargo bench --locked $(ARGS)

.PHONY: plots
plots: ## Draws the plots of docs/benchmarks.md from docs/benchmarks/results
	python3 docs/benchmarks/plots.py

.PHONY: screenshots
screenshots: nats prometheus pictures $(if $(RANKTREE_BIN),,build) ## Takes the pictures in docs/screenshots, in four minutes; RANKTREE_BIN names the program
	@$(SETUP) --check browser
	$(TOOLS)/pictures/bin/python -B docs/screenshots/take.py --ranktree $(or $(RANKTREE_BIN),bin/ranktree) \
		--prometheus "$$($(SETUP) --where prometheus)" $(ARGS)

.PHONY: openapi
openapi: ready ## Writes docs/openapi.json from the code
	cargo run $(CARGO_FLAGS) --quiet --bin ranktree -- openapi > docs/openapi.json.new
	mv docs/openapi.json.new docs/openapi.json

# The service that clients, packages and pictures are made with; without it, `make build` comes first.
RANKTREE_BIN ?=

.PHONY: generated-check
generated-check: ## Checks that what is written or copied from other files is current: the clients' types, the chart's files
	python3 -B clients/generator/generate.py --check
	python3 -B deploy/helm/check.py --files

.PHONY: pins-check
pins-check: ## Checks that images and actions are named by what they are, and names those that are not
	python3 -B packaging/check_pins.py

.PHONY: setup-check
setup-check: ## Tests what gets tools, with what is here
	python3 -B tools/test_setup.py

include clients/clients.mk
include tests/redis.mk

# Of the program that RANKTREE_BIN names, or bin/ranktree. Releases are made of `make build-release`; docs/releasing.md.
.PHONY: dist
dist: $(if $(RANKTREE_BIN),,build) ## Makes packages in dist/: a tarball, a Debian package, a Python wheel; RANKTREE_BIN names the program
	python3 -B packaging/dist.py --binary $(or $(RANKTREE_BIN),bin/ranktree) $(ARGS)

.PHONY: test-dist
test-dist: $(if $(RANKTREE_BIN),,build) ## Makes the packages twice, compares them, installs each, and starts the service from it
	RANKTREE_BIN=$(abspath $(or $(RANKTREE_BIN),bin/ranktree)) python3 -B packaging/test_dist.py

# In a target folder of its own, because these flags compile everything anew, RocksDB too. With them no path of this machine is in
# the program, so that its bytes follow from the source, the toolchain and the C++ compiler.
RELEASE_TARGET := $(CARGO_TARGET_DIR)-release
RELEASE_BIN := $(RELEASE_TARGET)/release/ranktree
HOME_OF_CARGO := $(or $(CARGO_HOME),$(HOME)/.cargo)
RELEASE_PATHS := $(RELEASE_TARGET)=/target $(CURDIR)=/ranktree $(HOME_OF_CARGO)=/cargo
# What C sources take for the time at which they are compiled (mimalloc's does).
RELEASE_EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct))
# By which a debugger finds the file of symbols. The linker's own is a hash of the symbols too, and a few of the compiler's names for
# them differ from one folder to another.
RELEASE_BUILD_ID = $(shell (git rev-parse HEAD; rustc -vV) | sha1sum | cut -c 1-40)

.PHONY: build-release
build-release: ready ## Builds the program of a release, without paths of this machine: 10 to 20 minutes
	SOURCE_DATE_EPOCH=$(RELEASE_EPOCH) CARGO_TARGET_DIR=$(RELEASE_TARGET) RUSTFLAGS="$(addprefix --remap-path-prefix=,$(RELEASE_PATHS))" \
		CFLAGS="$(addprefix -ffile-prefix-map=,$(RELEASE_PATHS))" CXXFLAGS="$(addprefix -ffile-prefix-map=,$(RELEASE_PATHS))" \
		cargo rustc $(CARGO_FLAGS) --bin ranktree -- -Clink-arg=-Wl,--build-id=0x$(RELEASE_BUILD_ID)
	@mkdir -p bin; strip --strip-all -o bin/ranktree-release $(RELEASE_BIN); \
	objcopy --only-keep-debug --compress-debug-sections $(RELEASE_BIN) bin/ranktree-release.debug; \
	for path in $(RELEASE_TARGET) $(CURDIR) $(HOME_OF_CARGO); do \
		if grep -qaF "$$path/" bin/ranktree-release; then echo "bin/ranktree-release has the path $$path in it" >&2; exit 1; fi; \
	done
	@echo "bin/ranktree-release, for make dist RANKTREE_BIN=bin/ranktree-release"

.PHONY: test-release
test-release: ## Builds the program of a release twice, in two folders with a CARGO_HOME each, and compares the bytes: 30 minutes
	packaging/build_twice.sh $(ARGS)

# Not part of `make test`, like the other checks that download programs for this alone.
.PHONY: workflows-check
workflows-check: pins-check workflows ## Checks the workflows for GitHub
	python3 -B packaging/check_workflows.py --tools $(TOOLS)/workflows/bin

# Each is a row of tools/table.py, and goes into this clone.
GOT := nats redis schemathesis prometheus valgrind faketime compose valkey valkey-tests cargo-deny helm chart workflows pictures go
.PHONY: $(GOT)
$(GOT):
	@$(SETUP) $@

# And these are packages of the machine.
.PHONY: libclang browser
libclang browser:
	$(MAKE) --no-print-directory setup FOR=$@

.PHONY: deploy-check
deploy-check: nats compose ## Checks the configuration of NATS, and the two docker-compose files by docker compose
	for config in nats-server cluster; do \
		NATS_NAME=nats-1 RANKTREE_NODE_PASSWORD=n RANKTREE_GAME_PASSWORD=g RANKTREE_REJECTS_PASSWORD=r RANKTREE_ROUTE_PASSWORD=p \
			RANKTREE_ROUTE_1=nats://route:p@nats-1:6222 RANKTREE_ROUTE_2=nats://route:p@nats-2:6222 RANKTREE_ROUTE_3=nats://route:p@nats-3:6222 \
			$(VENV)/bin/nats-server -t -c deploy/nats/$$config.conf; \
	done
	@if compose=$$($(SETUP) --where compose); then \
		for profile in "" demo; do \
			COMPOSE_PROFILES=$$profile "$$compose" -f docker-compose.yml config --quiet; \
		done; \
		"$$compose" -f docker-compose.cluster.yml config --quiet; \
		echo "docker-compose.yml is well, with and without the profile demo, and docker-compose.cluster.yml is well"; \
	else \
		echo "docker-compose.yml and docker-compose.cluster.yml were NOT checked: docker compose is not here" >&2; \
	fi

.PHONY: helm-files
helm-files: ## Copies dashboards, rules and NATS permissions into the chart in deploy/helm
	python3 -B deploy/helm/check.py --write

# Not part of `make test`: it downloads 70 MB the first time. With RANKTREE_BIN it also starts real nodes as the chart would.
.PHONY: helm-check
helm-check: nats prometheus helm chart ## Checks the chart: lint, rendered objects against schemas, placement of shards; RANKTREE_BIN=bin/ranktree starts nodes
	HELM=$$($(SETUP) --where helm) RANKTREE_BIN=$(if $(RANKTREE_BIN),$(abspath $(RANKTREE_BIN))) \
		$(TOOLS)/chart/bin/python -B deploy/helm/check.py

# Of the service, and of the client for Rust, which has a lock file of its own and needs less of what deny.toml allows.
DENY := $(TOOLS)/bin/cargo-deny --locked --config deny.toml
DENY_CLIENT := $(DENY) --manifest-path $(RUST_CLIENT)/Cargo.toml
# What deny.toml allows and the client has not.
DENY_CLIENT_LINTS := --allow license-not-encountered --allow advisory-not-detected

# Not part of `make test`: cargo-deny takes some minutes to compile, and the list of known weaknesses is asked of github.com.
.PHONY: deny
deny: cargo-deny ## Checks what is linked into the service and the Rust client: licences, sources, versions, known weaknesses
	$(DENY) check --hide-inclusion-graph licenses bans sources
	$(DENY_CLIENT) check --hide-inclusion-graph $(DENY_CLIENT_LINTS) licenses bans sources
	$(DENY) check advisories
	$(DENY_CLIENT) check $(DENY_CLIENT_LINTS) advisories

# Before anything is compiled. The link is where cargo looks by itself, so that `cargo test --release` and `cargo bench` typed by
# hand find RocksDB compiled too.
.PHONY: ready
ready:
	@$(SETUP) --check build
	@if [[ ! -e target && ! -L target && $(abspath $(CARGO_TARGET_DIR)) != $(CURDIR)/target ]]; then \
		mkdir -p $(CARGO_TARGET_DIR) && ln -s $(abspath $(CARGO_TARGET_DIR)) target; \
	fi
