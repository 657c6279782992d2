#!/usr/bin/env python3
"""Checks the workflows for GitHub: by actionlint, by zizmor, and that known weaknesses are asked for on a
schedule. That what they run is pinned is checked by check_pins.py.

`make workflows-check` gets both programs, and calls this.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def is_well(command: list[str], search: str) -> bool:
    program = shutil.which(command[0], path=search)
    if program is None:
        print(f"{command[0]} is not here; `make workflows-check` gets it", file=sys.stderr)
        return False
    return subprocess.run([program, *command[1:]], cwd=ROOT).returncode == 0


def not_scheduled(paths: list[Path]) -> list[str]:
    """A weakness becomes known without a change here, so that a check of changes does not find it."""
    texts = [path.read_text() for path in paths]
    if any("\n  schedule:\n" in text and "run: make deny\n" in text for text in texts):
        return []
    return ["no workflow runs make deny on a schedule"]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tools", default="", help="the folder with actionlint and zizmor; those in PATH come first"
    )
    search = os.pathsep.join([os.environ["PATH"], str(Path(parser.parse_args().tools).absolute())])
    paths = sorted((ROOT / ".github/workflows").glob("*.yml"))
    errors = not_scheduled(paths)
    for error in errors:
        print(error, file=sys.stderr)
    names = [str(path.relative_to(ROOT)) for path in paths]
    # Both, so that all is told at once. zizmor asks no other host.
    checked = [
        is_well(["actionlint", *names], search),
        is_well(["zizmor", "--offline", "--quiet", *names, ".github/dependabot.yml"], search),
    ]
    if errors or not all(checked):
        return 1
    print(f"{', '.join(names)}: well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
