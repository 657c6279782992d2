#!/usr/bin/env python3
"""Client libraries of Redis, each by its own defaults, against a real service that has tokens and is restarted.

    make redis-clients                  installs the libraries into a cache folder, and tries each

A client is a command. It gets the port and a token, prints `restart` to have the service killed and started again,
which a line on its standard input ends, and ends with 0 if all is well.
"""

import argparse
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
START_SECONDS = 30


class Service:
    """A node with a token, on a port that stays when it is started again."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        new = [program, "token", "new", "--scope", "admin", "--name", "game"]
        made = subprocess.run(new, capture_output=True, text=True, check=True)
        self.token = re.search(r"\brkt_\S+", made.stderr)[0]
        (folder / "tokens.toml").write_text(made.stdout)
        self.port = 0
        self.start()

    def start(self):
        log = self.folder / "log"
        command = [self.program, "serve", "--data-dir", str(self.folder / "data"), "--listen", "127.0.0.1:0"]
        command += ["--redis-listen", f"127.0.0.1:{self.port}", "--tokens", str(self.folder / "tokens.toml")]
        with open(log, "wb") as output:
            self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        deadline = time.monotonic() + START_SECONDS
        while not (found := re.search(r"Redis' protocol on 127\.0\.0\.1:(\d+)", log.read_text(errors="replace"))):
            if self.child.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the service did not start:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)
        self.port = int(found[1])

    def kill(self):
        self.child.kill()
        self.child.wait()


def clients(options):
    """Each by its name: those whose toolchain is here."""
    python, node = options.cache / "python/bin/python", options.cache / "node"
    yield "redis-py", [python, "-B", HERE / "redis_py.py"]
    yield "glide", [python, "-B", HERE / "valkey_glide.py"]
    if options.node:
        for name in ("ioredis", "node-redis"):
            # Beside the libraries, where node looks for them.
            yield name, [options.node, shutil.copy(HERE / f"{name}.mjs", node)]


def tries(command, service):
    words = [str(word) for word in (*command, service.port, service.token)]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for line in child.stdout:
        if line == "restart\n":
            service.kill()
            service.start()
            child.stdin.write("restarted\n")
            child.stdin.flush()
        else:
            print("   ", line, end="")
    return child.wait() == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranktree", default="bin/ranktree", help="the program to test")
    parser.add_argument("--cache", type=Path, required=True, help="folder with the libraries, in python/ and node/")
    parser.add_argument("--node", help="the program node; without it, clients that need it are left out")
    parser.add_argument("--only", help="the name of one client")
    options = parser.parse_args()
    failed = []
    for name, command in clients(options):
        if options.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="ranktree-clients-") as folder:
                service = Service(options.ranktree, Path(folder))
                try:
                    works = tries(command, service)
                finally:
                    service.kill()
            print(f"{name}: {'works' if works else 'FAILED'}", flush=True)
            failed += [] if works else [name]
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    # So that what was started ends as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    main()
