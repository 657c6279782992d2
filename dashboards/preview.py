#!/usr/bin/env python3
"""Draws every panel of every dashboard from what a running Prometheus has, one picture per dashboard: to look at
panels without Grafana, and to see at once which are empty, have the wrong unit, or legends that nobody can read.

    python3 -m venv /tmp/preview && /tmp/preview/bin/pip install matplotlib
    /tmp/preview/bin/python dashboards/preview.py http://127.0.0.1:9090 --minutes 5 --to /tmp

It asks the queries that Grafana would ask, with everything chosen in the variables.
"""

import argparse
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
from matplotlib.ticker import FuncFormatter  # noqa: E402

FOLDER = Path(__file__).resolve().parent / "grafana"
STEPS = 240


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


def draw(axes, panel, base, start, end):
    kind, defaults = panel["type"], panel["fieldConfig"]["defaults"]
    unit = panel["options"]["yAxis"]["unit"] if kind == "heatmap" else defaults["unit"]
    axes.set_title(panel["title"], fontsize=9, loc="left", fontweight="bold")
    axes.tick_params(labelsize=6)
    found = []
    for target in panel["targets"]:
        results = query(base, target["expr"], start, end, target["instant"])
        found += [(legend(target["legendFormat"], labels), values) for labels, values in results]
    if not found:
        axes.text(0.5, 0.5, "NO DATA", ha="center", va="center", color="red", fontsize=16, transform=axes.transAxes)
        axes.set_axis_off()
        return
    if kind == "stat":
        axes.set_axis_off()
        mappings = {key: value["text"] for mapping in defaults["mappings"] for key, value in mapping["options"].items()}
        for index, (name, values) in enumerate(found[:3]):
            value = float(values[-1][1])
            by_name = panel["options"]["textMode"] == "name"
            text = name if by_name else mappings.get(f"{value:g}", written(value, unit))
            color = "black"
            for step in defaults["thresholds"]["steps"]:
                if step["value"] is None or value >= step["value"]:
                    color = step["color"]
            color = {"yellow": "goldenrod"}.get(color, color)
            axes.text(0.5, 0.5 - index * 0.3, text, ha="center", va="center", fontsize=20, color=color, transform=axes.transAxes)
        return
    moments = lambda values: [float(at) / 86400 for at, _ in values]  # noqa: E731
    if kind == "heatmap":
        rows = sorted(found, key=lambda row: float(row[0].replace("+Inf", "inf")))
        times = sorted({float(at) for _, values in rows for at, _ in values})
        grid, before = [], [0.0] * len(times)
        for _, values in rows:
            by_time = {float(at): float(value) for at, value in values}
            row = [by_time.get(at, 0.0) for at in times]
            grid.append([max(a - b, 0) for a, b in zip(row, before)])
            before = row
        axes.imshow([[math.sqrt(cell) for cell in row] for row in grid], aspect="auto", origin="lower", cmap="Oranges", interpolation="nearest")
        axes.set_yticks(range(len(rows)), [written(float(name), unit) if name != "+Inf" else "+Inf" for name, _ in rows])
        axes.set_xticks([])
        return
    if kind == "state-timeline":
        colors = {"0": "red", "1": "gold", "2": "green"}
        for index, (name, values) in enumerate(found):
            axes.scatter(moments(values), [index] * len(values), c=[colors.get(value, "gray") for _, value in values], marker="s", s=30)
        axes.set_yticks(range(len(found)), [name for name, _ in found])
        axes.set_ylim(-0.7, len(found) - 0.3)
        axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M:%S"))
        return
    custom = defaults["custom"]
    found.sort(key=lambda row: row[0])
    total = {}
    for name, values in found:
        numbers = [float(value) for _, value in values]
        if custom["stacking"]["mode"] == "normal":
            stacked = []
            for (at, _), number in zip(values, numbers):
                total[at] = total.get(at, 0.0) + (0 if math.isnan(number) else number)
                stacked.append(total[at])
            numbers = stacked
        label = f"{name}: {written(float(values[-1][1]), unit)}"
        axes.plot(moments(values), numbers, linewidth=1, label=label)
    if custom["scaleDistribution"]["type"] == "log":
        axes.set_yscale("log")
    else:
        bottom, top = axes.get_ylim()
        axes.set_ylim(min(0, bottom), top)
    for step in defaults["thresholds"]["steps"][1:]:
        if axes.get_ylim()[0] < step["value"] < axes.get_ylim()[1] * 1.5:
            axes.axhline(step["value"], color=step["color"], linestyle="--", linewidth=0.7)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: written(value, unit)))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda _value, _: ""))
    axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M:%S"))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=5.5, loc="upper left", ncols=2, framealpha=0.6)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prometheus", help="its address, such as http://127.0.0.1:9090")
    parser.add_argument("--minutes", type=float, default=5, help="how far back (default: 5)")
    parser.add_argument("--to", type=Path, default=Path("."), help="folder for the pictures (default: here)")
    arguments = parser.parse_args()
    end = time.time()
    start = end - arguments.minutes * 60
    for path in sorted(FOLDER.glob("*.json")):
        dashboard = json.loads(path.read_text(encoding="utf-8"))
        rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard["panels"])
        figure = plt.figure(figsize=(20, rows * 0.42), layout=None)
        figure.suptitle(dashboard["title"], fontsize=14)
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            left, width = place["x"] / 24, place["w"] / 24
            bottom, height = 1 - (place["y"] + place["h"] + 1) / (rows + 1), place["h"] / (rows + 1)
            if panel["type"] == "row":
                figure.text(0.005, bottom + height * 0.3, panel["title"], fontsize=11, color="navy")
                continue
            axes = figure.add_axes((left + 0.035, bottom + height * 0.1, width - 0.045, height * 0.76))
            draw(axes, panel, arguments.prometheus.rstrip("/"), start, end)
        picture = arguments.to / (path.stem + ".png")
        figure.savefig(picture, dpi=75)
        plt.close(figure)
        print(picture)


main()
