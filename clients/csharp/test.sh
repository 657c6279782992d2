#!/usr/bin/env bash
# Compiles the client with mono's compiler, and runs its tests against real servers. It installs nothing,
# and says what it needs; RANKTREE_BIN and NATS_SERVER_BIN name the programs. nats/ needs NuGet.
set -euo pipefail
cd "$(dirname "$0")"
JSON=/usr/lib/cli/Newtonsoft.Json-5.0/Newtonsoft.Json.dll
if ! command -v mcs mono >/dev/null || [[ ! -e $JSON ]]; then
	echo "The C# client was NOT tested: mono is not here. As root, on Debian or Ubuntu:" >&2
	echo "  apt-get install mono-mcs mono-runtime libmono-system-net-http4.0-cil libnewtonsoft-json5.0-cil" >&2
	# As the Makefile has it where CI is set.
	[[ -z ${CI:-} || " ${TESTS_WITHOUT:-} " == *" mono "* ]] && exit 0
	exit 1
fi
RANKTREE_ROOT=$(cd ../.. && pwd)
export RANKTREE_ROOT
mkdir -p .tools
cp -f "$JSON" .tools/
python3 -B tests/readme.py >.tools/Readme.cs
compile() { mcs -langversion:7 -warnaserror+ -r:"$JSON" -r:System.Net.Http.dll "$@"; }
compile -target:library -out:.tools/Ranktree.dll src/*.cs
compile -out:.tools/game.exe -r:.tools/Ranktree.dll examples/GameLoop.cs
compile -out:.tools/tests.exe -r:.tools/Ranktree.dll tests/*.cs .tools/Readme.cs
exec mono .tools/tests.exe "$@"
