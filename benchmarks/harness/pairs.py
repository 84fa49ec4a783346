"""Interleaved pairs A B A B..., how quiet the machine was meanwhile, and how the result is shown and kept."""
import datetime
import json
import os
import re
import resource
import statistics
import time

from harness.processes import ROOT, cpu_seconds

# Cores that programs outside of the benchmark may keep busy during a pair before it is thrown away.
OTHERS_MAX = 0.5
# Share of failed operations from which a side is no measurement.
FAILURES_MAX = 0.001

COLUMNS = (("ops/s", "ops_per_second", 1, 0), ("p50 ms", "p50_us", 1000, 3), ("p99 ms", "p99_us", 1000, 3),
           ("p99.9 ms", "p999_us", 1000, 3), ("CPU-us/op", "server_cpu_us_per_op", 1, 1),
           ("allocs/op", "allocations_per_op", 1, 1), ("RSS MB", "server_rss_kb", 1024, 1),
           ("failures", "failures", 1, 0))


def machine():
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*:\s*(.+)", file.read())
    return {"cpu": model.group(1) if model else "unknown", "cores": os.cpu_count()}


class Watch:
    """Measures how many cores others kept busy: all CPU time less that of the servers and of our children."""

    def __init__(self, servers):
        self.servers = servers
        self.begin = self._sample()

    def _sample(self):
        with open("/proc/stat") as file:
            user, nice, system, _, _, _, _, steal = map(int, file.readline().split()[1:9])
        busy = (user + nice + system + steal) / os.sysconf("SC_CLK_TCK")
        ours = sum(cpu_seconds(server.pid) for server in self.servers)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            ours += usage.ru_utime + usage.ru_stime
        return time.monotonic(), busy - ours

    def cores_of_others(self):
        now, others = self._sample()
        return max(0.0, (others - self.begin[1]) / (now - self.begin[0]))


def run_pairs(count, servers, side_a, side_b):
    """Runs the sides in turn until `count` quiet pairs exist, at most twice as many. Returns all pairs."""
    pairs = []
    while len(pairs) < 2 * count and sum(not pair["disturbed"] for pair in pairs) < count:
        watch = Watch(servers)
        pair = {"a": side_a(), "b": side_b()}
        pair["others"] = round(watch.cores_of_others(), 2)
        pair["disturbed"] = pair["others"] > OTHERS_MAX
        pair["ratio"] = pair["b"]["ops_per_second"] / max(pair["a"]["ops_per_second"], 1e-9)
        pairs.append(pair)
    return pairs


def median_of(reports, name):
    values = [report[name] for report in reports if name in report]
    return statistics.median(values) if values else None


def summarize(count, pairs):
    """Medians over the quiet pairs; over all of them if fewer than three of the `count` wanted were quiet."""
    quiet = [pair for pair in pairs if not pair["disturbed"]]
    used = quiet if len(quiet) >= min(3, count) else pairs
    summary = {"pairs": len(pairs), "used": len(used), "disturbed": len(used) > len(quiet),
               "ratio": statistics.median(pair["ratio"] for pair in used)}
    for side in "ab":
        reports = [pair[side] for pair in used]
        summary[side] = {key: median_of(reports, key) for _, key, _, _ in COLUMNS if any(key in r for r in reports)}
        summary[side]["invalid"] = sum(
            report["operations"] == 0 or report["failures"] > FAILURES_MAX * report["operations"] for report in reports)
    return summary


def print_row(label, report, ratio="", others=""):
    cells = []
    for _, key, unit, digits in COLUMNS:
        cells.append(f"{report[key] / unit:>10,.{digits}f}" if report.get(key) is not None else f"{'-':>10}")
    print(f"  {label:<24}{''.join(cells)}{ratio:>8}{others:>8}")


def print_pairs(title, names, pairs, summary):
    print(f"\n{title}")
    print(f"  {'':<24}{''.join(f'{name:>10}' for name, _, _, _ in COLUMNS)}{'ratio':>8}{'others':>8}")
    for i, pair in enumerate(pairs, 1):
        note = "!" if pair["disturbed"] else " "
        print_row(f"{i}{note} {names[0]}", pair["a"])
        print_row(f"{i}{note} {names[1]}", pair["b"], f"{pair['ratio']:.2f}x", f"{pair['others']:.2f}")
    print_row(f"median {names[0]}", summary["a"])
    print_row(f"median {names[1]}", summary["b"], f"{summary['ratio']:.2f}x")
    thrown = summary["pairs"] - summary["used"]
    if thrown:
        print(f"  {thrown} pair(s) marked ! are left out: others used more than {OTHERS_MAX} cores")
    if summary["disturbed"]:
        print(f"  DISTURBED: others used more than {OTHERS_MAX} cores in the pairs marked !, which count all the same")
    for side, name in zip("ab", names):
        if summary[side]["invalid"]:
            runs = summary[side]["invalid"]
            print(f"  NOT VALID: {runs} run(s) of {name} with more than {FAILURES_MAX:.1%} failures")


def check_goals(goals, valid=True):
    """Prints each goal (name, value, 'at least' or 'at most', limit) and returns them for the result file."""
    kept = []
    for name, value, direction, limit in goals:
        if value is None or not valid:
            met, verdict = None, "not measured" if value is None else "not valid"
        else:
            met = value >= limit if direction == "at least" else value <= limit
            verdict = f"{value:.3g}  {'met' if met else 'NOT MET'}"
        print(f"  goal  {name} {direction} {limit:g}: {verdict}")
        kept.append({"name": name, "value": value, direction.replace(" ", "_"): limit, "met": met})
    return kept


def compare(arguments, title, names, servers, side_a, side_b, goals):
    """Runs, shows and judges one comparison; `goals` maps its summary to a list for check_goals."""
    pairs = run_pairs(arguments.pairs, servers, side_a, side_b)
    summary = summarize(arguments.pairs, pairs)
    print_pairs(title, names, pairs, summary)
    valid = not summary["a"]["invalid"] and not summary["b"]["invalid"]
    return {"title": title, "a": names[0], "b": names[1], "summary": summary,
            "goals": check_goals(goals(summary), valid), "pairs": pairs}


def timed(arguments):
    return {"seconds": arguments.seconds, "warmup": arguments.warmup}


def cores(arguments):
    """The core of the servers and the core of the generator; None: anywhere."""
    return (0, 1) if arguments.pin else (None, None)


def save(name, result):
    folder = os.path.join(ROOT, "benchmarks/results")
    os.makedirs(folder, exist_ok=True)
    day = datetime.date.today().isoformat()
    path = os.path.join(folder, f"{day}-{name}.json")
    with open(path, "w") as file:
        json.dump({"case": name, "date": day, "machine": machine(), **result}, file, indent=1)
        file.write("\n")
    print(f"  kept as {os.path.relpath(path, ROOT)}")
