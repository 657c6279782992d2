#!/usr/bin/env python3
"""What a board takes, worked out from measured parts. docs/sizing.md explains each line.

    python3 docs/sizing.py --members 10000000 --window day=0.05 --window week=0.15 --movement --rate 5000

A window's number is the part of the members who score in one instance of it: 0.05 of a day if one in twenty
plays on a day. For several boards, run it for each and add them up, the ids of members on several once.
"""

from __future__ import annotations

import argparse
import math

# Bytes of memory, from the bench `memory` (results/memory_intel.txt), after random updates.
ENTRY = 17.85 + 2.11 + 2.10 + 0.02  # leaves, inner nodes, locator, what is due to the disk
MEMBER = 5.79 + 0.25  # index and memberships; the id comes on top
VERSION = 17.0  # board_versions less board_12_byte
TIES_MEMBER = 17.0  # board_ties_member_updated less board_12_byte_updated
EXPIRY = 25.0  # internals/windows.md
# Not measured: a slot of a map is 12 bytes for a version and 84 for the words of a hidden entry.
HIDDEN = VERSION * 84 / 12
# What a tree takes beside its entries on each shard: with up to 64 (boards_of_0), and with more (boards_of_65).
SMALL_TREE, TREE = 206, 9_000

# Bytes on disk, of an update to the log and of the rest; from the bench `growth` with 10 million members.
WRITTEN = 200
DISK_MEMBER = 146
# Not measured apart: a checkpoint of a million members is 32 MB, 12 of them ids. Twice while RocksDB compacts.
DISK_ENTRY = 2 * 20

# Microseconds of a core: an update of a tree (`growth`), what movement adds to one (`windows`), an entry that
# is loaded at a start (`startup`).
UPDATE, MOVEMENT, LOAD = 2.4, 2.5, 0.2

HOURS = {"hour": 1, "day": 24, "week": 7 * 24, "month": 30 * 24, "season": 30 * 24}


def window(text: str) -> tuple[str, float]:
    name, _, part = text.partition("=")
    if name not in HOURS or not part:
        known = ", ".join(HOURS)
        raise argparse.ArgumentTypeError(f"give one of {known} and a part of the members, such as day=0.05")
    return name, float(part)


def arguments() -> argparse.Namespace:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--members", type=int, required=True)
    parser.add_argument("--id-bytes", type=int, default=12, help="of a member's id (default: %(default)s)")
    parser.add_argument("--window", type=window, action="append", default=[], metavar="NAME=PART")
    parser.add_argument("--keep", type=int, default=12, help="closed instances (default: %(default)s)")
    parser.add_argument("--grace-hours", type=float, default=1 / 12, help="(default: five minutes)")
    parser.add_argument("--movement", action="store_true")
    parser.add_argument("--versions", action="store_true", help="jobs have a version")
    parser.add_argument("--ttl-hours", type=float, help="the board's entry_ttl")
    parser.add_argument("--ties-member", action="store_true", help="the board has ties: member")
    parser.add_argument("--hidden", type=int, default=0, help="members who are hidden")
    parser.add_argument("--metadata-bytes", type=int, default=0, help="of a job, on average")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--owners", type=int, default=1, help="of each shard")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--rate", type=int, default=0, help="jobs a second on the whole service")
    return parser.parse_args()


def size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            break
        count /= 1000
    else:
        unit = "TB"
    return f"{count:.0f} {unit}" if count >= 10 else f"{count:.1f} {unit}"


def main() -> None:
    asked = arguments()
    entry = ENTRY + (TIES_MEMBER if asked.ties_member else 0)
    total = {"ids and index of members": asked.members * (asked.id_bytes + MEMBER)}
    total["all"] = asked.members * (entry + (VERSION if asked.versions else 0))
    # Entries that may expire: while their instance is open.
    expiring = asked.members
    entries, trees, changed = asked.members, 1, 0.0
    for name, part in asked.window:
        active = asked.members * part
        opened = 1 + math.ceil(asked.grace_hours / HOURS[name])
        count = opened + asked.keep
        tree = SMALL_TREE if active <= 64 * asked.shards else TREE
        total[f"{name}, {count} instances of {active:,.0f}"] = count * (active * entry + asked.shards * tree)
        entries, trees, changed = entries + count * active, trees + count, changed + active
        if asked.ttl_hours is not None and asked.ttl_hours < HOURS[name] + asked.grace_hours:
            expiring += opened * active
    if asked.movement:
        total["movement"] = 2 * changed * entry
        entries += 2 * changed
    if asked.ttl_hours is not None:
        total["expiry"] = expiring * EXPIRY
    if asked.hidden:
        total["hidden entries, at most"] = asked.hidden * trees * HIDDEN
    memory = sum(total.values())
    for name, count in total.items():
        print(f"{name:44} {size(count):>8}")
    print(f"{'memory of one copy of all shards':44} {size(memory):>8}")
    each = asked.owners / asked.nodes
    # For growth, and for caches, write buffers, requests and a checkpoint.
    planned = memory * each * 1.25 + 5e8
    print(f"{'a node, a quarter more and half a gigabyte':44} {size(planned):>8}")
    metadata = entries * asked.metadata_bytes
    disk = asked.members * DISK_MEMBER + (entries - asked.members) * DISK_ENTRY + metadata
    print(f"{'disk of a node, as much again for its work':44} {size(2 * disk * each):>8}")
    print(f"{'a start after a clean stop, seconds of cores':44} {entries * each * LOAD / 1e6:8.1f}")
    if asked.rate:
        # With movement, a member's first change since an instance began is two more.
        windows = len(asked.window)
        changes = 1 + windows * (3 if asked.movement else 1)
        job = (1 + windows) * UPDATE + (windows * MOVEMENT if asked.movement else 0)
        print(f"{'a job, microseconds of a core':44} {job:8.1f}")
        print(f"{'cores of a node that apply':44} {asked.rate * each * job / 1e6:8.2f}")
        print(f"{'log of a node, a second, at most':44} {size(asked.rate * each * changes * WRITTEN):>8}")


if __name__ == "__main__":
    main()
