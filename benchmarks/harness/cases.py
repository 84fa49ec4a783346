"""The cases of ./dev bench. Each takes the arguments of the command and returns what the result file keeps."""
import contextlib
import os
import statistics
import subprocess
import time

from harness import processes
from harness.cassandra_cases import CASSANDRA_CASES
from harness.cluster_cases import CLUSTER_CASES
from harness.cql_cases import CQL_CASES
from harness.pairs import check_goals, compare, cores, timed
from harness.split_cases import SPLIT_CASES

READ_CONNECTIONS = 32
WRITE_CONNECTIONS = 64
START_SETTLE_SECONDS = 0.5
IDLE_SECONDS = 10
PARTITION_COUNTS = (10, 1_000, 10_000)
ALL_THROUGHPUT = 1_000_000  # RU/s of the container, over all its partitions


def read(arguments):
    server_core, load_core = cores(arguments)
    with processes.scratch_folder() as folder, processes.start_nginx(folder, server_core) as nginx, \
            processes.start_orrery(folder, core=server_core) as orrery:
        processes.load("sql-setup", orrery, items=arguments.items)

        def nginx_side():
            return processes.load("http", nginx, load_core, path="/1k", connections=READ_CONNECTIONS,
                                  **timed(arguments))

        def orrery_side():
            return processes.load("sql-read", orrery, load_core, items=arguments.items,
                                  connections=READ_CONNECTIONS, **timed(arguments))

        return compare(
            arguments,
            f"read: SQL point read of 1 KB against nginx (1 process, 1 KB file), {READ_CONNECTIONS} connections",
            ("nginx", "orrery"), (nginx, orrery), nginx_side, orrery_side, lambda summary: [
                ("ratio to nginx", summary["ratio"], "at least", 0.35),
                ("CPU-us per read", summary["b"].get("server_cpu_us_per_op"), "at most", 14),
                ("allocations per read", summary["b"].get("allocations_per_op"), "at most", 60)])


def write(arguments):
    program = processes.db_bench_path()
    server_core, load_core = cores(arguments)
    with processes.scratch_folder() as folder, processes.start_orrery(folder, core=server_core) as orrery:
        processes.load("sql-setup", orrery, items=1000)

        def db_bench_side():
            return processes.db_bench_synced_writes(program, folder, WRITE_CONNECTIONS, arguments.seconds)

        def orrery_side():
            return processes.load("sql-write", orrery, load_core, items=arguments.items,
                                  connections=WRITE_CONNECTIONS, **timed(arguments))

        return compare(
            arguments,
            f"write: SQL create of 1 KB against db_bench fillrandom, both synced, {WRITE_CONNECTIONS} at once",
            ("db_bench", "orrery"), (orrery,), db_bench_side, orrery_side, lambda summary: [
                ("ratio to db_bench", summary["ratio"], "at least", 0.5),
                ("CPU-us per write", summary["b"].get("server_cpu_us_per_op"), "at most", 60)])


def start(arguments):
    times, sizes = [], []
    for _ in range(2 * arguments.pairs):
        with processes.scratch_folder() as folder, processes.start_orrery(folder) as orrery:
            times.append(orrery.start_ms)
            time.sleep(START_SETTLE_SECONDS)
            sizes.append(processes.resident_kb(orrery.pid) / 1024)
    print(f"\nstart: {len(times)} starts with an empty data folder, to the first answered /healthz")
    print(f"  start ms  median {statistics.median(times):.1f}  min {min(times):.1f}  max {max(times):.1f}")
    print(f"  RSS MB    median {statistics.median(sizes):.1f}  max {max(sizes):.1f}")
    goals = check_goals([("start in ms", statistics.median(times), "at most", 150),
                         ("RSS of an empty server in MB", max(sizes), "at most", 64)])
    return {"start_ms": times, "rss_mb": sizes, "goals": goals}


def idle_cpu_percent(server):
    before = processes.cpu_seconds(server.pid)
    time.sleep(IDLE_SECONDS)
    return (processes.cpu_seconds(server.pid) - before) * 100 / IDLE_SECONDS


def make_partitions(server, count, items):
    """A container of so many partitions, then its items. Returns what the partitions cost."""
    empty_kb = processes.resident_kb(server.pid)
    empty_idle = idle_cpu_percent(server)
    # The container first, with one item: its cost is that of the partitions alone.
    created = processes.load("sql-setup", server, items=1, connections=1, throughput=ALL_THROUGHPUT)
    made = processes.partition_count(server)
    if made != count:
        raise processes.Failed(f"the container has {made} physical partitions, not {count}")
    cost = {"partitions": count, "create_ms": created["create_container_ms"],
            "rss_kb": processes.resident_kb(server.pid) - empty_kb, "idle_percent_empty": empty_idle,
            "idle_percent": idle_cpu_percent(server)}
    processes.load("sql-setup", server, items=items, throughput=ALL_THROUGHPUT)
    cost["rss_kb_with_items"] = processes.resident_kb(server.pid) - empty_kb
    return cost


def partitions(arguments):
    """The same items and the same throughput, on 10, 1,000 and 10,000 physical partitions, a server each."""
    server_core, load_core = cores(arguments)
    with processes.scratch_folder() as folder, contextlib.ExitStack() as stack:
        servers, costs = {}, []
        for count in PARTITION_COUNTS:
            settings = f"[limits]\npartition_throughput = {ALL_THROUGHPUT // count}\n"
            servers[count] = stack.enter_context(processes.start_orrery(folder, settings, server_core))
            costs.append(make_partitions(servers[count], count, arguments.items))
        few, some, many = PARTITION_COUNTS

        def side(count):
            return lambda: processes.load("sql-read", servers[count], load_core, items=arguments.items,
                                          connections=READ_CONNECTIONS, **timed(arguments))

        def comparison(count, goals):
            return compare(
                arguments, f"partitions: SQL point read among {few} and among {count:,} physical partitions, "
                f"{READ_CONNECTIONS} connections", (f"{few}", f"{count:,}"), (servers[few], servers[count]),
                side(few), side(count), goals)

        print("\npartitions: what they cost")
        for cost in costs:
            print(f"  {cost['partitions']:>6,}  created in {cost['create_ms']:.1f} ms, "
                  f"{cost['create_ms'] / cost['partitions']:.4f} each; RSS {cost['rss_kb'] / cost['partitions']:.2f} KB "
                  f"each; idle {cost['idle_percent']:.2f}% of a core ({cost['idle_percent_empty']:.2f}% before)")
        last = costs[-1]
        results = [
            comparison(some, lambda summary: [
                (f"ratio of {some:,} to {few} partitions", summary["ratio"], "at least", 0.8)]),
            comparison(many, lambda summary: [
                (f"ratio of {many:,} to {few} partitions", summary["ratio"], "at least", 0.8),
                ("KB of RSS per partition", last["rss_kb"] / many, "at most", 32),
                ("ms to create a partition", last["create_ms"] / many, "at most", 5),
                (f"% of a core for {many:,} idle partitions", last["idle_percent"], "at most", 2)])]
        return {"costs": costs, "comparisons": results}


def scale(arguments):
    idle = 10_000
    server_core, load_core = cores(arguments)
    with processes.scratch_folder() as folder, processes.start_orrery(folder, core=server_core) as orrery:
        processes.load("sql-setup", orrery, items=arguments.items)

        def side(connections):
            return lambda: processes.load("sql-read", orrery, load_core, items=arguments.items, idle=connections,
                                          connections=READ_CONNECTIONS, **timed(arguments))

        def goals(summary):
            extra = (summary["b"]["server_rss_kb"] - summary["a"]["server_rss_kb"]) / idle
            return [("ratio with idle connections", summary["ratio"], "at least", 0.9),
                    ("KB of RSS per idle connection", extra, "at most", 16)]

        return compare(
            arguments,
            f"scale: SQL point read over {READ_CONNECTIONS} connections, alone and beside {idle:,} idle ones",
            ("alone", "beside idle"), (orrery,), side(0), side(idle), goals)


def micro(arguments):
    """Single functions, by Google Benchmark; nothing is kept."""
    subprocess.run([os.path.join(processes.ROOT, "dev"), "build", "micro"], check=True)
    print("\nmicro: single functions", flush=True)
    subprocess.run([os.path.join(processes.BINARIES, "benchmarks/micro")], check=True)


CASES = {"read": read, "write": write, "start": start, "partitions": partitions, "scale": scale,
         **CLUSTER_CASES, **SPLIT_CASES, **CQL_CASES, **CASSANDRA_CASES, "micro": micro}
