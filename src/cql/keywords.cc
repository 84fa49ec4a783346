#include "cql/keywords.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace orrery::cql {
namespace {

struct Word {
  std::string_view text;
  bool reserved;
};

constexpr Word kWords[] = {
#define ORRERY_CQL_KEYWORD(constant, text, reserved) {text, reserved},
    ORRERY_CQL_KEYWORDS(ORRERY_CQL_KEYWORD)
#undef ORRERY_CQL_KEYWORD
};

static_assert(std::ranges::is_sorted(kWords, {}, &Word::text));
static_assert(std::size(kWords) < 255);

constexpr size_t kLongest =
    std::ranges::max(kWords, {}, [](const Word& word) { return word.text.size(); }).text.size();

const Word& Find(Keyword keyword) { return kWords[static_cast<size_t>(keyword) - 1]; }

}  // namespace

Keyword FindKeyword(std::string_view word) {
  if (word.size() > kLongest) {
    return Keyword::kNone;
  }
  std::array<char, kLongest> lower;
  std::ranges::transform(word, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  std::string_view wanted(lower.data(), word.size());
  const Word* found = std::ranges::lower_bound(kWords, wanted, {}, &Word::text);
  if (found == std::end(kWords) || found->text != wanted) {
    return Keyword::kNone;
  }
  return static_cast<Keyword>(found - kWords + 1);
}

std::string_view KeywordText(Keyword keyword) { return Find(keyword).text; }

bool IsReserved(Keyword keyword) { return keyword != Keyword::kNone && Find(keyword).reserved; }

}  // namespace orrery::cql
