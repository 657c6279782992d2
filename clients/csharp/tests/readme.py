#!/usr/bin/env python3
"""Writes a test for each block of the README's code, which runs it as it is."""

import re
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
blocks = re.findall(r"^```csharp\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
if len(blocks) < 6:
    raise SystemExit(f"the README has {len(blocks)} blocks")
print("using System; using System.Collections.Generic; using System.Linq; using System.Threading.Tasks;")
print("namespace Ranktree.Tests { internal sealed class ReadmeTests {")
print("public async Task TheCodeOfTheReadmeRuns() {")
print("using (var world = await PublisherTests.World.StartAsync())")
print("using (var plain = new PlainNats(world.Nats.Port)) {")
for number in range(len(blocks)):
    print(f"await Block{number}(world, plain);")
print("} }")
for number, block in enumerate(blocks):
    code = block.replace('"http://127.0.0.1:8080"', "world.Node.Url")
    # The adapter cannot be compiled here.
    code = re.sub(r"new NatsRequests\([^)]*\)", "plain", code)
    own = "" if "new RanktreeClient" in code else "var client = world.Client;"
    print(f"private static async Task Block{number}(PublisherTests.World world, INatsRequests plain) {{ {own}")
    print(f"{code}\nawait Task.Yield(); }}")
print("} }")
