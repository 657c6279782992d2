#!/usr/bin/env python3
"""A whole cluster on this machine, to try it: three nats-servers and three nodes, six shards, two copies of each.

    make cluster                       starts it, and stops it on Ctrl-C; its data stays in ./data-cluster
    make cluster ARGS="--fresh"        begins with empty boards
    make cluster ARGS="--help"         says what can be set

Needs Python 3 and nothing else. Everything listens on loopback only. Logs are in the data directory. While it runs,
kill a node or a nats-server by its process id and see that reads and writes go on; type its name and Enter to start it
again.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

SHARDS = 6
# Each shard on two nodes, and no two nodes with the same shards.
OWNED = {"a": "0-3", "b": "2-5", "c": "0-1,4-5"}
SERVERS = ("nats-1", "nats-2", "nats-3")
# How long something may take to start or to stop. A node checkpoints its shards when it stops.
START_TIMEOUT, STOP_TIMEOUT = 120, 60


class Process:
    """A server or a node: how it is started, and the process while it runs."""

    def __init__(self, name, command, log, ready, address):
        self.name, self.command, self.log, self.ready, self.address = name, command, log, ready, address
        self.child = None
        self.is_stopping = False

    def start(self):
        self.is_stopping = False
        with open(self.log, "ab") as log:
            # In a group of its own: Ctrl-C is for this script, which then stops all in order.
            self.child = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def is_running(self):
        return self.child is not None and self.child.poll() is None

    def wait_ready(self):
        """Waits until it answers at its address; ends the script if it ended instead."""
        deadline = time.monotonic() + START_TIMEOUT
        while not answers(self.ready):
            if not self.is_running():
                raise Failed(f"{self.name} ended while it started; the end of {self.log}:\n{tail(self.log)}")
            if time.monotonic() > deadline:
                raise Failed(f"{self.name} did not become ready within {START_TIMEOUT} s; see {self.log}")
            time.sleep(0.1)

    def stop(self):
        self.is_stopping = True
        if self.is_running():
            self.child.send_signal(signal.SIGCONT)
            self.child.terminate()

    def wait_stopped(self):
        if self.child is None:
            return
        try:
            self.child.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            print(f"{self.name} did not stop within {STOP_TIMEOUT} s, and is killed")
            self.child.kill()
            self.child.wait()


class Failed(Exception):
    pass


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status == 200
    except (OSError, urllib.error.URLError):
        return False


def tail(path, lines=15):
    return "\n".join(Path(path).read_text(errors="replace").splitlines()[-lines:])


def check_free(ports):
    for port in ports:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError as error:
                raise Failed(f"port {port} is taken ({error.strerror}); choose others with --port and --nats-port") from None


def servers(options, data):
    """Three nats-servers that replicate their streams, each with files of its own."""
    clients = [options.nats_port + number for number in range(len(SERVERS))]
    routes = [port + 1000 for port in clients]
    monitors = [port + 2000 for port in clients]
    check_free(clients + routes + monitors)
    for name, client, route, monitor in zip(SERVERS, clients, routes, monitors):
        others = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes if port != route)
        config = data / f"{name}.conf"
        config.write_text(
            f'server_name: "{name}"\nlisten: "127.0.0.1:{client}"\nhttp: "127.0.0.1:{monitor}"\n'
            f'jetstream {{ store_dir: "{data / name}", max_file_store: {options.nats_mib}MB, sync_interval: always }}\n'
            f'cluster {{ name: "ranktree", listen: "127.0.0.1:{route}", routes: [{others}] }}\n'
        )
        ready = f"http://127.0.0.1:{monitor}/healthz"
        command = [options.nats_server, "-c", str(config)]
        yield Process(name, command, data / f"{name}.log", ready, f"nats://127.0.0.1:{client}")


def nodes(options, data, nats):
    """Three nodes, each with four of the six shards."""
    ports = [options.port + number for number in range(len(OWNED))]
    check_free(ports)
    for (name, owned), port in zip(OWNED.items(), ports):
        command = [
            options.ranktree, "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", str(data / f"node-{name}"),
            "--nats", nats, "--nats-replicas", str(len(SERVERS)), "--nats-stream-mib", "256",
            "--shards", str(SHARDS), "--own", owned, "--node", name, "--checkpoint-seconds", "30",
        ]  # fmt: skip
        base = f"http://127.0.0.1:{port}"
        yield Process(name, command, data / f"node-{name}.log", base + "/readyz", base)


def start_all(processes):
    for process in processes:
        process.start()
    for process in processes:
        process.wait_ready()


def describe(nats, ranktree):
    print("\nThe cluster is ready: six shards, two copies of each.\n")
    for node in ranktree:
        print(f"  node {node.name}   {node.address}   shards {OWNED[node.name]:8}  process {node.child.pid}")
    for server in nats:
        print(f"  {server.name}   {server.address}                    process {server.child.pid}")
    one = ranktree[0].address
    print(
        f"\n  curl -X PUT {one}/v1/boards/arena/members/alice -H 'content-type: application/json' -d '{{\"score\":1200}}'"
        f"\n  curl {ranktree[1].address}/v1/boards/arena/top"
        f"\n  curl {ranktree[2].address}/v1/status"
        "\n\nKill any one of these processes: reads and writes go on. Its name and Enter start it again. Ctrl-C stops all.\n",
        flush=True,
    )


def watch(processes):
    """Says what ended, and starts what is named on standard input."""
    by_name = {process.name: process for process in processes}
    asked = []

    def read_names():
        for line in sys.stdin:
            asked.append(line.strip())

    threading.Thread(target=read_names, daemon=True).start()
    said = set()
    while True:
        for process in processes:
            if process.is_running():
                said.discard(process.name)
            elif process.name not in said:
                said.add(process.name)
                print(f"{process.name} has ended; its log is {process.log}. Type {process.name} and Enter to start it again.", flush=True)
        while asked:
            name = asked.pop(0)
            process = by_name.get(name)
            if process is None:
                if name:
                    print(f"{name} is none of {', '.join(by_name)}", flush=True)
            elif process.is_running():
                print(f"{name} is running, as process {process.child.pid}", flush=True)
            else:
                process.start()
                print(f"{name} is starting, as process {process.child.pid}", flush=True)
        time.sleep(0.2)


def stop_all(nats, ranktree):
    print("\nStopping the nodes, then the nats-servers", flush=True)
    for group in (ranktree, nats):
        for process in group:
            process.stop()
        for process in group:
            process.wait_stopped()


def interrupt(*_):
    raise KeyboardInterrupt


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranktree", default="bin/ranktree", help="the program (default: %(default)s)")
    parser.add_argument("--nats-server", default=".venv/bin/nats-server", help="the program (default: %(default)s)")
    parser.add_argument("--data", default="data-cluster", help="where everything keeps its files (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8081, help="of the first node; the others follow (default: %(default)s)")
    parser.add_argument(
        "--nats-port", type=int, default=4301,
        help="of the first nats-server; the others follow, and 1000 and 2000 above are taken too (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--nats-mib", type=int, default=4096, help="what a nats-server may store, in MiB (default: %(default)s)")
    parser.add_argument("--fresh", action="store_true", help="deletes what an earlier cluster left in --data first")
    parser.add_argument("--seconds", type=float, help="stops by itself after so long")
    return parser.parse_args()


def main():
    chosen = options()
    for program in (chosen.ranktree, chosen.nats_server):
        if shutil.which(program) is None:
            raise Failed(f"{program} is not here; `make build nats` makes both")
    data = Path(chosen.data).absolute()
    marker = data / "cluster-of-ranktree"
    if chosen.fresh and data.exists():
        if not marker.exists():
            raise Failed(f"{data} was not made by this script, and is not deleted")
        shutil.rmtree(data)
    data.mkdir(parents=True, exist_ok=True)
    marker.touch()
    nats, ranktree = [], []
    # A shell starts what runs in its background with SIGINT ignored, so nothing is left to the defaults.
    for end in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(end, interrupt)
    try:
        nats = list(servers(chosen, data))
        print(f"Starting three nats-servers and three nodes, with their files in {data}", flush=True)
        start_all(nats)
        ranktree = list(nodes(chosen, data, ",".join(server.address for server in nats)))
        start_all(ranktree)
        describe(nats, ranktree)
        if chosen.seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, chosen.seconds)
        watch(nats + ranktree)
    except KeyboardInterrupt:
        pass
    finally:
        for end in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(end, signal.SIG_IGN)
        stop_all(nats, ranktree)


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parents[2])
    try:
        main()
    except Failed as failed:
        sys.exit(str(failed))
