#include "partition/budget.h"

#include <algorithm>

#include "partition/replica.h"

namespace orrery::partition {

namespace {

constexpr RequestUnits kNone;
constexpr Duration kSliceTime = std::chrono::milliseconds(100);
constexpr Duration kRefusedPause = std::chrono::milliseconds(20);
constexpr Duration kHighOnly = std::chrono::seconds(1);
constexpr RequestUnits kWantMin(10);
constexpr RequestUnits kWantMax(100'000);

}  // namespace

void Budget::SetOwner(BudgetOwner owner) {
  std::lock_guard lock(mutex_);
  owner_ = std::move(owner);
}

BudgetOwner Budget::owner() const {
  std::lock_guard lock(mutex_);
  return owner_;
}

PartitionId Budget::owner_id() const {
  std::lock_guard lock(mutex_);
  return owner_.range.id;
}

// A slice that was used up soon makes the next one larger, one that was hardly used smaller.
void Budget::Expire(Instant now) {
  if (now < slice_end_ && slice_ > kNone) {
    return;
  }
  if (spent_ > kNone || slice_ > kNone) {
    if (slice_ <= kNone) {
      want_ = std::min(want_ * 2, kWantMax);
    } else if (spent_ < slice_) {
      want_ = std::max(RequestUnits::Hundredths(want_.hundredths() / 2), kWantMin);
    }
  }
  spent_ = kNone;
  if (slice_ > kNone) {
    back_ += slice_;
    slice_ = kNone;
  }
}

bool Budget::HasSlice(Instant now) {
  std::lock_guard lock(mutex_);
  Expire(now);
  return slice_ > kNone;
}

bool Budget::Take(RequestUnits least, Instant now, Priority priority) {
  std::lock_guard lock(mutex_);
  Expire(now);
  if (slice_ <= kNone || (priority == Priority::kLow && now < high_only_until_)) {
    return false;
  }
  slice_ -= least;
  spent_ += least;
  return true;
}

void Budget::Settle(RequestUnits rest, Instant now) {
  std::lock_guard lock(mutex_);
  Expire(now);
  slice_ -= rest;
  spent_ += rest;
}

std::optional<Budget::Ask> Budget::BeginBorrow(Instant now) {
  std::lock_guard lock(mutex_);
  Expire(now);
  if (asking_ || now < not_before_ || slice_ > kNone) {
    return std::nullopt;
  }
  asking_ = true;
  return Ask{.want = want_ - slice_, .back = std::exchange(back_, kNone)};
}

void Budget::EndBorrow(RequestUnits granted, Instant now) {
  std::lock_guard lock(mutex_);
  asking_ = false;
  slice_ += granted;
  slice_end_ = now + kSliceTime;
  if (slice_ <= kNone) {
    not_before_ = now + kRefusedPause;
    high_only_until_ = now + kHighOnly;
  }
}

void BorrowUnits::Encode(Encoder& encoder) const {
  encoder.U64(static_cast<uint64_t>(ask.want.hundredths()));
  encoder.U64(static_cast<uint64_t>(ask.back.hundredths()));
}

Result<std::unique_ptr<Operation>> BorrowUnits::Decode(Decoder& decoder) {
  auto operation = std::make_unique<BorrowUnits>();
  operation->ask.want = RequestUnits::Hundredths(static_cast<int64_t>(decoder.U64()));
  operation->ask.back = RequestUnits::Hundredths(static_cast<int64_t>(decoder.U64()));
  if (!decoder.done() || operation->ask.want < kNone || operation->ask.back < kNone) {
    return Error(Code::kInvalidArgument, "a malformed request for units");
  }
  return operation;
}

runtime::Task<Reply> BorrowUnits::Run(Replica& replica) {
  Reply reply = replica.MakeReply(Status::Ok(), kNone);
  RequestUnits granted =
      replica.governor().Lend(ask.want, ask.back, replica.services().clock.Now());
  Encoder(reply.body).U64(static_cast<uint64_t>(granted.hundredths()));
  co_return reply;
}

RequestUnits BorrowUnits::TakeGrant(const Reply& reply) {
  Decoder decoder(reply.body);
  auto hundredths = static_cast<int64_t>(decoder.U64());
  return reply.status.ok() && decoder.done() && hundredths > 0
             ? RequestUnits::Hundredths(hundredths)
             : kNone;
}

}  // namespace orrery::partition
