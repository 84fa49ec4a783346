"""The cases of ./dev bench that need a cluster: replica sets beside etcd, failover, idle groups, rebuild."""
import os
import shutil
import statistics
import time

from harness import processes
from harness.cluster import PARTITION_THROUGHPUT, Cluster, Etcd, etcd_version, running, wait_until
from harness.cql_cases import cassandra_of
from harness.pairs import check_goals, compare, cores, timed

OUTSTANDING = (32, 128)
STREAMS = 4  # calls at once on each connection, of gRPC and of CQL: what etcd did best with
LOCAL_QUORUM, SERIAL = 6, 8
EIGHT = 8


def where(members, leader):
    """Options of the generator: to one member, or to all of them if `leader` is None."""
    return {"ports": members.ports if leader is None else members.servers[leader].port}


def etcd_side(arguments, command, etcd, leader, outstanding, load_core):
    return lambda: processes.load(command, etcd, load_core, items=arguments.items, connections=outstanding,
                                  streams=STREAMS, **where(etcd, leader), **timed(arguments))


def orrery_side(arguments, command, cluster, container, leader, outstanding, load_core):
    return lambda: processes.load(command, cluster, load_core, items=arguments.items, connections=outstanding,
                                  container=container, **where(cluster, leader), **timed(arguments))


def cql_side(arguments, command, cluster, consistency, outstanding, load_core):
    """Through the leader of the table bench.items, with as many calls on a connection as etcd has."""
    server = cluster.servers[cluster.leader_of("items")]
    cassandra = cassandra_of(server, cluster.folder)
    cassandra.pid = cluster.pid
    return lambda: processes.load(command, cassandra, load_core, items=arguments.items, connections=outstanding,
                                  streams=STREAMS, consistency=consistency, metrics_port=server.port,
                                  **timed(arguments))


def fill_cql(orrery, items):
    processes.load("cql-setup", cassandra_of(orrery.servers[0], orrery.folder), items=items, connections=64, streams=8)
    orrery.wait_until_whole("items")


def write_goals(summary):
    return [("ratio to etcd", summary["ratio"], "at least", 3),
            ("CPU-us per write over all nodes", summary["b"].get("server_cpu_us_per_op"), "at most", 140)]


def cluster(arguments):
    """New items of 1 KB in four synced replicas (quorum of three) beside puts of 1 KB in etcd's three (of two)."""
    server_core, load_core = cores(arguments)
    results = []
    with processes.scratch_folder() as folder, running(Etcd(folder, server_core)) as etcd, \
            running(Cluster(folder, core=server_core)) as orrery:
        fill_cql(orrery, 1000)
        processes.load("sql-setup", orrery, items=1000, container="one", throughput=PARTITION_THROUGHPUT)
        processes.load("sql-setup", orrery, items=1000, container="eight", throughput=EIGHT * PARTITION_THROUGHPUT)
        orrery.wait_until_whole("one")
        orrery.wait_until_whole("eight")

        def case(what, to_leader, outstanding, orrery_side):
            etcd_leader = etcd.leader() if to_leader else None
            results.append(compare(
                arguments, f"cluster: new item of 1 KB, 4 replicas, against etcd's put, 3 members; {what}, "
                f"{outstanding} at once", ("etcd", "orrery"), etcd.servers + orrery.servers,
                etcd_side(arguments, "etcd-write", etcd, etcd_leader, outstanding, load_core), orrery_side,
                write_goals))

        for outstanding in OUTSTANDING:
            case("CQL, 1 partition, through the leader's node", True, outstanding,
                 cql_side(arguments, "cql-insert", orrery, LOCAL_QUORUM, outstanding, load_core))
            case("SQL, 1 partition, through the leader's node", True, outstanding,
                 orrery_side(arguments, "sql-write", orrery, "one", orrery.leader_of("one"), outstanding, load_core))
            case("SQL, 8 partitions, through any node", False, outstanding,
                 orrery_side(arguments, "sql-write", orrery, "eight", None, outstanding, load_core))
        return {"etcd": etcd_version(), "comparisons": results}


def strong(arguments):
    """Strong reads of 1 KB, by a round of the voters and by lease, beside etcd's linearizable ones."""
    server_core, load_core = cores(arguments)
    results = []
    with processes.scratch_folder() as folder, running(Etcd(folder, server_core)) as etcd:
        processes.load("etcd-setup", etcd, items=arguments.items, connections=128)
        for how, settings in (("by a round", {}), ("by lease", {"cluster.lease_reads": "true"})):
            with running(Cluster(folder, {"account.consistency": "Strong", **settings}, server_core)) as orrery:
                fill_cql(orrery, arguments.items)
                processes.load("sql-setup", orrery, items=arguments.items, container="one",
                               throughput=PARTITION_THROUGHPUT)
                orrery.wait_until_whole("one")
                results += strong_reads(arguments, how, etcd, orrery, load_core)
        return {"etcd": etcd_version(), "comparisons": results}


def strong_reads(arguments, how, etcd, orrery, load_core):
    results = []

    def case(what, to_leader, outstanding, orrery_side):
        etcd_leader = etcd.leader() if to_leader else None
        results.append(compare(
            arguments, f"strong: Strong read of 1 KB {how} against etcd's linearizable read; {what}, "
            f"{outstanding} at once", ("etcd", "orrery"), etcd.servers + orrery.servers,
            etcd_side(arguments, "etcd-read", etcd, etcd_leader, outstanding, load_core), orrery_side,
            lambda summary: [("ratio to etcd", summary["ratio"], "at least", 6)]))

    for outstanding in OUTSTANDING:
        case("CQL, through the leader's node", True, outstanding,
             cql_side(arguments, "cql-read", orrery, SERIAL, outstanding, load_core))
        for what, leader in (("SQL, through the leader's node", orrery.leader_of("one")),
                             ("SQL, through any node", None)):
            case(what, leader is not None, outstanding,
                 orrery_side(arguments, "sql-read", orrery, "one", leader, outstanding, load_core))
    return results


def percentile(values, percent):
    """The smallest value that `percent` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def failover(arguments):
    """kill -9 of the node that leads a partition, under load through all nodes; then it comes back."""
    kills = 10 if arguments.quick else 100
    times, reports = [], []
    with processes.scratch_folder() as folder, running(Cluster(folder)) as orrery:
        processes.load("sql-setup", orrery, items=1000, container="one", throughput=PARTITION_THROUGHPUT)
        orrery.wait_until_whole("one")
        print(f"\nfailover: {kills} times kill -9 of the leader's node under 32 writers", flush=True)
        for _ in range(kills):
            orrery.wait_until_whole("one")
            leader = orrery.leader_of("one")
            report = processes.load("sql-upsert", orrery, items=1000, container="one", connections=32, warmup=1,
                                    seconds=60, ports=orrery.ports, kill=orrery.servers[leader].pid)
            reports.append({"node": leader + 1, "back_ms": report.get("back_ms"), "failures": report["failures"],
                            "failed_statuses": report["failed_statuses"], "lost": report["lost"]})
            times.append(report.get("back_ms", 60_000))
            orrery.servers[leader].process.wait()
            orrery.revive(leader)
    figures = {"typical": statistics.median(times), "p99": percentile(times, 99), "max": max(times)}
    refused = sum(sum(report["failed_statuses"].values()) for report in reports)
    print(f"  ms from the kill to the first success of a write sent after it: median {figures['typical']:.0f}  "
          f"p90 {percentile(times, 90):.0f}  p99 {figures['p99']:.0f}  max {figures['max']:.0f}")
    print(f"  requests answered with an error: {refused} in all")
    goals = check_goals([("typical ms until writes are back", figures["typical"], "at most", 100),
                         ("ms at the 99th of the kills", figures["p99"], "at most", 3000)])
    return {"kills": kills, "ms": times, "refused": refused, "reports": reports, "goals": goals}


def idle(arguments):
    """1,000 groups on each of four nodes that nobody talks to."""
    groups, seconds = 1000, 10 if arguments.quick else 60
    with processes.scratch_folder() as folder, running(Cluster(folder, {
            "limits.partition_throughput": 100, "limits.throughput_max": 100 * groups})) as orrery:
        empty_kb = [processes.resident_kb(server.pid) for server in orrery.servers]
        created = processes.load("sql-setup", orrery, items=1, connections=1, throughput=100 * groups)
        begin = time.monotonic()
        orrery.wait_until_whole("items")
        if len(orrery.sets("items")) != groups:
            raise processes.Failed(f"the container does not have {groups} partitions")
        whole = created["create_container_ms"] + (time.monotonic() - begin) * 1000
        time.sleep(seconds / 2)
        before = [processes.cpu_seconds(server.pid) for server in orrery.servers]
        time.sleep(seconds)
        percent = [(processes.cpu_seconds(server.pid) - was) * 100 / seconds
                   for server, was in zip(orrery.servers, before)]
        rss_mb = [processes.resident_kb(server.pid) / 1024 for server in orrery.servers]
        per_group = [(rss * 1024 - was) / groups for rss, was in zip(rss_mb, empty_kb)]
    print(f"\nidle: {groups:,} groups of 4 replicas, {seconds} s without a request")
    print(f"  made in {whole:.0f} ms, {whole / groups:.2f} ms each")
    print("  % of a core by node  " + "  ".join(f"{value:.2f}" for value in percent))
    print("  RSS MB by node       " + "  ".join(f"{value:.0f}" for value in rss_mb))
    print("  KB of RSS per group  " + "  ".join(f"{value:.1f}" for value in per_group))
    goals = check_goals([(f"% of a core for {groups} idle groups", max(percent), "at most", 3)])
    return {"groups": groups, "created_ms": whole, "cpu_percent": percent, "rss_mb": rss_mb,
            "rss_kb_per_group": per_group, "goals": goals}


def disk_rate(folder, megabytes):
    """MB/s of one sequential write that is synced at its end."""
    path = os.path.join(folder, "disk")
    block = os.urandom(1 << 20)
    begin = time.monotonic()
    with open(path, "wb", buffering=0) as file:
        for _ in range(megabytes):
            file.write(block)
        os.fsync(file.fileno())
    rate = megabytes / (time.monotonic() - begin)
    os.unlink(path)
    return rate


def rebuild(arguments):
    """A node loses its disk and joins anew under the same address."""
    item_bytes, megabytes = 16 << 10, 300 if arguments.quick else 1500
    items = (megabytes << 20) // item_bytes
    with processes.scratch_folder() as folder, running(Cluster(folder, {"cluster.replace_after_s": 3})) as orrery:
        processes.load("sql-setup", orrery, items=items, bytes=item_bytes, container="eight",
                       throughput=EIGHT * PARTITION_THROUGHPUT)
        orrery.wait_until_whole("eight")
        disk = disk_rate(folder, megabytes)
        lost = len(orrery.servers) - 1
        bytes_ = orrery.total(lost, "bytes", "eight")
        wanted = orrery.total(0, "items", "eight")
        orrery.servers[lost].stop()
        shutil.rmtree(orrery.data(lost))
        # The others give it up first: how long they wait is a setting, not a speed.
        wait_until("the sets have shrunk to three", lambda: all(
            len(found["members"]) == 3 and not found["moving"] for found in orrery.sets("eight")))
        begin = time.monotonic()
        orrery.revive(lost)
        started = time.monotonic() - begin
        cpu = [processes.cpu_seconds(server.pid) for server in orrery.servers]
        first = wait_until("the first replica has come", lambda: orrery.total(lost, "items", "eight") > 0 and
                           time.monotonic(), 600, 0.05)
        wait_until("the new node has all items", lambda: orrery.total(lost, "items", "eight") >= wanted, 600, 0.05)
        copied = time.monotonic() - begin
        orrery.wait_until_whole("eight")
        seconds = time.monotonic() - begin
        used = [processes.cpu_seconds(server.pid) - was for server, was in zip(orrery.servers, cpu)]
    rate = bytes_ / seconds / (1 << 20)
    print(f"\nrebuild: a wiped node gets {bytes_ / (1 << 20):.0f} MB in 8 partitions of 16 KB items")
    print(f"  ready after {started:.1f} s, first replica after {first - begin:.1f} s, all items after {copied:.1f} s, "
          f"all sets whole after {seconds:.1f} s: {rate:.0f} MB/s; the disk writes {disk:.0f} MB/s")
    print("  CPU seconds by node  " + "  ".join(f"{value:.1f}" for value in used))
    goals = check_goals([("MB/s of the rebuild", rate, "at least", min(100, disk / 2))])
    return {"megabytes": bytes_ / (1 << 20), "seconds": seconds, "ready_seconds": started, "copied_seconds": copied,
            "first_replica_seconds": first - begin, "mb_per_second": rate, "disk_mb_per_second": disk,
            "cpu_seconds": used, "goals": goals}


CLUSTER_CASES = {"cluster": cluster, "strong": strong, "failover": failover, "idle": idle, "rebuild": rebuild}
