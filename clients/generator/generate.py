#!/usr/bin/env python3
"""Writes what of the clients follows from docs/openapi.json, or says with --check that it is not current.

`make clients-generate` runs it. model.py reads the document; each language has a module with a function `files`
that says what its files should be.
"""

from __future__ import annotations

import argparse
import sys

import csharp
import go
import model
import python
import rust

LANGUAGES = [python, go, csharp, rust]


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not current")
    check = parser.parse_args().check
    known = model.read()
    stale = False
    for language in LANGUAGES:
        for path, text in language.files(known).items():
            if path.exists() and path.read_text(encoding="utf-8") == text:
                continue
            stale = True
            shown = path.relative_to(model.ROOT)
            if check:
                print(f"{shown} is not current: run make clients-generate", file=sys.stderr)
            else:
                path.write_text(text, encoding="utf-8")
                print(f"wrote {shown}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
