# The steps behind ./dev. Sourced, from the root of the tree.

packages=(clang-19 lld-19 clang-format-19 libclang-rt-19-dev llvm-19 libstdc++-12-dev cmake ninja-build ccache
  pkg-config git ca-certificates curl dpkg-dev xz-utils
  libboost1.81-dev libssl-dev libbson-dev libsimdjson-dev libspdlog-dev libfmt-dev libcli11-dev
  libtomlplusplus-dev prometheus-cpp-dev libjemalloc-dev liblz4-dev libzstd-dev libgflags-dev
  libgtest-dev libbenchmark-dev nodejs npm)
bench_packages=(nginx-light)

cache=${ORRERY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/orrery}
data=${ORRERY_DATA:-$PWD/orrery-data}
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Installs the named Debian packages that are missing; nothing if all are there.
install_missing() {
  local missing=() name
  for name in "$@"; do
    # A Node.js from elsewhere serves as well as Debian's.
    case $name in nodejs|npm) command -v "${name/nodejs/node}" >/dev/null && continue ;; esac
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'install ok installed' || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return
  echo "installing: ${missing[*]}" >&2
  as_root apt-get -q update >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}" >&2
}

# configure FOLDER [cmake flags...]
configure() {
  local folder=$1 rocksdb; shift
  rocksdb=$(tools/build_rocksdb)
  [ -e "$folder/build.ninja" ] && [ "$folder/build.ninja" -nt CMakeLists.txt ] && return
  cmake -G Ninja -S . -B "$folder" -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
    -DORRERY_ROCKSDB="$rocksdb" "$@" > "$folder.configure.log" 2>&1 || { cat "$folder.configure.log" >&2; return 1; }
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
  configure build/release -DCMAKE_BUILD_TYPE=Release
  build_in build/release "${@:-all}"
}
