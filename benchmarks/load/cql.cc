#include "load/cql.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load/sql.h"
#include "load/stream_loop.h"

namespace orrery::load {
namespace {

constexpr char kStartup = 0x01;
constexpr char kReady = 0x02;
constexpr char kQuery = 0x07;
constexpr char kResult = 0x08;
constexpr char kPrepare = 0x09;
constexpr char kExecute = 0x0A;
constexpr size_t kHead = 9;
constexpr size_t kFillerBytes = 64 << 10;
constexpr uint64_t kScanPartitions = 100;
constexpr uint64_t kScanPartitionFactor = 2;  // rows of a partition, for each that a scan reads

void AppendShort(size_t value, std::string& out) {
  out += static_cast<char>(value >> 8);
  out += static_cast<char>(value);
}
void AppendInt(size_t value, std::string& out) {
  AppendShort(value >> 16 & 0xFFFF, out);
  AppendShort(value & 0xFFFF, out);
}
size_t ReadInt(const char* at) {
  auto byte = [at](int i) { return static_cast<size_t>(static_cast<uint8_t>(at[i])); };
  return byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
}

std::string Frame(char opcode, uint32_t stream, std::string_view body) {
  std::string out{0x04, 0x00};
  AppendShort(stream, out);
  out += opcode;
  AppendInt(body.size(), out);
  out += body;
  return out;
}

class CqlChannel final : public Channel {
 public:
  bool MaySend(size_t) const override { return true; }
  uint32_t Call(std::string_view message) override {
    const uint32_t stream = next_stream_;
    next_stream_ = (next_stream_ + 1) & 0x7FFF;
    out_ += Frame(kExecute, stream, message);
    return stream;
  }
  Status Feed(std::string_view bytes, const Done& done) override {
    if (!received_.empty()) {
      received_ += bytes;
      bytes = received_;
    }
    while (bytes.size() >= kHead) {
      const size_t size = ReadInt(bytes.data() + 5);
      if (bytes.size() < kHead + size) {
        break;
      }
      const uint32_t stream = static_cast<uint32_t>(static_cast<uint8_t>(bytes[2])) << 8 |
                              static_cast<uint8_t>(bytes[3]);
      done(stream, bytes[4] == kResult, size);
      bytes.remove_prefix(kHead + size);
    }
    received_ = std::string(bytes);
    return Status::Ok();
  }
  std::string& out() override { return out_; }

 private:
  std::string out_;
  std::string received_;
  uint32_t next_stream_ = 0;
};

// One request and its answer on a socket that blocks: the body.
Result<std::string> Ask(int socket, char opcode, std::string_view body, char wanted) {
  const std::string frame = Frame(opcode, 0, body);
  if (send(socket, frame.data(), frame.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(frame.size())) {
    return Error(Code::kUnavailable, "the server closed a connection");
  }
  std::string got;
  std::array<char, 64 << 10> buffer;
  while (got.size() < kHead || got.size() < kHead + ReadInt(got.data() + 5)) {
    ssize_t bytes = recv(socket, buffer.data(), buffer.size(), 0);
    if (bytes <= 0) {
      return Error(Code::kUnavailable, "the server closed a connection");
    }
    got.append(buffer.data(), static_cast<size_t>(bytes));
  }
  if (got[4] != wanted) {
    return Error(Code::kUnavailable, "the server refused: " + got.substr(kHead));
  }
  return got.substr(kHead);
}

Status Startup(int socket) {
  std::string body;
  AppendShort(1, body);
  for (std::string_view text : {"CQL_VERSION", "3.0.0"}) {
    AppendShort(text.size(), body);
    body += text;
  }
  auto ready = Ask(socket, kStartup, body, kReady);
  return ready ? Status::Ok() : ready.error();
}

Status Query(int socket, std::string_view text) {
  std::string body;
  AppendInt(text.size(), body);
  body += text;
  AppendShort(6, body);  // LOCAL_QUORUM
  body += '\0';
  auto done = Ask(socket, kQuery, body, kResult);
  return done ? Status::Ok() : done.error();
}

Result<std::string> Prepare(int socket, std::string_view text) {
  std::string body;
  AppendInt(text.size(), body);
  body += text;
  ORRERY_TRY(std::string answer, Ask(socket, kPrepare, body, kResult));
  if (answer.size() < 6) {
    return Error(Code::kUnavailable, "the answer to PREPARE is too short");
  }
  const size_t size = ReadInt(answer.data() + 2) & 0xFFFF;
  return answer.substr(6, size);
}

// The body of EXECUTE.
void AppendExecute(std::string_view id, uint16_t consistency,
                   std::initializer_list<std::string_view> values, std::string& out) {
  AppendShort(id.size(), out);
  out += id;
  AppendShort(consistency, out);
  out += '\x01';
  AppendShort(values.size(), out);
  for (std::string_view value : values) {
    AppendInt(value.size(), out);
    out += value;
  }
}

std::string KeyOfItem(uint64_t item) { return fmt::format("item-{:010}", item); }

std::string IntBytes(uint64_t value) {
  std::string bytes;
  AppendInt(static_cast<size_t>(value), bytes);
  return bytes;
}

Result<CqlStatements> PrepareAt(const Endpoint& endpoint, const CqlData& data) {
  ORRERY_TRY(int socket, Connect(endpoint));
  const std::string scans = fmt::format("bench.scans_{}", data.row_bytes);
  auto run = [&]() -> Result<CqlStatements> {
    ORRERY_TRY_STATUS(Startup(socket));
    for (const std::string& text :
         {std::string("CREATE KEYSPACE IF NOT EXISTS bench WITH replication = "
                      "{'class': 'SimpleStrategy', 'replication_factor': 1}"),
          std::string("CREATE TABLE IF NOT EXISTS bench.items (k text PRIMARY KEY, v text)"),
          fmt::format("CREATE TABLE IF NOT EXISTS {} (p int, c int, v text, PRIMARY KEY (p, c))",
                      scans)}) {
      ORRERY_TRY_STATUS(Query(socket, text));
    }
    CqlStatements statements;
    ORRERY_TRY(statements.insert, Prepare(socket, "INSERT INTO bench.items (k, v) VALUES (?, ?)"));
    ORRERY_TRY(statements.select, Prepare(socket, "SELECT v FROM bench.items WHERE k = ?"));
    ORRERY_TRY(statements.insert_row,
               Prepare(socket, fmt::format("INSERT INTO {} (p, c, v) VALUES (?, ?, ?)", scans)));
    ORRERY_TRY(statements.scan,
               Prepare(socket, fmt::format("SELECT c, v FROM {} WHERE p = ? LIMIT {}", scans,
                                           data.scan_rows)));
    return statements;
  };
  auto statements = run();
  close(socket);
  return statements;
}

}  // namespace

Result<CqlStatements> PrepareCql(const std::vector<Endpoint>& nodes, const CqlData& data) {
  CqlStatements statements;
  for (const Endpoint& node : nodes) {
    ORRERY_TRY(statements, PrepareAt(node, data));  // a statement has the same id everywhere
  }
  return statements;
}

std::unique_ptr<Loop> MakeCqlLoop(CqlOptions options, Workload& workload, LoopWatch& watch) {
  auto make = [](int socket, const Endpoint&) -> Result<std::unique_ptr<Channel>> {
    ORRERY_TRY_STATUS(Startup(socket));
    return std::make_unique<CqlChannel>();
  };
  return MakeStreamLoop({.loop = std::move(options.loop),
                         .streams = options.streams,
                         .found_bytes_min = options.found_bytes_min,
                         .make_channel = std::move(make)},
                        workload, watch);
}

size_t FoundBytesMin(std::string_view command, const CqlData& data) {
  if (command == "cql-scan") {
    return data.scan_rows * data.row_bytes;
  }
  return command == "cql-read" ? data.value_bytes : 0;
}

CqlSetupWorkload::CqlSetupWorkload(CqlData data, CqlStatements statements, uint64_t first,
                                   uint64_t step)
    : data_(data),
      statements_(std::move(statements)),
      filler_(MakeFiller(kFillerBytes + std::max(data.value_bytes, data.row_bytes))),
      count_(data.items + kScanPartitions * data.scan_rows * kScanPartitionFactor),
      next_(first),
      step_(step) {}

void CqlSetupWorkload::Append(uint64_t number, std::string& request) const {
  const uint64_t chance = SeededRandom(number).Next();
  const std::string_view text = std::string_view(filler_).substr(chance % kFillerBytes);
  if (number < data_.items) {
    AppendExecute(statements_.insert, data_.consistency,
                  {KeyOfItem(number), text.substr(0, data_.value_bytes)}, request);
    return;
  }
  const uint64_t row = number - data_.items;
  const uint64_t rows = data_.scan_rows * kScanPartitionFactor;
  AppendExecute(statements_.insert_row, data_.consistency,
                {IntBytes(row / rows), IntBytes(row % rows), text.substr(0, data_.row_bytes)},
                request);
}

bool CqlSetupWorkload::Next(std::string& request, uint64_t& number) {
  if (!again_.empty()) {
    number = again_.back();
    again_.pop_back();
  } else if (next_ < count_) {
    number = next_;
    next_ += step_;
  } else {
    return false;
  }
  Append(number, request);
  return true;
}

void CqlSetupWorkload::Done(uint64_t number, int status) {
  if (status != 200) {
    again_.push_back(number);
  }
}

CqlWorkload::CqlWorkload(CqlData data, CqlStatements statements, Kind kind, double read_share,
                         uint64_t seed)
    : data_(data),
      statements_(std::move(statements)),
      kind_(kind),
      read_share_(read_share),
      filler_(MakeFiller(kFillerBytes + data.value_bytes)),
      new_keys_(fmt::format("new-{:x}-", seed)),
      random_(seed) {}

bool CqlWorkload::Next(std::string& request, uint64_t& /*number*/) {
  const uint64_t chance = random_.Next();
  if (kind_ == Kind::kScans) {
    AppendExecute(statements_.scan, data_.consistency, {IntBytes(chance % kScanPartitions)},
                  request);
    return true;
  }
  const std::string key = kind_ == Kind::kNewRows ? fmt::format("{}{:x}", new_keys_, made_++)
                                                  : KeyOfItem(chance % data_.items);
  if (static_cast<double>(random_.Next() >> 11) * 0x1p-53 < read_share_) {
    AppendExecute(statements_.select, data_.consistency, {key}, request);
  } else {
    AppendExecute(statements_.insert, data_.consistency,
                  {key, std::string_view(filler_).substr(chance % kFillerBytes, data_.value_bytes)},
                  request);
  }
  return true;
}

}  // namespace orrery::load
