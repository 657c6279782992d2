#!/bin/bash
# Builds the program of the last commit twice, in clones in two folders, each with a target folder and a
# CARGO_HOME of its own, and compares the bytes.
#
# Usage: packaging/build_twice.sh [FOLDER]
#
# FOLDER keeps what was compiled for the next time. Without it, everything is compiled, RocksDB twice.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
kept=${1:-}
folder=${kept:-$(mktemp -d)}
[ -n "$kept" ] || trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

build() {
	local clone=$1 home=$2 target=$3
	rm -rf "$clone"
	mkdir -p "$(dirname "$clone")" "$home"
	git clone --quiet "$root" "$clone"
	# The crates that are here already need not be fetched again.
	[ -e "$home/registry" ] || cp -a "${CARGO_HOME:-$HOME/.cargo}/." "$home/"
	# What has the commit's time in it is of this commit.
	rm -rf "$target-release/release/build/"libmimalloc-sys-* \
		"$target-release/release/.fingerprint/"libmimalloc-sys-*
	CARGO_HOME=$home make -C "$clone" build-release CARGO_TARGET_DIR="$target"
}

build "$folder/a" "$folder/cargo-a" "$folder/target-a"
build "$folder/elsewhere/deeper/ranktree" "$folder/elsewhere/cargo" "$folder/elsewhere/target"
sha256sum "$folder/a/bin/ranktree-release" "$folder/elsewhere/deeper/ranktree/bin/ranktree-release"
cmp "$folder/a/bin/ranktree-release" "$folder/elsewhere/deeper/ranktree/bin/ranktree-release"
echo "both programs of $(git -C "$root" log -1 --format=%h) have the same bytes"
