# ./dev cluster: four nodes on this machine. Sourced after tools/dev_lib.sh.

cluster_nodes=4
cluster_data=$data-cluster
cluster_files=build/cluster  # process ids and logs
cluster_ports=$cluster_data/ports

node_data() { echo "$cluster_data/node$1"; }
node_pid() { running_pid "$cluster_files/$1.pid" "$(node_data "$1") "; }
# client_port N, peer_port N: the file has the four ports for clients, then the four for the nodes themselves.
client_port() { sed -n "$1p" "$cluster_ports"; }
peer_port() { sed -n "$((cluster_nodes + $1))p" "$cluster_ports"; }
node_endpoint() { echo "http://127.0.0.1:$(client_port "$1")/"; }

# A cluster keeps its ports: its nodes know each other by them.
choose_ports() {
  local first=$1
  [ -e "$cluster_ports" ] && return
  mkdir -p "$cluster_data"
  if [ -n "$first" ]; then
    seq "$first" $((first + 2 * cluster_nodes - 1)) > "$cluster_ports"
  else
    python3 - "$((2 * cluster_nodes))" > "$cluster_ports" <<'PYTHON'
import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print("\n".join(str(s.getsockname()[1]) for s in sockets))
PYTHON
  fi
}

# Starts node N in the background.
start_node() {
  local n=$1 join=()
  [ "$n" = 1 ] || join=(--join "127.0.0.1:$(peer_port 1)")
  mkdir -p "$cluster_files"
  setsid nohup "$PWD/$orrery" start --dev --data "$(node_data "$n")" --port "$(client_port "$n")" \
    --cluster-listen "127.0.0.1:$(peer_port "$n")" "${join[@]}" \
    --set cassandra.port=0 --set storage.cache_mb=64 --set storage.write_buffer_mb=16 > "$cluster_files/$n.log" 2>&1 < /dev/null &
  echo $! > "$cluster_files/$n.pid"
}

# Waits until node N answers.
wait_for_node() {
  local n=$1 pid deadline=$((SECONDS + 60))
  pid=$(cat "$cluster_files/$n.pid")
  until healthy "$(node_endpoint "$n")"; do
    if ! alive "$pid" || [ $SECONDS -ge $deadline ]; then
      echo "node $n did not come up; the end of $cluster_files/$n.log:" >&2
      tail -n 20 "$cluster_files/$n.log" >&2
      return 1
    fi
    sleep 0.1
  done
}

# Waits until all nodes are in and no set lacks a replica.
wait_for_sets() {
  local deadline=$((SECONDS + 60)) status
  while [ $SECONDS -lt $deadline ]; do
    status=$("$orrery" status --json --data "$(node_data 1)" 2>/dev/null) &&
      [ "$(grep -o '"state":"active","alive":true' <<< "$status" | wc -l)" = $cluster_nodes ] &&
      grep -q '"underReplicated":0,"moving":0,"withoutLeader":0' <<< "$status" && return
    sleep 0.2
  done
  echo "the replica sets are not complete after 60 s; ./dev cluster status shows them" >&2
  return 1
}

cluster_access() {
  local n
  for n in $(seq $cluster_nodes); do
    printf '  node %s   %s   ' "$n" "$(node_endpoint "$n")"
    node_pid "$n" > /dev/null && echo "process $(node_pid "$n"), log $cluster_files/$n.log" || echo "not running"
  done
  cat <<TEXT
  key      $key
  data     $cluster_data

Any node serves any client:
  AccountEndpoint=$(node_endpoint 1);AccountKey=$key;
  database demo, containers planets (one partition) and moons (three)

  ./dev cluster status     nodes, replica sets, partitions
  ./dev cluster kill 2     kill -9 of node 2: the others go on
  ./dev cluster revive 2   start it again: it catches up
  ./dev cluster down       end all nodes; the data stay
TEXT
}

cluster_up() {
  local n joined pids=0
  for n in $(seq $cluster_nodes); do node_pid "$n" > /dev/null && pids=$((pids + 1)); done
  if [ $pids -gt 0 ]; then
    echo "the cluster is already running"; cluster_access; return
  fi
  case ${1:-} in *[!0-9]*) echo "not a port: $1" >&2; return 2 ;; esac
  dev_build orrery && choose_ports "${1:-}" || return 1
  if [ -n "${1:-}" ] && [ "$1" != "$(client_port 1)" ]; then
    echo "the nodes of $cluster_data know each other by other ports, from $(client_port 1); remove it to begin anew" >&2
    return 1
  fi
  for n in $(seq $cluster_nodes); do
    if healthy "$(node_endpoint "$n")"; then
      echo "another program already answers at $(node_endpoint "$n")" >&2; return 1
    fi
  done
  # New ones join one after the other, so that their ids are 1 to 4. Later they need each other to answer.
  for n in $(seq $cluster_nodes); do
    joined=; [ ! -e "$(node_data "$n")/node.json" ] || joined=yes
    start_node "$n"
    [ -n "$joined" ] || wait_for_node "$n" || { cluster_down >&2; return 1; }
  done
  for n in $(seq $cluster_nodes); do wait_for_node "$n" || { cluster_down >&2; return 1; }; done
  tools/example_data "$(node_endpoint 1)" "$key" && wait_for_sets || return 1
  echo "a cluster of $cluster_nodes nodes is running; ./dev cluster down ends it"
  cluster_access
}

cluster_down() {
  local n pid pids=()
  for n in $(seq $cluster_nodes); do
    if pid=$(node_pid "$n"); then kill "$pid"; pids+=("$pid"); fi
  done
  for pid in "${pids[@]}"; do wait_for_end "$pid"; done
  rm -f "$cluster_files"/*.pid
  [ ${#pids[@]} -gt 0 ] && echo "the cluster is stopped" || echo "the cluster is not running"
}

cluster_kill() {
  local pid
  pid=$(node_pid "$1") || { echo "node $1 is not running" >&2; return 1; }
  kill -9 "$pid"
  wait_for_end "$pid"
  rm -f "$cluster_files/$1.pid"
  echo "node $1 is killed; ./dev cluster revive $1 starts it again"
}

cluster_revive() {
  if node_pid "$1" > /dev/null; then echo "node $1 is running"; return; fi
  [ -e "$cluster_ports" ] || { echo "there is no cluster: ./dev cluster" >&2; return 1; }
  start_node "$1" && wait_for_node "$1" && echo "node $1 is running, process $(node_pid "$1")"
}

cluster_status() {
  local n
  for n in $(seq $cluster_nodes); do
    if node_pid "$n" > /dev/null; then "$orrery" status --data "$(node_data "$n")"; return; fi
  done
  echo "the cluster is not running" >&2
  return 1
}

cluster_help() {
  cat <<TEXT
usage: ./dev cluster [port]      start $cluster_nodes nodes with example data; clients at port to port + 3, nodes at the
                                 next four; without it any free ones. Then they stay the same
       ./dev cluster status      nodes, replica sets, partitions
       ./dev cluster kill N      kill -9 of a node
       ./dev cluster revive N    start it again
       ./dev cluster down        end all nodes

data:   $cluster_data (remove it to begin anew)
logs:   $cluster_files
TEXT
}

dev_cluster() {
  case ${1:-} in
    kill|revive)
      case ${2:-} in [1-4]) "cluster_$1" "$2" ;; *) echo "which node? 1 to $cluster_nodes" >&2; return 2 ;; esac ;;
    status) cluster_status ;;
    down) cluster_down ;;
    help|-h|--help) cluster_help ;;
    *) cluster_up "$@" ;;
  esac
}
