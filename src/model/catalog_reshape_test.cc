// Splits and merges in the catalog: begun, finished, called off.
#include <gtest/gtest.h>

#include "base/random.h"
#include "model/catalog_change.h"
#include "model/catalog_evaluate.h"
#include "model/catalog_records.h"

namespace orrery::model {
namespace {

// A catalog with one database, as it is after each change.
struct World {
  World() { EXPECT_EQ(Do(change::CreateDatabase{"d", {}}), Code::kOk); }
  Code Do(CatalogChange::What what) {
    EvaluationInput input{.view = view,
                          .next = view.next,
                          .limits = limits,
                          .now = {++time},
                          .health = health,
                          .random = random};
    auto done = Evaluate({.id = {}, .what = std::move(what)}, input);
    if (!done) {
      return done.error().code();
    }
    std::string bytes = done->set.Encode();
    Status applied = storage::WriteSetView::Parse(bytes)->ForEach(
        [&](const auto& change) { EXPECT_TRUE(ApplyRecord(view, change.key, change.value).ok()); });
    return applied.code();
  }
  std::shared_ptr<const Container> Create(uint64_t throughput) {
    auto definition = types::Document::FromJson(R"({"id":"c","partitionKey":{"paths":["/pk"]}})");
    EXPECT_EQ(Do(change::CreateContainer{"d", *definition, {.manual = throughput}}), Code::kOk);
    return view.containers_by_id.begin()->second;
  }

  CatalogView view;
  CatalogLimits limits;
  ClusterHealth health;
  SeededRandom random{1};
  int64_t time = 0;
};

TEST(CatalogReshapeTest, HeirsTakeThePlaceOfTheirParentsAndKnowWhereTheyComeFrom) {
  World world;
  ASSERT_EQ(world.Do(change::AddNode{.address = "host:1", .version = 2}), Code::kOk);
  auto container = world.Create(10'000);
  PartitionId parent = container->map->ranges().front().id;
  change::BeginReshape begin{container->id, {parent}, ""};
  ASSERT_EQ(world.Do(begin), Code::kOk);
  EXPECT_EQ(world.Do(begin), Code::kAlreadyExists);
  auto reshapes = world.view.FindContainer(container->id)->reshapes;
  ASSERT_EQ(reshapes.size(), 1u);
  ASSERT_EQ(reshapes[0].heirs.size(), 2u);
  change::FinishReshape finish{.container = container->id,
                               .name = reshapes[0].name(),
                               .cut = std::string(1, '\x20'),
                               .parents = {{GroupId(parent.value()), Lsn(9), 2}},
                               .heirs = {{.applied = Lsn(9)}, {.applied = Lsn(9)}},
                               .nodes = {NodeId(1)}};
  change::FinishReshape wrong = finish;
  wrong.heirs.pop_back();
  EXPECT_EQ(world.Do(wrong), Code::kInvalidArgument);
  ASSERT_EQ(world.Do(finish), Code::kOk);
  EXPECT_EQ(world.Do(finish), Code::kOk);  // again: it is so already
  auto after = world.view.FindContainer(container->id);
  ASSERT_EQ(after->map->ranges().size(), 2u);
  EXPECT_TRUE(after->reshapes.empty());
  EXPECT_EQ(after->map->ranges()[1].range.min, finish.cut);
  EXPECT_EQ(after->map->ranges()[1].parents, std::vector{parent});
  EXPECT_EQ(after->map->ranges()[1].generation, 2u);
  EXPECT_NE(after->map->FindId(parent), nullptr);
  EXPECT_EQ(world.view.FindPlacement(GroupId(parent.value())), nullptr);
  GroupId heir(reshapes[0].heirs[1].value());
  auto placement = world.view.FindPlacement(heir);
  ASSERT_NE(placement, nullptr);
  ASSERT_TRUE(placement->origin);
  EXPECT_EQ(placement->origin->parents, finish.parents);
  // It is never forgotten: a founder that is late must not begin with nothing.
  ASSERT_EQ(world.Do(change::SetPlacements{{{heir, placement->epoch, placement->members}}}),
            Code::kOk);
  EXPECT_EQ(world.view.FindPlacement(heir)->origin, placement->origin);
}

TEST(CatalogReshapeTest, NothingIsSplitWhileANodeCannotReadIt) {
  World world;
  ASSERT_EQ(world.Do(change::AddNode{.address = "host:1", .version = 1}), Code::kOk);
  auto container = world.Create(10'000);
  EXPECT_EQ(
      world.Do(change::BeginReshape{container->id, {container->map->ranges().front().id}, ""}),
      Code::kUnavailable);
}

TEST(CatalogReshapeTest, AMergeCanBeCalledOffUntilItIsDone) {
  World world;
  auto container = world.Create(30'000);
  auto ranges = container->map->ranges();
  using Ids = std::vector<PartitionId>;
  EXPECT_EQ(world.Do(change::BeginReshape{container->id, Ids{ranges[0].id, ranges[2].id}, ""}),
            Code::kNotFound);
  EXPECT_EQ(world.Do(change::BeginReshape{container->id, Ids{ranges[0].id, ranges[1].id}, "x"}),
            Code::kInvalidArgument);
  ASSERT_EQ(world.Do(change::BeginReshape{container->id, Ids{ranges[0].id, ranges[1].id}, ""}),
            Code::kOk);
  EXPECT_EQ(world.Do(change::BeginReshape{container->id, Ids{ranges[1].id, ranges[2].id}, ""}),
            Code::kAlreadyExists);
  PartitionId name = world.view.FindContainer(container->id)->reshapes[0].name();
  ASSERT_EQ(world.Do(change::AbortReshape{container->id, name}), Code::kOk);
  EXPECT_EQ(world.Do(change::FinishReshape{.container = container->id, .name = name}),
            Code::kNotFound);
  EXPECT_EQ(world.view.FindContainer(container->id)->map->ranges().size(), 3u);
  ASSERT_EQ(world.Do(change::BeginReshape{container->id, Ids{ranges[1].id, ranges[2].id}, ""}),
            Code::kOk);
  EXPECT_GT(world.view.FindContainer(container->id)->reshapes[0].name(), name);
}

}  // namespace
}  // namespace orrery::model
