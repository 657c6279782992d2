"""What Kubernetes would do with the chart, on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from chart import LIMIT_SECONDS, Failed, free_port, node_container, one, render
from nats_servers import write_nats


class Pods:
    """What Kubernetes would do with the rendered objects, on loopback: a nats-server, and nodes."""

    def __init__(self, folder: Path, program: str, nats: str) -> None:
        self.folder = folder
        self.program = program
        self.objects: list[dict] = []
        self.running: dict = {}
        self.ports = [free_port() for _ in range(8)]
        (folder / "bin").mkdir()
        (folder / "bin" / "ranktree").symlink_to(Path(program).resolve())
        first = render({"nats": {"replicas": 1}})
        self.tokens = one(first, "Secret", "rel-ranktree-tokens")["stringData"]
        self.secret = one(first, "Secret", "rel-nats")["stringData"]
        (folder / "tokens.toml").write_text(self.tokens["tokens.toml"])
        (folder / "password").write_text(self.secret["node"])
        port = free_port()
        write_nats(first, folder, port, free_port())
        self.nats_url = f"nats://127.0.0.1:{port}"
        variables = {f"RANKTREE_{user.upper()}_PASSWORD": word for user, word in self.secret.items()}
        self.start("nats", [nats, "-c", str(folder / "nats-server.conf")], {**os.environ, **variables, "NATS_NAME": "rel-nats-0"})

    def start(self, name: str, arguments: list[str], variables: dict) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                arguments, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def pod(self, number: int, values: dict) -> None:
        """Starts a pod as rendered, or again after SIGTERM."""
        self.stop(f"pod-{number}")
        container = node_container(render(values))
        variables = {each["name"]: str(each["value"]) for each in container["env"]}
        # What differs here: addresses, and where things are mounted.
        variables |= {
            "RANKTREE_LISTEN": f"127.0.0.1:{self.ports[number]}",
            "RANKTREE_DATA_DIR": str(self.folder / f"data-{number}"),
            "RANKTREE_NATS": self.nats_url,
            "RANKTREE_NATS_PASSWORD_FILE": str(self.folder / "password"),
            "RANKTREE_TOKENS": str(self.folder / "tokens.toml"),
            "HOSTNAME": f"rel-ranktree-{number}",
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
        }
        self.start(f"pod-{number}", [*container["command"], *container["args"]], variables)

    def stop(self, name: str) -> None:
        running = self.running.pop(name, None)
        if running:
            running.send_signal(signal.SIGTERM)
            if running.wait(LIMIT_SECONDS) != 0:
                raise Failed(f"{name} ended with {running.returncode}: {self.log(name)}")

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()[-2000:]

    def ask(
        self, number: int, method: str, path: str, body: object = None, token: str | None = "admin-token"
    ) -> tuple:
        headers = {"Authorization": f"Bearer {self.tokens[token]}"} if token else {}
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.ports[number]}{path}"
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError as error:
            return 0, str(error).encode()

    def until_ready(self, number: int) -> None:
        end = time.monotonic() + LIMIT_SECONDS
        while self.ask(number, "GET", "/readyz", token=None)[0] != 200:
            if time.monotonic() > end or self.running[f"pod-{number}"].poll() is not None:
                raise Failed(f"pod {number} is not ready: {self.log(f'pod-{number}')}")
            time.sleep(0.1)

    def owners(self, count: int) -> list[int]:
        """How many live owners each shard has, once there are as many as expected."""
        end = time.monotonic() + LIMIT_SECONDS
        while True:
            status = json.loads(self.ask(0, "GET", "/v1/status")[1])
            found = [sum(owner["state"] == "live" for owner in shard["owners"]) for shard in status["shards"]]
            if sum(found) == count or time.monotonic() > end:
                return found
            time.sleep(0.2)

    def write(self, number: int, score: int) -> None:
        jobs = [{"board": "arena", "member": f"p{member}", "score": score} for member in range(60)]
        status, answer = self.ask(number, "POST", "/v1/jobs?wait=applied&results=changed", jobs)
        if status != 200:
            raise Failed(f"write through pod {number}: {status} {answer.decode()}")

    def total(self, number: int) -> int:
        status, answer = self.ask(number, "GET", "/v1/boards/arena/count?min=0")
        if status != 200:
            raise Failed(f"read through pod {number}: {status} {answer.decode()}")
        return json.loads(answer)["count"]

    def end(self) -> None:
        for running in self.running.values():
            running.kill()
            running.wait()
