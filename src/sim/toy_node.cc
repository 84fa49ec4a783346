#include "sim/toy_node.h"

#include <algorithm>

#include "base/bytes.h"
#include "sim/witness.h"
#include "sim/world.h"

namespace orrery::sim {

namespace {

using runtime::Task;
using std::chrono::milliseconds;

const GroupId kGroup(1);
const NodeId kLeader(1);

// An entry: key, whether there is a value, value.
std::string EncodeEntry(const std::string& key, const std::optional<std::string>& value) {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.Bytes(key);
  encoder.Bool(value.has_value());
  encoder.Bytes(value.value_or(""));
  return bytes;
}

ItemChange DecodeEntry(std::string_view bytes) {
  Decoder decoder(bytes);
  ItemChange change{.key = std::string(decoder.Bytes())};
  const bool has = decoder.Bool();
  const std::string value(decoder.Bytes());
  if (has) {
    change.value = value;
  }
  return change;
}

std::string EncodeOp(const ClientOp& op) {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U8(static_cast<uint8_t>(op.kind));
  encoder.Bytes(op.key);
  encoder.Bytes(op.value);
  encoder.Bytes(op.if_match);
  return bytes;
}

ClientOp DecodeOp(std::string_view bytes) {
  Decoder decoder(bytes);
  ClientOp op;
  op.kind = static_cast<OpKind>(decoder.U8());
  op.key = decoder.Bytes();
  op.value = decoder.Bytes();
  op.if_match = decoder.Bytes();
  return op;
}

std::string EncodeResult(const OpResult& result) {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U8(static_cast<uint8_t>(result.code));
  encoder.Bytes(result.value);
  encoder.Bytes(result.etag);
  encoder.U64(result.lsn.value());
  return bytes;
}

OpResult DecodeResult(std::string_view bytes) {
  Decoder decoder(bytes);
  OpResult result;
  result.code = static_cast<Code>(decoder.U8());
  result.value = decoder.Bytes();
  result.etag = decoder.Bytes();
  result.lsn = Lsn(decoder.U64());
  result.group = kGroup;
  return result;
}

class ToyNode final : public SimNode {
 public:
  ToyNode(Environment env, ToyBug bug) : env_(std::move(env)), bug_(bug) {}

  Status Start() override {
    log_ = env_.open_log({.spaces = {"log"}});
    auto at = log_->NewIterator(0, "", "");
    env_.witness.OnStarted(env_.self, kGroup, Lsn());
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      Apply(std::string(at->value()));
    }
    written_ = synced_ = applied_;
    next_ = items_;
    if (leads()) {
      env_.witness.OnLeading(env_.self, kGroup, term());
      worker().Spawn(SendLoop());
    }
    return Status::Ok();
  }

  bool CommitStep() override {
    if (unsynced_.empty()) {
      return false;
    }
    storage::Batch batch;
    for (const std::string& entry : unsynced_) {
      std::string key;
      Encoder(key).U64(++written_);
      batch.Put(0, key, entry);
    }
    unsynced_.clear();
    if (!log_->Write(batch, storage::WriteMode::kSynced).ok()) {
      broken_ = true;
      return true;
    }
    worker().Post([this, last = written_] {
      synced_ = last;
      ApplySynced();
    });
    return true;
  }
  bool ApplyStep() override { return false; }

  void OnFrame(NodeId from, std::string frame) override {
    worker().Post([this, from, frame = std::move(frame)] { Receive(from, frame); });
  }
  Task<std::string> OnCall(NodeId from, std::string request) override {
    co_return EncodeResult(co_await Execute(DecodeOp(request)));
  }
  Task<OpResult> Execute(ClientOp op) override {
    auto run = [this, op = std::move(op)] { return ExecuteHere(op); };
    co_return co_await runtime::OnWorker(worker(), run);
  }

  std::vector<ReplicaReport> Report() override {
    return {{kGroup, term(), leads(), Lsn(applied_)}};
  }
  uint64_t StateHash(GroupId) override {
    std::string all;
    for (const auto& [key, value] : items_) {
      all += key + "=" + value + ";";
    }
    return HashOf(all);
  }

 private:
  using Items = std::map<std::string, std::string>;
  bool leads() const { return env_.self == kLeader || bug_ == ToyBug::kAllLead; }
  uint64_t term() const { return bug_ == ToyBug::kAllLead ? 1 : env_.incarnation; }
  runtime::Worker& worker() { return env_.workers.at(0); }

  // --- operations --------------------------------------------------------------------------------

  Task<OpResult> ExecuteHere(ClientOp op) {
    if (op.kind == OpKind::kSessionRead) {
      co_return co_await SessionRead(std::move(op));
    }
    if (op.kind == OpKind::kRead && (leads() || bug_ == ToyBug::kReadFollowers)) {
      co_return ReadHere(op.key);
    }
    if (op.kind == OpKind::kBoundedRead && (leads() || bug_ == ToyBug::kIgnoreBound)) {
      co_return ReadHere(op.key);
    }
    if (!leads()) {
      auto answer = co_await env_.transport.Call(kLeader, EncodeOp(op));
      co_return answer ? DecodeResult(*answer) : OpResult{.code = answer.error().code()};
    }
    co_return co_await Write(std::move(op));
  }

  OpResult ReadHere(const std::string& key) {
    auto found = items_.find(key);
    if (found == items_.end()) {
      return {Code::kNotFound, "", "", kGroup, Lsn(applied_)};
    }
    return {Code::kOk, found->second, "e" + found->second, kGroup, Lsn(applied_)};
  }

  Task<OpResult> SessionRead(ClientOp op) {
    for (int tries = 0; op.session[kGroup].value() > applied_ && bug_ != ToyBug::kIgnoreSession;
         ++tries) {
      if (tries == 20) {
        co_return OpResult{.code = Code::kSessionNotReached};
      }
      co_await runtime::Sleep(milliseconds(10));
    }
    co_return ReadHere(op.key);
  }

  // Evaluated against what all writes before it will have left.
  Task<OpResult> Write(ClientOp op) {
    if (broken_) {
      co_return OpResult{.code = Code::kUnavailable};
    }
    const Code code = Evaluate(op);
    if (code == Code::kOk) {
      std::optional<std::string> value;
      if (op.kind != OpKind::kDelete) {
        value = next_[op.key] = op.value;
      } else {
        next_.erase(op.key);
      }
      unsynced_.push_back(EncodeEntry(op.key, value));
      not_applied_.push_back(unsynced_.back());
    }
    // A refusal too waits for what it was evaluated against.
    const uint64_t index = applied_ + not_applied_.size();
    if (bug_ == ToyBug::kAcknowledgeEarly) {
      synced_ = index;
      ApplySynced();
    }
    while (applied_ < index) {
      if (broken_) {
        co_return OpResult{.code = Code::kUnknownOutcome};
      }
      co_await runtime::Sleep(milliseconds(1));
    }
    co_return OpResult{code, "", "e" + op.value, kGroup, Lsn(applied_)};
  }

  Code Evaluate(const ClientOp& op) {
    auto found = next_.find(op.key);
    const bool there = found != next_.end();
    if (op.kind == OpKind::kCreate) {
      return there ? Code::kAlreadyExists : Code::kOk;
    }
    if (op.kind == OpKind::kUpsert) {
      return Code::kOk;
    }
    if (!there) {
      return Code::kNotFound;
    }
    const bool fits = op.if_match.empty() || op.if_match == "e" + found->second;
    return fits || bug_ == ToyBug::kIgnoreEtag ? Code::kOk : Code::kPreconditionFailed;
  }

  void ApplySynced() {
    while (applied_ < synced_ && !not_applied_.empty()) {
      Apply(not_applied_.front());
      not_applied_.erase(not_applied_.begin());
    }
  }

  void Apply(std::string entry) {
    ItemChange change = DecodeEntry(entry);
    ++applied_;
    if (!leads() && env_.incarnation > 1 && applied_ % 50 == 0) {
      if (bug_ == ToyBug::kSkipEntry) {
        return;
      }
      if (bug_ == ToyBug::kApplyOther) {
        change.value = "v1";
        entry += "!";
      }
    }
    if (bug_ == ToyBug::kForgetWrite && applied_ % 20 == 0) {
      // Not even the leader.
    } else if (change.value) {
      items_[change.key] = *change.value;
    } else {
      items_.erase(change.key);
    }
    env_.witness.OnApplied(env_.self, kGroup, Lsn(applied_), 0, HashOf(entry), {change});
  }

  // --- replication -------------------------------------------------------------------------------

  // The leader tells each follower, again and again, what it has not confirmed.
  Task<> SendLoop() {
    for (;; co_await runtime::Sleep(milliseconds(20))) {
      for (NodeId node : env_.nodes) {
        const uint64_t match = match_[node];
        if (node == env_.self || match >= synced_ || broken_) {
          continue;
        }
        auto read = [this, match] { return ReadLog(match + 1); };
        std::vector<std::string> entries = co_await runtime::OnBlocking(env_.workers, read);
        std::string frame;
        Encoder encoder(frame);
        encoder.U64(match + 1);
        encoder.Varint(entries.size());
        for (const std::string& entry : entries) {
          encoder.Bytes(entry);
        }
        env_.transport.Send(node, std::move(frame));
        if (bug_ == ToyBug::kNeverResend) {
          match_[node] = match + entries.size();
        }
      }
    }
  }

  std::vector<std::string> ReadLog(uint64_t first) {
    std::string key;
    Encoder(key).U64(first);
    auto at = log_->NewIterator(0, key, "");
    std::vector<std::string> entries;
    for (at->SeekToFirst(); at->Valid() && entries.size() < 50; at->Next()) {
      entries.emplace_back(at->value());
    }
    return entries;
  }

  void Receive(NodeId from, const std::string& frame) {
    Decoder decoder(frame);
    const uint64_t first = decoder.U64();
    if (env_.self == kLeader) {  // what a follower has synced; less, if it has lost something
      match_[from] = first;
      return;
    }
    const uint64_t count = decoder.Varint();
    for (uint64_t i = 0; i < count; ++i) {
      const std::string entry(decoder.Bytes());
      if (first + i == applied_ + not_applied_.size() + 1) {
        unsynced_.push_back(entry);
        not_applied_.push_back(entry);
      }
    }
    std::string answer;
    Encoder(answer).U64(synced_);
    env_.transport.Send(from, std::move(answer));
  }

  const Environment env_;
  const ToyBug bug_;
  std::unique_ptr<storage::Engine> log_;
  bool broken_ = false;
  std::vector<std::string> unsynced_;
  std::vector<std::string> not_applied_;  // with those that are not synced
  uint64_t written_ = 0;
  uint64_t synced_ = 0;
  uint64_t applied_ = 0;
  Items items_;  // as applied
  Items next_;   // as they will be; on the leader
  std::map<NodeId, uint64_t> match_;
};

}  // namespace

MakeNode ToyCluster(ToyBug bug) {
  return [bug](Environment env) -> std::unique_ptr<SimNode> {
    return std::make_unique<ToyNode>(std::move(env), bug);
  };
}

}  // namespace orrery::sim
