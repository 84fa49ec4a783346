#include "sim/workload.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/check.h"

namespace orrery::sim {

namespace {

using std::chrono::milliseconds;

const std::vector<OpKind> kWrites = {OpKind::kCreate,  OpKind::kUpsert,  OpKind::kUpsert,
                                     OpKind::kReplace, OpKind::kReplace, OpKind::kDelete};

}  // namespace

Workload::Workload(World& world, Witness& witness, Machines& machines, WorkloadOptions options)
    : world_(world),
      witness_(witness),
      machines_(machines),
      options_(options),
      chance_(world.seed(), "workload") {
  for (size_t i = 0; i < options_.clients; ++i) {
    clients_.push_back(std::make_unique<Client>());
  }
  for (size_t i = 0; i < options_.items; ++i) {
    items_.push_back({.key = "i" + std::to_string(items_.size())});
    current_.push_back(&items_.back());
  }
}

void Workload::Start() {
  for (auto& client : clients_) {
    NextLater(*client);
  }
}

void Workload::StartLastCalls() {
  ORRERY_CHECK(stopping_ && idle());
  last_ = true;
  stopping_ = false;
  for (Item& item : items_) {
    if (item.calls > 0) {
      left_.push_back({&item, OpKind::kRead});
    }
  }
  Start();
}

// --- asking --------------------------------------------------------------------------------------

void Workload::NextLater(Client& client) {
  const Duration think = last_ ? milliseconds(1) : options_.think_most;
  world_.After(chance_.Mostly(Duration(1), think), [this, &client] { Next(client); });
}

void Workload::Next(Client& client) {
  if (stopping_ || client.busy || (last_ && left_.empty())) {
    return;
  }
  Machine* machine = AnyMachine();
  if (machine == nullptr) {
    return NextLater(client);
  }
  Choose(client);
  Ask(client, *machine);
}

Machine* Workload::AnyMachine() {
  Machine* machine = machines_[chance_.Below(machines_.size())].get();
  return machine->speaks() ? machine : nullptr;
}

Workload::Item& Workload::AnyItem() {
  Item*& item = current_[chance_.Below(current_.size())];
  if (item->calls >= options_.calls_max || item->unknown >= options_.unknown_max) {
    items_.push_back({.key = "i" + std::to_string(items_.size())});
    item = &items_.back();
  }
  return *item;
}

void Workload::Choose(Client& client) {
  client.op = {};
  if (last_) {
    std::tie(client.item, client.op.kind) = left_.back();
    left_.pop_back();
  } else {
    client.item = &AnyItem();
    const uint64_t dice = chance_.Below(100);
    client.op.kind = dice < 28   ? OpKind::kRead
                     : dice < 44 ? OpKind::kSessionRead
                     : dice < 55 ? OpKind::kBoundedRead
                                 : chance_.Pick(kWrites);
  }
  Item& item = *client.item;
  client.op.key = item.key;
  if (client.op.kind == OpKind::kSessionRead) {
    client.op.session = client.session;
  }
  if (client.op.kind == OpKind::kBoundedRead) {
    // Clocks are a little slower than virtual time, or faster.
    client.floor = witness_.AcknowledgedUntil(item.key, world_.now() - kStalenessTime * 11 / 10);
  }
  if (ReadsWeakly(client.op.kind)) {
    return;
  }
  Call call{.kind = client.op.kind, .begin = order_++};
  if (call.kind != OpKind::kRead) {
    ChooseWhatToWrite(client, call);
  } else if (last_) {
    item.last_read = item.history.size();
  }
  client.op.otherwise = client.asked % 2 == 1;
  client.call = item.history.size();
  item.history.push_back(call);
  ++item.calls;
}

void Workload::ChooseWhatToWrite(Client& client, Call& call) {
  ClientOp& op = client.op;
  if (op.kind != OpKind::kDelete) {
    call.value = next_value_++;
    op.value = "v" + std::to_string(call.value);
  }
  auto known = client.etags.find(op.key);
  const bool conditional = op.kind == OpKind::kReplace || op.kind == OpKind::kDelete;
  if (conditional && known != client.etags.end() && chance_.Percent(60)) {
    call.if_match = known->second.first;
    op.if_match = known->second.second;
  }
}

void Workload::Ask(Client& client, Machine& machine) {
  const uint64_t asked = ++client.asked;
  client.busy = true;
  client.node = machine.id();
  ++busy_;
  world_.Note("ask", {asked, machine.id().value(), static_cast<uint64_t>(client.op.kind)},
              client.op.key + " " + client.op.value);
  world_.After(options_.patience, [this, &client, asked] {
    if (client.busy && client.asked == asked) {
      NoAnswer(client, true);
    }
  });
  auto run = [](Workload& self, Client& client, Machine& machine, SimNode& node, ClientOp op,
                uint64_t asked) -> runtime::Task<> {
    const OpResult result = co_await node.Execute(std::move(op));
    if (client.busy && client.asked == asked && machine.speaks()) {
      self.OnAnswer(client, result);
    }
  };
  machine.Spawn([&](SimNode& node) { return run(*this, client, machine, node, client.op, asked); });
}

// --- answers -------------------------------------------------------------------------------------

void Workload::OnAnswer(Client& client, const OpResult& result) {
  world_.Note("answered", {client.asked, static_cast<uint64_t>(result.code), result.lsn.value()},
              result.value);
  switch (result.code) {
    case Code::kOk:
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kPreconditionFailed: Take(client, result); return End(client);
    case Code::kUnknownOutcome: return NoAnswer(client, true);
    case Code::kUnavailable:
    case Code::kNotLeader:
    case Code::kTimeout:
    case Code::kThrottled:
    case Code::kMoved:
    case Code::kSessionNotReached: return NoAnswer(client, false);
    default:
      world_.Fail("a client of node " + client.node.ToString() + " got " +
                  std::string(CodeName(result.code)));
      return NoAnswer(client, true);
  }
}

void Workload::Take(Client& client, const OpResult& result) {
  const ClientOp& op = client.op;
  const bool ok = result.code == Code::kOk;
  const bool reads = Reads(op.kind);
  if (reads) {
    ++witness_.totals().reads;
  }
  if (op.kind == OpKind::kSessionRead) {
    witness_.OnSessionRead(op, result);
  } else if (op.kind == OpKind::kBoundedRead) {
    witness_.OnBoundedRead(op, client.floor, result);
  } else {
    Call& call = client.item->history[client.call];
    call.end = order_++;
    call.code = result.code;
    if (reads || !ok) {
      witness_.OnStrongAnswer(client.session, op, result);
    }
    if (reads && ok) {
      call.read = ValueOf(result.value);
    } else if (ok) {
      witness_.OnAcknowledged(op, result);
    }
  }
  if (ok && op.kind != OpKind::kDelete) {
    client.etags[op.key] = {ValueOf(reads ? result.value : op.value), result.etag};
  }
  const bool is_current =
      std::find(current_.begin(), current_.end(), client.item) != current_.end();
  if (last_ && reads && is_current) {
    left_.push_back({client.item, OpKind::kUpsert});
  }
  Lsn& seen = client.session[result.group];
  seen = std::max(seen, result.lsn);
}

void Workload::NoAnswer(Client& client, bool unknown) {
  const bool reads = Reads(client.op.kind);
  if (!ReadsWeakly(client.op.kind)) {
    Call& call = client.item->history[client.call];
    if (unknown && !reads) {
      ++client.item->unknown;
      ++witness_.totals().unknown;
    } else {
      call.code = Code::kUnavailable;
      --client.item->calls;
    }
  }
  if (last_) {
    left_.push_back({client.item, client.op.kind});
  }
  End(client);
}

void Workload::End(Client& client) {
  client.busy = false;
  --busy_;
  NextLater(client);
}

void Workload::OnDeath(NodeId node) {
  for (auto& client : clients_) {
    if (client->busy && client->node == node) {
      NoAnswer(*client, true);
    }
  }
}

ItemValue Workload::ValueOf(const std::string& text) {
  ItemValue value = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || text[0] != 'v' || std::from_chars(text.data() + 1, end, value).ptr != end ||
      value >= next_value_) {
    world_.Fail("a client read '" + text + "', which nobody has written");
  }
  return value;
}

// --- the verdict ---------------------------------------------------------------------------------

void Workload::Check() {
  for (const Item& item : items_) {
    CheckItem(item);
  }
}

void Workload::CheckItem(const Item& item) {
  std::vector<Call> all;
  std::vector<Call> without_last;
  std::string text;
  for (size_t i = 0; i < item.history.size(); ++i) {
    const Call& call = item.history[i];
    if (call.code == Code::kUnavailable || (call.kind == OpKind::kRead && call.end == kNever)) {
      continue;
    }
    all.push_back(call);
    if (i != item.last_read || !last_) {
      without_last.push_back(call);
    }
    text += "\n    " + call.ToString();
  }
  const Verdict verdict = all.size() > kHistoryMax ? Verdict::kTooHard : Linearizable(all);
  if (verdict == Verdict::kTooHard) {
    world_.Note("too hard to check", {all.size()}, item.key);
    ++witness_.totals().too_hard;
  }
  if (verdict != Verdict::kNo) {
    return;
  }
  const bool lost = Linearizable(without_last) == Verdict::kYes;
  world_.Fail((lost ? "an acknowledged write was lost: the last read of item "
                    : "not linearizable: item ") +
              item.key + text);
}

}  // namespace orrery::sim
