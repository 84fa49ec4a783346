"""Rows of 1 KB by prepared CQL statements, beside Redis."""
import contextlib
import csv
import io
import json
import os
import shutil
import subprocess
import tempfile
import time

from harness import processes
from harness.pairs import compare, cores, timed

CONNECTIONS = 50
TELLS_SECONDS_MAX = 10
DEEP = 32  # requests under way on each connection


def cassandra_of(orrery, folder):
    """The same server, as clients of Cassandra see it. It may answer HTTP a little before it tells its ports."""
    until = time.monotonic() + TELLS_SECONDS_MAX
    while time.monotonic() < until:
        for root, _, files in os.walk(folder):
            if "server.json" in files:
                with open(os.path.join(root, "server.json")) as file:
                    told = json.load(file)
                if f":{orrery.port}/" in told["endpoint"]:
                    server = type("Cassandra", (), {})()
                    server.port, server.pid = told["cassandra"], orrery.pid
                    return server
        time.sleep(0.01)
    raise processes.Failed("the server does not tell the port of its Cassandra API")


@contextlib.contextmanager
def start_redis(folder, core=None):
    """Redis without persistence."""
    redis = shutil.which("redis-server")
    if redis is None or shutil.which("redis-benchmark") is None:
        raise processes.Failed("redis-server or redis-benchmark is missing (Debian package redis)")
    folder = tempfile.mkdtemp(dir=folder, prefix="redis-")
    port = processes.free_port()
    command = [redis, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", folder]
    server = processes.Server("redis", command, port, None, os.path.join(folder, "log"), core)
    try:
        until = time.monotonic() + 10
        while subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True).stdout != b"PONG\n":
            if time.monotonic() > until:
                raise processes.Failed("redis did not start")
            time.sleep(0.01)
        yield server
    finally:
        server.stop()


def redis_load(redis, core, kind, count, items, deep=1):
    line = [] if core is None else ["taskset", "-c", str(core)]
    line += ["redis-benchmark", "-p", str(redis.port), "-c", str(CONNECTIONS), "-d", "1024", "-n", str(count),
             "-r", str(items), "-t", kind, "-P", str(deep), "--csv"]
    before = processes.cpu_seconds(redis.pid)
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    used = processes.cpu_seconds(redis.pid) - before
    row = next(csv.DictReader(io.StringIO(done.stdout)))
    return {"ops_per_second": float(row["rps"]), "p50_us": float(row["p50_latency_ms"]) * 1000,
            "p99_us": float(row["p99_latency_ms"]) * 1000, "server_cpu_us_per_op": used * 1e6 / count,
            "operations": count, "failures": 0}


def cql(arguments):
    server_core, load_core = cores(arguments)
    items = arguments.items
    with processes.scratch_folder() as folder, start_redis(folder, server_core) as redis, \
            processes.start_orrery(folder, "[storage]\ndurability = \"periodic\"\n", server_core) as orrery:
        cassandra = cassandra_of(orrery, folder)
        processes.load("cql-setup", cassandra, items=items, connections=64, streams=8)
        redis_load(redis, None, "set", 3 * items, items)
        # Each side as long as the other, about.
        speed = redis_load(redis, load_core, "get", 50_000, items)["ops_per_second"]
        results = []

        def case(title, command, kind, deep, goals):
            def redis_side():
                count = int(speed * arguments.seconds * (4 if deep > 1 else 1))
                return redis_load(redis, load_core, kind, count, items, deep)

            def orrery_side():
                return processes.load(command, cassandra, load_core, items=items, connections=CONNECTIONS * deep,
                                      streams=deep, metrics_port=orrery.port, **timed(arguments))

            results.append(compare(arguments, title, ("redis", "orrery"), (redis, orrery), redis_side, orrery_side,
                                   goals))

        case(f"cql: point read of 1 KB against Redis GET, {CONNECTIONS} connections", "cql-read", "get", 1,
             lambda summary: [("ratio to Redis", summary["ratio"], "at least", 0.6),
                              ("CPU-us per read", summary["b"].get("server_cpu_us_per_op"), "at most", 9),
                              ("allocations per read", summary["b"].get("allocations_per_op"), "at most", 30)])
        case(f"cql: point read, {DEEP} under way on each connection, against Redis -P {DEEP}", "cql-read", "get", DEEP,
             lambda summary: [("ratio to Redis", summary["ratio"], "at least", 0.3)])
        case("cql: write of 1 KB with periodic durability against Redis SET", "cql-write", "set", 1, lambda _: [])
        alone = {name: processes.load(name, cassandra, load_core, items=items, connections=CONNECTIONS, streams=1,
                                      **timed(arguments)) for name in ("cql-mixed", "cql-scan")}
        for name, report in alone.items():
            print(f"  {name}: {report['ops_per_second']:,.0f} ops/s, p99 {report['p99_us'] / 1000:.2f} ms, "
                  f"{report.get('server_cpu_us_per_op', 0):.1f} CPU-us")
        return {"comparisons": results, "alone": alone}


CQL_CASES = {"cql": cql}
