#!/usr/bin/env python3
"""A game's loop: matches end, scores are published, and players see where they stand.

    python examples/game_loop.py                                     writes over HTTP
    python examples/game_loop.py --nats nats://127.0.0.1:4222        publishes to NATS

It needs a running node: `ranktree serve`, with `--nats` for the second.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
from datetime import datetime, timezone
from typing import Dict, List, Optional

from ranktree import AsyncRanktree, latest
from ranktree.nats import AsyncPublisher
from ranktree.types import Job

BOARD = "arena"


def play(match: int, players: List[str]) -> List[Job]:
    """Four players fight, and each gets points. With its `version`, a repeated job counts once.

    That is enough because one process plays all matches in their order: of two that overtake each other the
    older one is refused, and its points are not added.
    """
    at = datetime.now(timezone.utc)
    return [
        {
            "board": BOARD,
            "member": player,
            "score": random.randint(0, 100),
            "op": "incr",
            "version": match,
            "at": at,
            "meta": {"match": match},
        }
        for player in random.sample(players, 4)
    ]


async def loop(url: str, nats: Optional[str], matches: int, bearer: Optional[str]) -> None:
    players = [f"player-{number}" for number in range(1, 41)]
    # Of each player the token of the last write, so that a player's own reads are never older than that.
    seen: Dict[str, Optional[str]] = {}
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(AsyncRanktree(url, bearer=bearer))
        # Before the first job, so that no job waits for it.
        await client.define(BOARD, {"policy": "incr", "ties": "first"})
        publisher: Optional[AsyncPublisher] = None
        if nats:
            publisher = await stack.enter_async_context(await AsyncPublisher.connect(nats))
        # A game goes on counting where it was. Versions of an earlier run are lower than these.
        first = int(datetime.now(timezone.utc).timestamp() * 1000)
        for match in range(first, first + matches):
            jobs = play(match, players)
            if publisher:
                # If this process dies here, the next one publishes the match again under the same id.
                token = await publisher.publish_many(jobs, message_id=f"match-{match}")
            else:
                token = (await client.write_many(jobs, results="changed"))["token"]
            for job in jobs:
                seen[job["member"]] = latest(seen.get(job["member"]), token)
            star = jobs[0]["member"]
            near = await client.around(BOARD, star, above=1, below=1, after=seen[star] or token)
            for entry in near["entries"]:
                mark = "<" if entry["member"] == star else " "
                print(f"{entry['rank']:>5}  {entry['member']:<12} {entry['score']:>8} {mark}")
            print()
        print(f"The best of {(await client.board(BOARD))['totals']['all']}:")
        async for entry in client.iter_top(BOARD, limit=100):
            print(f"{entry['rank']:>5}  {entry['member']:<12} {entry['score']:>8}")
            if entry["position"] == 10:
                break


def main() -> None:
    parser = argparse.ArgumentParser(description="A game's loop.")
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="a node")
    parser.add_argument("--nats", help="publish to this NATS server instead of writing over HTTP")
    parser.add_argument("--matches", type=int, default=20)
    parser.add_argument("--bearer", help="the token that the node asks for")
    options = parser.parse_args()
    asyncio.run(loop(options.url, options.nats, options.matches, options.bearer))


if __name__ == "__main__":
    main()
