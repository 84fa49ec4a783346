"""The case of ./dev bench for changes of partitions: what a steady load notices of splits, merges and moves."""
import statistics
import time

from harness import processes
from harness.cluster import PARTITION_THROUGHPUT, Cluster, running, wait_until
from harness.pairs import OTHERS_MAX, Watch, check_goals, cores
from harness.steady import SLICE_SECONDS, Steady

CONNECTIONS = 32
ITEMS = 200_000  # of 1 KB
SETTLE_SECONDS = 5  # after a change, in which a dip still counts as its own
LOW_SHARE = 0.7
LONG_SECONDS = 10  # a change that takes longer is compared with as much time without one
LONE = f"""[storage]
durability = "sync"
[limits]
partition_throughput = {PARTITION_THROUGHPUT}
throughput_max = {10 * PARTITION_THROUGHPUT}
"""


def begin(server, partition, action, body=None):
    """Asks for a change; while an earlier one is not over yet it is refused."""
    def accepted():
        try:
            processes.operate(server, f"partitions/{partition}/{action}", body)
            return True
        except processes.Failed as error:
            if " gave 4" in str(error):
                raise
            return False
    wait_until(f"{action} of partition {partition} begins", accepted, 10)


def split(server):
    partition = processes.partition_ranges(server)[0]["id"]
    begin(server, partition, "split")
    wait_until("the partition is split", lambda: processes.partition_count(server) == 2, 120)


def merge(server):
    partition = processes.partition_ranges(server)[0]["id"]
    begin(server, partition, "merge")
    wait_until("the partitions are merged", lambda: processes.partition_count(server) == 1, 120)


def replica_sets(cluster):
    """The sets of the container, asked without a process that would take a core away."""
    path = "_orrery/status"
    status = processes.ask(cluster, "GET", path, processes.signed_headers("get", "orrery", path))
    return [found for found in status["cluster"]["replicaSets"] if found.get("container") == "bench/items"]


def wait_until_led(cluster, count):
    """Until the sets of the heirs have leaders: only then is the change over for those who wait."""
    def led():
        sets = replica_sets(cluster)
        return len(sets) == count and all(found["leader"] for found in sets)
    wait_until("the heirs have leaders", led, 30)


def move(cluster, partition, source, target):
    """Moves a replica, until the set has it there and no longer here."""
    def moved():
        found = replica_sets(cluster)[0]
        nodes = [member["node"] for member in found["members"] if member["role"] == "voter"]
        return not found["moving"] and not found["underReplicated"] and target in nodes and source not in nodes
    begin(cluster, partition, "move", {"from": source, "to": target})
    wait_until("the replica has moved", moved, 120, 0.1)


class Story:
    """Changes under one steady load, with the time before each that it is compared with."""

    def __init__(self, steady, servers, seconds):
        self.steady, self.servers, self.seconds = steady, servers, seconds
        self.changes = []

    def change(self, name, act):
        watch = Watch([*self.servers, self.steady])
        time.sleep(self.seconds)
        began = time.monotonic()
        act()
        ended = time.monotonic()
        time.sleep(SETTLE_SECONDS + self.seconds)
        change = {"name": name, "began": began, "ended": ended}
        if ended - began > LONG_SECONDS:
            # In so long a time the servers compact what was written, whether something changes or not.
            change["calm"] = time.monotonic()
            time.sleep(ended - began + SETTLE_SECONDS)
        change["others"] = round(watch.cores_of_others(), 2)
        self.changes.append(change)

    def rounds(self, count):
        """Yields until so many rounds were quiet, at most twice as many times."""
        quiet = 0
        for _ in range(2 * count):
            done = len(self.changes)
            yield
            quiet += all(change["others"] <= OTHERS_MAX for change in self.changes[done:])
            if quiet == count:
                return

    def tell(self):
        """What the records say of each change. REQUIRES: the load has stopped."""
        return [describe(self.steady, change, self.seconds) for change in self.changes]


def describe(steady, change, seconds):
    began, ended = change["began"], change["ended"]
    before = steady.stretch(began - seconds, began)
    settled = ended + SETTLE_SECONDS
    after = steady.stretch(settled, settled + seconds)
    # One partition does less than two, for good: that is no dip of a merge.
    rate = min(before["ops_per_second"], after["ops_per_second"])
    affected = steady.slices(began, settled)
    calm = steady.slices(began - seconds, began)
    long = "calm" in change
    if long:
        calm = steady.slices(change["calm"], change["calm"] + ended - began + SETTLE_SECONDS)
        rate = statistics.mean(calm)
    return {
        "compared_with_as_long": long, "share_percent": statistics.mean(affected) / rate * 100,
        "name": change["name"], "others": change["others"], "disturbed": change["others"] > OTHERS_MAX,
        "took_ms": (ended - began) * 1000, "before": before, "during": steady.stretch(began, ended),
        "after": after,
        # The same figures of the time before say how much of them is noise.
        "dip_percent": dip_percent(affected, rate), "noise_dip_percent": dip_percent(calm, rate),
        "low_seconds": low_seconds(affected, rate), "noise_low_seconds": low_seconds(calm, rate),
        "silence_ms": steady.stretch(began, settled)["silence_ms"],
        "silence_writes_ms": steady.stretch(began, settled)["silence_writes_ms"],
        "silence_reads_ms": steady.stretch(began, settled)["silence_reads_ms"],
        "slices": [round(value) for value in steady.slices(began - 2, settled)]}


def dip_percent(slices, rate):
    """How far below `rate` the worst second is, in percent."""
    window = round(1 / SLICE_SECONDS)
    lowest = min(statistics.mean(slices[i:i + window]) for i in range(max(1, len(slices) - window + 1)))
    return (1 - lowest / rate) * 100


def low_seconds(slices, rate):
    return sum(value < LOW_SHARE * rate for value in slices) * SLICE_SECONDS


def show(title, changes):
    print(f"\n{title}")
    print(f"  {'':<18}{'took ms':>9}{'before/s':>10}{'during/s':>10}{'after/s':>10}{'dip %':>7}{'(noise)':>8}{'low s':>7}"
          f"{'(noise)':>8}{'silent ms':>10}{'reads':>7}{'writes':>7}   p99 ms {'before':>7}{'during':>8}{'after':>8}"
          f"{'others':>8}{'share %':>9}")
    for change in changes:
        p99 = [change[phase]["p99_ms"] or 0 for phase in ("before", "during", "after")]
        print(f"  {change['name'] + (' !' if change['disturbed'] else ''):<18}{change['took_ms']:>9.0f}"
              f"{change['before']['ops_per_second']:>10.0f}{change['during']['ops_per_second']:>10.0f}"
              f"{change['after']['ops_per_second']:>10.0f}{change['dip_percent']:>7.0f}"
              f"{change['noise_dip_percent']:>8.0f}{change['low_seconds']:>7.1f}{change['noise_low_seconds']:>8.1f}"
              f"{change['silence_ms']:>10.0f}{change['silence_reads_ms']:>7.0f}{change['silence_writes_ms']:>7.0f}"
              f"          {p99[0]:>7.1f}{p99[1]:>8.1f}{p99[2]:>8.1f}{change['others']:>8.2f}"
              f"{change['share_percent']:>9.0f}")
        for phase in ("before", "during", "after"):
            if change[phase]["failed_statuses"]:
                print(f"    errors {phase}: {change[phase]['failed_statuses']}")


def judge(where, changes):
    """The goals for each kind of change, over the quiet ones. If none was quiet there is no verdict: the load of others
    makes dips as deep as a change does."""
    goals = []
    for name in dict.fromkeys(change["name"] for change in changes):
        ones = [change for change in changes if change["name"] == name]
        quiet = [change for change in ones if not change["disturbed"]]
        used = quiet or ones
        if not quiet:
            print(f"  DISTURBED: others used more than {OTHERS_MAX} cores in every {name}, {where}")
        if all(change["compared_with_as_long"] for change in used):
            goals += check_goals([
                (f"throughput of a {name}, {where}, in % of as long without one, median of {len(used)}",
                 statistics.median(change["share_percent"] for change in used), "at least", 70),
                (f"deepest dip of 1 s at a {name}, {where}, in %, beyond that without one, median of {len(used)}",
                 statistics.median(change["dip_percent"] - change["noise_dip_percent"] for change in used),
                 "at most", 30),
                (f"seconds below {LOW_SHARE:.0%} at a {name}, {where}, more than without one, the worst",
                 max(change["low_seconds"] - change["noise_low_seconds"] for change in used), "at most", 5)],
                bool(quiet))
            continue
        goals += check_goals([
            (f"deepest dip of 1 s at a {name}, {where}, in %, median of {len(used)}",
             statistics.median(change["dip_percent"] for change in used), "at most", 30),
            (f"seconds below {LOW_SHARE:.0%} at a {name}, {where}, the worst",
             max(change["low_seconds"] for change in used), "at most", 5)], bool(quiet))
    return goals


def tell(title, where, story):
    changes = story.tell()
    show(title, changes)
    return {"title": title, "changes": changes, "goals": judge(where, changes)}


def lone(arguments, items, folder):
    server_core, _ = cores(arguments)
    with processes.start_orrery(folder, LONE, server_core) as orrery:
        processes.load("sql-setup", orrery, items=items, connections=128, throughput=PARTITION_THROUGHPUT)
        processes.operate(orrery, "balancer/pause")
        with Steady(folder, [orrery.port], CONNECTIONS, items) as steady:
            time.sleep(arguments.warmup)
            story = Story(steady, [orrery], arguments.seconds)
            for _ in story.rounds(arguments.pairs):
                story.change("split", lambda: split(orrery))
                story.change("merge", lambda: merge(orrery))
            steady.stop()
    return tell(f"split: a lone server, {items:,} items of 1 KB, {CONNECTIONS} connections, half reads, half writes",
                "alone", story)


def on_cluster(arguments, items, folder):
    server_core, _ = cores(arguments)
    with running(Cluster(folder, core=server_core)) as orrery:
        processes.load("sql-setup", orrery, items=items, connections=128, throughput=PARTITION_THROUGHPUT)
        orrery.wait_until_whole("items")
        processes.operate(orrery, "balancer/pause")
        orrery.add()
        with Steady(folder, [server.port for server in orrery.servers], CONNECTIONS, items) as steady:
            time.sleep(arguments.warmup)
            story = Story(steady, orrery.servers, arguments.seconds)
            for _ in story.rounds(arguments.pairs):
                story.change("split", lambda: (split(orrery), wait_until_led(orrery, 2)))
                story.change("merge", lambda: (merge(orrery), wait_until_led(orrery, 1)))
                for name in ("move of follower", "move of leader"):
                    story.change(name, lambda: move(orrery, *choose_move(orrery, name.endswith("leader"))))
            steady.stop()
    return tell(f"split: 4 replicas on 5 nodes, {items:,} items of 1 KB, {CONNECTIONS} connections over all nodes, "
                "half reads, half writes", "on a cluster", story)


def choose_move(cluster, leader):
    """(partition, from, to): the leader's replica, or another, to the node that has none."""
    partition = processes.partition_ranges(cluster)[0]["id"]
    found = wait_until("the partition has a leader", lambda: next(
        (one for one in replica_sets(cluster) if one["leader"]), None))
    having = [member["node"] for member in found["members"]]
    source = found["leader"] if leader else next(node for node in having if node != found["leader"])
    everybody = {node["id"] for node in cluster.status()["nodes"]}
    return partition, source, min(everybody - set(having))


def split_case(arguments):
    """Splits, merges and moves of about 200 MB under a steady load, alone and on a cluster."""
    items = ITEMS // 10 if arguments.quick else ITEMS
    results = []
    for part in (lone, on_cluster):
        with processes.scratch_folder() as folder:
            results.append(part(arguments, items, folder))
    return {"parts": results}


SPLIT_CASES = {"split": split_case}
