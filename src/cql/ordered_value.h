// The memcomparable form of a clustering column's value: the order of the bytes is the order of
// CompareValues, and no form is a prefix of another, so columns can follow each other in a key.
//
//   ordered   := 01 null | 02 empty | 03 value     descending: every bit of it flipped
//   value     := of text, ascii, blob, inet, duration, custom: ordered bytes
//   (types/partition_key.h)
//              | of numbers of fixed size: big endian, sign flipped; floats as docs/formats/keys.md
//              | of date and time: as they are; boolean: 00 or 01
//              | of varint: head, the bytes. Head: 80+n for n bytes (n < 78), else F8, n u32;
//                of a negative one every bit of the head flipped
//              | of decimal: 02 for 0; 03, exponent as a varint has it, digits: pairs (1..100), 00;
//                01 and all that with every bit flipped for a negative one
//              | of uuid: version, then time (version 1) or the rest in order, the second half
//              | of timeuuid: time, the second half with the sign of each byte flipped
//              | of list, set, map, tuple, user type: ordered*, 00; nulls at the end are left out
//              | of vector: ordered*
//
// `empty` stands for zero bytes where they are no plain value of the type. A key that stops after
// some columns is a lower bound of all that go on; followed by FF it is above them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cql/data_type.h"

namespace orrery::cql {

// REQUIRES: ValidateValue was fine.
void AppendOrderedValue(const DataType& type, std::optional<std::string_view> bytes,
                        bool descending, std::string& out);

// Takes one off the front; false if it is malformed. The value compares equal to the one that went
// in, and is the same but for: decimals (trailing zeros are lost), varints (shortest form), NaN,
// true, nulls at the end of tuples.
bool TakeOrderedValue(const DataType& type, bool descending, std::string_view& in,
                      std::optional<std::string>* bytes);

}  // namespace orrery::cql
