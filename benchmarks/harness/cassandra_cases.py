"""Rows of 1 KB by prepared CQL statements, beside Apache Cassandra: one generator, one schema, the same durability."""
import contextlib
import os
import socket
import subprocess
import tempfile
import time

from harness import processes
from harness.cql_cases import CONNECTIONS, cassandra_of
from harness.pairs import compare, cores, timed

SCRIPT = os.path.join(processes.ROOT, "benchmarks/peers/cassandra")
START_SECONDS_MAX = 120
# A JVM compiles what it sees often: Cassandra gets each kind of request so long before anything is measured.
HEAT_SECONDS = 30
# Both sync their log this often, which is Cassandra's default.
ORRERY_SETTINGS = "[storage]\ndurability = \"periodic\"\nsync_interval_ms = 10000\n"
P99_US_MAX = 10_000
LADDER = (2, 4, 8, 16, 32, 64)
LADDER_SECONDS = 3
ROW_BYTES = (100, 1024)  # of the rows that scans read


def answers_cql(port):
    """True if OPTIONS is answered."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(bytes([4, 0, 0, 0, 5, 0, 0, 0, 0]))
            return connection.recv(1) == b"\x84"
    except OSError:
        return False


@contextlib.contextmanager
def start_cassandra(folder, core=None):
    folder = tempfile.mkdtemp(dir=folder, prefix="cassandra-")
    port, node_port, log = processes.free_port(), processes.free_port(), os.path.join(folder, "log")
    server = processes.Server("cassandra", [SCRIPT, "run", folder, str(port), str(node_port)], port, None, log, core)
    try:
        until = time.monotonic() + START_SECONDS_MAX
        while not answers_cql(port):
            if server.process.poll() is not None or time.monotonic() > until:
                with open(log) as text:
                    raise processes.Failed(f"cassandra did not start:\n{text.read()[-2000:]}")
            time.sleep(0.1)
        yield server
    finally:
        server.stop()


def why_absent():
    """Gets Cassandra if it is not in the cache. Returns why it cannot run here, or nothing."""
    done = subprocess.run([SCRIPT, "fetch"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return done.stderr.strip()[-500:] if done.returncode != 0 else None


class Bench:
    """The two servers with the same data in each."""

    def __init__(self, arguments, peer, orrery, endpoint):
        self.arguments, self.items = arguments, arguments.items
        self.peer, self.orrery, self.endpoint = peer, orrery, endpoint
        self.load_core = cores(arguments)[1]

    def fill(self):
        for server in (self.peer, self.endpoint):
            processes.load("cql-setup", server, items=self.items, connections=64, streams=8, row_bytes=ROW_BYTES[0])
            processes.load("cql-setup", server, items=1, connections=64, streams=8, row_bytes=ROW_BYTES[1])
        for command in ("cql-read", "cql-write", "cql-mixed", "cql-scan"):
            self.load(command, self.peer, CONNECTIONS, seconds=1, warmup=HEAT_SECONDS)

    def load(self, command, server, connections, **options):
        # Only Orrery tells its allocations, on the port of its other API.
        told = {"metrics_port": self.orrery.port} if server is self.endpoint else {}
        with processes.paused(self.peer if server is self.endpoint else self.orrery):
            return processes.load(command, server, self.load_core, items=self.items, connections=connections,
                                  streams=1, **told, **options)

    def connections_within_limit(self):
        """With how many connections Cassandra does most at a p99 below the limit; if it never is, the fewest."""
        best, best_speed, steps = LADDER[0], 0, []
        for connections in LADDER:
            report = self.load("cql-mixed", self.peer, connections, seconds=LADDER_SECONDS, warmup=1)
            steps.append({"connections": connections, **report})
            print(f"  cassandra, {connections} connections: {report['ops_per_second']:,.0f} ops/s, "
                  f"p99 {report['p99_us'] / 1000:.2f} ms")
            if report["p99_us"] < P99_US_MAX and report["ops_per_second"] > best_speed:
                best, best_speed = connections, report["ops_per_second"]
        return best, steps

    def compare(self, title, command, connections, goals, **options):
        def side(server):
            return lambda: self.load(command, server, connections, **timed(self.arguments), **options)

        return compare(self.arguments, f"cassandra: {title}, {connections} connections", ("cassandra", "orrery"),
                       (self.peer, self.orrery), side(self.peer), side(self.endpoint), goals)


def mixed_goals(summary):
    return [("ratio to Cassandra", summary["ratio"], "at least", 3),
            ("p99 as a share of Cassandra's", summary["b"]["p99_us"] / summary["a"]["p99_us"], "at most", 1 / 3),
            ("p99 in ms", summary["b"]["p99_us"] / 1000, "at most", P99_US_MAX / 1000)]


def cassandra(arguments):
    why = why_absent()
    if why:
        print(f"\ncassandra: not measured, {why}")
        return None
    core = cores(arguments)[0]
    with processes.scratch_folder() as folder, start_cassandra(folder, core) as peer, \
            processes.start_orrery(folder, ORRERY_SETTINGS, core) as orrery:
        bench = Bench(arguments, peer, orrery, cassandra_of(orrery, folder))
        print("\ncassandra: filling both and warming up Cassandra", flush=True)
        bench.fill()
        results = [
            bench.compare("point read of 1 KB", "cql-read", CONNECTIONS, lambda summary: [
                ("allocations per read", summary["b"].get("allocations_per_op"), "at most", 30)]),
            bench.compare("write of 1 KB, log synced every 10 s", "cql-write", CONNECTIONS, lambda summary: [
                ("ratio to Cassandra", summary["ratio"], "at least", 3)])]
        for size in ROW_BYTES:
            results.append(bench.compare(
                f"clustering scan of 100 rows of {size} bytes", "cql-scan", CONNECTIONS,
                lambda summary: [("ratio to Cassandra", summary["ratio"], "at least", 5)], row_bytes=size))
        # Last: a JVM goes on to become faster for minutes, and the search for the limit should see it fast.
        connections, ladder = bench.connections_within_limit()
        results.append(bench.compare("half point reads, half writes of 1 KB", "cql-mixed", connections, mixed_goals))
        return {"ladder": ladder, "comparisons": results}


CASSANDRA_CASES = {"cassandra": cassandra}
