// Evaluate: the value of an expression for one item, by the rules of the language.
//
//  - A property or element that is not there is undefined, and so is nearly everything made of it:
//    `undefined AND false` is false, `undefined OR true` is true.
//  - Values of different types cannot be compared: the result is undefined.
//  - Arrays and objects are equal or not, in depth; they have no order.
//  - A number that is not finite (1 / 0) is undefined.
#pragma once

#include "query/arena.h"
#include "query/ast.h"
#include "types/document.h"

namespace orrery::query {

// The value is a view into the item, the statement's constants or the arena.
types::Value Evaluate(const Node& node, types::Value item, Arena& arena);

}  // namespace orrery::query
