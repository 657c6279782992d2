#!/usr/bin/env python3
"""Makes the pictures in this folder: of the page at `/`, in Chromium, and of the dashboards.

It starts a nats-server, two nodes of the real program with three shards, and a Prometheus, plays a game with made-up players,
sends made-up load, and takes the pictures when there is something to see. All on loopback and in a temporary folder.
Grafana is not needed: dashboards/preview.py draws the panels from what the same queries find.

    make screenshots                          all of them, in some four minutes
    make screenshots ARGS="--only page"       without waiting for the dashboards
"""

import argparse
import io
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from browser import Browser
from PIL import Image
from world import BOARD, World, send

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Each node, and the shards that it owns, so that reads of one also go to the other.
NODES = {"alder": "0-1", "birch": "1-2"}
# What comes from a board in the browser: its top, live, and its distribution.
IS_THERE = "document.querySelector('.chart .column') && document.querySelector('.state.good') && document.querySelectorAll('tbody tr').length > 20"
RATES = "document.querySelectorAll('tbody').length === 2 && \
    [...document.querySelector('tbody').rows].every((row) => /^[1-9]/.test(row.cells[3].textContent))"
# Width, height and scale; colours; address; when the picture is taken.
PAGE = {
    "board": (1280, 860, 1.5, "light", f"#/boards/{BOARD}", f"{IS_THERE} && document.querySelector('tr.new')"),
    "member": (1280, 1290, 1.2, "dark", f"#/boards/{BOARD}?member={{member}}", f"{IS_THERE} && document.querySelector('.place-name')"),
    "nodes": (1280, 800, 1.2, "light", "#/nodes", RATES),
    "phone": (390, 844, 2, "light", f"#/boards/{BOARD}?window=day", IS_THERE),
}
# Dashboards, and how many sections of each.
DASHBOARDS = {"ranktree-reads": 3, "ranktree-ingest": 3, "ranktree-shards": 3}


def free_port(wished=0):
    """This one if it is free, as the page shows it, and any other one if not."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", wished))
        except OSError:
            one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def started(stack, name, command, folder):
    """A process that ends with this script."""
    log = (folder / f"{name}.log").open("wb")
    process = subprocess.Popen([str(part) for part in command], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop():
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    stack.callback(stop)
    return process


def wait_for(what, check, process, log):
    for _ in range(600):
        try:
            if check():
                return
        except OSError:
            pass
        if process.poll() is not None:
            break
        time.sleep(0.1)
    sys.exit(f"{what} does not become ready:\n{log.read_text(errors='replace')[-2000:]}")


def cluster(stack, folder, programs):
    nats, nodes, processes = free_port(), [], {}
    command = [programs.nats_server, "--addr", "127.0.0.1", "--port", nats, "--jetstream", "--store_dir", folder / "jetstream"]
    server = started(stack, "nats", command, folder)
    log = folder / "nats.log"
    wait_for("nats-server", lambda: "Server is ready" in log.read_text(errors="replace"), server, log)
    for index, (name, owned) in enumerate(NODES.items()):
        port = free_port(8081 + index)
        processes[name] = started(stack, name, [
            programs.ranktree, "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", folder / name, "--node", name,
            "--nats", f"nats://127.0.0.1:{nats}", "--shards", 3, "--own", owned, "--nats-stream-mib", 256, "--checkpoint-seconds", 20,
        ], folder)
        nodes.append(f"http://127.0.0.1:{port}")
    for name, node in zip(NODES, nodes):
        # Also those that only the other node owns.
        is_live = lambda: all(shard["state"] == "live" for shard in send(f"{node}/v1/status")["shards"])  # noqa: B023, E731
        wait_for(name, is_live, processes[name], folder / f"{name}.log")
    return f"nats://127.0.0.1:{nats}", nodes


def prometheus(stack, folder, programs, nodes):
    """As dashboards/prometheus/prometheus.yml has it, but for targets, the token, and samples that come sooner."""
    config = (ROOT / "dashboards/prometheus/prometheus.yml").read_text(encoding="utf-8")
    config = re.sub(r"scrape_interval: \w+", "scrape_interval: 2s", config)
    config = re.sub(r"scrape_timeout: \w+", "scrape_timeout: 2s", config)
    config = re.sub(r"evaluation_interval: \w+", "evaluation_interval: 5s", config)
    config = re.sub(r"    # A token.*?\n    authorization:\n.*?\n", "", config)
    config = config.replace("- rules/*.yml", f"- {ROOT}/dashboards/prometheus/rules/*.yml")
    targets = ", ".join(f'"{node.removeprefix("http://")}"' for node in nodes)
    config = config.replace('["ranktree:8080"]', f"[{targets}]")
    if "authorization" in config or targets not in config:
        sys.exit("dashboards/prometheus/prometheus.yml has changed; docs/screenshots/take.py no longer fits")
    (folder / "prometheus.yml").write_text(config, encoding="utf-8")
    port = free_port()
    process = started(stack, "prometheus", [
        programs.prometheus, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ], folder)
    base = f"http://127.0.0.1:{port}"
    wait_for("Prometheus", lambda: len(send(f"{base}/api/v1/targets")["data"]["activeTargets"]) > 1, process, folder / "prometheus.log")
    return base


def load(stack, folder, programs, nats, node):
    """Beside the game: jobs from NATS, some as requests to the write service, and reads."""
    common = [programs.ranktree, "load", "--nats", nats, "--read-url", node, "--duration", "1h", "--members", 50000]
    stream = ["--boards", 3, "--board-prefix", "ladder-", "--rate", 1500, "--jobs-per-message", 10, "--read-ratio", 0.6, "--visible"]
    service = ["--boards", 1, "--board-prefix", "duel-", "--rate", 80, "--via", "service", "--in-flight", 20]
    started(stack, "load", [*common, *stream], folder)
    started(stack, "requests", [*common, *service], folder)


def save(name, png):
    """With a palette, which is a third of the size and looks the same."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image = image.quantize(colors=192, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    path = HERE / f"{name}.png"
    image.save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}  {image.width} by {image.height}, {path.stat().st_size // 1024} KiB", flush=True)


def page(node):
    # Somebody who is good, and not so good that there is nothing to see in the distribution.
    [member] = send(f"{node}/v1/boards/{BOARD}/positions/2345?limit=1")["entries"]
    with Browser() as browser:
        for name, (width, height, scale, scheme, address, expression) in PAGE.items():
            browser.size(width, height, scale, scheme)
            browser.open(f"{node}/{address.format(member=member['member'])}", expression)
            save(name, browser.picture())


def dashboards(base, folder, minutes):
    script = ROOT / "dashboards/preview.py"
    for name, sections in DASHBOARDS.items():
        asked = ["--minutes", str(minutes), "--to", folder, "--only", name, "--sections", str(sections)]
        subprocess.run([sys.executable, "-B", script, base, *asked], check=True, stdout=subprocess.DEVNULL)
        save(name.replace("ranktree", "dashboard"), (folder / f"{name}.png").read_bytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranktree", type=Path, default=ROOT / "bin/ranktree", help="the program (default: bin/ranktree)")
    parser.add_argument("--nats-server", type=Path, default=ROOT / ".venv/bin/nats-server")
    parser.add_argument("--prometheus", type=Path, default=ROOT / ".tools/bin/prometheus")
    parser.add_argument("--only", choices=("page", "dashboards"))
    parser.add_argument("--minutes", type=float, default=3, help="how long to wait for what dashboards show (default: %(default)s)")
    programs = parser.parse_args()
    # What is set for a service of one's own is not for these.
    for name in [name for name in os.environ if name.startswith("RANKTREE_")]:
        del os.environ[name]
    # So that what was started ends as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    for name in ("ranktree", "nats_server", "prometheus"):
        setattr(programs, name, getattr(programs, name).resolve())
    with tempfile.TemporaryDirectory(prefix="ranktree-screenshots-", ignore_cleanup_errors=True) as temporary, ExitStack() as stack:
        folder = Path(temporary)
        nats, nodes = cluster(stack, folder, programs)
        sample = [programs.ranktree, "import", "--url", nodes[0], ROOT / "examples/github-stars-sample.csv"]
        subprocess.run(sample, check=True, stdout=subprocess.DEVNULL)
        world = World(nodes)
        world.begin()
        stack.callback(world.end)
        load(stack, folder, programs, nats, nodes[0])
        if programs.only != "page":
            base = prometheus(stack, folder, programs, nodes)
            begun = time.monotonic()
        if programs.only != "dashboards":
            time.sleep(5)
            page(nodes[0])
        if programs.only != "page":
            time.sleep(max(0, begun + programs.minutes * 60 - time.monotonic()))
            dashboards(base, folder, programs.minutes - 0.5)


main()
