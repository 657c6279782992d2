#!/usr/bin/env python3
"""Checks the chart, and says what it did not check. `make helm-check` runs it with what it needs.

files      what is copied from elsewhere in the repository is current; `--write` copies it
lint       helm lint --strict, with the default values and with others
template   helm template; what must be refused is, in words
traces     the collector's values become the variables that the service reads
schemas    every object against the schemas of the oldest and the newest Kubernetes, strictly
rules      promtool on the PrometheusRules, if it is there
placement  the start command gives every shard as many owners as there are copies, for every size
images     a digest decides what runs, where one is given
reach      of NATS, other pods reach the port for clients alone
nats       real nats-servers with the rendered configuration, if there is one: the three of a cluster find each
           other, and take nobody for a server who does not know the password; the probes' command asks them
pods       real nodes, started by the rendered command, serve, and are scaled from 3 to 4 and to 2 under
           writes: needs the program RANKTREE_BIN
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from chart import CHART, ROOT, Failed, helm, nats_program, node_container, not_checked, one, render, run, say
from nats_servers import NatsServers
from pods import Pods

COPIED = {
    "dashboards": ROOT / "dashboards" / "grafana",
    "rules": ROOT / "dashboards" / "prometheus" / "rules",
    "charts/nats/files": ROOT / "deploy" / "nats",
}
KUBERNETES = ["1.25", "1.37"]
DIGEST = "sha256:" + 8 * "01234567"

# Values that are fine: each is linted, rendered and held against the schemas.
FINE = {
    "defaults": {},
    "everything on": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRules": {"enabled": True},
        "dashboards": {"enabled": True, "annotations": {"folder": "games"}},
        "antiAffinity": "hard",
        "tls": {"existingSecret": "ranktree-tls"},
        "settings": {"checkpoint_seconds": 60, "no_auto_create": True},
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "podAnnotations": {"a": "b"},
        "podLabels": {"team": "games"},
        "nodeSelector": {"disk": "nvme"},
        "tolerations": [{"key": "games", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "registry"}],
        "priorityClassName": "high",
        "storage": {"storageClass": "fast"},
        "service": {"type": "LoadBalancer", "annotations": {"a": "b"}},
        "serviceAccount": {"annotations": {"a": "b"}},
        "image": {"digest": DIGEST},
        "traces": {
            "endpoint": "https://collector:4318",
            "headersSecret": "collector",
            "caSecret": "authority",
            "sampler": "traceidratio",
            "ratio": 0.25,
        },
        "nats": {
            "antiAffinity": "hard",
            "storage": {"storageClass": "fast"},
            "nodeSelector": {"disk": "nvme"},
            "image": {"digest": DIGEST},
        },
    },
    "one node, nothing asked": {
        "replicas": 1,
        "copies": 1,
        "shards": 1,
        "antiAffinity": "off",
        "auth": {"insecure": True},
        "podDisruptionBudget": {"enabled": False},
        "serviceMonitor": {"enabled": True},
        "nats": {"replicas": 1, "antiAffinity": "off"},
    },
    "NATS that is there, by password": {
        "nats": {"enabled": False},
        "externalNats": {
            "url": "tls://nats:4222",
            "user": "node",
            "passwordSecret": "nats",
            "passwordKey": "p",
        },
        "auth": {"existingSecret": "tokens"},
        "own": ["0-3", "2-5", "0-1,4-5"],
    },
    "NATS that is there, by credentials": {
        "nats": {"enabled": False},
        "externalNats": {"url": "nats://a:4222,nats://b:4222", "credsSecret": "creds"},
        "fullnameOverride": "boards",
        "replicas": 4,
        "alsoReplicas": 3,
    },
}
# Values that are refused, and a part of what is said.
WRONG = [
    ({"replicas": 0}, "replicas"),
    ({"replica": 3}, "replica"),
    ({"nats": {"replicas": 2}}, "must be one of"),
    ({"nats": {"image": {"digest": "latest"}}}, "digest"),
    ({"image": {"digest": "sha256:0123"}}, "digest"),
    ({"settings": {"own": "0"}}, "settings"),
    ({"copies": 4}, "copies is 4, but there are 3 nodes"),
    ({"own": ["0-5"]}, "own names the shards of 1 nodes, but there are 3"),
    ({"own": ["0-1", "2-3", "4-5"], "alsoReplicas": 4}, "alsoReplicas is for the rule"),
    ({"own": ["0;1", "2", "3"]}, "own"),
    ({"nats": {"enabled": False}}, "set externalNats.url"),
    ({"nats": {"enabled": False}, "externalNats": {"url": "nats://a", "user": "node"}}, "passwordSecret"),
    ({"auth": {"insecure": True, "existingSecret": "a"}}, "contradict"),
    ({"auth": {"existingSecret": "a"}, "serviceMonitor": {"enabled": True}}, "serviceMonitor.tokenSecret"),
    ({"settings": {"prefix": "games"}}, "prefix"),
    ({"settings": {"otlp_endpoint": "http://a"}}, "settings"),
    ({"traces": {"endpoint": "collector:4318"}}, "traces"),
    ({"traces": {"ratio": 2}}, "traces"),
    ({"traces": {"headersSecret": "a"}}, "set traces.endpoint"),
]


def check_files(write: bool) -> None:
    stale = []
    for folder, source in COPIED.items():
        names = (
            ["ranktree.conf"]
            if folder.startswith("charts")
            else sorted(path.name for path in source.iterdir())
        )
        kept = CHART / folder
        for name in names:
            if not (kept / name).exists() or (kept / name).read_bytes() != (source / name).read_bytes():
                stale.append(f"{folder}/{name}")
                if write:
                    shutil.copyfile(source / name, kept / name)
        for path in kept.iterdir():
            if path.name not in names:
                stale.append(f"{folder}/{path.name}")
                if write:
                    path.unlink()
    if write:
        say(f"copied: {', '.join(stale) or 'nothing, all was current'}")
    elif stale:
        raise Failed(f"not current: {', '.join(stale)}; run make helm-files")
    else:
        say("files: current")


def check_lint() -> None:
    for name, values in FINE.items():
        done = helm(["lint", "--strict", str(CHART)], values)
        if done.returncode != 0:
            raise Failed(f"{name}: {done.stdout}{done.stderr}")
    done = run([os.environ.get("HELM", "helm"), "lint", "--strict", str(CHART / "charts" / "nats")])
    if done.returncode != 0:
        raise Failed(f"charts/nats: {done.stdout}{done.stderr}")
    say(f"lint: the chart with {len(FINE)} sets of values, and charts/nats")


def check_template() -> None:
    for values, words in WRONG:
        done = helm(["template", "rel", str(CHART)], values)
        if done.returncode == 0 or words not in done.stderr:
            raise Failed(f"{values} should be refused with {words!r}: {done.stderr or 'it was not'}")
    # The names of settings are those of the program.
    program = os.environ.get("RANKTREE_BIN")
    if program:
        known = run([program, "serve", "--help"]).stdout
        for values in FINE.values():
            for each in render(values):
                for container in (
                    each["spec"]["template"]["spec"]["containers"] if each["kind"] == "StatefulSet" else []
                ):
                    for variable in container["env"]:
                        name = variable["name"]
                        ours = name.startswith(("RANKTREE_", "OTEL_"))
                        if container["name"] == "ranktree" and ours and name not in known:
                            raise Failed(f"{name} is no variable of ranktree serve")
    say(f"template: {len(WRONG)} wrong sets of values are refused in words")


def check_traces() -> None:
    """Nothing is said of traces without an endpoint; with one, secrets stay in their Secrets."""
    variables = [each["name"] for each in node_container(render({}))["env"]]
    if any(name.startswith("OTEL_") for name in variables):
        raise Failed(f"traces without an endpoint: {variables}")
    container = node_container(render(FINE["everything on"]))
    found = {each["name"]: each for each in container["env"] if each["name"].startswith("OTEL_")}
    expected = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": {"value": "https://collector:4318"},
        "OTEL_EXPORTER_OTLP_HEADERS": {"valueFrom": {"secretKeyRef": {"name": "collector", "key": "headers"}}},
        "OTEL_EXPORTER_OTLP_CERTIFICATE": {"value": "/etc/ranktree/traces/ca.crt"},
        "OTEL_TRACES_SAMPLER": {"value": "traceidratio"},
        "OTEL_TRACES_SAMPLER_ARG": {"value": "0.25"},
    }
    if found != {name: {"name": name, **value} for name, value in expected.items()}:
        raise Failed(f"variables of traces: {found}")
    if "/etc/ranktree/traces" not in [mount["mountPath"] for mount in container["volumeMounts"]]:
        raise Failed("the collector's authority is not mounted")
    say("traces: off by default; an endpoint, its headers and its authority reach the node")


def check_schemas() -> None:
    import kubernetes_validate

    count, without = 0, set()
    for name, values in FINE.items():
        for each in render(values):
            if each["apiVersion"].startswith("monitoring.coreos.com/"):
                without.add(each["kind"])
                continue
            for version in KUBERNETES:
                try:
                    kubernetes_validate.validate(each, version, strict=True)
                except kubernetes_validate.ValidationError as error:
                    where = f"{name}: {each['kind']} {each['metadata']['name']} for {version}"
                    raise Failed(f"{where}: {'.'.join(map(str, error.path))}: {error.message}") from None
            count += 1
    say(f"schemas: {count} objects are valid for Kubernetes {' and '.join(KUBERNETES)}")
    say(f"schemas: NOT checked, because their schemas are not there: {', '.join(sorted(without))}")


def check_rules() -> None:
    promtool = (
        os.environ.get("PROMTOOL") or shutil.which("promtool") or str(ROOT / ".tools" / "bin" / "promtool")
    )
    if not os.access(promtool, os.X_OK):
        return not_checked("rules", "promtool", "make prometheus")
    import yaml

    rules = [each for each in render(FINE["everything on"]) if each["kind"] == "PrometheusRule"]
    with tempfile.TemporaryDirectory() as folder:
        for each in rules:
            path = Path(folder) / f"{each['metadata']['name']}.yml"
            path.write_text(yaml.safe_dump(each["spec"]))
            done = run([promtool, "check", "rules", str(path)])
            if done.returncode != 0:
                raise Failed(done.stdout + done.stderr)
    say(f"rules: {len(rules)} PrometheusRules are valid")


def check_placement() -> None:
    """Runs the start command with a program that only says how it was called."""
    container = node_container(render({}))
    shards_of_pod: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        stub = Path(folder) / "ranktree"
        stub.write_text('#!/bin/sh\necho "$@"\n')
        stub.chmod(0o755)

        def own(pod: int, shards: int, replicas: int, copies: int, also: int = 0, by_hand: str = "") -> set:
            key = (pod, shards, replicas, copies, also, by_hand)
            if key not in shards_of_pod:
                variables = {
                    "HOSTNAME": f"rel-ranktree-{pod}",
                    "SHARDS": str(shards),
                    "REPLICAS": str(replicas),
                    "COPIES": str(copies),
                    "ALSO_REPLICAS": str(also),
                    "OWN": by_hand,
                    "PATH": f"{folder}:{os.environ['PATH']}",
                }
                done = run([*container["command"], *container["args"]], env=variables)
                if done.returncode != 0:
                    raise Failed(f"{key}: {done.stderr}")
                words = done.stdout.splitlines()[-1].split()
                found = words[words.index("--own") + 1]
                shards_of_pod[key] = set() if found == "none" else set(found.split(","))
            return shards_of_pod[key]

        sizes = [(1, 1), (2, 3), (3, 6), (3, 5), (4, 6), (5, 16), (12, 16), (7, 3)]
        for replicas, shards in sizes:
            for copies in {1, min(2, replicas), min(3, replicas)}:
                owners = [shard for pod in range(replicas) for shard in own(pod, shards, replicas, copies)]
                expected = sorted([str(shard) for shard in range(shards)] * copies)
                if sorted(owners) != expected:
                    raise Failed(f"{replicas} nodes, {shards} shards, {copies} copies: {sorted(owners)}")
                loads = [len(own(pod, shards, replicas, copies)) for pod in range(replicas)]
                if shards >= replicas and max(loads) > 2 * copies * -(-shards // replicas):
                    raise Failed(f"{replicas} nodes, {shards} shards, {copies} copies: uneven, {loads}")
        # As docs/cluster.md advises: no two nodes own the same shards.
        three = [frozenset(own(pod, 6, 3, 2)) for pod in range(3)]
        if len(set(three)) != 3:
            raise Failed(f"two nodes own the same shards: {three}")
        # While it is scaled, a pod owns both what it did and what it will.
        for pod in range(4):
            before = own(pod, 6, 3, 2) if pod < 3 else set()
            if own(pod, 6, 4, 2, also=3) != before | own(pod, 6, 4, 2):
                raise Failed(f"pod {pod} does not own both while the nodes go from 3 to 4")
        by_hand = "0-3;2-5;0-1,4-5"
        if [own(pod, 6, 3, 2, by_hand=by_hand) for pod in (0, 2)] != [{"0-3"}, {"0-1", "4-5"}]:
            raise Failed("shards by hand")
    say(f"placement: every shard has its copies, for {len(sizes)} sizes ({len(shards_of_pod)} starts)")


def check_nats() -> None:
    program = nats_program()
    if not program:
        return not_checked("nats", "nats-server", "make nats")
    asked = 0
    for replicas in (1, 3):
        with tempfile.TemporaryDirectory() as folder:
            servers = NatsServers(Path(folder), program, render({"nats": {"replicas": replicas}}), replicas)
            try:
                servers.until_together()
                if replicas > 1:
                    servers.refuse_strangers()
                asked += servers.run_probes()
            finally:
                servers.end()
    say("nats: one server starts, three find each other and take nobody else for a server")
    if not asked:
        return not_checked("probes of nats", "wget", "install it")
    say(f"nats: {asked} probes ran")


def check_images() -> None:
    own = node_container(render({}), "rel-nats")["image"].partition("@")[2]
    if not own.startswith("sha256:"):
        raise Failed("rel-nats should be named by a digest")
    for values, digests in (({}, ("", own)), (FINE["everything on"], (DIGEST, DIGEST))):
        for name, expected in zip(("rel-ranktree", "rel-nats"), digests):
            image = node_container(render(values), name)["image"]
            if not image.partition("@")[0].count(":") or image.partition("@")[2] != expected:
                raise Failed(f"{name} runs {image}, whose digest should be {expected!r}")
    say("images: named by a tag, and by a digest where one is given")


def check_reach() -> None:
    """Monitoring asks for no password, and says who is there; whoever is taken for a server may do everything."""
    for values in FINE.values():
        objects = render(values)
        if not any(each["metadata"]["name"] == "rel-nats" for each in objects):
            continue
        text = one(objects, "ConfigMap", "rel-nats")["data"]["nats-server.conf"]
        if [line.split()[1] for line in text.splitlines() if line.startswith("http")] != ["127.0.0.1:8222"]:
            raise Failed("NATS' monitoring listens beyond its container")
        ports = {each["name"]: each["containerPort"] for each in node_container(objects, "rel-nats")["ports"]}
        if set(ports) != {"nats", "cluster"}:
            raise Failed(f"the ports of NATS are {ports}")
        for rule in one(objects, "NetworkPolicy", "rel-nats")["spec"]["ingress"]:
            open_ports = [port["port"] for port in rule["ports"]]
            if "from" not in rule and open_ports != ["nats"]:
                raise Failed(f"everybody reaches {open_ports} of NATS")
    say("reach: of NATS, other pods reach the port for clients alone")


def check_pods() -> None:
    program, nats = os.environ.get("RANKTREE_BIN"), nats_program()
    if not program or not nats:
        say("pods: NOT checked: it needs nats-server (make nats) and RANKTREE_BIN=bin/ranktree")
        return
    with tempfile.TemporaryDirectory() as folder:
        pods = Pods(Path(folder), program, nats)
        try:
            # The streams keep their messages meanwhile, so that pods that come fill their shards from there.
            # That they fetch copies where messages are purged is tested in tests/it.
            base = {"nats": {"replicas": 1}, "settings": {"checkpoint_seconds": 1, "nats_stream_mib": 64}}
            for number in range(3):
                pods.pod(number, base)
            for number in range(3):
                pods.until_ready(number)
            if pods.owners(12) != [2] * 6:
                raise Failed(f"owners of three pods: {pods.owners(12)}")
            if [pods.ask(0, "GET", "/v1/boards", token=token)[0] for token in (None, "metrics-token")] != [
                401,
                200,
            ]:
                raise Failed("tokens of the chart")
            if pods.ask(0, "PUT", "/v1/boards/arena", {}, token="metrics-token")[0] != 403:
                raise Failed("the metrics' token may write")
            if pods.ask(0, "PUT", "/v1/boards/arena", {})[0] != 201:
                raise Failed("a board")
            pods.write(0, 1)
            # From 3 to 4, as README.md says: both placements, one pod after the other, then the new one.
            score = 1
            for values in ({**base, "replicas": 4, "alsoReplicas": 3}, {**base, "replicas": 4}):
                for number in (3, 2, 1, 0):
                    pods.pod(number, values)
                    # Through a neighbour, while it is away: nobody is without an owner.
                    score += 1
                    neighbour = 1 if number == 0 else 0
                    pods.write(neighbour, score)
                    if pods.total(neighbour) != 60:
                        raise Failed("members are missing")
                    pods.until_ready(number)
            if pods.owners(12) != [2] * 6:
                raise Failed(f"owners of four pods: {pods.owners(12)}")
            for number in range(4):
                if pods.total(number) != 60:
                    raise Failed(f"members are missing on pod {number}")
            # From 4 to 2, and to one copy: pods that stay take over what the others own, before those go.
            for number in (3, 2, 1, 0):
                pods.pod(number, {**base, "replicas": 4, "alsoReplicas": 2, "copies": 1})
                pods.until_ready(number)
            pods.write(0, score + 1)
            for number in (3, 2):
                pods.stop(f"pod-{number}")
            for number in (1, 0):
                pods.pod(number, {**base, "replicas": 2, "copies": 1})
                pods.until_ready(number)
            if pods.owners(6) != [1] * 6 or pods.total(0) != 60:
                raise Failed(f"owners of two pods: {pods.owners(6)}")
            for number in range(2):
                pods.stop(f"pod-{number}")
        finally:
            pods.end()
    say(
        "pods: three nodes served, were scaled to four with every write and read answered, then to two"
    )


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument(
        "--write", action="store_true", help="copy files from elsewhere in the repository, and end"
    )
    parser.add_argument("--files", action="store_true", help="check these copies, and nothing else")
    options = parser.parse_args()
    try:
        check_files(options.write)
        if options.write or options.files:
            return 0
        check_lint()
        check_template()
        check_traces()
        check_schemas()
        check_rules()
        check_placement()
        check_images()
        check_reach()
        check_nats()
        check_pods()
    except Failed as failed:
        print(failed, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
