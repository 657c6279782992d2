from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest
from support import Nats, Node

from ranktree import Ranktree


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node without NATS, for tests that use boards of their own."""
    started = Node(tmp_path_factory.mktemp("node"), "--shards", "2")
    yield started
    started.kill()


@pytest.fixture
def client(node: Node) -> Iterator[Ranktree]:
    with Ranktree(node.url) as made:
        yield made


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[Nats]:
    started = Nats(tmp_path)
    yield started
    started.kill()


@pytest.fixture
def nats_node(nats: Nats, tmp_path: Path) -> Iterator[Node]:
    """A node with three shards that reads from NATS."""
    started = Node(tmp_path, "--nats", nats.url, "--shards", "3")
    yield started
    started.kill()
