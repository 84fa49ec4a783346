#include "replication/snapshot_transfer.h"

#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mutants.h"
#include "runtime/when_all.h"

namespace orrery::replication {

using runtime::Task;
using storage::SnapshotFile;

namespace {

enum class Request : uint8_t { kBegin = 1, kRead = 2, kEnd = 3, kNext = 4 };

constexpr size_t kFilesMax = 100'000;
constexpr Duration kRetryPause = std::chrono::milliseconds(100);
constexpr Duration kWritingWait = std::chrono::seconds(5);  // within what a request may take
constexpr Duration kWritingPoll = std::chrono::milliseconds(20);
constexpr Duration kBreathMax = std::chrono::milliseconds(200);

std::string Answer(const Result<std::string>& result) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(static_cast<uint8_t>(result ? Code::kOk : result.error().code()));
  encoder.Raw(result ? *result : result.error().message());
  return out;
}

Result<std::string> TakeAnswer(Result<std::string> answer) {
  if (!answer) {
    return answer;
  }
  Decoder decoder(*answer);
  auto code = static_cast<Code>(decoder.U8());
  if (!decoder.ok() || code > Code::kInternal) {
    return Error(Code::kUnavailable, "a malformed answer about a snapshot");
  }
  std::string rest(decoder.Rest());
  if (code != Code::kOk) {
    return Error(code, std::move(rest));
  }
  return rest;
}

Result<std::string> ReadPart(const std::string& path, uint64_t offset, size_t size) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return Error(Code::kNotFound, "a file of the snapshot is gone");
  }
  std::string bytes(size, '\0');
  ssize_t got = pread(file, bytes.data(), size, static_cast<off_t>(offset));
  close(file);
  if (got < 0) {
    return Error(Code::kUnavailable, "a file of the snapshot cannot be read");
  }
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

Status AppendPart(const std::string& path, uint64_t offset, std::string_view bytes) {
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) {
    return Status(Code::kUnavailable, "cannot write " + path);
  }
  ssize_t put = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  close(file);
  return put == static_cast<ssize_t>(bytes.size())
             ? Status::Ok()
             : Status(Code::kUnavailable, "cannot write " + path);
}

// Onto the disk: an install that was cut short needs it after the crash.
Status SyncPath(const std::string& path) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  bool ok = file >= 0 && fsync(file) == 0;
  if (file >= 0) {
    close(file);
  }
  return ok ? Status::Ok() : Status(Code::kUnavailable, "cannot sync " + path);
}

// What begins: the answer to kBegin.
struct Opening {
  uint64_t id = 0;
  Lsn applied;
  bool calm = false;

  std::string Encode() const {
    std::string out;
    Encoder encoder(out);
    encoder.U64(id);
    encoder.U64(applied.value());
    encoder.Bool(calm);
    return out;
  }
  static Result<Opening> Decode(std::string_view bytes) {
    Decoder decoder(bytes);
    Opening opening{.id = decoder.U64(), .applied = Lsn(decoder.U64()), .calm = decoder.Bool()};
    if (!decoder.done()) {
      return Error(Code::kUnavailable, "a malformed answer about a snapshot");
    }
    return opening;
  }
};

std::string EncodeFile(const SnapshotFile& file) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(storage::Index(file.space));
  encoder.U64(file.bytes);
  encoder.U64(file.hash);
  return out;
}

Result<std::optional<SnapshotFile>> DecodeFile(std::string_view bytes) {
  if (bytes.empty()) {
    return std::nullopt;
  }
  Decoder decoder(bytes);
  SnapshotFile file;
  file.space = static_cast<storage::Space>(decoder.U8());
  file.bytes = decoder.U64();
  file.hash = decoder.U64();
  if (!decoder.done()) {
    return Error(Code::kUnavailable, "a malformed answer about a snapshot");
  }
  return file;
}

}  // namespace

SnapshotTransfer::SnapshotTransfer(storage::Store& store, runtime::WorkerPool& workers,
                                   const Clock& clock, Random& random, Transport& transport,
                                   std::string folder, SnapshotLimits limits)
    : store_(store),
      workers_(workers),
      clock_(clock),
      random_(random),
      transport_(transport),
      folder_(std::move(folder)),
      limits_(limits) {
  // What an earlier process left behind is of no use to anyone: the store has finished the installs
  // that it could.
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

SnapshotTransfer::~SnapshotTransfer() {
  std::lock_guard lock(mutex_);
  std::error_code ignored;
  for (const auto& [id, outgoing] : outgoing_) {
    std::filesystem::remove_all(outgoing.folder, ignored);
  }
  std::filesystem::remove(folder_, ignored);  // if nothing is left in it
}

// Receiver ----------------------------------------------------------------------------------------

Task<Result<ReceivedSnapshot>> SnapshotTransfer::Fetch(NodeId from, GroupId group, Lsn index,
                                                       GivenUp given_up) {
  if (from == NodeId()) {
    co_return Error(Code::kUnavailable, "nobody is known to have one");
  }
  std::string begin;
  Encoder encoder(begin);
  encoder.U8(static_cast<uint8_t>(Request::kBegin));
  encoder.U64(group.value());
  encoder.U64(index.value());
  ORRERY_CO_TRY(std::string answer, TakeAnswer(co_await Call(from, std::move(begin))));
  ORRERY_CO_TRY(Opening opening, Opening::Decode(answer));
  if (opening.applied < index && !Active(Mutant::kOldSnapshot)) {
    co_return Error(Code::kUnavailable, "the snapshot is older than was promised");
  }
  ReceivedSnapshot received{.id = opening.id,
                            .folder = folder_ + "/in-" + std::to_string(random_.Next()),
                            .applied = opening.applied};
  std::error_code error;
  std::filesystem::create_directories(received.folder, error);
  if (error) {
    co_return Error(Code::kUnavailable, "cannot make " + received.folder);
  }
  if (Status status = co_await FetchFiles(from, opening.calm, given_up, received); !status.ok()) {
    Drop(received);
    co_return Error(status);
  }
  auto sync = [&] { return SyncPath(received.folder); };
  if (Status status = co_await runtime::OnBlocking(workers_, sync); !status.ok()) {
    Drop(received);
    co_return Error(status);
  }
  std::string end;
  Encoder end_encoder(end);
  end_encoder.U8(static_cast<uint8_t>(Request::kEnd));
  end_encoder.U64(received.id);
  (void)co_await Call(from, std::move(end));
  co_return received;
}

Task<Result<std::string>> SnapshotTransfer::Call(NodeId to, std::string request) {
  std::string message(1, static_cast<char>(CallKind::kSnapshot));
  message += request;
  return transport_.Call(to, std::move(message));
}

// How long to rest after work that took so long.
Duration SnapshotTransfer::Breath(Duration took) const {
  double rest = static_cast<double>(took.count()) * (1 / limits_.calm_share - 1);
  return std::min(Duration(static_cast<int64_t>(rest)), kBreathMax);
}

Task<Status> SnapshotTransfer::FetchFiles(NodeId from, bool calm, const GivenUp& given_up,
                                          ReceivedSnapshot& received) {
  Result<Next> next = co_await AskNext(from, received.id, 0);
  while (next && *next) {
    auto number = static_cast<uint32_t>(received.files.size());
    if (number >= kFilesMax) {
      co_return Status(Code::kUnavailable, "a snapshot of too many files");
    }
    SnapshotFile file = **next;
    file.path = received.folder + "/" + std::to_string(number) + ".sst";
    received.files.push_back(file);
    // The sender writes the next one meanwhile.
    std::vector<Task<Result<Next>>> both;
    both.push_back(FetchFile(from, received.id, number, calm, given_up, file));
    both.push_back(AskNext(from, received.id, number + 1));
    std::vector<Result<Next>> done = co_await runtime::WhenAll(std::move(both));
    if (!done[0]) {
      co_return done[0].error();
    }
    next = std::move(done[1]);
  }
  co_return next ? Status::Ok() : next.error();
}

Task<Result<SnapshotTransfer::Next>> SnapshotTransfer::AskNext(NodeId from, uint64_t id,
                                                               uint32_t number) {
  Result<std::string> answer = Error(Code::kUnavailable);
  for (int tries = 0; tries < limits_.tries; ++tries) {
    std::string next;
    Encoder encoder(next);
    encoder.U8(static_cast<uint8_t>(Request::kNext));
    encoder.U64(id);
    encoder.U32(number);
    answer = TakeAnswer(co_await Call(from, std::move(next)));
    if (answer) {
      co_return DecodeFile(*answer);
    }
    if (answer.error().code() == Code::kNotFound) {
      break;
    }
    co_await runtime::Sleep(kRetryPause);
  }
  co_return Error(Code::kUnavailable, answer.error().message());
}

// In chunks, each tried again from where it stopped; then the whole file is checked.
Task<Result<SnapshotTransfer::Next>> SnapshotTransfer::FetchFile(NodeId from, uint64_t id,
                                                                 uint32_t number, bool calm,
                                                                 const GivenUp& given_up,
                                                                 const SnapshotFile& file) {
  int failures = 0;
  for (uint64_t offset = 0; offset < file.bytes;) {
    if (given_up()) {
      co_return Error(Code::kUnavailable, "nobody wants the snapshot any more");
    }
    std::string read;
    Encoder encoder(read);
    encoder.U8(static_cast<uint8_t>(Request::kRead));
    encoder.U64(id);
    encoder.U32(number);
    encoder.U64(offset);
    encoder.U32(
        static_cast<uint32_t>(std::min<uint64_t>(limits_.chunk_bytes, file.bytes - offset)));
    Instant started = clock_.Now();
    Result<std::string> chunk = TakeAnswer(co_await Call(from, std::move(read)));
    if (!chunk || chunk->empty()) {
      if (++failures >= limits_.tries || (chunk && chunk->empty()) ||
          chunk.error().code() == Code::kNotFound) {
        co_return Error(Code::kUnavailable, "a snapshot could not be fetched to its end");
      }
      co_await runtime::Sleep(kRetryPause);
      continue;
    }
    auto append = [&] { return AppendPart(file.path, offset, *chunk); };
    ORRERY_CO_TRY_STATUS(co_await runtime::OnBlocking(workers_, append));
    offset += chunk->size();
    Duration least(static_cast<int64_t>(chunk->size() * 1'000'000 / limits_.bytes_per_second));
    auto took = std::chrono::duration_cast<Duration>(clock_.Now() - started);
    Duration pause = calm ? Breath(took) : Duration(0);
    if (pause = std::max(pause, least - took); pause > Duration(0)) {
      co_await runtime::Sleep(pause);
    }
  }
  auto check = [&] {
    Result<uint64_t> hash = storage::HashFile(file.path);
    return hash && *hash == file.hash
               ? SyncPath(file.path)
               : Status(Code::kUnavailable, "a file of the snapshot is not what was sent");
  };
  ORRERY_CO_TRY_STATUS(co_await runtime::OnBlocking(workers_, check));
  co_return std::nullopt;
}

void SnapshotTransfer::Drop(const ReceivedSnapshot& snapshot) {
  std::error_code ignored;
  std::filesystem::remove_all(snapshot.folder, ignored);
}

// Sender ------------------------------------------------------------------------------------------

Task<std::string> SnapshotTransfer::Handle(std::string request) {
  Decoder decoder(request);
  auto kind = static_cast<Request>(decoder.U8());
  Result<std::string> result = Error(Code::kInvalidArgument, "a malformed request for a snapshot");
  uint64_t first = decoder.U64();
  if (kind == Request::kBegin) {
    Lsn index(decoder.U64());
    if (decoder.done()) {
      result = co_await Begin(GroupId(first), index);
    }
  } else if (kind == Request::kNext) {
    uint32_t number = decoder.U32();
    if (decoder.done()) {
      result = co_await WriteNext(first, number);
    }
  } else if (kind == Request::kRead) {
    uint32_t file = decoder.U32();
    uint64_t offset = decoder.U64();
    uint32_t size = decoder.U32();
    if (decoder.done()) {
      result = co_await Read(first, file, offset, size);
    }
  } else if (kind == Request::kEnd && decoder.done()) {
    Forget(first);
    result = std::string();
  }
  co_return Answer(result);
}

Task<Result<std::string>> SnapshotTransfer::Begin(GroupId group, Lsn index) {
  Expire();
  uint64_t id = random_.Next() | 1;
  std::string folder = folder_ + "/out-" + std::to_string(id);
  {
    std::lock_guard lock(mutex_);
    if (outgoing_.size() >= limits_.outgoing_max) {
      co_return Error(Code::kUnavailable, "too many snapshots are on their way");
    }
    outgoing_[id] = {.group = group, .folder = folder, .used = clock_.Now()};
  }
  // The extra comes after the view of the state: it may know more, never less.
  std::shared_ptr<storage::Snapshot> at = store_.state().NewSnapshot();
  std::string extra = extra_ ? co_await extra_(group) : std::string();
  bool calm = whole_ && co_await whole_(group);
  auto open = [&]() -> Result<std::shared_ptr<storage::SnapshotWriter>> {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    auto log = store_.Log(group);
    if (!log || log->broken()) {
      return Error(Code::kUnavailable, "there is no such replica here");
    }
    return store_.WriteSnapshot(group, log->identity.spans, folder, std::move(extra), at);
  };
  Result<std::shared_ptr<storage::SnapshotWriter>> writer =
      co_await runtime::OnBlocking(workers_, open);
  if (writer && (*writer)->record().applied < index && !Active(Mutant::kOldSnapshot)) {
    writer = Error(Code::kUnavailable, "this replica is behind");
  }
  if (!writer) {
    Forget(id);
    co_return Error(writer.error());
  }
  std::lock_guard lock(mutex_);
  auto found = outgoing_.find(id);
  if (found == outgoing_.end()) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    co_return Error(Code::kUnavailable, "it took too long to begin");
  }
  found->second.writer = *writer;
  found->second.calm = calm;
  co_return Opening{id, (*writer)->record().applied, calm}.Encode();
}

// Who asks for the next file has checked those before it, except one that may be on its way.
Task<Result<std::string>> SnapshotTransfer::WriteNext(uint64_t id, uint32_t number) {
  std::shared_ptr<storage::SnapshotWriter> writer;
  std::string old;
  bool calm = false;
  for (Instant until = clock_.Now() + kWritingWait; writer == nullptr;) {
    bool writing = false;
    {
      std::lock_guard lock(mutex_);
      auto found = outgoing_.find(id);
      if (found == outgoing_.end() || number > found->second.files.size()) {
        co_return Error(Code::kNotFound, "there is no such snapshot any more");
      }
      Outgoing& outgoing = found->second;
      Use(outgoing);
      if (number < outgoing.files.size()) {
        co_return EncodeFile(outgoing.files[number]);
      }
      writing = outgoing.writing;
      if (!writing && outgoing.writer == nullptr) {
        co_return std::string();
      }
      if (!writing) {
        writer = outgoing.writer;
        calm = outgoing.calm;
        outgoing.writing = true;
        old = number >= 2 ? outgoing.files[number - 2].path : "";
      }
    }
    if (writing && clock_.Now() >= until) {
      co_return Error(Code::kUnavailable, "the next file is not written yet");
    }
    if (writing) {
      co_await runtime::Sleep(kWritingPoll);
    }
  }
  auto write = [&]() -> Result<Next> {
    std::error_code ignored;
    std::filesystem::remove(old, ignored);
    auto since = std::chrono::steady_clock::now();
    return writer->Next([&] {
      auto took = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - since);
      if (calm) {
        workers_.PauseBlocking(Breath(took));
      }
      since = std::chrono::steady_clock::now();
    });
  };
  Result<Next> next = co_await runtime::OnBlocking(workers_, write);
  if (!next) {
    Forget(id);
    co_return Error(next.error());
  }
  std::lock_guard lock(mutex_);
  if (auto found = outgoing_.find(id); found != outgoing_.end()) {
    found->second.writing = false;
    if (*next) {
      found->second.files.push_back(**next);
    } else {
      found->second.writer.reset();
    }
  }
  co_return *next ? EncodeFile(**next) : std::string();
}

Task<Result<std::string>> SnapshotTransfer::Read(uint64_t id, uint32_t file, uint64_t offset,
                                                 uint32_t size) {
  std::string path;
  {
    std::lock_guard lock(mutex_);
    auto found = outgoing_.find(id);
    if (found == outgoing_.end() || file >= found->second.files.size()) {
      co_return Error(Code::kNotFound, "there is no such snapshot any more");
    }
    Use(found->second);
    path = found->second.files[file].path;
  }
  size_t bytes = std::min<size_t>(size, limits_.chunk_bytes);
  auto read = [&] { return ReadPart(path, offset, bytes); };
  co_return co_await runtime::OnBlocking(workers_, read);
}

// REQUIRES: mutex_.
void SnapshotTransfer::Use(Outgoing& outgoing) {
  outgoing.used = clock_.Now();
  if (in_use_) {
    in_use_(outgoing.group);
  }
}

void SnapshotTransfer::Forget(uint64_t id) {
  std::lock_guard lock(mutex_);
  auto found = outgoing_.extract(id);
  if (!found.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(found.mapped().folder, ignored);
  }
}

void SnapshotTransfer::Expire() {
  std::vector<uint64_t> old;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, outgoing] : outgoing_) {
      if (clock_.Now() - outgoing.used > limits_.keep) {
        old.push_back(id);
      }
    }
  }
  for (uint64_t id : old) {
    Forget(id);
  }
}

}  // namespace orrery::replication
