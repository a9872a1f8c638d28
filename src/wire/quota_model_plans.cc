// The configurations of the design study (docs/adr/0010), and one more for heads that follow
// each other in one slot.
#include "wire/quota_model.h"

namespace aliquot::wire::model {
namespace {

std::vector<ThreadPlan> two_busy_processes() {
  return {{0, {reserve(3), reserve_failing(2), free_last(), free_last()}},
          {1, {reserve_failing(2), reserve(2), free_last()}}};
}

Plan two_processes_and_a_respawn() {
  Plan plan;
  plan.name = "2 processes, failing calls, 2 kills, 1 broker kill, 1 respawn";
  plan.threads = two_busy_processes();
  plan.kills = 2, plan.broker_kills = 1, plan.respawns = 1;
  return plan;
}

Plan two_processes_and_a_lowered_limit() {
  Plan plan;
  plan.name = "2 processes, failing calls, limit 5 to 3, 1 kill, 2 broker kills";
  plan.threads = two_busy_processes();
  plan.lowered_to = 3, plan.kills = 1, plan.broker_kills = 2;
  return plan;
}

Plan two_threads_on_a_slot() {
  Plan plan;
  plan.name = "2 processes, one of 2 threads, 1 kill, 1 broker kill";
  plan.threads = {{0, {reserve(2), free_last()}},
                  {0, {reserve(3), free_last()}},
                  {1, {reserve_failing(2), free_last()}}};
  plan.kills = 1, plan.broker_kills = 1;
  return plan;
}

std::vector<ThreadPlan> three_processes(Operation third) {
  return {{0, {reserve(2), free_last()}}, {1, {reserve(3), free_last()}}, {2, {third}}};
}

}  // namespace

Plan three_processes_one_kill() {
  Plan plan;
  plan.name = "3 processes, 1 kill";
  plan.threads = three_processes(reserve(2));
  plan.threads[2].operations.push_back(free_last());
  plan.kills = 1;
  return plan;
}

std::vector<Plan> plans_for_faults() {
  Plan brokers;
  brokers.name = "2 processes, 1 kill, 1 broker kill";
  brokers.threads = {{0, {reserve(3)}}, {1, {reserve(2)}}};
  brokers.kills = 1, brokers.broker_kills = 1;
  Plan lowered = brokers;
  lowered.name = "2 processes, limit 5 to 3";
  lowered.lowered_to = 3, lowered.kills = 0, lowered.broker_kills = 0;
  return {brokers, lowered, three_processes_one_kill(), two_processes_and_a_respawn()};
}

std::vector<Plan> all_plans() {
  std::vector<Plan> plans = {two_processes_and_a_respawn(), two_processes_and_a_lowered_limit(),
                             two_threads_on_a_slot(), three_processes_one_kill()};
  Plan failing;
  failing.name = "3 processes, a failing call, 1 kill, 1 broker kill";
  failing.threads = three_processes(reserve_failing(2));
  failing.kills = 1, failing.broker_kills = 1, failing.check_alone = false;
  plans.push_back(failing);
  Plan lowered;
  lowered.name = "3 processes, limit 5 to 3, 1 kill";
  lowered.threads = three_processes(reserve(2));
  lowered.lowered_to = 3, lowered.kills = 1, lowered.check_alone = false;
  plans.push_back(lowered);
  Plan brokers;
  brokers.name = "2 processes, 2 kills, 3 broker kills, 2 respawns";
  brokers.threads = {{0, {reserve(2), free_last()}}, {1, {reserve(3), free_last()}}};
  brokers.kills = 2, brokers.broker_kills = 3, brokers.respawns = 2;
  plans.push_back(brokers);
  Plan row;
  row.name = "3 processes, heads of one slot in a row, 1 kill, 1 broker kill";
  row.threads = {{0, {reserve(1), reserve(2), free_last(), free_last()}},
                 {1, {reserve(2), free_last()}},
                 {2, {reserve(1)}}};
  row.kills = 1, row.broker_kills = 1, row.check_alone = false;
  plans.push_back(row);
  return plans;
}

}  // namespace aliquot::wire::model
