#include "cql/keywords.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "cql/letters.h"

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

// Where the words of each letter begin, and the end of the last.
constexpr std::array<uint8_t, 27> kLetters = [] {
  std::array<uint8_t, 27> starts{};
  for (size_t i = std::size(kWords); i-- > 0;) {
    starts[kWords[i].text[0] - 'a'] = static_cast<uint8_t>(i);
  }
  starts[26] = std::size(kWords);
  for (size_t letter = 26; letter-- > 0;) {  // a letter without words begins where the next does
    if (kWords[starts[letter]].text[0] != static_cast<char>('a' + letter)) {
      starts[letter] = starts[letter + 1];
    }
  }
  return starts;
}();

const Word& Find(Keyword keyword) { return kWords[static_cast<size_t>(keyword) - 1]; }

}  // namespace

Keyword FindKeyword(std::string_view word) {
  if (word.empty() || word.size() > kLongest || Lower(word[0]) < 'a' || Lower(word[0]) > 'z') {
    return Keyword::kNone;
  }
  std::array<char, kLongest> lower;
  std::ranges::transform(word, lower.begin(), [](char c) { return Lower(c); });
  std::string_view wanted(lower.data(), word.size());
  size_t letter = static_cast<size_t>(wanted[0] - 'a');
  for (size_t i = kLetters[letter]; i < kLetters[letter + 1]; ++i) {
    if (kWords[i].text == wanted) {
      return static_cast<Keyword>(i + 1);
    }
  }
  return Keyword::kNone;
}

std::string_view KeywordText(Keyword keyword) { return Find(keyword).text; }

bool IsReserved(Keyword keyword) { return keyword != Keyword::kNone && Find(keyword).reserved; }

}  // namespace orrery::cql
