#!/usr/bin/env python3
"""Draws every panel of every dashboard from what a running Prometheus has, one picture per dashboard: to look at
panels without Grafana, and to see at once which are empty, have the wrong unit, or legends that nobody can read.

    make pictures
    .tools/pictures/bin/python dashboards/preview.py http://127.0.0.1:9090 --minutes 5 --to /tmp

It asks the queries that Grafana would ask, with everything chosen in the variables.
"""

import argparse
import fnmatch
import json
import math
import time
import urllib.parse
import urllib.request
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.dates as dates  # noqa: E402
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patches import FancyBboxPatch  # noqa: E402
from matplotlib.ticker import FuncFormatter, MaxNLocator  # noqa: E402

FOLDER = Path(__file__).resolve().parent / "grafana"
STEPS = 240
# A column of a dashboard's grid of 24, and a row of it, in inches.
COLUMN, ROW = 0.56, 0.36
LEGEND_ROWS = 3
BACK, INK, SOFT = "#f1f3f5", "#24292f", "#6e7781"
LINES = ["#3274d9", "#e0752d", "#56a64b", "#a352cc", "#e02f44", "#0097a7", "#b8860b", "#7f7f7f"]
NAMED = {"green": "#299c46", "yellow": "#d7a300", "orange": "#e0752d", "red": "#d44a3a", "blue": "#3274d9"}


def with_prefix(value, unit, base, prefixes):
    index = 0
    while abs(value) >= base and index < len(prefixes) - 1:
        value, index = value / base, index + 1
    return f"{value:.3g} {prefixes[index]}{unit}"


def written(value, unit):
    """A value as Grafana would write it, or nearly."""
    if value is None or math.isnan(value):
        return "-"
    if unit == "s":
        size = abs(value)
        for limit, factor, name in ((1e-3, 1e6, "µs"), (1, 1e3, "ms"), (120, 1, "s"), (7200, 1 / 60, "min")):
            if size < limit:
                return f"{value * factor:.3g} {name}"
        return f"{value / 3600:.3g} h"
    if unit == "bytes":
        return with_prefix(value, "B", 1024, ["", "Ki", "Mi", "Gi", "Ti"])
    if unit == "Bps":
        return with_prefix(value, "B/s", 1024, ["", "Ki", "Mi", "Gi"])
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "reqps":
        return with_prefix(value, "req/s", 1000, ["", "k", "M"])
    if unit.startswith("suffix:"):
        return f"{value:.4g} {unit.removeprefix('suffix:').strip()}"
    return f"{value:,.0f}" if unit == "locale" else f"{value:.4g}"


def ask(base, path, **parameters):
    url = f"{base}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)["data"]["result"]


def query(base, expr, start, end, instant):
    expr = expr.replace("$__rate_interval", "20s")
    expr = expr.replace('=~"$job"', '="ranktree"')
    for name in ("instance", "shard", "route"):
        expr = expr.replace(f'=~"${name}"', '=~".*"')
    if instant:
        return [(found["metric"], [found["value"]]) for found in ask(base, "query", query=expr, time=end)]
    step = max((end - start) / STEPS, 1)
    return [(found["metric"], found["values"]) for found in ask(base, "query_range", query=expr, start=start, end=end, step=step)]


def legend(template, labels):
    for name, value in labels.items():
        template = template.replace("{{" + name + "}}", value)
    return template or "value"


def color_of(name):
    return NAMED.get(name.removeprefix("dark-"), name)


def clock(axes):
    low, high = axes.get_xlim()
    axes.set_xticks([low + (high - low) * part for part in (0.1, 0.3, 0.5, 0.7, 0.9)])
    axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M:%S"))


def draw_map(axes, defaults, found):
    """Which node has which shard in which state: the one table that there is."""
    states = defaults["mappings"][0]["options"]
    cells = {(labels["shard"], labels["instance"]): states[values[-1][1]] for labels, values in found}
    shards = sorted({shard for shard, _ in cells}, key=int)
    instances = sorted({instance for _, instance in cells})
    axes.set_axis_off()
    shown = [[shard, *(cells.get((shard, instance)) for instance in instances)] for shard in shards]
    text = [[cell["text"] if isinstance(cell, dict) else cell or "" for cell in row] for row in shown]
    table = axes.table(text, colLabels=["shard", *instances], cellLoc="left", colLoc="left", bbox=(0, 0, 1, 1), edges="horizontal")
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    for (y, x), cell in table.get_celld().items():
        cell.set_edgecolor("#d8dee4")
        state = shown[y - 1][x] if y else None
        cell.get_text().set_color(color_of(state["color"]) if isinstance(state, dict) else SOFT)


def draw_stat(axes, panel, found, unit):
    axes.set_axis_off()
    defaults = panel["fieldConfig"]["defaults"]
    mappings = {key: value["text"] for mapping in defaults["mappings"] for key, value in mapping["options"].items()}
    for index, (name, values) in enumerate(found[:3]):
        value = float(values[-1][1])
        by_name = panel["options"]["textMode"] == "name"
        text = name if by_name else mappings.get(f"{value:g}", written(value, unit))
        color = "black"
        for step in defaults["thresholds"]["steps"]:
            if step["value"] is None or value >= step["value"]:
                color = step["color"]
        place = 0.5 - (index - (min(len(found), 3) - 1) / 2) * 0.34
        axes.text(0.5, place, text, ha="center", va="center", fontsize=20, color=color_of(color), transform=axes.transAxes)


def draw_heatmap(axes, found, unit):
    rows = sorted(found, key=lambda row: float(row[0].replace("+Inf", "inf")))
    times = sorted({float(at) for _, values in rows for at, _ in values})
    grid, before = [], [0.0] * len(times)
    for _, values in rows:
        by_time = {float(at): float(value) for at, value in values}
        row = [by_time.get(at, 0.0) for at in times]
        grid.append([max(a - b, 0) for a, b in zip(row, before)])
        before = row
    extent = (times[0] / 86400, times[-1] / 86400, -0.5, len(rows) - 0.5)
    cells = [[math.sqrt(cell) for cell in row] for row in grid]
    axes.imshow(cells, aspect="auto", origin="lower", cmap="Oranges", interpolation="nearest", extent=extent)
    # As many names as there is room for.
    named = [(at, name) for at, (name, _) in enumerate(rows) if name != "+Inf"][:: -(-len(rows) // 9)]
    axes.set_yticks([at for at, _ in named], [written(float(name), unit) for _, name in named])
    clock(axes)


def draw_lines(axes, panel, found, unit, moments, anchor):
    defaults = panel["fieldConfig"]["defaults"]
    custom = defaults["custom"]
    is_stacked = custom["stacking"]["mode"] == "normal"
    found.sort(key=lambda row: row[0])
    total = {}
    for index, (name, values) in enumerate(found):
        numbers = [float(value) for _, value in values]
        color = LINES[index % len(LINES)]
        if is_stacked:
            below = [total.get(at, 0.0) for at, _ in values]
            numbers = [low + (0 if math.isnan(number) else number) for low, number in zip(below, numbers)]
            total.update((at, number) for (at, _), number in zip(values, numbers))
            axes.fill_between(moments(values), below, numbers, color=color, alpha=0.25, linewidth=0)
        label = f"{name}: {written(float(values[-1][1]), unit)}"
        axes.plot(moments(values), numbers, linewidth=1.3, label=label, color=color)
    if custom["scaleDistribution"]["type"] == "log":
        axes.set_yscale("log")
    else:
        bottom, top = axes.get_ylim()
        # What is 0 all the time lies at the bottom of an axis, and not in its middle.
        is_zero = all(number == 0 for line in axes.lines for number in line.get_ydata())
        axes.set_ylim(*((0, 1) if is_zero else (min(0, bottom), top)))
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=unit in ("none", "locale", "short")))
    for step in defaults["thresholds"]["steps"][1:]:
        if axes.get_ylim()[0] < step["value"] < axes.get_ylim()[1] * 1.5:
            axes.axhline(step["value"], color=color_of(step["color"]), linestyle="--", linewidth=0.9)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: written(value, unit)))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda _value, _: ""))
    clock(axes)
    axes.grid(color="#e1e4e8", linewidth=0.7)
    handles, labels = axes.get_legend_handles_labels()
    # As many columns as there is room for, and the rows that fit below the times.
    columns = max(1, min(3, int(panel["gridPos"]["w"] * COLUMN / (0.35 + 0.055 * max(map(len, labels))))))
    if len(labels) > LEGEND_ROWS * columns:
        # Those that say most: the last ones of a sorted list may all be 0.
        order = sorted(range(len(labels)), key=lambda at: -float(found[at][1][-1][1].replace("NaN", "-1")))
        kept = sorted(order[: LEGEND_ROWS * columns - 1])
        handles = [handles[at] for at in kept] + [axes.plot([], [], linewidth=0)[0]]
        labels = [labels[at] for at in kept] + [f"and {len(found) - len(kept)} more"]
    axes.legend(
        handles, labels, fontsize=7, loc="upper left", bbox_to_anchor=anchor, bbox_transform=axes.figure.transFigure,
        ncols=columns, frameon=False, labelcolor=SOFT, handlelength=1, columnspacing=1.2,
        labelspacing=0.25, borderaxespad=0,
    )


def draw(axes, panel, base, start, end, anchor):
    """`anchor`: where in the figure the legend begins."""
    kind, defaults = panel["type"], panel["fieldConfig"]["defaults"]
    unit = panel["options"]["yAxis"]["unit"] if kind == "heatmap" else defaults["unit"]
    axes.tick_params(which="both", labelsize=7, colors=SOFT, length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    found = []
    for target in panel["targets"]:
        results = query(base, target["expr"], start, end, target["instant"])
        found += [(legend(target["legendFormat"], labels), values) for labels, values in results]
    if not found:
        axes.text(0.5, 0.5, "No data", ha="center", va="center", color="#d44a3a", fontsize=14, transform=axes.transAxes)
        axes.set_axis_off()
        return
    moments = lambda values: [float(at) / 86400 for at, _ in values]  # noqa: E731
    if kind == "stat":
        draw_stat(axes, panel, found, unit)
    elif kind == "heatmap":
        draw_heatmap(axes, found, unit)
    elif kind == "table":
        draw_map(axes, defaults, query(base, panel["targets"][0]["expr"], start, end, True))
    elif kind == "state-timeline":
        colors = {"0": NAMED["red"], "1": NAMED["yellow"], "2": NAMED["green"]}
        for index, (_, values) in enumerate(found):
            axes.scatter(moments(values), [index] * len(values), c=[colors.get(value, "gray") for _, value in values], marker="s", s=26)
        axes.set_yticks(range(len(found)), [name for name, _ in found])
        axes.set_ylim(-0.7, len(found) - 0.3)
        clock(axes)
    else:
        draw_lines(axes, panel, found, unit, moments, anchor)


def place_of(panel, rows):
    """Left, bottom, width and height of a panel in a figure of so many rows and one for its title, in parts of it."""
    place = panel["gridPos"]
    return place["x"] / 24, 1 - (place["y"] + place["h"] + 1.4) / (rows + 1.6), place["w"] / 24, place["h"] / (rows + 1.6)


def picture_of(dashboard, base, start, end, sections):
    panels = dashboard["panels"]
    heads = [panel["gridPos"]["y"] for panel in panels if panel["type"] == "row"]
    if sections and sections < len(heads):
        panels = [panel for panel in panels if panel["gridPos"]["y"] < heads[sections]]
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    width, height = COLUMN * 24, ROW * (rows + 1.6)
    figure = plt.figure(figsize=(width, height), layout=None, facecolor=BACK)
    figure.text(0.012, 1 - 0.3 / height, dashboard["title"], fontsize=13, color=INK, fontweight="bold", va="center")
    for panel in panels:
        left, bottom, wide, tall = place_of(panel, rows)
        if panel["type"] == "row":
            figure.text(left + 0.012, bottom + tall * 0.35, panel["title"], fontsize=11, color=INK)
            continue
        gap_x, gap_y = 0.05 / width, 0.05 / height
        figure.patches.append(FancyBboxPatch(
            (left + gap_x, bottom + gap_y), wide - 2 * gap_x, tall - 2 * gap_y, transform=figure.transFigure, zorder=-1,
            boxstyle="square,pad=0", facecolor="white", edgecolor="#d8dee4", linewidth=0.7,
        ))
        figure.text(left + 0.15 / width, bottom + tall - 0.22 / height, panel["title"], fontsize=9, color=INK, fontweight="bold", va="center")
        # Inches: names of values to the left, the title above, times and the legend below.
        is_plain = panel["type"] in ("stat", "table")
        before, above = (0.2 if is_plain else 1.55 if panel["type"] == "state-timeline" else 0.85), 0.42
        below = 0.15 if is_plain else 0.95 if panel["type"] == "timeseries" else 0.35
        axes = figure.add_axes((
            left + before / width, bottom + below / height, wide - (before + 0.2) / width, tall - (above + below) / height,
        ))
        draw(axes, panel, base, start, end, (left + 0.15 / width, bottom + 0.68 / height))
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prometheus", help="its address, such as http://127.0.0.1:9090")
    parser.add_argument("--minutes", type=float, default=5, help="how far back (default: 5)")
    parser.add_argument("--to", type=Path, default=Path("."), help="folder for the pictures (default: here)")
    parser.add_argument("--dpi", type=int, default=110, help="points of the picture an inch (default: %(default)s)")
    parser.add_argument("--only", default="*", metavar="NAME", help="dashboards with such a name, as in ranktree-re* (default: all)")
    parser.add_argument("--sections", type=int, help="draws so many sections of each dashboard (default: all)")
    arguments = parser.parse_args()
    end = time.time()
    start = end - arguments.minutes * 60
    for path in sorted(FOLDER.glob("*.json")):
        if not fnmatch.fnmatch(path.stem, arguments.only):
            continue
        dashboard = json.loads(path.read_text(encoding="utf-8"))
        figure = picture_of(dashboard, arguments.prometheus.rstrip("/"), start, end, arguments.sections)
        picture = arguments.to / (path.stem + ".png")
        figure.savefig(picture, dpi=arguments.dpi, facecolor=BACK)
        plt.close(figure)
        print(picture)


main()
