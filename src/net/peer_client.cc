#include <algorithm>
#include <atomic>
#include <charconv>
#include <utility>
#include <vector>

#include "net/peer.h"
#include "net/peer_line.h"

namespace orrery::net {

using runtime::Task;

struct PeerClient::Body {
  explicit Body(runtime::WorkerPool& workers) : workers(workers) {}
  // The line of the worker that this runs on; null if it is none of ours.
  PeerLine* Mine() const {
    runtime::Worker* current = runtime::Worker::Current();
    if (current == nullptr || current->index() >= lines.size()) {
      return nullptr;
    }
    PeerLine* line = lines[current->index()].get();
    return &line->worker() == current ? line : nullptr;
  }
  void Each(void (PeerLine::*act)()) {
    for (const auto& line : lines) {
      line->worker().Post([line, act] { ((*line).*act)(); });
    }
  }

  runtime::WorkerPool& workers;
  const std::shared_ptr<runtime::Gate> gate = std::make_shared<runtime::Gate>();
  std::vector<std::shared_ptr<PeerLine>> lines;
  std::atomic<bool> closed = false;
};

PeerClient::PeerClient(runtime::WorkerPool& workers, std::string host, uint16_t port,
                       PeerOptions options, PeerWatch watch)
    : body_(std::make_shared<Body>(workers)) {
  PeerTarget where{std::move(host), port, std::move(options), std::move(watch)};
  auto target = std::make_shared<const PeerTarget>(std::move(where));
  // What one line has found, the others need not wait for.
  auto retry = [weak = std::weak_ptr(body_)] {
    if (auto body = weak.lock()) {
      body->Each(&PeerLine::Retry);
    }
  };
  for (size_t i = 0; i < workers.size(); ++i) {
    body_->lines.push_back(std::make_shared<PeerLine>(workers.at(i), target, body_->gate, retry));
  }
  if (target->watch.on_event) {
    workers.at(0).Post([line = body_->lines[0]] { line->Start(); });
  }
}

PeerClient::~PeerClient() = default;

Task<Result<std::string>> PeerClient::Call(std::string message) {
  std::shared_ptr<Body> body = body_;
  PeerLine* line = body->Mine();
  if (line == nullptr) {
    auto there = [this, message = std::move(message)]() mutable {
      return Call(std::move(message));
    };
    co_return co_await runtime::OnWorker(body->workers.at(0), std::move(there));
  }
  auto start = [line, &message](PeerLine::Resume resume) {
    line->Call(message, std::move(resume));
  };
  co_return co_await runtime::Suspend<Result<std::string>>(std::move(start));
}

void PeerClient::Send(std::string message) {
  if (PeerLine* line = body_->Mine()) {
    line->Send(message);
    return;
  }
  std::shared_ptr<PeerLine> line = body_->lines[0];
  line->worker().Post([line, message = std::move(message)] { line->Send(message); });
}

void PeerClient::EndCalls() { body_->Each(&PeerLine::EndCalls); }

void PeerClient::Retry() { body_->Each(&PeerLine::Retry); }

void PeerClient::Close() {
  body_->Each(&PeerLine::Close);
  body_->closed = true;
}

bool PeerClient::over() const {
  // What a line still does holds it.
  auto rests = [](const auto& line) { return line.use_count() == 1; };
  return body_->closed && std::all_of(body_->lines.begin(), body_->lines.end(), rests);
}

void PeerClient::Stop() {
  Close();
  body_->gate->Close();
}

Result<HostPort> ParseHostPort(std::string_view text) {
  size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, std::min(colon, text.size()));
  bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  HostPort parsed{std::string(host)};
  bool good = colon != std::string_view::npos && !host.empty() &&
              host.find_first_of(bracketed ? "[]" : ":[]") == std::string_view::npos;
  if (good) {
    const char* end = text.data() + text.size();
    auto [at, error] = std::from_chars(text.data() + colon + 1, end, parsed.port);
    good = error == std::errc() && at == end && parsed.port != 0;
  }
  if (!good) {
    return Error(Code::kInvalidArgument, "'" + std::string(text) + "' is not host:port");
  }
  return parsed;
}

}  // namespace orrery::net
