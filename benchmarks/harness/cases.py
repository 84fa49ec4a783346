"""The cases of ./dev bench. Each takes the arguments of the command and returns what the result file keeps."""
import os
import statistics
import subprocess
import time

from harness import processes
from harness.cluster_cases import CLUSTER_CASES
from harness.pairs import check_goals, compare, cores, timed

READ_CONNECTIONS = 32
WRITE_CONNECTIONS = 64
START_SETTLE_SECONDS = 0.5
IDLE_SECONDS = 5


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


def partitions(arguments):
    """10 partitions of 10,000 RU/s against 10,000 partitions of 100 RU/s, the same items in both."""
    server_core, load_core = cores(arguments)
    with processes.scratch_folder() as folder, processes.start_orrery(folder, core=server_core) as few, \
            processes.start_orrery(folder, "[limits]\npartition_throughput = 100\n", server_core) as many:
        empty_kb = processes.resident_kb(many.pid)
        processes.load("sql-setup", few, items=arguments.items, throughput=100_000)
        # The container first, with one item: its cost is that of the partitions alone.
        created = processes.load("sql-setup", many, items=1, connections=1, throughput=1_000_000)
        rss_kb = processes.resident_kb(many.pid)
        idle = idle_cpu_percent(many)
        processes.load("sql-setup", many, items=arguments.items, throughput=1_000_000)
        for server, wanted in ((few, 10), (many, 10_000)):
            count = processes.partition_count(server)
            if count != wanted:
                raise processes.Failed(f"the container has {count} physical partitions, not {wanted}")

        def side(server):
            return lambda: processes.load("sql-read", server, load_core, items=arguments.items,
                                          connections=READ_CONNECTIONS, **timed(arguments))

        return compare(
            arguments,
            f"partitions: SQL point read among 10 and among 10,000 physical partitions, {READ_CONNECTIONS} connections",
            ("10", "10,000"), (few, many), side(few), side(many), lambda summary: [
                ("ratio of 10,000 to 10 partitions", summary["ratio"], "at least", 0.8),
                ("KB of RSS per partition", (rss_kb - empty_kb) / 10_000, "at most", 32),
                ("ms to create a partition", created["create_container_ms"] / 10_000, "at most", 5),
                ("% of a core for 10,000 idle partitions", idle, "at most", 2)])


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
         **CLUSTER_CASES, "micro": micro}
