#include "net/peer_dial.h"

#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace orrery::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using runtime::Task;

std::string PeerTarget::Name() const {
  bool bare = host.find(':') == std::string::npos;
  return (bare ? host : "[" + host + "]") + ":" + std::to_string(port);
}

Dial::Dial(runtime::Worker& worker, std::shared_ptr<const PeerTarget> target)
    : worker_(worker),
      target_(std::move(target)),
      timer_(worker.context()),
      resolver_(worker.context()),
      socket_(worker.context()) {}

Task<Dialed> Dial::Run() {
  timer_.expires_after(target_->options.connect_timeout);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) {
      self->End("no answer in time");
    }
  });
  Dialed dialed;
  Endpoints endpoints = co_await Resolve();
  if (!endpoints.empty()) {
    boost::system::error_code error = co_await Connect(std::move(endpoints));
    if (!error && !over_) {
      dialed = co_await Greet();
    } else if (!over_) {
      dialed.refused = error == asio::error::connection_refused;
      dialed.why = error.message();
    }
  }
  if (dialed.why.empty()) {
    dialed.why = why_;
  }
  over_ = true;
  timer_.cancel();
  co_return dialed;
}

Task<Dial::Endpoints> Dial::Resolve() {
  boost::system::error_code error;
  auto address = asio::ip::make_address(target_->host, error);
  if (!error) {
    Endpoints one;
    one.emplace_back(address, target_->port);
    co_return one;
  }
  auto start = [this](std::function<void(Endpoints)> resume) {
    on_resolved_ = std::move(resume);
    auto done = [self = shared_from_this()](const boost::system::error_code& failed,
                                            const tcp::resolver::results_type& found) {
      Endpoints endpoints;
      for (const auto& entry : found) {
        endpoints.push_back(entry.endpoint());
      }
      if (failed && !self->over_) {
        self->why_ = "no address of that name: " + failed.message();
      }
      self->Resolved(std::move(endpoints));
    };
    resolver_.async_resolve(target_->host, std::to_string(target_->port), std::move(done));
  };
  co_return co_await runtime::Suspend<Endpoints>(std::move(start));
}

void Dial::Resolved(Endpoints endpoints) {
  if (auto resume = std::exchange(on_resolved_, nullptr)) {
    resume(std::move(endpoints));
  }
}

// Tries one after the other. It was refused only if all of them did.
Task<boost::system::error_code> Dial::Connect(Endpoints endpoints) {
  boost::system::error_code worst;
  for (const tcp::endpoint& where : endpoints) {
    if (over_) {
      break;
    }
    socket_ = tcp::socket(worker_.context());
    auto [error] = co_await socket_.async_connect(where, asio::as_tuple(asio::use_awaitable));
    boost::system::error_code ignored;
    if (!error && socket_.local_endpoint(ignored) == where) {
      // Where nobody listens, a socket can be given the port that it connects to, and meet itself.
      error = asio::error::connection_refused;
      socket_.close(ignored);
    }
    if (!error) {
      co_return error;
    }
    if (!worst || worst == asio::error::connection_refused) {
      worst = error;
    }
  }
  co_return worst;
}

Task<Dialed> Dial::Greet() {
  Dialed dialed;
  boost::system::error_code error;
  socket_.native_non_blocking(true, error);
  int socket = error ? -1 : socket_.release(error);
  if (error) {
    dialed.why = error.message();
    co_return dialed;
  }
  link_ = std::make_shared<PeerLink>(worker_, socket, TlsRole::kClient, target_->options);
  Status greeted = co_await link_->Greet(target_->watch.node);
  if (greeted.ok() && !over_) {
    dialed.link = link_;
  } else {
    link_->Close();
    dialed.why = over_ ? why_ : greeted.message();
  }
  co_return dialed;
}

void Dial::End(const char* why) {
  if (over_) {
    return;
  }
  over_ = true;
  why_ = why;
  boost::system::error_code ignored;
  timer_.cancel();
  resolver_.cancel();
  socket_.close(ignored);
  Resolved({});
  if (link_ != nullptr) {
    link_->Close();
  }
}

}  // namespace orrery::net
