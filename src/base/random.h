// Random: where chance comes from. Thread-safe unless an implementation says otherwise.
#pragma once

#include <cstdint>
#include <span>

namespace orrery {

class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t Next() = 0;
};

// Each thread has its own generator, seeded by the operating system. Not for secrets.
class SystemRandom final : public Random {
 public:
  uint64_t Next() override;
};

// Repeatable; not thread-safe.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next() override;

 private:
  uint64_t state_;
};

// Fills with bytes fit for keys. Aborts if the operating system has none.
void SecretBytes(std::span<uint8_t> out);

}  // namespace orrery
