"""The nats-servers of the rendered chart, on loopback."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from chart import LIMIT_SECONDS, Failed, free_port, node_container, one, run


def write_nats(objects: list[dict], folder: Path, client: int, monitor: int, route: int | None = None) -> None:
    """Writes the rendered configuration, with ports of this machine in place of the containers'."""
    for name, text in one(objects, "ConfigMap", "rel-nats")["data"].items():
        if name == "nats-server.conf":
            for address, port in (("0.0.0.0:4222", client), ("127.0.0.1:8222", monitor), ("0.0.0.0:6222", route)):
                if text.count(address) != (port is not None):
                    raise Failed(f"{address} is {text.count(address)} times in the configuration of NATS")
                text = text.replace(address, f"127.0.0.1:{port}")
            text = text.replace("/data", str(folder / "nats"))
        (folder / name).write_text(text)


class NatsServers:
    """The servers of the rendered StatefulSet, on loopback, with what Kubernetes would put into variables."""

    def __init__(self, folder: Path, program: str, objects: list[dict], replicas: int) -> None:
        self.folder = folder
        self.container = node_container(objects, "rel-nats")
        self.running: list[subprocess.Popen] = []
        self.monitors = [free_port() for _ in range(replicas)]
        self.routes = [free_port() for _ in range(replicas)]
        secret = one(objects, "Secret", "rel-nats")["stringData"]
        variables = dict(os.environ)
        for each in self.container["env"]:
            if "value" in each:
                value = each["value"]
                for name, known in variables.items():
                    value = value.replace(f"$({name})", known)
                for number, port in enumerate(self.routes):
                    value = value.replace(f"rel-nats-{number}.rel-nats-headless:6222", f"127.0.0.1:{port}")
                variables[each["name"]] = value
            elif "secretKeyRef" in each["valueFrom"]:
                variables[each["name"]] = secret[each["valueFrom"]["secretKeyRef"]["key"]]
        for number in range(replicas):
            place = folder / str(number)
            place.mkdir()
            route = self.routes[number] if replicas > 1 else None
            write_nats(objects, place, free_port(), self.monitors[number], route)
            with (place / "log").open("ab") as log:
                self.running.append(
                    subprocess.Popen(
                        [program, "-c", str(place / "nats-server.conf")],
                        env={**variables, "NATS_NAME": f"rel-nats-{number}"},
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                    )
                )

    def end(self) -> None:
        for running in self.running:
            running.kill()
            running.wait()

    def until_together(self) -> None:
        """Waits until each is healthy and knows all others."""
        end = time.monotonic() + LIMIT_SECONDS
        for number, monitor in enumerate(self.monitors):
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/healthz", timeout=5):
                        pass
                    with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/routez", timeout=5) as answer:
                        known = {route.get("remote_name") for route in json.load(answer)["routes"]}
                except OSError:
                    known = {None}
                others = {f"rel-nats-{other}" for other in range(len(self.monitors)) if other != number}
                if known == others:
                    break
                for other, running in enumerate(self.running):
                    if running.poll() is not None:
                        raise Failed(f"rel-nats-{other} ended: {self.log(other)}")
                if time.monotonic() > end:
                    raise Failed(f"rel-nats-{number} does not find {others - known}: {self.log(number)}")
                time.sleep(0.1)

    def log(self, number: int) -> str:
        return (self.folder / str(number) / "log").read_text()[-2000:]

    def refuse_strangers(self) -> None:
        """Nobody is taken for a server without the password."""
        for known in ({}, {"user": "route", "pass": "guess"}):
            with socket.create_connection(("127.0.0.1", self.routes[0]), timeout=LIMIT_SECONDS) as stranger:
                hello = {"server_id": "STRANGER", "name": "stranger", "cluster": "rel-nats", **known}
                stranger.sendall(f"CONNECT {json.dumps(hello)}\r\nPING\r\n".encode())
                said = b""
                while b"-ERR" not in said and b"PONG" not in said:
                    more = stranger.recv(65536)
                    if not more:
                        break
                    said += more
            if b"Authorization Violation" not in said:
                raise Failed(f"NATS takes a stranger with {known} for a server: {said.decode(errors='replace')}")

    def run_probes(self) -> int:
        """Runs the probes' commands, and says how many there were; none without wget."""
        if not shutil.which("wget"):
            return 0
        probes = [self.container[name] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
        for probe in probes:
            command = [
                word.replace("127.0.0.1:8222", f"127.0.0.1:{self.monitors[0]}")
                for word in probe["exec"]["command"]
            ]
            done = run(command)
            if done.returncode != 0:
                raise Failed(f"{command}: {done.stderr}")
        return len(probes)
