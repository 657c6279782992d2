# --- Build -----------------------------------------------------------------------------------------------------------
FROM rust:1.95.0-slim-bookworm@sha256:d7482085ff5b415f84dba5647ae71606650bdef00db7aeb69f4b3d170c3e4082 AS build

# RocksDB is C++, and its bindings are generated with libclang.
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ make libclang-dev ca-certificates \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /build

# The dependencies alone, with an empty program: a layer that stays until the lock file changes. RocksDB takes 10 to 20
# minutes. The manifest names the benchmarks, so that they have to be there; they are not built.
COPY Cargo.toml Cargo.lock ./
# What RocksDB is compiled for.
COPY .cargo .cargo
COPY benches benches
RUN mkdir src \
    && echo 'fn main() {}' > src/main.rs \
    && touch src/lib.rs \
    && cargo build --release --locked --bin ranktree \
    && rm -r src

COPY src src
# Newer than the empty program's, so that cargo sees that they changed.
RUN find src -name '*.rs' -exec touch {} + \
    && cargo build --release --locked --bin ranktree \
    && objcopy --strip-debug --wildcard --strip-symbol='_Z*7rocksdb*' --strip-symbol='GCC_except_table*' \
        --strip-symbol='anon.*' target/release/ranktree

# An empty directory that belongs to whom the service runs as: a new volume takes over its owner.
RUN install -d -o 65532 -g 65532 -m 0750 /data

# --- Run -------------------------------------------------------------------------------------------------------------
FROM debian:bookworm-20250908-slim@sha256:df52e55e3361a81ac1bead266f3373ee55d29aa50cf0975d440c2be3483d8ed3

# For TLS to NATS, with certificates that a public authority signed.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /build/target/release/ranktree /usr/local/bin/ranktree
COPY --from=build --chown=65532:65532 /data /data

# Nobody's number, which owns nothing but /data. The root file system may be read-only: nothing else is written to.
USER 65532:65532
VOLUME /data

# Every address, because loopback cannot be reached from outside of a container. The service refuses that, in words, unless
# access is restricted or --insecure is given.
ENV RANKTREE_LISTEN=0.0.0.0:8080 \
    RANKTREE_DATA_DIR=/data
EXPOSE 8080

# Drains, and checkpoints so that the next start is quick. Give it time: docker stop --time 60.
STOPSIGNAL SIGTERM
# A start loads everything into memory: some two seconds for ten million members.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["ranktree", "healthcheck"]

ENTRYPOINT ["ranktree"]
CMD ["serve"]
