// Workload: the clients of a simulated cluster, and what each of them saw.
//
// A client asks one thing after another of any node that runs. Few items at a time, so that clients
// meet; an item is left alone after a number of operations, so that its history can be checked. A
// client that has no answer for long, or whose node dies, goes on, and the outcome is unknown.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/chance.h"
#include "sim/linearizable.h"
#include "sim/machine.h"
#include "sim/witness.h"
#include "sim/world.h"

namespace orrery::sim {

struct WorkloadOptions {
  size_t clients = 5;
  size_t items = 4;       // at a time
  size_t calls_max = 40;  // per item
  size_t unknown_max = 6;
  Duration think_most = std::chrono::milliseconds(60);
  Duration patience = std::chrono::seconds(3);
};

class Workload {
 public:
  using Machines = std::vector<std::unique_ptr<Machine>>;
  Workload(World& world, Witness& witness, Machines& machines, WorkloadOptions options);

  void Start();
  void Stop() { stopping_ = true; }
  bool idle() const { return busy_ == 0; }
  void OnDeath(NodeId node);

  // Every item is read once more, and the newest are written once more, until each has answered.
  // REQUIRES: stopped and idle
  void StartLastCalls();
  bool last_calls_done() const { return last_ && left_.empty() && idle(); }
  // Whether all histories are linearizable; the world fails if not.
  void Check();

 private:
  struct Item {
    std::string key;
    std::vector<Call> history;  // with code kUnavailable: nothing was done, does not count
    size_t calls = 0;           // that count
    size_t unknown = 0;
    size_t last_read = 0;  // place in the history
  };
  struct Client {
    std::map<GroupId, Lsn> session;
    std::map<std::string, std::pair<ItemValue, std::string>> etags;  // last seen, by key
    // The call in flight:
    bool busy = false;
    uint64_t asked = 0;  // its number, to know an answer that comes too late
    NodeId node;
    Item* item = nullptr;
    size_t call = 0;  // in the item's history, unless it reads weakly
    Lsn floor;        // what a bounded read must show
    ClientOp op;
  };

  void Next(Client& client);
  void Choose(Client& client);
  void ChooseWhatToWrite(Client& client, Call& call);
  void Ask(Client& client, Machine& machine);
  void OnAnswer(Client& client, const OpResult& result);
  void Take(Client& client, const OpResult& result);
  void NoAnswer(Client& client, bool unknown);
  void End(Client& client);
  void NextLater(Client& client);
  Machine* AnyMachine();
  Item& AnyItem();
  ItemValue ValueOf(const std::string& text);
  void CheckItem(const Item& item);

  World& world_;
  Witness& witness_;
  Machines& machines_;
  const WorkloadOptions options_;
  Chance chance_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::deque<Item> items_;  // all that ever were; references stay
  std::vector<Item*> current_;
  std::vector<std::pair<Item*, OpKind>> left_;  // of the last calls
  ItemValue next_value_ = 1;
  uint64_t order_ = 1;
  size_t busy_ = 0;
  bool stopping_ = false;
  bool last_ = false;
};

}  // namespace orrery::sim
