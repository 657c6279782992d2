"""Between Valkey's tests and the service: answers the few commands with which the tests prepare a server.

    CONFIG GET|SET     of the sizes at which Redis changes its encodings: kept here, they change nothing
    FLUSHALL           DEL of all keys
    FUNCTION FLUSH     OK: there are none
    SET                a board of two keys in the place of the key, over HTTP: a key that is no sorted set

All else is passed on as it is, and so is every reply. One command at a time, which is how the tests send them.
"""

import json
import socket
import threading
import urllib.parse
import urllib.request


class Proxy:
    def __init__(self, service, http, resp3=False):
        """`service`: the host and port that speak Redis' protocol. `http`: the URL of the same service. `resp3`: begin
        each connection with it, as Valkey's `client-default-resp 3` does."""
        self.service, self.http, self.resp3 = service, http, resp3
        # As a server that was just started has them. Two names of one parameter are two here.
        self.parameters = {}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, socket.create_connection(self.service) as service:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            service.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            requests, replies = client.makefile("rb"), service.makefile("rb")

            def ask(*words):
                service.sendall(command(*words))
                return frame(replies)

            try:
                if self.resp3:
                    ask(b"HELLO", b"3")
                while (request := frame(requests)) is not None:
                    own = self.own_reply(words_of(request), ask)
                    if own is None:
                        service.sendall(request)
                        own = frame(replies)
                    client.sendall(own or b"")
            except ConnectionError:
                pass

    def own_reply(self, words, ask):
        """The reply to a command of this proxy; None for all others."""
        match [words[0].upper(), *words[1:]]:
            case [b"CONFIG", verb, name, *value] if verb.upper() in (b"GET", b"SET") and b"-max-" in name:
                if verb.upper() == b"SET":
                    self.parameters[name] = value[0]
                    return b"+OK\r\n"
                return command(name, self.parameters.get(name, b"128"))
            case [b"FLUSHALL"]:
                if keys := words_of(ask(b"KEYS", b"*")):
                    ask(b"DEL", *keys)
                return b"+OK\r\n"
            case [b"FUNCTION", _]:
                return b"+OK\r\n"
            case [b"SET", key, _]:
                ask(b"DEL", key)
                self.define_other_type(key)
                return b"+OK\r\n"
        return None

    def define_other_type(self, key):
        board = f"{self.http}/v1/boards/{urllib.parse.quote(key, safe='')}"
        for path, body in (("", {"keys": [{"name": "a"}, {"name": "b"}]}), ("/members/x", {"score": [1, 2]})):
            headers = {"content-type": "application/json"}
            request = urllib.request.Request(board + path, json.dumps(body).encode(), headers, method="PUT")
            urllib.request.urlopen(request, timeout=10).close()


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def frame(stream):
    """The bytes of one frame, with those in it; None at the end of the stream."""
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        return None
    kind, rest = line[:1], line[1:-2]
    if kind in b"$=!" and rest != b"-1":
        return line + stream.read(int(rest) + 2)
    if kind in b"*~>%" and rest != b"-1":
        count = int(rest) * (2 if kind == b"%" else 1)
        return line + b"".join(frame(stream) or b"" for _ in range(count))
    return line


def words_of(request):
    """The words of an array of strings; a reply that is none, such as an error, has no words."""
    words, rest = [], request.partition(b"\r\n")[2]
    while rest.startswith(b"$"):
        length, _, rest = rest[1:].partition(b"\r\n")
        words.append(rest[: int(length)])
        rest = rest[int(length) + 2 :]
    return words
