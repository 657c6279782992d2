# What others wrote for Redis, tried at the service. A part of the Makefile: paths are from the root of the clone.

# Not part of `make test`: it takes a minute, and gets Valkey's tests from github.com.
.PHONY: redis-suite
redis-suite: nats valkey-tests $(if $(RANKTREE_BIN),,build) ## Runs Valkey's own tests of sorted sets, and says what came of each; VALKEY_TESTS names a folder that has them
	tests/redis_suite/run.py --suite "$$($(SETUP) --where valkey-tests)" --ranktree $(abspath $(or $(RANKTREE_BIN),bin/ranktree)) \
		--nats-server $(abspath $(VENV)/bin/nats-server) $(ARGS)

REDIS_CLIENTS := tests/redis_clients
# Outside the clone, as what is compiled.
REDIS_CLIENTS_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ranktree/redis-clients

# Not part of `make test`: it gets the libraries from PyPI and npm.
.PHONY: redis-clients
redis-clients: $(REDIS_CLIENTS_CACHE)/python/.installed $(if $(HAS_NPM),$(REDIS_CLIENTS_CACHE)/node/.installed) $(if $(RANKTREE_BIN),,build) ## Tries client libraries of Redis: redis-py, GLIDE, ioredis, node-redis
	@$(SETUP) npm
	python3 -B $(REDIS_CLIENTS)/run.py --ranktree $(abspath $(or $(RANKTREE_BIN),bin/ranktree)) --cache $(REDIS_CLIENTS_CACHE) \
		$(if $(HAS_NPM),--node node) $(ARGS)

$(REDIS_CLIENTS_CACHE)/python/.installed: $(REDIS_CLIENTS)/requirements.txt
	python3 -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(REDIS_CLIENTS_CACHE)/node/.installed: $(REDIS_CLIENTS)/package-lock.json
	@mkdir -p $(@D)
	cp $(REDIS_CLIENTS)/package.json $(REDIS_CLIENTS)/package-lock.json $(@D)
	cd $(@D) && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@
