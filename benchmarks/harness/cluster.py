"""Clusters on this machine: nodes of Orrery, and etcd beside them."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

from harness import processes
from harness.processes import Failed, Server, free_port

NODES = 4
ETCD_NODES = 3
SETTLE_SECONDS_MAX = 120
# One partition gets all that a container may have, so that nothing is throttled.
PARTITION_THROUGHPUT = 1_000_000
SETTINGS = {"limits.partition_throughput": PARTITION_THROUGHPUT,
            "limits.throughput_max": 10 * PARTITION_THROUGHPUT,
            "log.level": "warning"}


def wait_until(what, condition, seconds=SETTLE_SECONDS_MAX, pause=0.02):
    """Returns the first result of `condition` that is not false."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > end:
            raise Failed(f"after {seconds} s still not so: {what}")
        time.sleep(pause)
    return result


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
        return reply.read().decode()


class Members:
    """Started servers that are one cluster. Looks like one server to processes.load(): its port is that of the
    first, its processes are counted together."""

    def __init__(self):
        self.servers = []

    @property
    def port(self):
        return self.servers[0].port

    @property
    def pid(self):
        return ",".join(str(server.pid) for server in self.servers)

    @property
    def ports(self):
        return ",".join(str(server.port) for server in self.servers)

    def stop(self):
        for server in self.servers:
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGTERM)
        for server in self.servers:
            server.stop()


class Cluster(Members):
    """Nodes of Orrery in development mode. A node keeps its place in `servers` over a restart."""

    def __init__(self, folder, settings=None, core=None, nodes=NODES):
        super().__init__()
        self.folder, self.core = tempfile.mkdtemp(dir=folder, prefix="cluster-"), core
        self.settings = {**SETTINGS, **(settings or {})}
        self.http_ports = [free_port() for _ in range(nodes)]
        self.peer_ports = [free_port() for _ in range(nodes)]
        try:
            for i in range(nodes):
                self.servers.append(self.start(i))
        except BaseException:
            self.stop()
            raise

    def data(self, i):
        return os.path.join(self.folder, f"data-{i + 1}")

    def start(self, i):
        if not os.path.exists(processes.ORRERY):
            raise Failed(f"{os.path.relpath(processes.ORRERY, processes.ROOT)} is missing: ./dev build")
        command = [processes.ORRERY, "start", "--dev", "--data", self.data(i), "--port", str(self.http_ports[i]),
                   "--cluster-listen", f"127.0.0.1:{self.peer_ports[i]}"]
        if i > 0 and not os.path.exists(self.data(i)):
            command += ["--join", f"127.0.0.1:{self.peer_ports[0]}"]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        return Server(f"node {i + 1}", command, self.http_ports[i], "/healthz",
                      os.path.join(self.folder, f"log-{i + 1}"), self.core)

    def add(self):
        """One more node, which joins the others."""
        self.http_ports.append(free_port())
        self.peer_ports.append(free_port())
        self.servers.append(self.start(len(self.servers)))

    def revive(self, i):
        self.servers[i] = self.start(i)

    def figures(self, i, name, container):
        """A metric of each partition of a container, as a node tells it."""
        pattern = rf'^orrery_partition_{name}{{.*container="{container}",partition="(\d+)"}} ([\d.e+]+)$'
        found = re.findall(pattern, get(self.servers[i].port, "/metrics"), re.MULTILINE)
        return {int(partition): float(value) for partition, value in found}

    def total(self, i, name, container):
        return sum(self.figures(i, name, container).values())

    def status(self, i=0):
        """What the cluster says of itself, asked at a node."""
        done = subprocess.run([processes.ORRERY, "status", "--json", "--data", self.data(i)], capture_output=True,
                              text=True)
        if done.returncode != 0:
            raise Failed(f"orrery status: {done.stderr[-500:]}")
        return json.loads(done.stdout)["cluster"]

    def sets(self, container, i=0):
        return [found for found in self.status(i)["replicaSets"] if found.get("container") == f"bench/{container}"]

    def leader_of(self, container):
        """The place of the node that leads the first partition of a container."""
        leader = wait_until(f"{container} has a leader", lambda: self.sets(container)[0]["leader"])
        return next(i for i in range(len(self.servers)) if self.status(i)["node"] == leader)

    def wait_until_whole(self, container, seconds=SETTLE_SECONDS_MAX):
        """Until every set has a voter that lacks nothing on every node."""
        ids = {self.status(i)["node"] for i in range(len(self.servers))}

        def whole():
            return all(not found["underReplicated"] and not found["moving"] and ids == {
                member["node"] for member in found["members"]
                if member["role"] == "voter" and member["alive"] and member.get("lag") == 0}
                       for found in self.sets(container))
        wait_until(f"all sets of {container} are whole", whole, seconds, 0.1)


def etcd_path():
    """etcd from Debian; unpacked apart if it is not installed, because the package starts a service."""
    found = shutil.which("etcd")
    if found:
        return found
    folder = os.path.join(os.environ.get("ORRERY_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "orrery"), "etcd")
    program = os.path.join(folder, "usr/bin/etcd")
    if not os.path.exists(program):
        print("unpacking Debian's etcd-server", flush=True)
        os.makedirs(folder, exist_ok=True)
        done = subprocess.run("apt-get -q download etcd-server && dpkg -x etcd-server_*.deb . && rm etcd-server_*.deb",
                              shell=True, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"no etcd (Debian package etcd-server): {done.stderr[-500:]}")
    return program


def etcd_version():
    return subprocess.run([etcd_path(), "--version"], capture_output=True, text=True, check=True).stdout.split()[2]


class Etcd(Members):
    def __init__(self, folder, core=None):
        super().__init__()
        program, folder = etcd_path(), tempfile.mkdtemp(dir=folder, prefix="etcd-")
        peers = [f"http://127.0.0.1:{free_port()}" for _ in range(ETCD_NODES)]
        ports = [free_port() for _ in range(ETCD_NODES)]
        names = [f"e{i + 1}" for i in range(ETCD_NODES)]
        try:
            for name, peer, port in zip(names, peers, ports):
                here = f"http://127.0.0.1:{port}"
                command = [program, "--name", name, "--data-dir", os.path.join(folder, name),
                           "--listen-client-urls", here, "--advertise-client-urls", here,
                           "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                           "--initial-cluster", ",".join(f"{n}={p}" for n, p in zip(names, peers)),
                           "--quota-backend-bytes", str(8 << 30), "--logger", "zap", "--log-level", "error"]
                self.servers.append(Server("etcd", command, port, None, os.path.join(folder, name + ".log"), core))
            for server in self.servers:
                wait_until("etcd has a leader", lambda: processes.answers(server.port, "/health"))
        except BaseException:
            self.stop()
            raise

    def leader(self):
        for i, server in enumerate(self.servers):
            if "\netcd_server_is_leader 1" in get(server.port, "/metrics"):
                return i
        raise Failed("etcd has no leader")


@contextlib.contextmanager
def running(members):
    try:
        yield members
    finally:
        members.stop()
