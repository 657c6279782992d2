"""A game with made-up players, and what happens in it: what the screenshots show. Nothing of it is measured."""

import contextlib
import json
import random
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

BOARD = "arena"
PLAYERS = 20_000
BATCH = 500
KINDS = "amber bold brisk calm clever coral dusty eager fierce gentle hidden icy jolly keen lucky mellow noble quiet rapid silver".split()
ANIMALS = "badger crane dingo falcon gecko heron ibis jackal koala lynx marten newt otter puma quail raven seal tapir viper wombat".split()


def send(url, method="GET", body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"} if data else {}
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        error.msg = f"{method} {url}: {error.read().decode(errors='replace')}"
        raise


def player(number):
    """Each number has its name."""
    mixed = number * 7919 % PLAYERS
    return f"{KINDS[mixed % 20]}-{ANIMALS[mixed // 20 % 20]}-{mixed // 400 + 10}"


class World:
    def __init__(self, nodes):
        self.nodes, self.random, self.ends, self.threads = nodes, random.Random(7), threading.Event(), []

    def begin(self):
        """Defines the board, gives everybody a score of yesterday, and lets today's games begin."""
        node = self.nodes[0]
        board = {"keys": [{"name": "points"}], "policy": "incr", "ties": "first", "windows": ["all", "day", "week"]}
        send(f"{node}/v1/boards/{BOARD}", "PUT", board)
        race = {"keys": [{"name": "laps"}, {"name": "time_ms", "order": "asc"}], "policy": "best", "windows": ["all", "week"]}
        send(f"{node}/v1/boards/endurance", "PUT", race)
        yesterday = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 86_400))
        for first in range(0, PLAYERS, BATCH):
            jobs = [
                {"board": BOARD, "member": player(number), "op": "incr", "score": self.points(), "at": yesterday}
                for number in range(first, first + BATCH)
            ]
            jobs += [
                {"board": "endurance", "member": player(number), "score": [self.random.randrange(20, 90), self.random.randrange(10**6, 10**7)]}
                for number in range(first, first + 50)
            ]
            send(f"{node}/v1/jobs?wait=applied&results=changed", "POST", jobs)
        for work in (self.play, self.play_at_the_top, self.repeat, self.look):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            self.threads.append(thread)

    def end(self):
        self.ends.set()
        for thread in self.threads:
            thread.join(timeout=40)

    def points(self):
        return max(0, round(self.random.gauss(5200, 1300)))

    def again(self, every, work):
        while not self.ends.wait(every):
            with contextlib.suppress(urllib.error.URLError, TimeoutError):
                work()

    def play(self):
        """Anybody wins some points."""
        own = random.Random(11)

        def work():
            jobs = [{"board": BOARD, "member": player(own.randrange(PLAYERS)), "score": own.randrange(5, 90)} for _ in range(40)]
            send(f"{own.choice(self.nodes)}/v1/jobs?wait=applied", "POST", jobs)

        self.again(0.2, work)

    def play_at_the_top(self):
        """The best play most, so that the top moves while somebody looks."""
        own = random.Random(12)

        def work():
            top = send(f"{self.nodes[0]}/v1/boards/{BOARD}/top?limit=40")["entries"]
            for entry in own.sample(top, 3):
                path = f"/v1/boards/{BOARD}/members/{urllib.parse.quote(entry['member'], safe='')}"
                send(f"{self.nodes[0]}{path}?wait=applied", "PUT", {"score": own.randrange(10, 120)})

        self.again(1.2, work)

    def repeat(self):
        """A game service that sends some jobs twice, which is what versions are for: the second one is refused."""
        own = random.Random(13)

        def work():
            version = time.time_ns() // 1000
            member = player(own.randrange(PLAYERS))
            job = {"board": "endurance", "member": member, "score": [own.randrange(20, 95), own.randrange(10**6, 10**7)]}
            for _ in range(2):
                send(f"{self.nodes[1]}/v1/jobs?wait=applied", "POST", [{**job, "version": version}])

        self.again(1.7, work)

    def look(self):
        """Players look where they are."""
        own = random.Random(14)

        def work():
            name = urllib.parse.quote(player(own.randrange(PLAYERS)), safe="")
            send(f"{own.choice(self.nodes)}/v1/boards/{BOARD}/members/{name}/around?above=3&below=3")
            send(f"{own.choice(self.nodes)}/v1/boards/{BOARD}/top?limit=25")
            send(f"{own.choice(self.nodes)}/v1/boards/{BOARD}/histogram?buckets=20")

        self.again(0.1, work)
