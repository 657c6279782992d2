#!/usr/bin/env bash
# Checks the client's format, and runs its tests against real servers. Without Go in PATH tools/setup.py gets
# one, and without a module proxy it takes the NATS client from Debian's packages, into .tools.
#
#   RANKTREE_BIN      the program; NATS_SERVER_BIN   nats-server, unless it is in PATH
set -euo pipefail
cd "$(dirname "$0")"
export GOTOOLCHAIN=local GOFLAGS=-modfile="$PWD/.tools/go.mod"
TOOLS="$PWD/.tools"
# Of Debian; what nats.go needs of them as well.
PACKAGES="golang-github-nats-io-go-nats-dev golang-github-nats-io-nkeys-dev golang-github-nats-io-nuid-dev golang-golang-x-crypto-dev"
MODULES="github.com/nats-io/nats.go github.com/nats-io/nkeys github.com/nats-io/nuid golang.org/x/crypto"
# What nats.go needs beside them, and the older one of Debian does not.
NOT_NEEDED="github.com/klauspost/compress golang.org/x/sys"

# As go.mod asks for.
is_new_enough() { "$1" version 2>/dev/null | grep -qE ' go1\.(2[5-9]|[3-9][0-9])'; }

mkdir -p "$TOOLS"
if is_new_enough go; then
	GO=$(command -v go)
else
	python3 -B ../../tools/setup.py go
	GO=$(python3 -B ../../tools/setup.py --where go)
	export GOCACHE="$TOOLS/cache" GOPATH="$TOOLS/path"
fi

# A go.mod of its own, which may name folders of this machine. What the module proxy sends must have the
# checksums of go.sum.
if [[ ! $TOOLS/go.mod -nt go.mod || ! $TOOLS/go.mod -nt go.sum ]]; then
	rm -f "$TOOLS/go.mod"
	cp go.mod "$TOOLS/go.mod.new"
	cp go.sum "$TOOLS/go.sum"
	if (GOFLAGS="" timeout 120 "$GO" mod download 2>"$TOOLS/download.log"); then
		echo "The modules come from the module proxy"
	elif grep -q "SECURITY ERROR" "$TOOLS/download.log"; then
		# What came is not what go.sum names: no other source mends that.
		cat "$TOOLS/download.log" >&2
		exit 1
	elif command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then
		echo "There is no module proxy: unpacking Debian's packages of the NATS client into clients/go/.tools"
		rm -rf "$TOOLS/debian"
		folder=$(mktemp -d)
		trap 'rm -rf "$folder"' EXIT
		chmod 755 "$folder"
		# shellcheck disable=SC2086
		(cd "$folder" && apt-get download -qq -o APT::Sandbox::User="$(id -un)" $PACKAGES)
		for package in "$folder"/*.deb; do dpkg-deb -x "$package" "$TOOLS/debian"; done
		for module in $MODULES; do
			source="$TOOLS/debian/usr/share/gocode/src/$module"
			[[ -e $source/go.mod ]] || printf 'module %s\n' "$module" >"$source/go.mod"
			GOFLAGS="" "$GO" mod edit -replace "$module=$source" "$TOOLS/go.mod.new"
		done
		for module in $NOT_NEEDED; do GOFLAGS="" "$GO" mod edit -droprequire "$module" "$TOOLS/go.mod.new"; done
	else
		echo "The NATS client cannot be had: there is no module proxy, and no apt-get" >&2
		exit 1
	fi
	mv -f "$TOOLS/go.mod.new" "$TOOLS/go.mod"
fi

unformatted=$("$("$GO" env GOROOT)/bin/gofmt" -l ./*.go nats internal examples)
if [[ -n $unformatted ]]; then
	echo "not as gofmt writes it: $unformatted" >&2
	exit 1
fi
"$GO" vet ./...
"$GO" test -count=1 "$@" ./...
