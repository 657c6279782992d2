"""How many jobs a second `submit` stores, beside `publish_many` of a thousand: PYTHONPATH=src:tests, 5 pairs."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

from support import Nats, Node

from ranktree import Ranktree
from ranktree.nats import Publisher
from ranktree.types import Job

JOBS = 20_000
PAIRS = 5
AT_ONCE = 1_000


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        nats = Nats(Path(folder))
        node = Node(Path(folder), "--nats", nats.url, "--shards", "3")
        with Ranktree(node.url) as client:
            client.define("arena")
        jobs = [Job(board="arena", member=f"p{number}", score=number) for number in range(JOBS)]
        rates = []
        with Publisher.connect(nats.url) as publisher:
            for _ in range(PAIRS):
                started = time.perf_counter()
                futures = [publisher.submit(job) for job in jobs]
                for future in futures:
                    future.result()
                between = time.perf_counter()
                for first in range(0, JOBS, AT_ONCE):
                    publisher.publish_many(jobs[first : first + AT_ONCE])
                ended = time.perf_counter()
                rates.append((JOBS / (between - started), JOBS / (ended - between)))
                print("submit {:,.0f} jobs/s, publish_many {:,.0f} jobs/s".format(*rates[-1]))
        print(f"submit / publish_many: {median(one / many for one, many in rates):.2f}")
        node.stop()
        nats.stop()


if __name__ == "__main__":
    main()
