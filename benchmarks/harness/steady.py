"""A steady load whose every answer is kept with its time, so that any stretch of it can be looked at afterwards.

`load` tells one figure for a whole run; here a change happens in the middle of it. Run as a program this file is the
generator: half point reads and half upserts of 1 KB on the items of `load sql-setup`, one request at a time on each
connection (closed loop), until it gets SIGTERM; then it writes its records and ends.
"""
import array
import bisect
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time

if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import processes  # noqa: E402

DIFFERENT_REQUESTS = 20_000  # of each kind, made before the start
ITEM_BYTES = 1024
SLICE_SECONDS = 0.1
START_SECONDS_MAX = 60


class Steady:
    """The running generator. Its answers: `times` (when), `latencies`, both in seconds, `codes` (2 * status, odd for
    a write; status 0 is a lost connection). Times are those of time.monotonic(), which all processes share."""

    def __init__(self, folder, ports, connections, items, container="items"):
        self.path = os.path.join(folder, "steady")
        options = {"path": self.path, "ports": ports, "connections": connections, "items": items,
                   "container": container}
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), json.dumps(options)],
                                        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        if self.process.stdout.readline() != "begins\n":
            raise processes.Failed(f"the steady load did not begin: {self.process.stderr.read()[-500:]}")

    def stop(self):
        """Ends the load and reads its records."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=START_SECONDS_MAX)
        if self.process.returncode != 0:
            raise processes.Failed(f"the steady load ended with {self.process.returncode}: {errors[-500:]}")
        self.times, self.latencies, self.codes = array.array("d"), array.array("f"), array.array("H")
        count = os.path.getsize(self.path) // (8 + 4 + 2)
        with open(self.path, "rb") as file:
            for records in (self.times, self.latencies, self.codes):
                records.fromfile(file, count)
        os.unlink(self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def between(self, begin, end):
        """The places of the answers that came in [begin, end)."""
        return range(bisect.bisect_left(self.times, begin), bisect.bisect_left(self.times, end))

    def stretch(self, begin, end):
        """What one stretch of time looked like."""
        places = self.between(begin, end)
        good = [i for i in places if 200 <= self.codes[i] >> 1 < 300]
        writes = [i for i in good if self.codes[i] & 1]
        reads = [i for i in good if not self.codes[i] & 1]
        statuses = {}
        for i in places:
            status = self.codes[i] >> 1
            if not 200 <= status < 300:
                statuses[str(status)] = statuses.get(str(status), 0) + 1
        return {"seconds": end - begin, "ops_per_second": len(good) / (end - begin),
                "p99_ms": self.percentile(good, 0.99), "p99_read_ms": self.percentile(reads, 0.99),
                "p99_write_ms": self.percentile(writes, 0.99),
                "max_ms": max((self.latencies[i] for i in good), default=0) * 1000,
                "silence_ms": self.silence(good, begin, end), "silence_reads_ms": self.silence(reads, begin, end),
                "silence_writes_ms": self.silence(writes, begin, end), "failed_statuses": statuses}

    def percentile(self, places, share):
        if not places:
            return None
        ordered = sorted(self.latencies[i] for i in places)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000

    def silence(self, places, begin, end):
        """The longest time without a success, in ms."""
        moments = [begin, *(self.times[i] for i in places), end]
        return max(b - a for a, b in zip(moments, moments[1:])) * 1000

    def slices(self, begin, end):
        """Successes a second in each slice."""
        counts = [0] * max(1, round((end - begin) / SLICE_SECONDS))
        for i in self.between(begin, begin + len(counts) * SLICE_SECONDS):
            if 200 <= self.codes[i] >> 1 < 300:
                counts[min(len(counts) - 1, int((self.times[i] - begin) / SLICE_SECONDS))] += 1
        return [count / SLICE_SECONDS for count in counts]


# The generator ------------------------------------------------------------------------------------

def make_requests(container, items):
    """Reads and writes, whole: [(bytes, is_write)]."""
    link = f"dbs/bench/colls/{container}"
    chance = random.Random(1)
    filler = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz012345", k=64 << 10))
    write_headers = processes.signed_headers("post", "docs", link)
    requests = []
    for _ in range(DIFFERENT_REQUESTS):
        number = chance.randrange(items)
        name, key = f"item-{number:010}", f"key-{number:010}"
        headers = processes.signed_headers("get", "docs", f"{link}/docs/{name}")
        headers["x-ms-documentdb-partitionkey"] = f'["{key}"]'
        requests.append((message("GET", f"/{link}/docs/{name}", headers), 0))
        number = chance.randrange(items)
        name, key = f"item-{number:010}", f"key-{number:010}"
        body = f'{{"id":"{name}","pk":"{key}","kind":"reading","text":"'
        start = chance.randrange((64 << 10) - ITEM_BYTES)
        body += filler[start:start + ITEM_BYTES - len(body) - 2] + '"}'
        headers = {**write_headers, "x-ms-documentdb-partitionkey": f'["{key}"]', "x-ms-documentdb-is-upsert": "true",
                   "content-type": "application/json", "content-length": str(len(body))}
        requests.append((message("POST", f"/{link}/docs", headers) + body.encode(), 1))
    chance.shuffle(requests)
    return requests


def message(method, path, headers):
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def answer_length(data):
    """The length of the whole answer that begins here; 0: its head is not all there."""
    head = data.find(b"\r\n\r\n")
    if head < 0:
        return 0
    at = data.lower().find(b"\r\ncontent-length:", 0, head)
    return head + 4 + int(data[at + 17:data.index(b"\r\n", at + 17)])


class Generator:
    def __init__(self, options):
        self.ports = options["ports"]
        self.requests = make_requests(options["container"], options["items"])
        self.next = 0
        self.poll = select.epoll()
        self.connections = {}  # by file: [socket, sent at, is a write, bytes received, port]
        self.times, self.latencies, self.codes = array.array("d"), array.array("f"), array.array("H")
        self.stopped = False

    def open(self, place):
        connection = socket.create_connection(("127.0.0.1", self.ports[place % len(self.ports)]))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections[connection.fileno()] = [connection, 0.0, 0, b"", place]
        self.poll.register(connection.fileno(), select.EPOLLIN)
        self.send(self.connections[connection.fileno()])

    def send(self, state):
        request, state[2] = self.requests[self.next % len(self.requests)]
        self.next += 1
        state[1] = time.monotonic()
        state[0].sendall(request)

    def keep(self, state, now, status):
        self.times.append(now)
        self.latencies.append(now - state[1])
        self.codes.append(2 * status + state[2])

    def receive(self, file):
        state = self.connections[file]
        try:
            data = state[0].recv(1 << 16)
        except ConnectionError:
            data = b""
        now = time.monotonic()
        if not data:
            self.keep(state, now, 0)
            self.poll.unregister(file)
            del self.connections[file]
            state[0].close()
            self.open(state[4] + 1)
            return
        data = state[3] + data
        length = answer_length(data)
        if length == 0 or len(data) < length:
            state[3] = data
            return
        state[3] = b""
        self.keep(state, now, int(data[9:12]))
        self.send(state)

    def run(self):
        while not self.stopped:
            for file, _ in self.poll.poll(0.2):
                self.receive(file)


def main():
    options = json.loads(sys.argv[1])
    generator = Generator(options)

    def stop(*_):
        generator.stopped = True
    signal.signal(signal.SIGTERM, stop)
    for place in range(options["connections"]):
        generator.open(place)
    print("begins", flush=True)
    generator.run()
    with open(options["path"], "wb") as file:
        for records in (generator.times, generator.latencies, generator.codes):
            records.tofile(file)


if __name__ == "__main__":
    main()
