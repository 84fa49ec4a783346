#include "query/like.h"

#include "query/text.h"
#include "types/utf8.h"

namespace orrery::query {
namespace {

using types::TakeCodePoint;

struct Element {
  enum class Kind : uint8_t { kLiteral, kAnyOne, kSet, kAnyMany };
  Kind kind = Kind::kLiteral;
  bool negated = false;
  uint32_t code_point = 0;
  std::string_view set = {};
};

// Reads the elements of a pattern from the front.
class PatternReader {
 public:
  PatternReader(std::string_view pattern, uint32_t escape) : rest_(pattern), escape_(escape) {
    size_t last = pattern.rfind(']');
    after_sets_ = last == std::string_view::npos ? nullptr : pattern.data() + last;
  }

  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  // REQUIRES: !empty().
  Element Next() {
    const char* at = rest_.data();
    uint32_t code_point = TakeCodePoint(rest_);
    if (code_point == escape_) {
      return {.code_point = rest_.empty() ? code_point : TakeCodePoint(rest_)};
    }
    if (code_point == '%') {
      return {.kind = Element::Kind::kAnyMany};
    }
    if (code_point == '_') {
      return {.kind = Element::Kind::kAnyOne};
    }
    if (code_point == '[' && at < after_sets_) {
      return Set();
    }
    return {.code_point = code_point};
  }

 private:
  // After the `[` of a set that has its `]`.
  Element Set() {
    Element element = {.kind = Element::Kind::kSet};
    size_t end = rest_.find(']');
    element.set = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (element.set.starts_with('^')) {
      element.negated = true;
      element.set.remove_prefix(1);
    }
    return element;
  }

  std::string_view rest_;
  uint32_t escape_;
  const char* after_sets_;  // the last `]`: a `[` after it is only a letter
};

bool InSet(std::string_view set, uint32_t code_point) {
  while (!set.empty()) {
    uint32_t low = TakeCodePoint(set);
    uint32_t high = low;
    if (set.size() >= 2 && set[0] == '-') {
      set.remove_prefix(1);
      high = TakeCodePoint(set);
    }
    if (code_point >= low && code_point <= high) {
      return true;
    }
  }
  return false;
}

bool Accepts(const Element& element, uint32_t code_point) {
  switch (element.kind) {
    case Element::Kind::kLiteral: return element.code_point == code_point;
    case Element::Kind::kSet: return InSet(element.set, code_point) != element.negated;
    case Element::Kind::kAnyOne:
    case Element::Kind::kAnyMany: break;
  }
  return true;
}

// A part of the pattern that has no %.
struct Segment {
  std::string_view pattern;
  size_t elements = 0;
  bool plain = true;  // only letters that stand for themselves
  bool last = true;   // no % after it
};

Segment TakeSegment(PatternReader& reader) {
  Segment segment;
  segment.pattern = reader.rest();
  while (!reader.empty()) {
    size_t before = reader.rest().size();
    Element element = reader.Next();
    if (element.kind == Element::Kind::kAnyMany) {
      segment.pattern = segment.pattern.substr(0, segment.pattern.size() - before);
      segment.last = false;
      break;
    }
    ++segment.elements;
    std::string_view taken =
        segment.pattern.substr(segment.pattern.size() - before, before - reader.rest().size());
    bool literal = element.kind == Element::Kind::kLiteral;
    segment.plain =
        segment.plain && literal && TakeCodePoint(taken) == element.code_point && taken.empty();
  }
  return segment;
}

// Matches the segment at the front of the text and takes what it matched.
bool TakePrefix(const Segment& segment, uint32_t escape, std::string_view& text) {
  if (segment.plain) {
    bool good = text.starts_with(segment.pattern);
    text.remove_prefix(good ? segment.pattern.size() : 0);
    return good;
  }
  std::string_view rest = text;
  PatternReader reader(segment.pattern, escape);
  while (!reader.empty()) {
    if (rest.empty() || !Accepts(reader.Next(), TakeCodePoint(rest))) {
      return false;
    }
  }
  text = rest;
  return true;
}

bool MatchesEnd(const Segment& segment, uint32_t escape, std::string_view text) {
  size_t size = CountCodePoints(text);
  if (size < segment.elements) {
    return false;
  }
  text.remove_prefix(ByteOffset(text, size - segment.elements));
  return TakePrefix(segment, escape, text);
}

// Takes the text up to the end of the first place that matches.
bool TakeThrough(const Segment& segment, uint32_t escape, std::string_view& text) {
  if (segment.plain) {
    size_t found = FindText(text, segment.pattern);
    if (found == std::string_view::npos) {
      return false;
    }
    text.remove_prefix(found + segment.pattern.size());
    return true;
  }
  if (segment.pattern.size() > kFloatingBytesMax) {
    return false;
  }
  while (!text.empty()) {
    if (TakePrefix(segment, escape, text)) {
      return true;
    }
    TakeCodePoint(text);
  }
  return false;
}

}  // namespace

bool LikeMatches(std::string_view text, std::string_view pattern, uint32_t escape) {
  PatternReader reader(pattern, escape);
  Segment segment = TakeSegment(reader);
  if (!TakePrefix(segment, escape, text)) {
    return false;
  }
  if (segment.last) {
    return text.empty();
  }
  for (;;) {
    segment = TakeSegment(reader);
    if (segment.last) {
      return MatchesEnd(segment, escape, text);
    }
    if (segment.elements > 0 && !TakeThrough(segment, escape, text)) {
      return false;
    }
  }
}

}  // namespace orrery::query
