#!/usr/bin/env python3
"""Gets what builds and tests need, or says what is missing and what to do.

    make setup                       what `make run` and `make test` need
    make setup FOR="build valkey"    some tools, or the groups build and test, which are in table.py

Only `make setup` changes the machine, by apt-get as root. All else goes into .venv and .tools of this clone.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import signal
import sys

from table import TABLE, Tool
from ways import TOOLS, CannotBeHad

GROUPS = ("build", "test")
BY_NAME = {tool.name: tool for tool in TABLE}


def in_ci() -> bool:
    return bool(os.environ.get("CI"))


def is_excused(tool: Tool) -> bool:
    """Whether TESTS_WITHOUT says that this machine lacks it, as tests/it/support/tools.rs reads it."""
    return bool(tool.programs) and tool.programs[0] in os.environ.get("TESTS_WITHOUT", "").split()


def chosen(names: list[str]) -> list[Tool]:
    """The tools and those of the groups, each once, in the order of the table."""
    wanted = set()
    for name in names:
        if name in BY_NAME:
            wanted.add(name)
        elif name in GROUPS:
            of_group = {name, "test in CI"} if name == "test" and in_ci() else {name}
            wanted |= {tool.name for tool in TABLE if of_group & set(tool.groups) and not is_excused(tool)}
        else:
            raise SystemExit(f"there is no tool {name}; there are {' '.join([*GROUPS, *BY_NAME])}")
    return [tool for tool in TABLE if tool.name in wanted]


def place(tool: Tool) -> str | None:
    """Where it is: this clone's own before the machine's."""
    own = tool.way and tool.way.place(tool.name, tool.programs)
    return str(own) if own else tool.look()


def by_hand(tool: Tool) -> str:
    manager = next((name for name in tool.by_hand if name and shutil.which(name)), "")
    return tool.by_hand.get(manager, "Install it, so that it is in PATH")


def next_step(tool: Tool) -> str:
    return f"Run: make setup FOR={tool.name}" if tool.way and tool.way.can() else by_hand(tool)


def complain(tool: Tool, why: str, step: str) -> bool:
    """Says what is missing, and whether one can go on without it: nowhere silently, and in CI not at all."""
    can_go_on = tool.optional and (not in_ci() or is_excused(tool))
    missing = f"{tool.name} is missing ({tool.purpose}){why and ': '}{why}"
    print(f"{missing}{'; that is left out' if can_go_on else ''}. {step}", file=sys.stderr, flush=True)
    return can_go_on


def get(tool: Tool, may_be_root: bool) -> bool:
    way = tool.way
    if way is None or not way.can() or (way.needs_root and not may_be_root):
        return complain(tool, "", next_step(tool))
    try:
        way.get(tool.name, tool.programs)
    except (CannotBeHad, OSError) as error:
        step = getattr(error, "step", "") or f"To try again: make setup FOR={tool.name}"
        return complain(tool, str(error), step)
    if place(tool) is None:
        return complain(tool, "what was installed does not bring it", by_hand(tool))
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a tool or a group of them")
    doing = parser.add_mutually_exclusive_group()
    doing.add_argument("--check", action="store_true", help="get nothing, and fail if something is missing")
    doing.add_argument("--where", action="store_true", help="say where the programs are")
    doing.add_argument("--list", action="store_true", help="say what there is")
    doing.add_argument("--root", action="store_true", help="install packages of the machine, too")
    asked = parser.parse_args()
    tools = chosen(asked.names or list(BY_NAME if asked.list else GROUPS))
    if asked.list:
        for tool in tools:
            print(f"{tool.name:<14}{tool.purpose}")
        return 0
    if asked.where:
        places = list(map(place, tools))
        print("\n".join(filter(None, places)))
        return 0 if all(places) else 1
    missing = [tool for tool in tools if place(tool) is None]
    if asked.check:
        return 0 if all([complain(tool, "", next_step(tool)) for tool in missing]) else 1
    if not missing:
        if asked.root:
            print(f"here: {', '.join(tool.name for tool in tools)}")
        return 0
    TOOLS.mkdir(exist_ok=True)
    with open(TOOLS / ".lock", "w") as lock:
        # Another call may get the same at this moment, as those of make -j do. What is started inherits it.
        os.set_inheritable(lock.fileno(), True)
        fcntl.flock(lock, fcntl.LOCK_EX)
        got = [place(tool) is not None or get(tool, asked.root) for tool in missing]
    return 0 if all(got) else 1


if __name__ == "__main__":
    # So that what was started ends as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted: what is not whole is got again by the next call")
