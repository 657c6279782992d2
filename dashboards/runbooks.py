#!/usr/bin/env python3
"""Writes dashboards/prometheus/user/runbooks.html from docs/runbooks.md: the page that the alerts' runbook_url leads to.

Prometheus serves it itself, at /user/runbooks.html, if it is started with --web.user-assets and that folder: an alert leads to
the paragraph that belongs to the rules which are loaded, wherever Prometheus runs. The page is committed; a test makes
it again and compares. Knows the Markdown that the runbooks use, and refuses other. Needs Python 3 and nothing else:

    python3 dashboards/runbooks.py            writes it
    python3 dashboards/runbooks.py --check    fails if it is not up to date
"""

import html
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "docs" / "runbooks.md"
PAGE = HERE / "prometheus" / "user" / "runbooks.html"

HEAD = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>ranktree: runbooks</title>
<style>
  :root { color-scheme: light dark }
  body { font: 16px/1.55 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto 40vh; padding: 0 1rem }
  h2 { margin-top: 3rem } h3 { margin-top: 2rem }
  :target { background: #fd64; outline: .4rem solid #fd64 }
  code, pre { font: .9em/1.45 ui-monospace, monospace; background: #8882; border-radius: .2rem }
  code { padding: .1em .25em } pre { padding: .7rem; overflow-x: auto }
</style>
<!-- Made from docs/runbooks.md by dashboards/runbooks.py. -->
"""


def anchor(title):
    """As GitHub makes them, so that links within the source work in both."""
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def link(found):
    text, target = found.groups()
    if target.startswith(("#", "http")):
        return f'<a href="{target}">{text}</a>'
    # A file of the repository, which is not beside this page.
    return f"<code>{target.removeprefix('../')}</code>"


def inline(text):
    parts = re.split(r"(`[^`]+`)", html.escape(text, quote=False))
    for index, part in enumerate(parts):
        if part.startswith("`"):
            parts[index] = f"<code>{part[1:-1]}</code>"
            continue
        part = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", link, part)
        part = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", part)
        part = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", part)
        if set(part) & set("*`[]"):
            sys.exit(f"Markdown that is not known here: {part}")
        parts[index] = part
    return "".join(parts)


def block(text):
    heading = re.match(r"(#{1,3}) (.+)$", text)
    if heading:
        level, title = len(heading[1]), heading[2]
        return f'<h{level} id="{anchor(title)}">{inline(title)}</h{level}>'
    lines = text.split("\n")
    if all(line.startswith("    ") for line in lines):
        return "<pre>" + html.escape("\n".join(line[4:] for line in lines), quote=False) + "</pre>"
    if re.match(r"[-*|>\d#] ", text):
        sys.exit(f"Markdown that is not known here: {text}")
    return f"<p>{inline(' '.join(lines))}</p>"


def main():
    blocks = re.split(r"\n{2,}", SOURCE.read_text(encoding="utf-8").strip())
    text = HEAD + "\n".join(block(text) for text in blocks) + "\n</html>\n"
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit(f"not up to date, run python3 dashboards/runbooks.py: {PAGE.name}")
        return
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")


main()
