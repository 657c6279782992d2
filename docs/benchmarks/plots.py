#!/usr/bin/env python3
"""Draws docs/benchmarks/*.svg from docs/benchmarks/results/*.txt.

A file of results holds what a bench printed: lines `RATIO name value`, one for each run, tables in Markdown, and lines that a
plot reads by a pattern of its own. Its first line says when it was recorded and with which commit; the plot repeats that. The plots are committed; a test draws them
again and compares. Needs Python 3 and nothing else:

    python3 docs/benchmarks/plots.py            draws them
    python3 docs/benchmarks/plots.py --check    fails if one is not up to date
"""

import html
import math
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDTH = 820
# Where the labels of rows end and the values begin.
LEFT, RIGHT = 340, 725

# Classes and their colours on a light background and on a dark one.
COLOURS = {
    "back": ("#ffffff", "#0d1117"),
    "text": ("#1f2328", "#e6edf3"),
    "soft": ("#59636e", "#9198a1"),
    "grid": ("#d8dee4", "#30363d"),
    "even": ("#59636e", "#9198a1"),
    "one": ("#0969da", "#58a6ff"),
    "two": ("#bc4c00", "#f0883e"),
    "three": ("#1a7f37", "#3fb950"),
    "four": ("#bf3989", "#db61a2"),
    "target": ("#8250df", "#bc8cff"),
}


def style():
    """An image does not know the page around it, so it brings its own background, light or dark as the reader's system is."""
    def colours(of):
        # A border of the background keeps figures readable where they cross a line.
        rules = [f"text {{ fill: {COLOURS['text'][of]}; stroke: {COLOURS['back'][of]} }}"]
        for name, both in COLOURS.items():
            rules.append(f"rect.{name}, circle.{name}, text.{name} {{ fill: {both[of]} }}")
            rules.append(f"line.{name}, polyline.{name} {{ stroke: {both[of]} }}")
        return "\n".join(rules)

    return f"""
text {{ font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; paint-order: stroke; stroke-width: 4px }}
text.title {{ font-size: 16px; font-weight: 600 }}
text.group {{ font-weight: 600 }}
text.small {{ font-size: 12px }}
text.end {{ text-anchor: end }}
text.middle {{ text-anchor: middle }}
line {{ stroke-width: 1 }}
line.even {{ stroke-width: 1.5 }}
line.target {{ stroke-width: 2 }}
line.bar {{ stroke-width: 6; stroke-linecap: round }}
polyline {{ fill: none; stroke-width: 2 }}
{colours(0)}
@media (prefers-color-scheme: dark) {{
{colours(1)}
}}
"""


class Results:
    """What a bench printed, from a file in results/."""

    def __init__(self, name):
        lines = (HERE / "results" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        self.ratios, self.rows, self.lines = {}, [], lines[1:]
        recorded = re.match(r"# Recorded (.+?), (commits? .+?)[.:]", lines[0])
        if recorded is None:
            sys.exit(f"results/{name}.txt: its first line must begin `# Recorded DATE, commit HASH.`")
        self.date, self.commit = recorded.groups()
        for line in lines[1:]:
            if found := re.fullmatch(r"RATIO (\S+) ([\d.]+)", line):
                self.ratios.setdefault(found.group(1), []).append(float(found.group(2)))
            elif line.startswith("|") and not line.startswith("|--"):
                self.rows.append([cell.strip() for cell in line.strip("|").split("|")])

    def ratio(self, *names):
        """Least, middle and greatest of all runs of these names. Two runs have no middle, and four names have none either."""
        values = sorted(value for name in names for value in self.ratios[name])
        middle = values[len(values) // 2] if len(values) % 2 and len(names) == 1 else None
        return values[0], middle, values[-1]

    def cells(self, *columns):
        """A table's rows, of the columns whose heads begin so."""
        head, *rows = self.rows
        at = [next(i for i, cell in enumerate(head) if cell.startswith(column)) for column in columns]
        return [[row[i] for i in at] for row in rows]


def number(value):
    """As few digits as say it."""
    return f"{value:g}"


def two_digits(value):
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


class Drawing:
    def __init__(self, title, subtitle, described):
        self.parts, self.described, self.title = [], described, title
        self.text(20, 30, title, "title")
        for index, line in enumerate(subtitle):
            self.text(20, 52 + 18 * index, line, "soft")
        self.top = 52 + 18 * len(subtitle)

    def text(self, x, y, words, kind=""):
        kind = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{kind}>{html.escape(words, quote=False)}</text>')

    def line(self, x1, y1, x2, y2, kind):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>')

    def dot(self, x, y, kind, radius=5):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{kind}"/>')

    def box(self, x, y, wide, tall, kind):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" class="{kind}"/>')

    def path(self, points, kind):
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{joined}" class="{kind}"/>')

    def done(self, height, *sources):
        for index, line in enumerate(reversed(sources)):
            self.text(20, height - 14 - 16 * index, line, "soft small")
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
            f'viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-labelledby="title described">\n'
            f'<title id="title">{html.escape(self.title)}</title>\n'
            f'<desc id="described">{html.escape(self.described)}</desc>\n<style>{style()}</style>\n'
            f'<rect width="{WIDTH}" height="{height:.0f}" class="back"/>\n'
        )
        return head + "\n".join(self.parts) + "\n</svg>\n"


def recorded(*named):
    """`Recorded DATE: name in commit, ...`: for each kind of results, when and where it was recorded."""
    days = {}
    for name, results in named:
        days.setdefault(results.date, []).append(f"{name} {results.commit.removeprefix('commit ').removeprefix('commits ')}")
    return "Recorded " + "; ".join(f"{day} ({', '.join(all)})" for day, all in days.items()) + "."


def log_scale(low, high, left=LEFT, right=RIGHT):
    def at(value):
        if not low <= value <= high:
            sys.exit(f"{value} is beyond the axis, which goes from {low} to {high}: give it another range")
        return left + (right - left) * math.log(value / low) / math.log(high / low)

    return at


def rows_of_ranges(drawing, groups, scale, ticks, even, unit, shown=number, row_height=26, with_ranges=False):
    """Rows with a label, a bar from least to greatest, a dot at the middle, the figures, and a tick at the target."""
    y = drawing.top + 22
    start = y - 16
    body = []
    for name, rows in groups:
        body.append(("group", name, y))
        y += row_height
        for row in rows:
            body.append(("row", row, y))
            y += row_height
        y += 8
    end = y - 14
    for tick in ticks:
        kind = "even" if tick == even else "grid"
        drawing.line(scale(tick), start, scale(tick), end, kind)
        drawing.text(scale(tick), end + 18, number(tick), "soft middle")
    drawing.text((LEFT + RIGHT) / 2, end + 38, unit, "soft middle")
    for what, row, at in body:
        if what == "group":
            drawing.text(20, at, row, "group")
            continue
        label, (least, middle, greatest), target, kind = row
        drawing.text(LEFT - 24, at, label, "end")
        middle_y = at - 4.5
        if least == greatest:
            drawing.dot(scale(least), middle_y, kind)
        else:
            drawing.line(scale(least), middle_y, scale(greatest), middle_y, f"bar {kind}")
            if middle is not None:
                drawing.dot(scale(middle), middle_y, kind, 6)
        if target is not None:
            drawing.line(scale(target), middle_y - 9, scale(target), middle_y + 9, "target")
        if (middle is None or with_ranges) and least != greatest:
            figures = f"{shown(least)}-{shown(greatest)}"
        else:
            figures = shown(least if middle is None else middle)
        # To the right of the bar, and of the target if that stands in the way.
        right = scale(greatest)
        if target is not None and -8 < scale(target) - right < 60:
            right = scale(target)
        drawing.text(right + 12, at, figures, kind)
    return end + 38


def ratios():
    engine, http, service, drain, visible = (
        Results(name)
        for name in ("engine_apply_intel", "http_vs_redis_intel", "write_service", "drain_intel", "visible_intel")
    )
    kind_of = "engine_apply_10M_b1000_{}_{}".format
    kinds = [(access, scores) for access in ("uniform", "zipf") for scores in ("distinct", "tied")]
    groups = [
        ("Engine, 10 M members, against a raw RocksDB batch", [
            (f"{access}, {scores} scores", engine.ratio(kind_of(access, scores)), 1, "one") for access, scores in kinds
        ]),
        ("HTTP, 50 connections, against Redis", [
            ("GET of an entry / ZREVRANK", http.ratio("http_rank_vs_zrevrank"), 1, "two"),
            ("durable PUT / ZADD, synced", http.ratio("durable_put_vs_zadd"), 1.2, "two"),
            ("durable POST of 100 jobs / ZADD, synced", http.ratio("durable_batch_vs_zadd"), 2.5, "two"),
            ("PUT by NATS, synced / ZADD, synced", http.ratio("durable_nats_put_vs_zadd"), 1, "two"),
            ("PUT by NATS, default / ZADD, synced", http.ratio("nats_put_vs_zadd"), 1, "two"),
            ("rank of a score / ZCOUNT", http.ratio("http_score_rank_vs_zcount"), 1.2, "two"),
        ]),
        ("Write service, 50 connections, a job a request, synced", [
            ("against a message published", service.ratio("write_service_vs_published"), 5, "four"),
            ("against ZADD, synced", service.ratio("write_service_vs_zadd"), 1, "four"),
            ("against SET, synced", service.ratio("write_service_vs_set"), 1, "four"),
            ("against a bare request and its answer", service.ratio("write_service_vs_bare"), None, "four"),
        ]),
        ("Draining a NATS stream, against a bare pull of it", [
            ("1 job a message", drain.ratio("drain_vs_pull_1"), 0.75, "three"),
            ("100 jobs a message", drain.ratio("drain_vs_pull_100"), None, "three"),
        ]),
        ("Jobs made visible a second, each published alone", [
            ("against Redis, synced every second", visible.ratio("visible_saturation_vs_redis_everysec"), 1, "three"),
            ("against Redis, always synced", visible.ratio("visible_saturation_vs_redis_always"), 1, "three"),
            ("against PostgreSQL", visible.ratio("visible_saturation_vs_postgres"), 1, "three"),
        ]),
    ]
    drawing = Drawing(
        "ranktree's speed, as a multiple of its baseline's",
        ["Right of 1 ranktree is ahead. Bars go from the least run to the greatest, dots are medians or single runs.",
         "Purple ticks are targets. Each baseline was measured beside ranktree, in the same run."],
        "Ratios of ranktree's speed to RocksDB's, Redis's, a bare pull's and PostgreSQL's, with targets",
    )
    ticks = [0.03, 0.1, 0.2, 0.5, 1, 2, 5]
    y = rows_of_ranges(drawing, groups, log_scale(0.025, 5.5), ticks, 1, "ranktree / baseline, logarithmic", two_digits)
    sources = recorded(("engine", engine), ("HTTP", http), ("drain", drain), ("visible", visible), ("write service", service))
    return drawing.done(y + 42, sources)


def lines(drawing, series, x_at, y_at, label_x, gap=17):
    """Lines through points, with their names at their ends, moved apart where they would touch."""
    ends = sorted((y_at(points[-1][1]), name, kind) for name, kind, points in series)
    placed = []
    for y, name, kind in ends:
        y = max(y, placed[-1][0] + gap) if placed else y
        placed.append((y, name, kind))
    for name, kind, points in series:
        at = [(x_at(x), y_at(y)) for x, y in points]
        drawing.path(at, kind)
        for x, y in at:
            drawing.dot(x, y, kind, 4)
    for y, name, kind in placed:
        drawing.text(label_x, y + 4.5, name, kind)


def grid(drawing, left, right, top, bottom, x_ticks, x_at, y_ticks, y_at, even=None):
    for tick in y_ticks:
        drawing.line(left, y_at(tick), right, y_at(tick), "even" if tick == even else "grid")
        drawing.text(left - 8, y_at(tick) + 4.5, number(tick), "soft end")
    for tick in x_ticks:
        drawing.line(x_at(tick), bottom, x_at(tick), bottom + 5, "even")
        drawing.text(x_at(tick), bottom + 20, f"{tick} %", "soft middle")


LOADS = [20, 50, 70, 90]


def latency():
    results = Results("visible_intel")
    shape = r"ranktree at (\d+) %: p50 ([\d.]+) ms, p99 ([\d.]+) ms, p99.9 ([\d.]+) ms.*"
    found = [re.fullmatch(shape, line) for line in results.lines]
    rows = [[float(figure) for figure in row.groups()] for row in found if row]
    loads = [int(row[0]) for row in rows]
    taken = next(re.fullmatch(r"ranktree: saturation (\d+) jobs/s", line) for line in results.lines if line.startswith("ranktree: "))
    drawing = Drawing(
        "From publishing a job to NATS until readers see it",
        ["ranktree, nats-server, publisher and reader on two cores; 1 M members, each job published alone.",
         "The target is a p99 of at most 50 ms at 70 % of what the system takes."],
        "Latency from publishing to visible at 20, 50, 70 and 90 percent of saturation: p50, p99 and p99.9",
    )
    left, right, top, bottom = 70, 690, drawing.top + 28, drawing.top + 308
    x_at = lambda load: left + 30 + (right - left - 60) * (load - 20) / 70
    y_at = log_scale(0.5, 100, bottom, top)
    drawing.text(20, top - 14, "milliseconds, logarithmic", "soft")
    grid(drawing, left, right, top, bottom, loads, x_at, [0.5, 1, 2, 5, 10, 20, 50, 100], y_at)
    drawing.line(x_at(70) - 26, y_at(50), x_at(70) + 26, y_at(50), "target")
    drawing.text(x_at(70) - 32, y_at(50) - 5, "target for the p99", "target end")
    names = [("p50", "one", 1), ("p99", "two", 2), ("p99.9", "three", 3)]
    series = [(f"{name}: {number(rows[-1][at])} ms", kind, [(row[0], row[at]) for row in rows]) for name, kind, at in names]
    lines(drawing, series, x_at, y_at, right - 16)
    for _, kind, points in series:
        for x, y in points[:-1]:
            # The upper line's figures stand above it, so that they do not meet the line below.
            drawing.text(x_at(x), y_at(y) + (-10 if kind == "three" else 20), number(y), f"middle small {kind}")
    drawing.text((left + right) / 2, bottom + 42, f"load, in percent of the {int(taken.group(1)):,} jobs a second that it takes", "soft middle")
    return drawing.done(bottom + 82, recorded(("visible_intel", results)))


def versus():
    results = Results("visible_intel")
    drawing = Drawing(
        "How much sooner a job is visible in ranktree than elsewhere",
        ["Above 1 ranktree is sooner. Each system is loaded with a percentage of what it takes itself."],
        "Latency of Redis and PostgreSQL divided by ranktree's, p50 and p99, at four loads",
    )
    top, bottom = drawing.top + 44, drawing.top + 284
    y_at = log_scale(0.5, 100, bottom, top)
    systems = [
        ("PostgreSQL", "three", "postgres"),
        ("Redis always", "two", "redis_always"),
        ("Redis everysec", "one", "redis_everysec"),
    ]
    drawing.text(20, top - 32, "theirs / ours, logarithmic", "soft")
    for what, left, right in [("p50", 56, 296), ("p99", 466, 706)]:
        x_at = lambda load: left + 16 + (right - left - 32) * (load - 20) / 70
        drawing.text((left + right) / 2, top - 12, what, "group middle")
        grid(drawing, left, right, top, bottom, LOADS, x_at, [0.5, 1, 2, 5, 10, 20, 50, 100], y_at, even=1)
        series = []
        for name, kind, key in systems:
            points = [(load, results.ratio(f"visible_{what}_at_{load}_vs_{key}")[0]) for load in LOADS]
            series.append((name, kind, points))
        lines(drawing, series, x_at, y_at, right - 4)
        drawing.text((left + right) / 2, bottom + 42, "load, % of saturation", "soft middle")
    return drawing.done(bottom + 82, recorded(("visible_intel", results)))


def startup():
    results = Results("startup")
    groups = {}
    for members, name, seconds in results.cells("members", "start", "seconds"):
        ends = [float(end) for end in seconds.split("-")]
        target = 2 if members.startswith("10 million") else None
        row = (name, (ends[0], None, ends[-1]), target, "two" if "kill" in name else "one")
        groups.setdefault(members, []).append(row)
    drawing = Drawing(
        "How long a start takes, until all ranks are served",
        ["One shard. Blue: after a clean stop. Orange: after kill -9 at the worst moment.",
         "Purple ticks are targets: 2 s with 10 million members."],
        "Seconds of a start after a stop and after a kill",
    )
    scale = log_scale(0.5, 60)
    y = rows_of_ranges(drawing, groups.items(), scale, [0.5, 1, 2, 5, 10, 20, 50], None, "seconds, logarithmic")
    return drawing.done(y + 40, recorded(("startup", results)))


def stalls():
    new, touched = Results("stalls"), Results("stalls_touched")
    drawing = Drawing(
        "The most work of a hold of a shard's lock",
        ["10 M members with versions, 100,000 boards of ten. Processor time of the thread that held, with its purpose.",
         "Blue: new memory, from the system. Orange: memory that was touched before. Purple ticks are the target: 1 ms."],
        "Most work of a hold of each case in milliseconds, with new and with touched memory",
    )
    scale = log_scale(0.01, 60)
    y = drawing.top + 22
    start = y - 16
    cases = [
        (name, most, after)
        for (name, most), (_, after) in zip(new.cells("case", "most work"), touched.cells("case", "most work"), strict=True)
    ]
    height = 44
    end = start + height * len(cases) + 6
    for tick in [0.01, 0.1, 1, 10, 50]:
        drawing.line(scale(tick), start, scale(tick), end, "grid")
        drawing.text(scale(tick), end + 18, number(tick), "soft middle")
    for name, *runs in cases:
        for index, line in enumerate(folded(name, 44)):
            drawing.text(LEFT - 24, y + 3 + 15 * index, line, "end small")
        for at, holds, kind in zip((y, y + 17), runs, ("one", "two"), strict=True):
            found = re.findall(r"(\w+) ([\d.]+)", holds.split(";")[0])
            # Of two that took as long the later one, as the page's table has it.
            purpose, value = max(reversed(found), key=lambda hold: float(hold[1]))
            words = f"{number(float(value))} {purpose}"
            drawing.line(scale(1), at - 12, scale(1), at + 3, "target")
            # What is less than the axis shows stands at its beginning.
            x, wide = scale(max(float(value), 0.01)), 14 + 6.6 * len(words)
            drawing.dot(x, at - 4.5, kind, 4.5)
            if x - 2 < scale(1) < x + wide or x + wide > WIDTH:
                drawing.text(x - 10, at, words, f"end small {kind}")
            else:
                drawing.text(x + 10, at, words, f"small {kind}")
        y += height
    drawing.text((LEFT + RIGHT) / 2, end + 38, "milliseconds, logarithmic", "soft middle")
    return drawing.done(end + 78, recorded(("stalls", new), ("stalls_touched", touched)))


def reads():
    results = Results("engine_reads_intel")
    shape = r"(\w+) 10M (idle|loaded): p50 ([\d.]+) us, p99 ([\d.]+) us, p99.9 ([\d.]+) us.*"
    names = {"rank": "rank of a score", "position": "position of a member", "page_of_100": "page of 100"}
    groups = {"Without writes": [], "While a writer is busy for 80 % of the time": []}
    for what, state, *figures in (found.groups() for line in results.lines if (found := re.fullmatch(shape, line))):
        rows = groups["Without writes" if state == "idle" else "While a writer is busy for 80 % of the time"]
        targets = [None, 200, 1000] if (what, state) == ("rank", "loaded") else [None] * 3
        for name, figure, target in zip(("median", "p99", "p99.9"), figures, targets, strict=True):
            value = float(f"{float(figure):.3g}")
            rows.append((f"{names[what]}, {name}", (value, None, value), target, "one" if state == "idle" else "two"))
    drawing = Drawing(
        "How long a read takes in process",
        ["One shard, 10 M members, two cores. Purple ticks are targets.",
         "Reads come on a schedule, and each is timed from when it is due."],
        "Microseconds of a rank, a position and a page, and the p99 of a rank with and without writes",
    )
    scale = log_scale(0.4, 3000)
    y = rows_of_ranges(drawing, groups.items(), scale, [0.5, 1, 10, 100, 1000], None, "microseconds, logarithmic")
    return drawing.done(y + 40, recorded(("engine_reads_intel", results)))


def remote():
    results = Results("remote_reads")
    kinds = [("rank", "rank of a score"), ("member", "a member's entry"), ("around", "around a member"), ("top_10", "top 10")]
    found = {}
    for line in results.lines:
        if at := re.match(r"remote_(\w+)_(\d+)_shards: p50 (\d+) us.*in memory p50 ([\d.]+) us", line):
            found[at.group(1), int(at.group(2))] = (float(at.group(4)), float(at.group(3)))
        elif at := re.match(r"approximate_(\w+)_16_shards_remote: p50 ([\d.]+) us", line):
            found[at.group(1), "approximate"] = float(at.group(2))
    drawing = Drawing(
        "A read of shards in memory, and of shards that another node owns",
        ["p50 of one read at a time. Blue: shards in memory. Orange: the same shards over NATS.",
         "Green: the approximate answer over NATS, made of summaries that a node keeps of other nodes' shards."],
        "Microseconds of four kinds of reads on 1, 4 and 16 shards, in memory and over NATS",
    )
    scale = log_scale(2, 1000)
    y = drawing.top + 22
    start, body = y - 16, []
    for kind, name in kinds:
        drawing.text(20, y, name, "group")
        body.append((y, kind))
        y += 26 * 3 + 8
    end = y - 14
    for tick in [2, 5, 10, 20, 50, 100, 200, 500, 1000]:
        drawing.line(scale(tick), start, scale(tick), end, "grid")
        drawing.text(scale(tick), end + 18, number(tick), "soft middle")
    for y, kind in body:
        for index, shards in enumerate((1, 4, 16)):
            at = y + 26 * index
            memory, nats = found[kind, shards]
            drawing.text(LEFT - 24, at, "1 shard" if shards == 1 else f"{shards} shards", "end")
            drawing.line(scale(memory), at - 4.5, scale(nats), at - 4.5, "grid")
            marks = [(memory, "one"), (nats, "two")]
            if shards == 16 and (kind, "approximate") in found:
                marks.append((found[kind, "approximate"], "three"))
            for value, mark in marks:
                drawing.dot(scale(value), at - 4.5, mark)
            for value, mark in marks:
                # Left of the first dot, right of the last one, and above what is between.
                if mark == "three":
                    drawing.text(scale(value), at - 13, f"{value:.3g}", f"middle small {mark}")
                else:
                    side = "end" if mark == "one" and scale(value) > LEFT + 40 else ""
                    away = -10 if side else 10
                    drawing.text(scale(value) + away, at, f"{value:.3g}", f"small {mark} {side}".strip())
    drawing.text((LEFT + RIGHT) / 2, end + 38, "microseconds, logarithmic", "soft middle")
    return drawing.done(end + 78, recorded(("remote_reads", results)))


STEPS = [("decode", "four"), ("plan", "one"), ("commit", "three"), ("apply", "two")]


def windows():
    results = Results("windows")
    rounds, steps = {}, {}
    for line in results.lines:
        if line.startswith("  decode"):
            steps = {name: float(value) for name, value in re.findall(r"(\w+) ([\d.]+)", line)}
        elif at := re.match(r"windows_1M (.+): ([\d.]+) us a score", line):
            rounds.setdefault(at.group(1), []).append((float(at.group(2)), steps))
    names = {
        "one window": "a board with one window",
        "four windows": "a board with four windows",
        "four boards, one job": "a job that names four boards",
        "four boards, four jobs": "four jobs, each for its board",
    }
    drawing = Drawing(
        "What a score costs with windows",
        ["1 M members, batches of 1,000. Each bar is the middle one of three rounds; its figure is followed by the range.",
         "Decoding is counted, what NATS costs is not."],
        "Microseconds of a score: decoding, planning, committing and applying, for one window, four windows and four boards",
    )
    left, right, most = 250, 640, 12
    scale = lambda value: left + (right - left) * value / most
    x = left
    for name, kind in STEPS:
        drawing.box(x, drawing.top + 4, 12, 12, kind)
        drawing.text(x + 18, drawing.top + 15, name, "small")
        x += 44 + 7 * len(name)
    y = drawing.top + 36
    end = y + 42 * len(names)
    for tick in range(0, most + 1, 2):
        drawing.line(scale(tick), y - 6, scale(tick), end, "grid")
        drawing.text(scale(tick), end + 18, number(tick), "soft middle")
    for key, name in names.items():
        (least, _), (middle, steps), (greatest, _) = sorted(rounds[key], key=lambda each: each[0])
        drawing.text(left - 16, y + 19, name, "end")
        x = 0
        for step, kind in STEPS:
            drawing.box(scale(x), y + 3, scale(x + steps[step]) - scale(x) - 1, 24, kind)
            x += steps[step]
        drawing.text(scale(x) + 12, y + 19, f"{middle:.1f} ({least:.1f}-{greatest:.1f})")
        y += 42
    drawing.text((left + right) / 2, end + 38, "microseconds a score", "soft middle")
    return drawing.done(end + 78, recorded(("windows", results)))


def expiry():
    results = Results("stalls_windows")
    # Of each case, for each run: the most work of a hold, the p99 of reads, the longest wait of a reader.
    found = {case: ([], [], []) for case in ("expiry", "rollover")}
    for at, line in enumerate(results.lines):
        if not (case := re.match(r"  (expiry|rollover): \d+ reads", line)):
            continue
        work, p99, longest = found[case.group(1)]
        cells = [cell.strip() for cell in results.lines[at - 1].strip("|").split("|")]
        work.append(max(float(value) for value in re.findall(r"\w+ ([\d.]+)", cells[3])))
        longest.append(float(cells[4].split()[0]))
        if measured := re.search(r"p99 ([\d.]+)", line):
            p99.append(float(measured.group(1)))
    titles = {"expiry": "A million entries expire together", "rollover": "The day of 10,000 boards ends"}
    middle = lambda values: (values[0], values[1] if len(values) == 3 else None, values[-1])
    groups = []
    for case, title in titles.items():
        work, p99, longest = (sorted(values) for values in found[case])
        groups.append((title, [
            ("p99 of reads, two runs", middle(p99), None, "one"),
            ("a reader's longest wait, three runs", middle(longest), 2, "one"),
            ("most work of a hold, three runs", middle(work), 1, "two"),
        ]))
    drawing = Drawing(
        "What readers notice when windows end",
        ["1 M members, memory that was touched before, jobs and a reader that asks without a pause beside.",
         "Bars go from the least run to the greatest, dots are the middle one. Purple ticks are targets."],
        "Milliseconds of reads and of holds while entries expire and while windows end",
    )
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10]
    y = rows_of_ranges(drawing, groups, log_scale(0.1, 15), ticks, None, "milliseconds, logarithmic", with_ranges=True)
    return drawing.done(y + 40, recorded(("stalls, cases expiry and rollover", results)))


def folded(words, width):
    lines = [""]
    for word in words.replace("`", "").split():
        if len(lines[-1]) + 1 + len(word) > width and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


PLOTS = {
    "ratios": ratios,
    "reads": reads,
    "remote": remote,
    "latency": latency,
    "versus": versus,
    "startup": startup,
    "stalls": stalls,
    "expiry": expiry,
    "windows": windows,
}


def main():
    stale = []
    for name, draw in PLOTS.items():
        path, drawn = HERE / f"{name}.svg", draw()
        if not path.exists() or path.read_text(encoding="utf-8") != drawn:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(drawn, encoding="utf-8")
    surplus = sorted(path.name for path in HERE.glob("*.svg") if path.stem not in PLOTS)
    if "--check" in sys.argv and (stale or surplus):
        sys.exit(f"not what docs/benchmarks/plots.py draws: {', '.join(stale + surplus)}; run it with `make plots`")


if __name__ == "__main__":
    main()
