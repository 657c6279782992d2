"""redis-py, by its own defaults: run.py starts it. Arguments: the port and a token."""

import asyncio
import sys

import redis
import redis.asyncio

PORT, TOKEN = int(sys.argv[1]), sys.argv[2]
GAME = {"ann": 30.0, "bob": 10.5, "cid": 20.0}


def check(got, expected):
    if got != expected:
        raise SystemExit(f"got {got!r}, expected {expected!r}")


def pairs(reply):
    # A list of lists in RESP3.
    return [tuple(pair) for pair in reply]


def refused(error, words, action):
    try:
        got = action()
    except error as refusal:
        return check(words in str(refusal), True)
    raise SystemExit(f"got {got!r}, expected {error.__name__}")


def plays(client):
    client.delete("arena")
    check(client.ping(), True)
    check(client.zadd("arena", GAME), 3)
    check(client.zadd("arena", {"bob": 9}, gt=True, ch=True), 0)
    check(pairs(client.zrevrange("arena", 0, -1, withscores=True)), [("ann", 30.0), ("cid", 20.0), ("bob", 10.5)])
    check(pairs(client.zrange("arena", 15, "+inf", byscore=True, withscores=True)), [("cid", 20.0), ("ann", 30.0)])
    check(client.zrevrank("arena", "cid"), 1)
    check(client.zrank("arena", "nobody"), None)
    check(client.zscore("arena", "bob"), 10.5)
    check(client.zmscore("arena", ["bob", "nobody"]), [10.5, None])
    check(client.zincrby("arena", 2.25, "bob"), 12.75)
    check(client.zcount("arena", "(12.75", "+inf"), 2)
    check(dict(client.zscan_iter("arena")), {**GAME, "bob": 12.75})
    check(pairs(client.zpopmin("arena", 1)), [("bob", 12.75)])
    check(client.zrem("arena", "ann", "nobody"), 1)
    check(client.zcard("arena"), 1)
    check(sorted(client.scan_iter("are*")), ["arena"])


def pipelines(client):
    client.delete("arena")
    with client.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.zadd("arena", {f"p{number}": number})
            pipe.zrevrank("arena", f"p{number}")
        check(pipe.execute(), [1, 0] * 1000)
    # The default is a transaction.
    with client.pipeline() as pipe:
        check(pipe.zincrby("arena", 1, "p0").zrem("arena", "p1").zcard("arena").execute(), [1.0, 1, 999])
        refused(redis.ResponseError, "unknown command", pipe.zadd("arena", {"p0": 5}).get("arena").execute)
    check(client.zscore("arena", "p0"), 1.0)


def comes_back(client):
    client.zadd("kept", {"ann": 1})
    print("restart", flush=True)
    sys.stdin.readline()
    check(client.zscore("kept", "ann"), 1.0)


async def plays_asynchronously():
    async with redis.asyncio.Redis(port=PORT, password=TOKEN, decode_responses=True) as client:
        await client.zadd("arena", GAME)
        ranks = await asyncio.gather(*(client.zrevrank("arena", member) for member in GAME))
        check(ranks, [0, 2, 1])
        async with client.pipeline() as pipe:
            check(await pipe.zadd("arena", {"dan": 40}).zrevrank("arena", "dan").execute(), [1, 0])


for options in ({}, {"protocol": 2}, {"protocol": 3}):
    with redis.Redis(port=PORT, password=TOKEN, decode_responses=True, **options) as connected:
        plays(connected)
        pipelines(connected)
        comes_back(connected)
with redis.Redis.from_url(f"redis://game:{TOKEN}@127.0.0.1:{PORT}/0?decode_responses=True") as connected:
    plays(connected)
refused(redis.AuthenticationError, "", redis.Redis(port=PORT, password="wrong").ping)
refused(redis.AuthenticationError, "", redis.Redis(port=PORT).ping)
refused(redis.ResponseError, "unknown command", lambda: redis.Redis(port=PORT, password=TOKEN).get("arena"))
asyncio.run(plays_asynchronously())
print(f"redis-py {redis.__version__} works")
