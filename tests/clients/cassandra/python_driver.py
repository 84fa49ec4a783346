"""The Python driver for Cassandra against a running server.

    python_driver.py HOST PORT                             one without passwords
    python_driver.py HOST PORT CERTIFICATE ACCOUNT KEY     one with TLS and roles

Prints a line for each check and ends with 1 if one of them failed.
"""
import datetime
import decimal
import json
import logging
import ssl
import struct
import sys
import traceback
import uuid
import warnings
from collections import namedtuple

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

from cassandra import (AlreadyExists, AuthenticationFailed, ConsistencyLevel, InvalidRequest, OperationTimedOut,  # noqa: E402
                       Unauthorized)
from cassandra.auth import PlainTextAuthProvider  # noqa: E402
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable  # noqa: E402
from cassandra.policies import DCAwareRoundRobinPolicy, TokenAwarePolicy  # noqa: E402
from cassandra.protocol import ConfigurationException, SyntaxException  # noqa: E402
from cassandra.query import (UNSET_VALUE, BatchStatement, BatchType, SimpleStatement, dict_factory,  # noqa: E402
                             tuple_factory)
from cassandra.util import Date, Duration, Time, sortedset  # noqa: E402

host, port = sys.argv[1], int(sys.argv[2])
failed = 0


def check(title):
    """Runs a function at once and tells how it went."""

    def run(function):
        global failed
        try:
            function()
            print(f"ok: {title}", flush=True)
        except Exception:  # noqa: BLE001
            failed += 1
            print(f"FAILED: {title}\n{traceback.format_exc()}", flush=True)
        return function

    return run


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def raises(kind, function, text=""):
    try:
        function()
    except kind as error:
        assert text in str(error), f"{text!r} is not in {error}"
        return error
    raise AssertionError(f"no {kind.__name__}")


def connect(**options):
    profile = ExecutionProfile(load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy("datacenter1")),
                               row_factory=tuple_factory, request_timeout=20)
    return Cluster([host], port=port, execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=20,
                   idle_heartbeat_interval=0, **options)


def make_keyspace(session, name):
    session.execute(f"CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = "
                    "{'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.set_keyspace(name)


def rows(session, text, values=None, **options):
    if values is None:
        return list(session.execute(text, **options))
    return list(session.execute(session.prepare(text), values, **options))


TYPES = [
    ("ascii", "a"), ("text", "ä€😀"), ("boolean", True), ("tinyint", -128), ("smallint", 300), ("int", -5),
    ("bigint", 2**63 - 1), ("varint", -(2**200)), ("decimal", decimal.Decimal("-12345678901234567890.123")),
    ("decimal", decimal.Decimal("1E+3")), ("float", 1.5), ("double", 1.1), ("blob", b"\0\xff"),
    ("uuid", uuid.uuid4()), ("timeuuid", uuid.uuid1()), ("timestamp", datetime.datetime(2020, 2, 3, 4, 5, 6, 7000)),
    ("date", Date("2020-02-29")), ("time", Time("23:59:59.999999999")), ("duration", Duration(1, 2, 3)),
    ("inet", "2001:db8::1"), ("list<int>", [3, 1, 3]), ("set<text>", sortedset(["b", "a"])),
    ("map<text, int>", {"a": 1, "b": 2}), ("frozen<list<frozen<set<int>>>>", [sortedset([1, 2]), sortedset([])]),
    ("tuple<int, text>", (1, None)), ("frozen<map<int, frozen<tuple<int, text>>>>", {1: (2, "x")}),
]


def drive(cluster, session, version):
    """What every version of the protocol can do."""
    name = f"v{version}"
    make_keyspace(session, name)

    @check(f"v{version}: every type comes back as it was sent")
    def _():
        for i, (kind, value) in enumerate(TYPES):
            if kind == "duration" and version < 5:
                continue
            session.execute(f"CREATE TABLE type{i} (id int PRIMARY KEY, v {kind})")
            rows(session, f"INSERT INTO type{i} (id, v) VALUES (?, ?)", (1, value))
            [(back,)] = rows(session, f"SELECT v FROM type{i} WHERE id = ?", (1,))
            assert back == value or dict(back) == value, f"{kind}: {back!r} instead of {value!r}"
            rows(session, f"INSERT INTO type{i} (id, v) VALUES (?, ?)", (1, None))
            [(back,)] = rows(session, f"SELECT v FROM type{i} WHERE id = ?", (1,))
            assert not back, f"{kind}: {back!r}"

    @check(f"v{version}: user types")
    def _():
        session.execute("CREATE TYPE address (street text, zip int)")
        session.execute("CREATE TABLE people (id int PRIMARY KEY, home frozen<address>, other list<frozen<address>>)")
        address = namedtuple("address", "street zip")
        cluster.register_user_type(name, "address", address)
        rows(session, "INSERT INTO people (id, home, other) VALUES (?, ?, ?)",
             (1, address("a", 1), [address("b", 2), address("c", None)]))
        [(home, other)] = rows(session, "SELECT home, other FROM people")
        equal(home, ("a", 1))
        equal(other, [("b", 2), ("c", None)])

    session.execute("CREATE TABLE data (p int, c int, v text, PRIMARY KEY (p, c))")

    @check(f"v{version}: prepared statements, by place and by name")
    def _():
        insert = session.prepare("INSERT INTO data (p, c, v) VALUES (?, ?, ?)")
        equal(insert.routing_key_indexes, [0])
        for c in range(10):
            session.execute(insert, (1, c, f"v{c}"))
        session.execute(session.prepare("UPDATE data SET v = :v WHERE p = :p AND c = :c"), {"p": 1, "c": 3, "v": "named"})
        equal(rows(session, "SELECT v FROM data WHERE p = ? AND c IN ?", (1, [3, 4])), [("named",), ("v4",)])

    @check(f"v{version}: pages, forward by state")
    def _():
        statement = SimpleStatement("SELECT c FROM data WHERE p = 1", fetch_size=3)
        equal([c for (c,) in session.execute(statement)], list(range(10)))
        first = session.execute(statement)
        equal(len(first.current_rows), 3)
        rest = session.execute(statement, paging_state=first.paging_state)
        equal(rest.current_rows, [(3,), (4,), (5,)])
        prepared = session.prepare("SELECT c FROM data")
        prepared.fetch_size = 4
        equal(len(list(session.execute(prepared))), 10)

    @check(f"v{version}: conditions")
    def _():
        result = session.execute("INSERT INTO data (p, c, v) VALUES (2, 1, 'x') IF NOT EXISTS")
        assert result.was_applied
        result = session.execute("INSERT INTO data (p, c, v) VALUES (2, 1, 'y') IF NOT EXISTS")
        assert not result.was_applied
        equal(result.one()[1:], (2, 1, "x"))
        update = session.prepare("UPDATE data SET v = ? WHERE p = 2 AND c = 1 IF v = ?")
        update.serial_consistency_level = ConsistencyLevel.LOCAL_SERIAL
        assert session.execute(update, ("z", "x")).was_applied
        equal(session.execute(update, ("z", "x")).one(), (False, "z"))
        read = SimpleStatement("SELECT v FROM data WHERE p = 2", consistency_level=ConsistencyLevel.SERIAL)
        equal(list(session.execute(read)), [("z",)])

    @check(f"v{version}: batches")
    def _():
        insert = session.prepare("INSERT INTO data (p, c, v) VALUES (?, ?, ?)")
        for kind in (BatchType.LOGGED, BatchType.UNLOGGED):
            batch = BatchStatement(batch_type=kind)
            for c in range(5):
                batch.add(insert, (3, c, f"{kind}"))
            batch.add(SimpleStatement("DELETE FROM data WHERE p = 3 AND c = %s"), (4,))
            session.execute(batch)
        equal(len(rows(session, "SELECT c FROM data WHERE p = 3")), 4)
        session.execute(BatchStatement())
        session.execute("CREATE TABLE counts (p int PRIMARY KEY, n counter)")
        batch = BatchStatement(batch_type=BatchType.COUNTER)
        for _ in range(3):
            batch.add("UPDATE counts SET n = n + 2 WHERE p = 1")
        session.execute(batch)
        equal(rows(session, "SELECT n FROM counts"), [(6,)])
        batch = BatchStatement()
        batch.add("INSERT INTO data (p, c, v) VALUES (4, 1, 'x') IF NOT EXISTS")
        batch.add("INSERT INTO data (p, c, v) VALUES (4, 2, 'x')")
        assert session.execute(batch).was_applied
        assert not session.execute(batch).was_applied

    @check(f"v{version}: many requests at once, and large answers")
    def _():
        insert = session.prepare("INSERT INTO data (p, c, v) VALUES (5, ?, ?)")
        for future in [session.execute_async(insert, (c, "x" * 3000)) for c in range(150)]:
            future.result()
        found = rows(session, "SELECT c, v FROM data WHERE p = 5")
        equal(found, [(c, "x" * 3000) for c in range(150)])

    @check(f"v{version}: what a request cost")
    def _():
        future = session.execute_async("SELECT * FROM data WHERE p = 1 AND c = 1")
        future.result()
        if version >= 4:
            (charge,) = struct.unpack(">d", future.custom_payload["RequestCharge"])
            assert 0 < charge < 10, charge

    @check(f"v{version}: errors")
    def _():
        raises(SyntaxException, lambda: session.execute("SELEC"), "line 1:0")
        raises(InvalidRequest, lambda: session.execute("SELECT * FROM nothing"), "unconfigured table nothing")
        raises(AlreadyExists, lambda: session.execute("CREATE TABLE data (a int PRIMARY KEY)"))
        raises(ConfigurationException, lambda: session.execute("CREATE KEYSPACE x WITH replication = {'class': 'Nothing'}"))
        raises(Unauthorized, lambda: session.execute("DROP TABLE system.local"))
        any_level = SimpleStatement("SELECT * FROM data", consistency_level=ConsistencyLevel.ANY)
        raises(InvalidRequest, lambda: session.execute(any_level), "ANY")
        session.execute(SimpleStatement("INSERT INTO data (p, c, v) VALUES (9, 9, 'x')", consistency_level=ConsistencyLevel.ANY))

    @check(f"v{version}: SELECT * after ALTER TABLE has the new column")
    def _():
        session.execute("CREATE TABLE changing (p int PRIMARY KEY, a int)")
        select = session.prepare("SELECT * FROM changing WHERE p = ?")
        session.execute("INSERT INTO changing (p, a) VALUES (1, 2)")
        equal(list(session.execute(select, (1,))), [(1, 2)])
        session.execute("ALTER TABLE changing ADD aa text")
        session.execute("UPDATE changing SET aa = 'x' WHERE p = 1")
        equal(list(session.execute(select, (1,))), [(1, 2, "x")])
        equal(list(session.execute(select, (1,))), [(1, 2, "x")])

    @check(f"v{version}: indexes find rows, and the driver knows them")
    def _():
        session.execute("CREATE TABLE indexed (p int PRIMARY KEY, v text, m map<text, int>)")
        session.execute("CREATE INDEX by_v ON indexed (v)")
        session.execute("CREATE INDEX by_entry ON indexed (entries(m))")
        for p in range(6):
            rows(session, "INSERT INTO indexed (p, v, m) VALUES (?, ?, ?)", (p, f"v{p % 2}", {"k": p % 3}))
        equal(sorted(rows(session, "SELECT p FROM indexed WHERE v = ?", ("v1",))), [(1,), (3,), (5,)])
        equal(sorted(rows(session, "SELECT p FROM indexed WHERE m['k'] = ?", (2,))), [(2,), (5,)])
        table = cluster.metadata.keyspaces[name].tables["indexed"]
        equal(sorted(table.indexes), ["by_entry", "by_v"])
        equal(table.indexes["by_v"].as_cql_query(), f"CREATE INDEX by_v ON {name}.indexed (v)")

    @check(f"v{version}: a view has the rows of its table, and the driver knows it")
    def _():
        session.execute("CREATE TABLE viewed (p int PRIMARY KEY, v text, w int)")
        session.execute("CREATE MATERIALIZED VIEW viewed_by_v AS SELECT w FROM viewed WHERE v IS NOT NULL AND p IS NOT NULL "
                        "PRIMARY KEY (v, p)")
        for p in range(3):
            rows(session, "INSERT INTO viewed (p, v, w) VALUES (?, 'x', ?)", (p, 10 * p))
        session.execute("UPDATE viewed SET v = 'y' WHERE p = 1")
        session.execute("DELETE FROM viewed WHERE p = 2")
        equal(rows(session, "SELECT p, w FROM viewed_by_v WHERE v = ?", ("x",)), [(0, 0)])
        equal(rows(session, "SELECT p, w FROM viewed_by_v WHERE v = ?", ("y",)), [(1, 10)])
        raises(InvalidRequest, lambda: session.execute("INSERT INTO viewed_by_v (v, p) VALUES ('x', 9)"),
               "Cannot directly modify a materialized view")
        view = cluster.metadata.keyspaces[name].views["viewed_by_v"]
        equal((view.base_table_name, sorted(view.columns)), ("viewed", ["p", "v", "w"]))

    @check(f"v{version}: a value that is unset leaves what is there")
    def _():
        insert = session.prepare("INSERT INTO data (p, c, v) VALUES (?, ?, ?)")
        session.execute(insert, (6, 1, "old"))
        if version < 4:
            raises(InvalidRequest, lambda: session.execute(insert, (6, 1)), "3 markers(?) in CQL but 2 bound variables")
            return
        session.execute(insert, (6, 1, UNSET_VALUE))
        session.execute(insert, (6, 1))  # too few: the rest is unset
        equal(rows(session, "SELECT v FROM data WHERE p = 6"), [("old",)])
        session.execute(insert, (6, 1, None))
        equal(rows(session, "SELECT v FROM data WHERE p = 6"), [(None,)])
        raises(InvalidRequest, lambda: session.execute(insert, (6, UNSET_VALUE, "x")), "unset")

    @check(f"v{version}: warnings")
    def _():
        def warnings_of(statement):
            future = session.execute_async(statement)
            future.result()
            return future.warnings or []

        equal(warnings_of("SELECT count(*) FROM data WHERE p = 1"), [])
        aggregate = ["Aggregation query used without partition key"]
        equal(warnings_of("SELECT count(*) FROM data"), aggregate if version >= 4 else [])
        batch = BatchStatement(batch_type=BatchType.UNLOGGED)
        for p in range(20, 32):
            batch.add(f"INSERT INTO data (p, c, v) VALUES ({p}, 1, 'x')")
        equal(["covering 12 partitions" in text for text in warnings_of(batch)], [True] if version >= 4 else [])

    @check(f"v{version}: JSON")
    def _():
        session.execute("CREATE TABLE documents (p int PRIMARY KEY, l list<int>, m map<text, double>, b blob, t timestamp)")
        document = {"p": 1, "l": [1, 2], "m": {"ä": 1.5}, "b": "0x00ff", "t": "2020-02-03 04:05:06.007Z"}
        rows(session, "INSERT INTO documents JSON ?", (json.dumps(document),))
        [(text,)] = rows(session, "SELECT JSON * FROM documents")
        equal(json.loads(text), document)
        rows(session, "INSERT INTO documents JSON ? DEFAULT UNSET", ('{"p": 1, "l": null}',))
        equal(rows(session, "SELECT l, toJson(m), b FROM documents"), [(None, '{"ä": 1.5}', b"\0\xff")])
        equal(rows(session, "SELECT p FROM documents WHERE p = fromJson(?)", ("1",)), [(1,)])
        raises(InvalidRequest, lambda: rows(session, "INSERT INTO documents JSON ?", ('{"p": 1, "x": 1}',)), "unrecognized column")


def check_metadata(cluster, session):
    @check("metadata: export_as_string makes the same table again")
    def _():
        make_keyspace(session, "described")
        session.execute("CREATE TYPE kind (a int, b frozen<list<text>>)")
        session.execute("""CREATE TABLE complete (a int, b text, c timeuuid, d int, s text STATIC, v frozen<kind>,
            m map<text, int>, PRIMARY KEY ((a, b), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)
            AND comment = 'it''s' AND default_time_to_live = 100""")
        keyspace = cluster.metadata.keyspaces["described"]
        text = keyspace.tables["complete"].export_as_string()
        for part in ("PRIMARY KEY ((a, b), c, d)", "CLUSTERING ORDER BY (c DESC, d ASC)", "s text static",
                     "comment = 'it''s'", "default_time_to_live = 100", "v frozen<kind>", "m map<text, int>"):
            assert part in text, f"{part} is not in {text}"
        assert "CREATE TYPE described.kind" in keyspace.export_as_string()
        session.execute("DROP TABLE complete")
        session.execute(text)
        equal(cluster.metadata.keyspaces["described"].tables["complete"].export_as_string(), text)

    @check("metadata: hosts, partitioner and the replicas of a key")
    def _():
        metadata = cluster.metadata
        equal(metadata.partitioner, "org.apache.cassandra.dht.Murmur3Partitioner")
        [one] = metadata.all_hosts()
        equal((one.datacenter, one.rack, one.is_up), ("datacenter1", "rack1", True))
        equal(metadata.get_replicas("described", b"key"), [one])
        assert one.release_version.startswith("4.")

    @check("metadata: tokens are those of the driver")
    def _():
        session.execute("CREATE TABLE tokens (a text, b int, PRIMARY KEY ((a, b)))")
        insert = session.prepare("INSERT INTO tokens (a, b) VALUES (?, ?)")
        for a, b in (("a", 1), ("ä€😀", -1), ("x" * 40, 7)):
            bound = insert.bind((a, b))
            session.execute(bound)
            [(token,)] = rows(session, "SELECT token(a, b) FROM tokens WHERE a = ? AND b = ?", (a, b))
            equal(token, cluster.metadata.token_map.token_class.from_key(bound.routing_key).value)

    @check("metadata: definitions of another session are heard of")
    def _():
        with connect() as other:
            also = other.connect()
            also.execute("CREATE TABLE described.by_other (a int PRIMARY KEY)")
            cluster.refresh_schema_metadata()
            assert "by_other" in cluster.metadata.keyspaces["described"].tables


def check_cqlsh(session):
    @check("cqlsh: what it asks at its start")
    def _():
        for text in ["SELECT * FROM system.peers_v2", "SELECT * FROM system.peers", "SELECT * FROM system.local WHERE key='local'"] + [
                f"SELECT * FROM system_schema.{table}" for table in ("keyspaces", "tables", "columns", "types", "functions",
                                                                      "aggregates", "triggers", "indexes", "views")] + [
                f"SELECT * from system_virtual_schema.{table}" for table in ("keyspaces", "tables", "columns")] + [
                "select * from system.local where key = 'local'",
                "SELECT host_id, peer, peer_port, native_address, native_port, schema_version FROM system.peers_v2",
                "SELECT peer, host_id, rpc_address, schema_version FROM system.peers",
                "SELECT schema_version FROM system.local WHERE key='local'",
                "SELECT * FROM system_schema.tables WHERE keyspace_name = 'described' AND table_name = 'complete'"]:
            session.execute(text)

    @check("cqlsh: tracing gives an id")
    def _():
        future = session.execute_async("SELECT key FROM system.local", trace=True)
        future.result()
        assert future._query_traces, "no trace"
        session.execute("SELECT * FROM system_traces.sessions WHERE session_id = %s", (future._query_traces[0].trace_id,))
        session.execute("SELECT * FROM system_traces.events WHERE session_id = %s", (future._query_traces[0].trace_id,))

    @check("cqlsh: DESCRIBE")
    def _():
        profile = session.execution_profile_clone_update(EXEC_PROFILE_DEFAULT, row_factory=dict_factory)

        def describe(what):
            return list(session.execute("DESCRIBE " + what, execution_profile=profile))

        names = [row["name"] for row in describe("KEYSPACES")]
        assert "described" in names and "system" in names, names
        tables = [(row["keyspace_name"], row["name"]) for row in describe("TABLES")]
        assert ("described", "complete") in tables, tables
        [table] = describe("TABLE described.complete")
        assert table["create_statement"].startswith("CREATE TABLE described.complete"), table
        [of_cluster] = describe("CLUSTER")
        equal(of_cluster["partitioner"], "Murmur3Partitioner")
        statements = " ".join(row["create_statement"] for row in describe("KEYSPACE described"))
        for part in ("CREATE KEYSPACE described", "CREATE TYPE described.kind", "CREATE TABLE described.complete"):
            assert part in statements, f"{part} is not in {statements}"
        assert describe("TYPE described.kind")
        raises(InvalidRequest, lambda: describe("TABLE described.nothing"))


def check_secure(certificate, account, key):
    """A server that wants to know who one is."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.load_verify_locations(certificate)

    def login(user, password, context=trusting):
        return connect(auth_provider=PlainTextAuthProvider(user, password), ssl_context=context)

    def refused(cluster):
        with cluster:
            error = raises(NoHostAvailable, cluster.connect)
        [cause] = error.errors.values()
        return cause

    with login(account, key) as owner:
        session = owner.connect()

        @check("TLS: the account has version 5, and does everything")
        def _():
            equal(owner.protocol_version, 5)
            make_keyspace(session, "owned")
            session.execute("CREATE TABLE mine (p int PRIMARY KEY, v text)")
            session.execute("CREATE TABLE other (p int PRIMARY KEY)")
            rows(session, "INSERT INTO mine (p, v) VALUES (?, ?)", (1, "x" * 300000))
            equal(rows(session, "SELECT v FROM mine"), [("x" * 300000,)])

        @check("TLS: a certificate that is not trusted is refused by the driver, plain text by the server")
        def _():
            stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            stranger.check_hostname = False
            cause = refused(login(account, key, stranger))
            assert "CERTIFICATE_VERIFY_FAILED" in str(cause), repr(cause)
            refused(connect(auth_provider=PlainTextAuthProvider(account, key)))

        @check("roles: a login needs the role, its password and LOGIN")
        def _():
            session.execute("CREATE ROLE reader WITH PASSWORD = 'secret' AND LOGIN = true")
            session.execute("CREATE ROLE group_of_readers")
            for user, password in (("reader", "wrong"), ("nobody", "secret"), ("group_of_readers", "")):
                assert isinstance(refused(login(user, password)), AuthenticationFailed), user

        @check("roles: a role does what it, or a role of its, was granted")
        def _():
            with login("reader", "secret") as cluster:
                reader = cluster.connect()
                read = "SELECT p FROM owned.mine"
                raises(Unauthorized, lambda: reader.execute(read), "no SELECT permission on <table owned.mine>")
                session.execute("GRANT SELECT ON owned.mine TO group_of_readers")
                session.execute("GRANT group_of_readers TO reader")
                equal(rows(reader, read, ()), [(1,)])
                raises(Unauthorized, lambda: reader.execute("SELECT * FROM owned.other"))
                raises(Unauthorized, lambda: reader.execute("INSERT INTO owned.mine (p) VALUES (2)"), "no MODIFY permission")
                raises(Unauthorized, lambda: reader.execute("CREATE ROLE another"))
                equal([role[0] for role in reader.execute("LIST ROLES")], ["group_of_readers", "reader"])
                reader.execute("ALTER ROLE reader WITH PASSWORD = 'changed'")
                session.execute("REVOKE group_of_readers FROM reader")
                raises(Unauthorized, lambda: reader.execute(read))
            assert isinstance(refused(login("reader", "secret")), AuthenticationFailed)
            with login("reader", "changed") as cluster:
                cluster.connect()


def main():
    if len(sys.argv) > 3:
        check_secure(*sys.argv[3:])
        return 1 if failed else 0

    @check("the highest version is 5")
    def _():
        with connect() as cluster:
            cluster.connect()
            equal(cluster.protocol_version, 5)

    for version in (3, 4, 5):
        with connect(protocol_version=version, compression=False) as cluster:
            drive(cluster, cluster.connect(), version)

    try:
        import lz4.block  # noqa: F401
        compressions = ["lz4"]
    except ImportError:
        compressions = []
        print("not run: lz4, there is no module for it", flush=True)
    for compression in compressions:
        for version in (4, 5):
            @check(f"{compression} in version {version}")
            def _(version=version):
                with connect(protocol_version=version, compression=compression) as cluster:
                    session = cluster.connect()
                    make_keyspace(session, f"packed{version}")
                    session.execute("CREATE TABLE t (p int PRIMARY KEY, v text)")
                    for p, size in enumerate((0, 10, 1000, 200000, 1000000)):
                        rows(session, "INSERT INTO t (p, v) VALUES (?, ?)", (p, "xy" * (size // 2)))
                        equal(rows(session, "SELECT v FROM t WHERE p = ?", (p,)), [("xy" * (size // 2),)])
                    connections = [pool._connection for pool in session.get_pools()]
                    assert all(connection._compressor for connection in connections), "not compressed"

    with connect() as cluster:
        session = cluster.connect()
        check_metadata(cluster, session)
        check_cqlsh(session)

    @check("a server that is not there is told")
    def _():
        raises((NoHostAvailable, OperationTimedOut), lambda: Cluster([host], port=1, connect_timeout=2).connect())

    return 1 if failed else 0


sys.exit(main())
