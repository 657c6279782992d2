#!/usr/bin/env python3
"""Runs Valkey's own tests of sorted sets, as they are, against the service.

    make redis-suite                                 gets the tests, runs them, and says what came of each
    tests/redis_suite/run.py --suite FOLDER          with a folder that has Valkey's tests/

At each place (a node of one shard, of three, with NATS, and with RESP3) a service of its own is started. proxy.py is
between, for the commands by which the tests prepare a server. left_out.txt says which tests do not pass, and why.
Ends with 1 if any other fails.

Needs Python 3, tclsh, and for NATS a nats-server. The service listens on loopback only.
"""

import argparse
import contextlib
import fnmatch
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import proxy

HERE = Path(__file__).resolve().parent
UNIT = "unit/type/zset"
# What the harness says of a test: its outcome, its name, and how long it took or where it stands.
LINE = re.compile(rf"\[(ok|err|skip|ignore)\]: (.*?)(?: \(\d+ ms\)|: Tag: .* denied| in tests/{UNIT}\.tcl)?$")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PLACES = {
    "1 shard": (["--shards", "1"], False, []),
    "3 shards": (["--shards", "3"], False, []),
    "NATS": (["--shards", "3"], True, []),
    "RESP3": (["--shards", "3"], False, ["--force-resp3"]),
}
START_SECONDS, SUITE_SECONDS = 30, 1200


class Class:
    """Tests that do not pass for one reason."""

    def __init__(self, line):
        self.name, run, counted, self.why = (part.strip() for part in line.split("|"))
        self.is_run, self.counted = run == "run", counted
        self.patterns = []


def read_classes(path):
    classes = []
    for line in path.read_text().splitlines():
        if line.startswith("## "):
            classes.append(Class(line[3:]))
        elif line and not line.startswith("#"):
            classes[-1].patterns.append(line)
    return classes


def class_of(test, classes):
    return next((one for one in classes if any(fnmatch.fnmatchcase(test, glob) for glob in one.patterns)), None)


@contextlib.contextmanager
def running(command, log, ready):
    """A server while it is used; `ready` looks into its log and returns what is to be known of it, or nothing yet."""
    with open(log, "wb") as output:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not (known := ready(log.read_text(errors="replace"))):
            if child.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command[0]} did not start; {log}:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)
        yield known
    finally:
        child.terminate()
        child.wait()


def addresses(log):
    port, http = re.search(r"Redis' protocol on 127\.0\.0\.1:(\d+)", log), re.search(r"^listening on (\S+)", log, re.M)
    return (int(port[1]), http[1]) if port and http else None


@contextlib.contextmanager
def service(options, flags, with_nats, folder):
    with contextlib.ExitStack() as stack:
        if with_nats:
            command = [options.nats_server, "-js", "-a", "127.0.0.1", "-p", "-1", "-sd", str(folder / "nats")]
            known = lambda log: "Server is ready" in log and re.search(r"connections on (127\.0\.0\.1:\d+)", log)
            flags = [*flags, "--nats", "nats://" + stack.enter_context(running(command, folder / "nats.log", known))[1]]
        command = [options.ranktree, "serve", "--data-dir", str(folder / "data"), "--listen", "127.0.0.1:0"]
        command += ["--redis-listen", "127.0.0.1:0", *flags]
        yield stack.enter_context(running(command, folder / "ranktree.log", addresses))


def run_suite(options, place, classes, folder):
    """The outcomes of all tests, in their order, and what the harness printed."""
    flags, with_nats, harness_flags = PLACES[place]
    skipped = folder / "skipped"
    globs = [glob for one in classes if not one.is_run for glob in one.patterns]
    skipped.write_text("".join(f"/^{as_regex(glob)}$\n" for glob in globs))
    with service(options, flags, with_nats, folder) as (port, http):
        between = proxy.Proxy(("127.0.0.1", port), http, "--force-resp3" in harness_flags)
        command = [
            "tclsh", "tests/test_helper.tcl", "--host", "127.0.0.1", "--port", str(between.port), "--single", UNIT,
            # There is one database, encodings are not Redis's, and a test that fails does not end the others.
            "--singledb", "--ignore-encoding", "--ignore-digest", "--durable", "--tags", "-needs:repl -needs:debug",
            "--skipfile", str(skipped), "--baseport", str(free_port()), *harness_flags, *options.harness,
        ]
        ended = subprocess.run(command, cwd=options.suite, capture_output=True, timeout=SUITE_SECONDS)
    output = COLOUR.sub("", ended.stdout.decode(errors="replace") + ended.stderr.decode(errors="replace"))
    ran, end, _ = output.partition("The End")
    if not end:
        raise SystemExit(f"the tests came to no end at {place}:\n{output[-3000:]}")
    return [(found[2], found[1]) for line in ran.splitlines() if (found := LINE.match(line))], ran


def as_regex(glob):
    return "".join(".*" if letter == "*" else "\\" * (not letter.isalnum()) + letter for letter in glob)


def free_port():
    # The harness looks for a free one from 32 below.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1] + 32


def said(outcome, left_out):
    """What the table says of a test."""
    if outcome == "ok":
        return "passed"
    return f"left out: {left_out.name}" if left_out else {"err": "FAILED"}.get(outcome, "NOT RUN")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", type=Path, required=True, help="folder that has Valkey's tests/")
    parser.add_argument("--ranktree", default="bin/ranktree", help="the program to test")
    parser.add_argument("--nats-server", default="nats-server")
    parser.add_argument("--place", action="append", choices=PLACES, help="where; the default is at each")
    parser.add_argument("--verbose", action="store_true", help="print what the harness prints")
    parser.add_argument("harness", nargs="*", help="after --: flags of the harness, such as --accurate")
    options = parser.parse_args()
    if not shutil.which("tclsh"):
        raise SystemExit("tclsh is missing, which runs Valkey's tests. As root, on Debian or Ubuntu: apt-get install tcl")
    classes = read_classes(HERE / "left_out.txt")

    places, table, unexpected = options.place or list(PLACES), {}, []
    for place in places:
        with tempfile.TemporaryDirectory(prefix="ranktree-suite-") as folder:
            results, output = run_suite(options, place, classes, Path(folder))
        if options.verbose:
            print(output)
        seen = Counter()
        for test, outcome in results:
            left_out = class_of(test, classes)
            # Some names are there twice, once for each encoding.
            seen[test] += 1
            table.setdefault((test, seen[test]), {})[place] = (outcome, left_out)
            if outcome != "ok" and left_out is None:
                unexpected.append(f"{place}: {test}\n{reason(test, output)}")
    show(table, places, classes)
    for (test, _), row in table.items():
        if any(left_out and outcome == "ok" for outcome, left_out in row.values()):
            print(f"passes, though left_out.txt has it: {test}")
    if unexpected:
        print("\nThese failed, or were not run, and left_out.txt does not have them:", *unexpected, sep="\n")
        sys.exit(1)


def reason(test, output):
    after = output.partition(f"[err]: {test} in ")[2].splitlines()[1:]
    lines = [line for line in after[: next((i for i, line in enumerate(after) if LINE.match(line)), None)] if line]
    return "\n".join("    " + line for line in lines[:6])


def show(table, places, classes):
    for (test, _), row in table.items():
        cells = [said(*row[place]) if place in row else "not there" for place in places]
        same = len(set(cells)) == 1
        print(f"{test}: " + (cells[0] if same else "; ".join(f"{place}: {cell}" for place, cell in zip(places, cells))))
    print()
    for place in places:
        column = [row[place] for row in table.values() if place in row]
        print(f"{place}: {share(column)}")
        for note, counts in (("", ("counted",)), (", with commands to come", ("counted", "not yet"))):
            cells = [cell for cell in column if cell[1] is None or cell[1].counted in counts]
            print(f"    of those that count{note}: {share(cells)}")
        names = Counter(left_out.name for outcome, left_out in column if left_out and outcome != "ok")
        print("    left out: " + ", ".join(f"{name} {count}" for name, count in names.most_common()))
    print()
    for name, why in dict.fromkeys((one.name, one.why) for one in classes):
        print(f"{name}: {why}")


def share(cells):
    passed = sum(outcome == "ok" for outcome, _ in cells)
    return f"{passed} of {len(cells)} pass, {100 * passed / max(1, len(cells)):.1f} %"


if __name__ == "__main__":
    # So that what was started ends as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    main()
