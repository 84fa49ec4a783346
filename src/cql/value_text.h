// Values as text: constants of statements, CAST to text, error messages. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "cql/data_type.h"
#include "cql/expression.h"

namespace orrery::cql {

// How Cassandra's messages name the kind of a constant: STRING, INTEGER...; nothing of other kinds.
std::string_view ConstantKindName(ExpressionKind kind);
// Whether a constant of the kind, not null, may stand where the type is wanted.
bool AcceptsConstant(const DataType& type, ExpressionKind kind);

// The value that the text of a constant (a string without its quotes) means in a type without
// parameters; of others it is JSON. kInvalidArgument in Cassandra's words. Blobs with or without
// 0x.
Result<std::string> ValueFromText(const DataType& type, std::string_view text);

// What CAST(x AS text) gives. Empty values are empty text. REQUIRES: ValidateValue was fine.
std::string ValueToText(const DataType& type, std::string_view bytes);
// What a CQL statement would say: 'it''s', 0x00ff, {'a': 1}.
std::string ValueToLiteral(const DataType& type, std::string_view bytes);

// The 16 bytes of a uuid in text form; nothing if it is none.
bool UuidFromText(std::string_view text, std::string* bytes);
std::string UuidToText(std::string_view bytes);
// 0x and lower-case digits.
std::string BlobToText(std::string_view bytes);

}  // namespace orrery::cql
