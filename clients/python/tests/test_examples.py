"""The example and the README's code, as they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest
from support import Nats, Node

from ranktree import Ranktree

FOLDER = Path(__file__).resolve().parent.parent


def run(arguments: List[str]) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("way", ["http", "nats"])
def test_the_game_plays_and_every_point_counts(way: str, nats: Nats, nats_node: Node) -> None:
    more = ["--nats", nats.url] if way == "nats" else []
    # Twice: a game that is started again goes on.
    for _ in range(2):
        game = str(FOLDER / "examples" / "game_loop.py")
        told = run([game, "--url", nats_node.url, "--matches", "30", *more])
        assert "The best of" in told
    with Ranktree(nats_node.url) as client:
        status = client.status()
        assert sum(shard["rejects"] for shard in status["shards"]) == 0
        assert client.board("arena")["totals"]["all"] > 20


def test_the_code_of_the_readme_runs(nats: Nats, nats_node: Node) -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 3
    for block in blocks:
        code = block.replace("http://127.0.0.1:8080", nats_node.url)
        run(["-c", code.replace("nats://127.0.0.1:4222", nats.url)])
