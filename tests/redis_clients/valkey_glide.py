"""Valkey GLIDE for Python, by its own defaults: run.py starts it. Arguments: the port and a token."""

import asyncio
import sys

import glide

PORT, TOKEN = int(sys.argv[1]), sys.argv[2]


def check(got, expected):
    if got != expected:
        raise SystemExit(f"got {got!r}, expected {expected!r}")


async def connect(password, **options):
    return await glide.GlideClient.create(glide.GlideClientConfiguration(
        [glide.NodeAddress("127.0.0.1", PORT)], credentials=glide.ServerCredentials(password), **options))


async def plays(client):
    await client.delete(["arena"])
    check(await client.zadd("arena", {"ann": 30, "bob": 10.5, "cid": 20}), 3)
    best = await client.zrange_withscores("arena", glide.RangeByIndex(0, -1), reverse=True)
    check(list(best.items()), [(b"ann", 30.0), (b"cid", 20.0), (b"bob", 10.5)])
    check(await client.zrevrank("arena", "cid"), 1)
    check(await client.zrank("arena", "nobody"), None)
    check(await client.zincrby("arena", 2.25, "bob"), 12.75)
    check(await client.zpopmin("arena"), {b"bob": 12.75})
    check(await client.zcard("arena"), 2)


async def pipelines(client):
    await client.delete(["arena"])
    added = [client.zadd("arena", {f"p{number}": number}) for number in range(1000)]
    check(await asyncio.gather(*added), [1] * 1000)
    for atomic in (True, False):
        batch = glide.Batch(is_atomic=atomic)
        batch.zincrby("arena", 1, "p0").zrem("arena", ["nobody"]).zcard("arena")
        check((await client.exec(batch, raise_on_error=True))[1:], [0, 1000])


async def comes_back(client):
    await client.zadd("kept", {"ann": 1})
    print("restart", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    for _ in range(100):
        # What is sent before it notices fails, and is not sent again.
        try:
            check(await client.zscore("kept", "ann"), 1.0)
            return
        except glide.GlideError:
            await asyncio.sleep(0.1)
    raise SystemExit("the client did not come back")


async def main():
    for options in ({}, {"protocol": glide.ProtocolVersion.RESP2}):
        client = await connect(TOKEN, **options)
        await plays(client)
        await pipelines(client)
        await comes_back(client)
        await client.close()
    try:
        await connect("wrong")
    except glide.ClosingError:
        return
    raise SystemExit("a wrong token was taken")


asyncio.run(main())
print("GLIDE works")
