// What tests of splits and merges ask about partitions.
import assert from "node:assert/strict";

// Those of a container, which cover the ring in order, once.
export async function rangesOf(container) {
  const list = (await container.readPartitionKeyRanges().fetchAll()).resources;
  assert.equal(list[0].minInclusive, "");
  assert.equal(list.at(-1).maxExclusive, "FF");
  for (let i = 1; i < list.length; i += 1) assert.equal(list[i].minInclusive, list[i - 1].maxExclusive);
  return list;
}
