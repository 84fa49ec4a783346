"""What a benchmark starts and stops: Orrery, nginx, db_bench and the load generator."""
import base64
import contextlib
import email.utils
import hmac
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARIES = os.path.join(ROOT, "build/release")
# The environment may name other copies of the programs.
LOAD = os.environ.get("ORRERY_LOAD") or os.path.join(BINARIES, "benchmarks/load")
ORRERY = os.environ.get("ORRERY_BINARY") or os.path.join(BINARIES, "src/server/orrery")
START_SECONDS_MAX = 60
# For every server that is started here: any free port.
os.environ.setdefault("ORRERY_CASSANDRA_PORT", "0")
# Public: the key of the Azure Cosmos DB emulator, which --dev accepts.
EMULATOR_KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

NGINX_CONF = """
daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 20000; }}
http {{
  access_log off; sendfile on; tcp_nodelay on; keepalive_requests 1000000000; open_file_cache max=16;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen 127.0.0.1:{port} backlog=4096; root {folder}/www; }}
}}
"""


class Failed(Exception):
    """A benchmark cannot go on; the text says why."""


@contextlib.contextmanager
def scratch_folder():
    """A folder on the disk of the work tree: the temporary folder may be in memory, where syncs are free."""
    parent = os.path.join(ROOT, "build/bench")
    os.makedirs(parent, exist_ok=True)
    folder = tempfile.mkdtemp(dir=parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def raise_file_limit():
    """For ten thousand connections; what is started inherits it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def cpu_seconds(pid):
    """User and system time of a process with all its threads."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kb(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


def answers(port, path):
    """True if the port answers GET with a 2xx status."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            request = f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
            connection.sendall(request.encode())
            return connection.recv(64).startswith(b"HTTP/1.1 2")
    except OSError:
        return False


class Server:
    """A started process that answers HTTP on a port of 127.0.0.1. Without a path nobody waits for that."""

    def __init__(self, name, command, port, path, log, core=None):
        self.name, self.port, self.log = name, port, log
        prefix = [] if core is None else ["taskset", "-c", str(core)]
        with open(log, "w") as output:
            begin = time.monotonic()
            self.process = subprocess.Popen(prefix + command, stdout=output, stderr=output, cwd=os.path.dirname(log))
        self.pid = self.process.pid
        try:
            if path is not None:
                self._wait(path, begin)
        except BaseException:
            self.stop()
            raise
        self.start_ms = (time.monotonic() - begin) * 1000

    def _wait(self, path, begin):
        while not answers(self.port, path):
            if self.process.poll() is not None or time.monotonic() - begin > START_SECONDS_MAX:
                with open(self.log) as log:
                    raise Failed(f"{self.name} did not start:\n{log.read()[-2000:]}")
            time.sleep(0.001)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def running(server):
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def paused(server):
    """Stops a server for a while: what it still does after its load must not cost the other one."""
    server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.process.send_signal(signal.SIGCONT)


def start_nginx(folder, core=None):
    """One nginx process that serves /1k, a file of 1 KB."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        raise Failed("nginx is missing (Debian package nginx-light)")
    folder = os.path.join(folder, "nginx")
    os.makedirs(os.path.join(folder, "www"))
    # Run as root, nginx serves as another user.
    for path in (folder, os.path.join(folder, "www")):
        os.chmod(path, 0o755)
    port = free_port()
    with open(os.path.join(folder, "www/1k"), "w") as file:
        file.write("x" * 1024)
    conf = os.path.join(folder, "nginx.conf")
    with open(conf, "w") as file:
        file.write(NGINX_CONF.format(folder=folder, port=port))
    command = [nginx, "-e", os.path.join(folder, "error.log"), "-c", conf]
    return running(Server("nginx", command, port, "/1k", os.path.join(folder, "log"), core))


def start_orrery(folder, settings="", core=None):
    """An Orrery in development mode (plain HTTP, the emulator's key) on an empty data folder."""
    if not os.path.exists(ORRERY):
        raise Failed(f"{os.path.relpath(ORRERY, ROOT)} is missing: ./dev build")
    folder = tempfile.mkdtemp(dir=folder, prefix="orrery-")
    port = free_port()
    command = [ORRERY, "start", "--dev", "--data", os.path.join(folder, "data"), "--port", str(port)]
    if settings:
        with open(os.path.join(folder, "orrery.toml"), "w") as file:
            file.write(settings)
        command += ["--config", os.path.join(folder, "orrery.toml")]
    return running(Server("orrery", command, port, "/healthz", os.path.join(folder, "log"), core))


def load(command, server, core=None, **options):
    """Runs the generator against a server and returns its report."""
    line = [] if core is None else ["taskset", "-c", str(core)]
    line += [LOAD, command, "--json", "--port", str(server.port), "--pid", str(server.pid)]
    for name, value in options.items():
        line += ["--" + name.replace("_", "-"), str(value)]
    done = subprocess.run(line, capture_output=True, text=True)
    if not done.stdout:
        raise Failed(f"load {command}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def signed_headers(method, kind, link):
    """The headers that every request of an account needs, signed with the emulator's key."""
    date = email.utils.formatdate(usegmt=True)
    text = f"{method}\n{kind}\n{link}\n{date.lower()}\n\n"
    digest = hmac.digest(base64.b64decode(EMULATOR_KEY), text.encode(), "sha256")
    token = f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}"
    return {"authorization": urllib.parse.quote(token, safe=""), "x-ms-date": date, "x-ms-version": "2020-07-15"}


def ask(server, method, path, headers, body=None):
    """The body of the answer, parsed; None if it has none."""
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/{path}", headers=headers, method=method,
                                     data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            text = reply.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        raise Failed(f"{method} /{path} gave {error.code}: {error.read().decode()[:300]}") from error


def partition_ranges(server, container="items"):
    """The physical partitions of a container of the benchmark, in the order of the ring."""
    link = f"dbs/bench/colls/{container}"
    headers = {**signed_headers("get", "pkranges", link), "x-ms-max-item-count": "-1"}
    return ask(server, "GET", f"{link}/pkranges", headers)["PartitionKeyRanges"]


def partition_count(server):
    """How many physical partitions the container of the benchmark has."""
    return len(partition_ranges(server))


def operate(server, what, body=None):
    """A request of an operator: POST /_orrery/<what>."""
    path = f"_orrery/{what}"
    return ask(server, "POST", path, signed_headers("post", "orrery", path), body or {})


def db_bench_path():
    prefix = subprocess.run([os.path.join(ROOT, "tools/build_rocksdb"), "db_bench"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout.strip()
    return os.path.join(prefix, "bin/db_bench")


def db_bench_synced_writes(program, folder, threads, seconds):
    """fillrandom, 1 KB, each write synced before it is acknowledged; in the words of the generator's report."""
    data = tempfile.mkdtemp(dir=folder, prefix="db_bench-")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [program, "--benchmarks=fillrandom", "--sync=true", "--disable_wal=false", f"--threads={threads}",
         "--key_size=16", "--value_size=1000", "--num=100000000", "--compression_type=lz4",
         "--histogram=true", f"--duration={max(1, round(seconds))}", f"--db={data}"], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    shutil.rmtree(data, ignore_errors=True)
    rate = re.search(r"fillrandom\s*:.*?(\d+) ops/sec\s+([\d.]+) seconds\s+(\d+) operations", done.stdout)
    if rate is None:
        raise Failed(f"db_bench: {done.stdout[-500:]}{done.stderr[-500:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    report = {"command": "db_bench fillrandom sync", "connections": threads, "failures": 0,
              "ops_per_second": float(rate.group(1)), "operations": int(rate.group(3)),
              "server_cpu_us_per_op": used * 1e6 / int(rate.group(3))}
    for name, label in (("p50_us", "P50"), ("p99_us", "P99"), ("p999_us", "P99.9")):
        found = re.search(re.escape(label) + r": ([\d.]+)", done.stdout)
        if found:
            report[name] = float(found.group(1))
    return report
