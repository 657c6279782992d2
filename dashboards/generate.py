#!/usr/bin/env python3
"""Writes the Grafana dashboards in dashboards/grafana from what is said here, so that they are alike.

The JSON files are committed and are what Grafana reads; a test regenerates and compares them. Needs Python 3 and
nothing else:

    python3 dashboards/generate.py            writes them
    python3 dashboards/generate.py --check    says which are not up to date, and fails if any
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "grafana"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}

NODE = 'job=~"$job",instance=~"$instance"'
SHARD = NODE + ',shard=~"$shard"'
ROUTE = NODE + ',route=~"$route"'
# Routes that read boards; the others write, or define.
READS = "member|around|lookup|combine|top|positions|range|rank|ranks_of|score|count|histogram|percentiles|member_boards"

GREEN, YELLOW, ORANGE, RED, BLUE = "green", "yellow", "orange", "red", "blue"


def steps(*pairs, base=GREEN):
    """Thresholds: the colour of small values, then (value, colour) upwards."""
    found = [{"color": base, "value": None}]
    return found + [{"color": color, "value": value} for value, color in pairs]


def quantile(q, metric, labels, by):
    return f"histogram_quantile({q}, sum by (le, {by}) (rate({metric}_bucket{{{labels}}}[$__rate_interval])))"


def rate(metric, labels):
    return f"rate({metric}{{{labels}}}[$__rate_interval])"


def mean(metric, labels, by):
    total, count = rate(metric + "_sum", labels), rate(metric + "_count", labels)
    return f"sum by ({by}) ({total}) / sum by ({by}) ({count})"


class Panel:
    def __init__(self, kind, title, description, targets, width, height, unit, **more):
        self.kind, self.title, self.description = kind, title, description
        self.targets, self.width, self.height, self.unit, self.more = targets, width, height, unit, more

    def json(self, number, x, y):
        more = self.more
        defaults = {"unit": self.unit, "mappings": more.get("mappings", [])}
        for name in ("min", "max", "decimals"):
            if name in more:
                defaults[name] = more[name]
        defaults["color"] = {"mode": "thresholds" if "steps" in more and self.kind != "timeseries" else "palette-classic"}
        defaults["thresholds"] = {"mode": "absolute", "steps": more.get("steps", steps())}
        panel = {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "fieldConfig": {"defaults": defaults, "overrides": more.get("overrides", [])},
            "options": {},
            "targets": [],
        }
        for index, (expr, legend) in enumerate(self.targets):
            target = {
                "refId": chr(ord("A") + index),
                "datasource": SOURCE,
                "editorMode": "code",
                "expr": expr,
                "legendFormat": legend,
                "range": self.kind not in ("stat", "table"),
                "instant": self.kind in ("stat", "table"),
            }
            if self.kind == "heatmap":
                target["format"] = "heatmap"
            if self.kind == "table":
                target["format"] = "table"
            panel["targets"].append(target)
        getattr(self, "as_" + self.kind.replace("-", "_"))(panel, defaults)
        return panel

    def as_timeseries(self, panel, defaults):
        more = self.more
        defaults["custom"] = {
            "drawStyle": "line",
            "lineInterpolation": "linear",
            "lineWidth": 1,
            "fillOpacity": 25 if more.get("stack") else 8,
            "showPoints": "never",
            "spanNulls": False,
            "axisSoftMin": 0,
            "scaleDistribution": {"type": "log", "log": 10} if more.get("log") else {"type": "linear"},
            "stacking": {"mode": "normal" if more.get("stack") else "none", "group": "A"},
            "thresholdsStyle": {"mode": "dashed" if "steps" in more else "off"},
        }
        if more.get("log"):
            del defaults["custom"]["axisSoftMin"]
        panel["options"] = {
            "legend": {"displayMode": "table", "placement": "bottom", "showLegend": True, "calcs": ["lastNotNull", "max"]},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }

    def as_stat(self, panel, _defaults):
        panel["options"] = {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "value",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "textMode": self.more.get("text", "auto"),
        }

    def as_heatmap(self, panel, _defaults):
        panel["options"] = {
            "calculate": False,
            "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5, "reverse": False},
            "cellGap": 1,
            "filterValues": {"le": 1e-9},
            "legend": {"show": True},
            "rowsFrame": {"layout": "auto"},
            "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": False},
            "yAxis": {"axisPlacement": "left", "unit": self.unit},
        }
        panel["fieldConfig"]["defaults"] = {"custom": {"scaleDistribution": {"type": "linear"}}}

    def as_state_timeline(self, panel, defaults):
        defaults["custom"] = {"fillOpacity": 80, "lineWidth": 0}
        panel["options"] = {
            "mergeValues": True,
            "showValue": "auto",
            "alignValue": "left",
            "rowHeight": 0.85,
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "single", "sort": "none"},
        }

    def as_table(self, panel, _defaults):
        panel["options"] = {"showHeader": True, "cellHeight": "sm"}
        panel["transformations"] = self.more.get("transformations", [])


def series(title, description, targets, unit, width=12, height=8, **more):
    return Panel("timeseries", title, description, targets, width, height, unit, **more)


def stat(title, description, expr, unit, legend="", width=6, **more):
    return Panel("stat", title, description, [(expr, legend)], width, 4, unit, **more)


def heatmap(title, description, metric, labels, width=12, height=8):
    expr = f"sum by (le) (increase({metric}_bucket{{{labels}}}[$__rate_interval]))"
    return Panel("heatmap", title, description, [(expr, "{{le}}")], width, height, "s")


def variable(name, label, query, description, everything=None):
    """Chosen all: every value found, or what `everything` matches, where a value may be missing from what is asked."""
    return {
        "name": name,
        "label": label,
        "description": description,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "sort": 3,
        "multi": True,
        "includeAll": True,
        "allValue": everything,
        "current": {"text": ["All"], "value": ["$__all"]},
        "hide": 0,
        "options": [],
    }


def dashboard(uid, title, description, rows, variables):
    panels, number, y = [], 1, 0
    for row, content in rows:
        panels.append({"id": number, "type": "row", "title": row, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
        number, y, x, tallest = number + 1, y + 1, 0, 0
        for panel in content:
            if x + panel.width > 24:
                x, y, tallest = 0, y + tallest, 0
            panels.append(panel.json(number, x, y))
            number, x, tallest = number + 1, x + panel.width, max(tallest, panel.height)
        y += tallest
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
              "current": {"text": "Prometheus", "value": "prometheus"}, "hide": 0, "includeAll": False,
              "multi": False, "options": [], "refresh": 1, "regex": ""}
    known = {
        "job": variable("job", "Job", "label_values(ranktree_build_info, job)", "The scrape job"),
        "instance": variable("instance", "Node", 'label_values(ranktree_build_info{job=~"$job"}, instance)', "The node"),
        "shard": variable("shard", "Shard", f"label_values(ranktree_shard_state{{{NODE}}}, shard)", "The shard", ".*"),
        "route": variable("route", "Route", f"label_values(ranktree_http_responses_total{{{NODE}}}, route)", "The route", ".*"),
    }
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["ranktree"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "annotations": {"list": []},
        "templating": {"list": [source] + [known[name] for name in variables]},
        "links": [{"title": "ranktree", "type": "dashboards", "tags": ["ranktree"], "asDropdown": True,
                   "includeVars": True, "keepTime": True, "targetBlank": False, "icon": "external link", "url": ""}],
        "panels": panels,
    }


STATES = [{"type": "value", "options": {
    "0": {"text": "halted", "color": RED, "index": 0},
    "1": {"text": "catching up", "color": YELLOW, "index": 1},
    "2": {"text": "live", "color": GREEN, "index": 2},
}}]
YES = [{"type": "value", "options": {"0": {"text": "no", "color": GREEN, "index": 0}, "1": {"text": "yes", "color": RED, "index": 1}}}]
JOBS = "suffix:jobs/s"
SLOW = steps((0.05, YELLOW), (0.25, RED))

SHARDS = dashboard(
    "ranktree-shards", "ranktree / Shards", "Which shards are live, how far they are, and what they hold.",
    [
        ("At a glance", [
            stat("Shards not live", "Halted, or catching up. /v1/status has the reason of each.",
                 f'count(ranktree_shard_state{{{SHARD}}} < 2) or vector(0)', "none", steps=steps((1, RED))),
            stat("Furthest behind", "Messages in the queue that the shard which is furthest behind has not applied. Over 10,000, /readyz says 503.",
                 f"max(ranktree_stream_lag_messages{{{SHARD}}})", "locale", steps=steps((1_000, YELLOW), (10_000, RED))),
            stat("Members", "Members that hold a score on any board, over all shards.",
                 f"sum(ranktree_members{{{SHARD}}})", "locale", steps=steps(base=BLUE)),
            stat("Alerts firing", "Of the rules in dashboards/prometheus/rules; docs/runbooks.md says what to do about each.",
                 'count(ALERTS{alertstate="firing",alertname=~"Ranktree.*"}) or vector(0)', "none", steps=steps((1, RED))),
        ]),
        ("States", [
            Panel("state-timeline", "State of each shard",
                  "live: applies what arrives. catching up: works through what it missed, waits for NATS, or reopens after a failed commit. halted: applies nothing until an operator acts; reads go on, marked stale.",
                  [(f"ranktree_shard_state{{{SHARD}}}", "{{instance}} shard {{shard}}")], 24, 7, "none",
                  mappings=STATES, steps=[{"color": RED, "value": None}, {"color": YELLOW, "value": 1}, {"color": GREEN, "value": 2}]),
        ]),
        ("Cluster (empty without NATS)", [
            Panel("table", "Shard map", "Which node owns which shard, and how the shard is there. A shard that is live on one node only has nobody to take over.",
                  [(f"max by (instance, shard) (ranktree_shard_state{{{SHARD}}})", "")], 12, 8, "none",
                  mappings=STATES, steps=[{"color": RED, "value": None}, {"color": YELLOW, "value": 1}, {"color": GREEN, "value": 2}],
                  transformations=[{"id": "groupingToMatrix", "options": {"rowField": "shard", "columnField": "instance", "valueField": "Value"}}]),
            series("Owners of shards", "Nodes that own the shard, and those on which it is live, as the node that sees most of them counts.",
                   [(f"max by (shard) (ranktree_shard_owners{{{SHARD}}})", "shard {{shard}}"),
                    (f"max by (shard) (ranktree_shard_owners_live{{{SHARD}}})", "shard {{shard}} live")], "none", min=0),
            series("Lag by replica", "Messages that an owner is behind the one that has applied most. A line that does not come down is a node that is slow, frozen or cut off.",
                   [(f"max by (job, shard) (ranktree_applied_sequence{{{SHARD}}}) - on (job, shard) group_right () ranktree_applied_sequence{{{SHARD}}}", "shard {{shard}} on {{instance}}")], "locale", min=0),
            series("Fan-out: time of questions to other nodes", "From a question to a shard of another node to the reply of one of its owners. A read asks all shards at once and waits for the slowest. Empty where a node owns every shard.",
                   [(quantile(q, "ranktree_question_seconds", NODE, "shard"), "shard {{shard}} p" + p) for q, p in ((0.5, "50"), (0.99, "99"))], "s", log=True),
            series("Second owners asked, and failures", "Hedged: an owner was slow, so another one was asked as well. Failures are owners that did not answer a question of this node, by reason; another one was asked then, if there is one.",
                   [(f"sum by (shard) ({rate('ranktree_questions_hedged_total', NODE)})", "shard {{shard}} hedged"),
                    (f"sum by (shard, reason) ({rate('ranktree_question_failures_total', NODE)})", "shard {{shard}} {{reason}}")], "reqps", 8),
            series("Questions of other nodes", "To shards of the node, by outcome. Those that are not answered say why; overloaded: the node has as many in work as it takes.",
                   [(f"sum by (instance, outcome) ({rate('ranktree_questions_answered_total', NODE)})", "{{instance}} {{outcome}}")], "reqps", 8),
            series("Age of summaries", "How long ago an owner of the shard has confirmed the oldest summary that approximate ranks (accuracy=approx) are made from on the node. About a second; above 5 such answers are stale. 0 while nobody asks for any.",
                   [(f"ranktree_summary_age_seconds{{{SHARD}}}", "{{instance}} shard {{shard}}")], "s", 8, min=0, steps=steps((5, YELLOW))),
            series("Replicas that differ", "Other owners of the shard that have applied the same messages with other results. Above 0, one of them is wrong.",
                   [(f"ranktree_shard_replicas_differing{{{SHARD}}}", "{{instance}} shard {{shard}}")], "none", 8, min=0, steps=steps((1, RED))),
            series("Copies of shards", "Under way between nodes, and shards that need one: they lost their data, or their stream was purged past them.",
                   [(f"ranktree_copies_under_way{{{NODE}}}", "{{instance}} {{direction}}"),
                    (f"ranktree_shard_copy_needed{{{SHARD}}}", "{{instance}} shard {{shard}} needs one")], "none", 8, min=0),
            series("Bytes of copies", "Fetched from other nodes, and given to them.",
                   [(rate("ranktree_copy_bytes_total", NODE), "{{instance}} {{direction}}")], "Bps", 8),
            series("Copies by result", "Copies of other nodes' shards that this node has put in place, could not get, or found damaged.",
                   [(f"sum by (instance, result) (increase(ranktree_copies_total{{{NODE}}}[$__rate_interval]))", "{{instance}} {{result}}")], "none", 8, min=0),
            series("Nodes alive", "As each node counts them, itself among them, by version. The lines differ while nodes are cut off from one another.",
                   [(f"ranktree_nodes{{{NODE}}}", "{{instance}} sees {{version}}")], "none", 8, min=0),
            series("Silence of nodes", "How long each node has heard nothing of another. Above a minute it is down, frozen, or cut off from NATS. 0 for a node that is forgotten.",
                   [(f"ranktree_node_silent_seconds{{{NODE}}}", "{{instance}} of {{node}}")], "s", 8, min=0, steps=steps((10, YELLOW), (60, RED))),
        ]),
        ("Progress", [
            series("Messages not applied yet", "What is in the queue and not seen by readers. Grows when publishers are faster than the writer, or the writer stands still.",
                   [(f"ranktree_stream_lag_messages{{{SHARD}}}", "{{instance}} shard {{shard}}")], "locale", steps=steps((10_000, RED))),
            series("Messages applied", "How fast the applied sequence moves. An array of jobs is one message.",
                   [(rate("ranktree_applied_sequence", SHARD), "{{instance}} shard {{shard}}")], "suffix:msg/s"),
            series("Jobs that wait for their board", "Parked until the definition of their board arrives; a moment, normally. With NATS only.",
                   [(f"ranktree_jobs_parked{{{SHARD}}}", "{{instance}} shard {{shard}}")], "locale"),
            series("Jobs rejected", "By shard, all reasons. `ranktree rejects` lists those of a stopped service; with NATS they are published as well.",
                   [(f"sum by (instance, shard) ({rate('ranktree_jobs_rejected_total', SHARD)})", "{{instance}} shard {{shard}}")], JOBS),
        ]),
        ("What they hold", [
            series("Members", "By shard. The hash spreads them evenly.", [(f"ranktree_members{{{SHARD}}}", "{{instance}} shard {{shard}}")], "locale", 8),
            series("Boards", "Every board is on every shard.", [(f"ranktree_boards{{{SHARD}}}", "{{instance}} shard {{shard}}")], "locale", 8),
            series("Read-only", "Boards that take no writes, and 1 for the service itself.", [(f"ranktree_boards_read_only{{{SHARD}}}", "{{instance}} shard {{shard}} boards"), (f"ranktree_read_only{{{SHARD}}}", "{{instance}} shard {{shard}} service")], "locale", 8),
            series("Memory of trees and index", "What the shard needs in memory to answer.", [(f"ranktree_tree_bytes{{{SHARD}}}", "{{instance}} shard {{shard}}")], "bytes", 8),
        ]),
        ("Windows", [
            series("Instances", "Hours, days, weeks, months and seasons of boards that jobs have entered and that are kept.", [(f"ranktree_instances{{{SHARD}}}", "{{instance}} shard {{shard}}")], "locale", 8),
            series("Instances dropped", "Because as many newer ones as `keep` says had closed.", [(rate("ranktree_instances_dropped_total", SHARD), "{{instance}} shard {{shard}}")], "suffix:/s", 8),
            series("Ticks", "Messages that tell a quiet shard the time, when something is due there.", [(rate("ranktree_ticks_total", SHARD), "{{instance}} shard {{shard}}")], "suffix:/s", 8),
            series("Entries that will expire", "On boards with an entry_ttl, unless they are updated.", [(f"ranktree_entries_expiring{{{SHARD}}}", "{{instance}} shard {{shard}}")], "locale", 12),
            series("Entries expired", "A message removes a bounded number; the others follow with the next.", [(rate("ranktree_entries_expired_total", SHARD), "{{instance}} shard {{shard}}")], "suffix:/s", 12),
        ]),
    ],
    ["job", "instance", "shard"],
)

VERBS = ("plan", "commit", "apply")
# These run beside or between the writer's turns: they take time of their own, and none of its.
ALL_VERBS = ("fetch", "decode", *VERBS)
INGEST = dashboard(
    "ranktree-ingest", "ranktree / Ingest", "The way of a job: in from the queue, into the database, out to readers.",
    [
        ("At a glance", [
            stat("Jobs applied", "Over all shards.", f"sum({rate('ranktree_jobs_applied_total', SHARD)})", JOBS, steps=steps(base=BLUE)),
            stat("Jobs rejected", "Share of all jobs, over all shards and reasons but stale_version: those are retries, and jobs that later ones have overtaken.",
                 f"sum({rate('ranktree_jobs_rejected_total', SHARD + ',reason!=' + chr(34) + 'stale_version' + chr(34))}) / (sum({rate('ranktree_jobs_applied_total', SHARD)}) + sum({rate('ranktree_jobs_rejected_total', SHARD)}))",
                 "percentunit", steps=steps((0.001, YELLOW), (0.01, RED))),
            stat("Publish to visible, p99", "From a message's timestamp to readers seeing it.",
                 f"histogram_quantile(0.99, sum by (le) ({rate('ranktree_publish_to_visible_seconds_bucket', SHARD)}))", "s", steps=SLOW),
            stat("Furthest behind", "Messages that the shard which is furthest behind has not applied.",
                 f"max(ranktree_stream_lag_messages{{{SHARD}}})", "locale", steps=steps((1_000, YELLOW), (10_000, RED))),
        ]),
        ("Jobs", [
            series("Jobs applied", "By shard.", [(f"sum by (instance, shard) ({rate('ranktree_jobs_applied_total', SHARD)})", "{{instance}} shard {{shard}}")], JOBS, stack=True),
            series("Jobs rejected, by reason", "stale_version is a retry, or a job that a later one of its member has overtaken: an incr is not added then. Anything else is a publisher's mistake.",
                   [(f"sum by (reason) ({rate('ranktree_jobs_rejected_total', SHARD)})", "{{reason}}")], JOBS, stack=True),
            series("Jobs in a batch", "Batches size themselves: small while the writer keeps up, up to a thousand when it does not.",
                   [(quantile(0.5, "ranktree_batch_jobs", SHARD, "instance"), "{{instance}} p50"),
                    (quantile(0.99, "ranktree_batch_jobs", SHARD, "instance"), "{{instance}} p99"),
                    (mean("ranktree_batch_jobs", SHARD, "instance"), "{{instance}} mean")], "locale"),
            series("How busy each writer is", "Share of its time that a shard's writer spends in its verbs, waiting for the disk included. Near 100 % it is what limits, and lag grows.",
                   [(" + ".join(f"{rate(f'ranktree_{verb}_seconds_sum', SHARD)}" for verb in VERBS), "{{instance}} shard {{shard}}")],
                   "percentunit", max=1, min=0, steps=steps((0.8, YELLOW), (0.95, RED))),
        ]),
        ("Latency", [
            series("Publish to visible", "From a message's timestamp to readers seeing it, message by message. Needs the clocks of NATS and of the node to agree.",
                   [(f"histogram_quantile({q}, sum by (le) ({rate('ranktree_publish_to_visible_seconds_bucket', SHARD)}))", f"p{p}") for q, p in ((0.5, "50"), (0.99, "99"), (0.999, "99.9"))],
                   "s", steps=SLOW, log=True),
            heatmap("Publish to visible, how many", "How many messages took how long.", "ranktree_publish_to_visible_seconds", SHARD),
            series("Verbs: a batch's median", "fetch: waiting for a batch, so long when there is little to do. decode: a chunk, ahead of the writer, with NATS. plan: what changes. commit: the one write batch, synced if the queue is embedded. apply: the trees, readers told: publish is its end.",
                   [(quantile(0.5, f"ranktree_{verb}_seconds", SHARD, "instance"), "{{instance}} " + verb) for verb in ALL_VERBS], "s", 8, log=True),
            series("Verbs: a batch's 99th of a hundred", "As beside. A slow commit is the disk; a slow apply, readers that hold the lock or a starved core.",
                   [(quantile(0.99, f"ranktree_{verb}_seconds", SHARD, "instance"), "{{instance}} " + verb) for verb in ALL_VERBS], "s", 8, log=True),
            series("Verbs: time per job", "The verb's time over the jobs in its batches: what a job costs.",
                   [(f"sum by (instance) ({rate(f'ranktree_{verb}_seconds_sum', SHARD)}) / sum by (instance) ({rate('ranktree_batch_jobs_sum', SHARD)})", "{{instance}} " + verb) for verb in VERBS],
                   "s", 8, stack=True),
        ]),
        ("NATS (empty without)", [
            series("Connections up", "manage, publish and writes are one each, consume one per shard. A line below its wanted one is a connection that is down.",
                   [(f"sum by (instance, connection) (ranktree_nats_connections{{{NODE}}})", "{{instance}} {{connection}}"),
                    (f"sum by (instance, connection) (ranktree_nats_connections_wanted{{{NODE}}})", "{{instance}} {{connection}} wanted")], "none", 8),
            series("Connections lost", "Each is taken up again by itself.",
                   [(f"sum by (instance, connection) (increase(ranktree_nats_disconnects_total{{{NODE}}}[$__rate_interval]))", "{{instance}} {{connection}}")], "none", 8),
            series("Stream used", "Of the bytes that it may hold. At 100 % publishing is refused.",
                   [(f"ranktree_stream_bytes{{{SHARD}}} / ranktree_stream_bytes_max{{{SHARD}}}", "{{instance}} shard {{shard}}")], "percentunit", 8,
                   min=0, steps=steps((0.8, YELLOW), (0.95, RED))),
            series("Streams that were changed", "1: the stream is not configured as it must be, and may lose messages. The node's status names the setting.",
                   [(f"ranktree_stream_misconfigured{{{SHARD}}}", "{{instance}} shard {{shard}}")], "none", 8, min=0, steps=steps((1, RED))),
            series("Messages in the stream", "Applied ones included: they go once a checkpoint holds them, less what --nats-keep keeps.",
                   [(f"ranktree_stream_messages{{{SHARD}}}", "{{instance}} shard {{shard}}")], "locale", 8),
            series("Messages purged", "By this node, because a checkpoint holds them. Early ones were within the duplicate window, and gave way because the stream was filling up.",
                   [(rate("ranktree_stream_purged_messages_total", SHARD), "{{instance}} shard {{shard}}"),
                    (rate("ranktree_stream_purged_early_messages_total", SHARD), "{{instance}} shard {{shard}} early")], "suffix:msg/s", 8),
            series("Requests to the write service", "By class of the answer's status: 4xx are the game services' mistakes, 5xx say that the node or NATS could not take them. And the jobs that were taken.",
                   [(f"sum by (instance, class) ({rate('ranktree_write_requests_total', SHARD)})", "{{instance}} {{class}}"),
                    (f"sum by (instance) ({rate('ranktree_write_jobs_total', SHARD)})", "{{instance}} jobs")], "reqps", 8),
            series("Time of requests to the write service", "From a request's arrival at its node to its answer: its message is stored and applied meanwhile.",
                   [(quantile(q, "ranktree_write_seconds", SHARD, "instance"), "{{instance}} p" + p) for q, p in ((0.5, "50"), (0.99, "99"))], "s", 8, log=True),
            series("Requests that share a message", "Of the write service and over HTTP. The more there are, the fewer syncs each takes.",
                   [(mean("ranktree_message_requests", SHARD, "instance"), "{{instance}} mean"),
                    (quantile(0.99, "ranktree_message_requests", SHARD, "instance"), "{{instance}} p99")], "locale", 8),
        ]),
    ],
    ["job", "instance", "shard"],
)

READ_ROUTES = NODE + f',route=~"{READS}"'
READS_BOARD = dashboard(
    "ranktree-reads", "ranktree / Reads", "Requests over HTTP: how many, how fast, and what went wrong.",
    [
        ("At a glance", [
            stat("Requests", "Over all routes; probes and metrics apart.", f"sum({rate('ranktree_http_responses_total', ROUTE)})", "reqps", steps=steps(base=BLUE)),
            stat("Answers 5xx", "Share of all answers: overload, a shard that cannot be written to, a failure.",
                 f"sum({rate('ranktree_http_responses_total', ROUTE + ',class=' + chr(34) + '5xx' + chr(34))}) / sum({rate('ranktree_http_responses_total', ROUTE)})",
                 "percentunit", steps=steps((0.001, YELLOW), (0.01, RED))),
            stat("Reads, p99", "Within the engine: shards held and metadata fetched.",
                 f"histogram_quantile(0.99, sum by (le) ({rate('ranktree_read_seconds_bucket', ROUTE)}))", "s", steps=steps((0.01, YELLOW), (0.05, RED))),
            stat("Requests shed", "Turned away with 503 and Retry-After, because too many were in work or connected.",
                 f"sum({rate('ranktree_http_requests_shed_total', NODE)})", "reqps", steps=steps((0.001, RED))),
        ]),
        ("Rate", [
            series("Requests, by route", "As the service names its routes.", [(f"sum by (route) ({rate('ranktree_http_responses_total', ROUTE)}) > 0", "{{route}}")], "reqps", stack=True),
            series("Answers, by class of status", "4xx are clients' mistakes and unknown members, 409 rejected jobs included. 5xx are ours.",
                   [(f"sum by (class) ({rate('ranktree_http_responses_total', ROUTE)})", "{{class}}")], "reqps", stack=True,
                   overrides=[{"matcher": {"id": "byName", "options": name}, "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": color}}]}
                              for name, color in (("2xx", GREEN), ("3xx", BLUE), ("4xx", YELLOW), ("5xx", RED))]),
        ]),
        ("Latency", [
            series("Requests: median, by route", "From a request's arrival to its answer. Writes with wait=applied wait for their commit.",
                   [(f"{quantile(0.5, 'ranktree_http_request_seconds', ROUTE, 'route')} > 0", "{{route}}")], "s", log=True),
            series("Requests: 99th of a hundred, by route", "As beside.",
                   [(f"{quantile(0.99, 'ranktree_http_request_seconds', ROUTE, 'route')} > 0", "{{route}}")], "s", log=True, steps=SLOW),
            series("Reads: median, by route", "The engine's part: shards held and metadata fetched.",
                   [(f"{quantile(0.5, 'ranktree_read_seconds', ROUTE, 'route')} > 0", "{{route}}")], "s", 8, log=True),
            series("Reads: 99th of a hundred, by route", "As beside. Much above the median, readers wait for writers' steps, for the disk, or for a core.",
                   [(f"{quantile(0.99, 'ranktree_read_seconds', ROUTE, 'route')} > 0", "{{route}}")], "s", 8, log=True),
            series("Requests over reads", "Mean time of a request that is not spent in the engine: reading the request, writing JSON, waiting for a core.",
                   [(f"(({mean('ranktree_http_request_seconds', READ_ROUTES, 'route')}) - ({mean('ranktree_read_seconds', READ_ROUTES, 'route')})) > 0", "{{route}}")], "s", 8),
            heatmap("Requests, how many took how long", "The routes that are chosen above.", "ranktree_http_request_seconds", ROUTE),
            heatmap("Reads, how many took how long", "The routes that are chosen above.", "ranktree_read_seconds", ROUTE),
        ]),
        ("The lock of a shard's state", [
            series("Longest hold, by purpose", "As far as the buckets tell: the bound above it. A read holds all shards still, so that one long hold keeps every read waiting. Of the reads, one in 17 is timed.",
                   [(f"{quantile(1, 'ranktree_state_lock_held_seconds', NODE, 'purpose')} > 0", "{{purpose}}")], "s", 8, log=True, steps=steps((0.001, RED))),
            series("Longest wait, by purpose", "As far as the buckets tell. For the lock alone, where it was not to be had at once; a machine without a free core makes waits long, too.",
                   [(quantile(1, 'ranktree_state_lock_wait_seconds', NODE, 'purpose'), "{{purpose}}")], "s", 8, log=True, steps=steps((0.002, RED))),
            series("Time held, by purpose", "Seconds in a second, over all shards; of reads, a seventeenth. Those that only look (read, plan, warm, gauges, boards) hold it beside one another.",
                   [(f"sum by (purpose) ({rate('ranktree_state_lock_held_seconds_sum', NODE)})", "{{purpose}}")], "none", 8, stack=True),
        ]),
        ("Shards and errors", [
            series("Shards per read", "Every read of a board asks all shards, and adds up.", [(f"({mean('ranktree_read_shards', READ_ROUTES, 'route')}) > 0", "{{route}}")], "none", 8),
            series("Answers 4xx, by route", "Unknown members and boards, bad parameters, rejected jobs.",
                   [(f"sum by (route) ({rate('ranktree_http_responses_total', ROUTE + ',class=' + chr(34) + '4xx' + chr(34))}) > 0", "{{route}}")], "reqps", 8),
            series("Answers 5xx and requests shed", "Overload, a shard that cannot be written to, a failure of ours.",
                   [(f"sum by (instance) ({rate('ranktree_http_responses_total', ROUTE + ',class=' + chr(34) + '5xx' + chr(34))})", "{{instance}} 5xx"),
                    (rate("ranktree_http_requests_shed_total", NODE), "{{instance}} shed")], "reqps", 8),
        ]),
        ("Watched boards", [
            series("Watchers", "Clients that watch a board (GET /v1/boards/{board}/live), by node. Each keeps a connection.",
                   [(f"ranktree_live_watchers{{{NODE}}}", "{{instance}}")], "none", 8),
            series("Events and computations", "Events sent, by kind, and states computed: once for all who watch the same board, window and rate, and none for a board that does not change.",
                   [(f"sum by (kind) ({rate('ranktree_live_events_total', NODE)})", "{{kind}}"), (f"sum({rate('ranktree_live_computations_total', NODE)})", "computed")], "suffix:/s", 8),
            series("Passed over, refused, ended", "coalesced: states that a slow watcher was sent together with later ones. limit: --max-watchers or --max-watchers-per-client. token: it was taken back. gone: the board or the instance was dropped.",
                   [(f"sum({rate('ranktree_live_coalesced_total', NODE)})", "coalesced"), (f"sum by (reason) ({rate('ranktree_live_dropped_total', NODE)})", "{{reason}}")], "suffix:/s", 8),
        ]),
        ("Connections", [
            series("Connections open", "By node, those without a request included. Beyond --max-connections, 64 spare ones are answered for two seconds, and more are closed.",
                   [(f"ranktree_http_connections{{{NODE}}}", "{{instance}}")], "none", 8),
            series("Connections ended or turned away", "over_limit, refused: there were too many. slow_header, slow_reader: the client took too long. long_heads: the heads of all requests took too much memory. left: it went without its answer. handshake: it does not speak TLS as we do. idle: it asked nothing for long, which is harmless.",
                   [(f"sum by (reason) ({rate('ranktree_http_connections_ended_total', NODE)})", "{{reason}}")], "suffix:conn/s", 8),
            series("Requests refused for who sent them", "401 and 403, by reason: no token, one that is not known, one that does not allow it. The log names token and client, a line in ten seconds.",
                   [(f"sum by (reason) ({rate('ranktree_http_unauthorized_total', NODE)})", "{{reason}}")], "reqps", 8),
        ]),
        ("Redis' protocol (empty without --redis-listen)", [
            series("Commands, by name", "Refused ones included.",
                   [(f"sum by (command) ({rate('ranktree_redis_command_seconds_count', NODE)}) > 0", "{{command}}")], "reqps", 8, stack=True),
            series("Commands: 99th of a hundred", "From a command to its reply. Writes wait for their commit, and those of a pipeline for one another.",
                   [(f"{quantile(0.99, 'ranktree_redis_command_seconds', NODE, 'command')} > 0", "{{command}}")], "s", 8, log=True, steps=SLOW),
            series("Commands refused", "refused: wrong arguments, a token that does not allow it, a shard that takes no writes. not here: commands of Redis that ranktree has not.",
                   [(f"sum by (command) ({rate('ranktree_redis_command_errors_total', NODE)}) > 0", "{{command}} refused"),
                    (f"sum by (command) ({rate('ranktree_redis_unknown_commands_total', NODE)}) > 0", "{{command}} not here")], "reqps", 8),
            series("Connections open ", "By node. They count with those of HTTP towards --max-connections.",
                   [(f"ranktree_redis_connections{{{NODE}}}", "{{instance}}")], "none", 8),
            series("Connections ended or turned away ", "over_limit, refused: there were too many. slow_request, slow_reader: the client took too long. protocol: what it sent is no request. http: a page in a browser, or a scanner. handshake: it does not speak TLS as we do.",
                   [(f"sum by (reason) ({rate('ranktree_redis_connections_ended_total', NODE)})", "{{reason}}")], "suffix:conn/s", 8),
        ]),
    ],
    ["job", "instance", "route"],
)

STORAGE = dashboard(
    "ranktree-storage", "ranktree / Storage", "RocksDB, checkpoints, and the disk below them.",
    [
        ("At a glance", [
            stat("Disk free", "Of the file system that holds the data directory.",
                 f"min(ranktree_data_dir_free_bytes{{{NODE}}} / ranktree_data_dir_size_bytes{{{NODE}}})", "percentunit",
                 steps=[{"color": RED, "value": None}, {"color": YELLOW, "value": 0.1}, {"color": GREEN, "value": 0.2}]),
            stat("Commits failed", "In the last hour. After each the store is reopened, and writes are refused until that works.",
                 f"sum(increase(ranktree_commit_failures_total{{{SHARD}}}[1h]))", "none", decimals=0, steps=steps((1, RED))),
            stat("Oldest checkpoint", "Of a shard that has changes which are in none. A start replays them, and NATS keeps them.",
                 f"max((time() - ranktree_checkpoint_timestamp_seconds{{{SHARD}}}) and (ranktree_checkpoint_pending_changes{{{SHARD}}} > 0)) or vector(0)", "s",
                 steps=steps((900, YELLOW), (1_800, RED))),
            stat("RocksDB lets no write through", "It stalls while it has too much to compact, or after an error.",
                 f"max(ranktree_rocksdb_writes_stopped{{{SHARD}}})", "none", mappings=YES, steps=steps((1, RED))),
        ]),
        ("Disk", [
            series("Disk free", "In bytes. Full, commits fail: the shard refuses writes and reopens until there is room.",
                   [(f"ranktree_data_dir_free_bytes{{{NODE}}}", "{{instance}} free"), (f"ranktree_data_dir_size_bytes{{{NODE}}}", "{{instance}} size")], "bytes", 8),
            series("RocksDB on disk", "Live files: the last checkpoints and the log since.", [(f"ranktree_rocksdb_sst_bytes{{{SHARD}}}", "{{instance}} shard {{shard}}")], "bytes", 8, stack=True),
            series("Commit, 99th of a hundred", "The one write batch per drained batch, with its sync if the queue is embedded.",
                   [(quantile(0.99, "ranktree_commit_seconds", SHARD, "instance, shard"), "{{instance}} shard {{shard}}")], "s", 8, steps=SLOW),
        ]),
        ("Checkpoints", [
            series("Age", "Since the last one was completed, or the shard was loaded. A shard without changes makes none.",
                   [(f"time() - ranktree_checkpoint_timestamp_seconds{{{SHARD}}}", "{{instance}} shard {{shard}}")], "s", 8, steps=steps((1_800, RED))),
            series("Time ahead of the clock", "Above 300 s a clock is or was wrong: times of writes are wrong until the clock gets there.",
                   [(f"ranktree_time_ahead_seconds{{{SHARD}}}", "{{instance}} shard {{shard}}")], "s", 8, min=0, steps=steps((300, RED))),
            series("Changes in none yet", "A start replays them, at about a microsecond each.", [(f"ranktree_checkpoint_pending_changes{{{SHARD}}}", "{{instance}} shard {{shard}}")], "locale", 8),
            series("Messages behind", "Applied sequence less the checkpoint's: what NATS must keep for a start.",
                   [(f"ranktree_applied_sequence{{{SHARD}}} - ranktree_checkpoint_sequence{{{SHARD}}}", "{{instance}} shard {{shard}}")], "locale", 8),
            series("Duration", "Mean of those completed in the interval. In the background; the writer goes on.",
                   [(f"increase(ranktree_checkpoint_seconds_sum{{{SHARD}}}[15m]) / increase(ranktree_checkpoint_seconds_count{{{SHARD}}}[15m])", "{{instance}} shard {{shard}}")], "s", 8),
            series("Size of the last", "What had changed since the one before.", [(f"ranktree_checkpoint_bytes{{{SHARD}}}", "{{instance}} shard {{shard}}")], "bytes", 8),
            series("Completed and failed", "In a quarter of an hour. Failed ones are tried again.",
                   [(f"sum by (instance) (increase(ranktree_checkpoint_seconds_count{{{SHARD}}}[15m]))", "{{instance}} completed"),
                    (f"sum by (instance) (increase(ranktree_checkpoint_failures_total{{{SHARD}}}[15m]))", "{{instance}} failed")], "none"),
            series("Pages in the last", "Leaves of trees, members and dictionary.", [(f"ranktree_checkpoint_pages{{{SHARD}}}", "{{instance}} shard {{shard}}")], "locale"),
        ]),
        ("RocksDB", [
            series("Memtables", "Written, and not yet in a file.", [(f"ranktree_rocksdb_memtable_bytes{{{SHARD}}}", "{{instance}} shard {{shard}}")], "bytes", 8),
            series("Block cache", "One for all shards: blocks of metadata read from disk.",
                   [(f"ranktree_rocksdb_block_cache_bytes{{{NODE}}}", "{{instance}} used"), (f"ranktree_rocksdb_block_cache_capacity_bytes{{{NODE}}}", "{{instance}} capacity")], "bytes", 8),
            series("Indexes and filters", "Of open files, outside of the block cache.", [(f"ranktree_rocksdb_table_readers_bytes{{{SHARD}}}", "{{instance}} shard {{shard}}")], "bytes", 8),
            series("To be compacted", "An estimate. Growing without end, the disk does not keep up.", [(f"ranktree_rocksdb_pending_compaction_bytes{{{SHARD}}}", "{{instance}} shard {{shard}}")], "bytes", 6),
            series("Files on level 0", "Many of them slow writes down, then stop them.", [(f"ranktree_rocksdb_level0_files{{{SHARD}}}", "{{instance}} shard {{shard}}")], "locale", 6),
            series("Under way", "Compactions and flushes, over all shards.",
                   [(f"sum by (instance) (ranktree_rocksdb_running_compactions{{{SHARD}}})", "{{instance}} compactions"),
                    (f"sum by (instance) (ranktree_rocksdb_running_flushes{{{SHARD}}})", "{{instance}} flushes")], "none", 6),
            series("Background errors", "Since the store was opened. Anything but 0 is a damaged or full disk.", [(f"ranktree_rocksdb_background_errors{{{SHARD}}}", "{{instance}} shard {{shard}}")], "none", 6),
        ]),
    ],
    ["job", "instance", "shard"],
)

PROCESS = dashboard(
    "ranktree-process", "ranktree / Process", "What the process takes from its machine.",
    [
        ("At a glance", [
            stat("Version", "That each node runs.", f"ranktree_build_info{{{NODE}}}", "none", "{{version}}", text="name", steps=steps(base=BLUE)),
            stat("Up for", "Since the process started; the youngest.", f"min(time() - process_start_time_seconds{{{NODE}}})", "s", steps=steps(base=BLUE)),
            stat("Cores in use", "Over all nodes.", f"sum({rate('process_cpu_seconds_total', NODE)})", "none", decimals=2, steps=steps(base=BLUE)),
            stat("Memory", "Resident, over all nodes.", f"sum(process_resident_memory_bytes{{{NODE}}})", "bytes", steps=steps(base=BLUE)),
        ]),
        ("Machine", [
            series("Cores in use", "A writer per shard, checkpoints and compactions in the background, and whoever serves requests.",
                   [(rate("process_cpu_seconds_total", NODE), "{{instance}}")], "none"),
            series("Memory", "Resident; of it what trees and the member index hold, and the block cache.",
                   [(f"process_resident_memory_bytes{{{NODE}}}", "{{instance}} resident"),
                    (f"sum by (instance) (ranktree_tree_bytes{{{NODE}}})", "{{instance}} trees and index"),
                    (f"ranktree_rocksdb_block_cache_bytes{{{NODE}}}", "{{instance}} block cache")], "bytes"),
            series("Memory per member", "Of trees and index: some 60 bytes on one board with ids of 12 bytes, more on more boards. Means little below ten thousand members.",
                   [(f"sum by (instance) (ranktree_tree_bytes{{{NODE}}}) / sum by (instance) (ranktree_members{{{NODE}}})", "{{instance}}")], "bytes", 8),
            series("Open files", "Sockets included. At its limit the process can neither accept connections nor open files.",
                   [(f"process_open_fds{{{NODE}}} / process_max_fds{{{NODE}}}", "{{instance}}")], "percentunit", 8, min=0, steps=steps((0.8, RED))),
            series("Threads", "Of the process.", [(f"process_threads{{{NODE}}}", "{{instance}}")], "none", 8),
        ]),
        ("Watching itself", [
            series("Scrape: how long", "What Prometheus waits for the metrics.", [(f"scrape_duration_seconds{{{NODE}}}", "{{instance}}")], "s", 8),
            series("Scrape: series", "Bounded: by shards, routes and reasons, never by members or boards.", [(f"scrape_samples_scraped{{{NODE}}}", "{{instance}}")], "locale", 8),
            series("Scrape: up", "0 when Prometheus got no answer.", [(f"up{{{NODE}}}", "{{instance}}")], "none", 8, min=0, max=1),
        ]),
    ],
    ["job", "instance"],
)


def main():
    stale = []
    for board in (SHARDS, INGEST, READS_BOARD, STORAGE, PROCESS):
        path = FOLDER / (board["uid"] + ".json")
        text = json.dumps(board, indent=2, ensure_ascii=False) + "\n"
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.name)
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    if "--check" in sys.argv and stale:
        sys.exit("not up to date, run python3 dashboards/generate.py: " + ", ".join(stale))


main()
