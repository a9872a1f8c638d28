// Pace: how fast each running job gets on - the time model of a replay.
//
// A second of a job's duration, "a second of work", takes
//     max(compute, reading) + all-reduce   seconds, where
//   compute     1 / (speed of the GPU it runs on against the one its duration is of), longer by
//               what its neighbours take of the GPU: jobs on one GPU get what they use while that
//               is not more than the GPU; then each its guarantee, and the rest in proportion to
//               those (policy burst). The slowest GPU decides.
//   reading     what it reads a second of work over its share of the wires; overlapped with
//               compute.
//   all-reduce  2 (k - 1) / k x bytes over the slowest hop of a ring through its k GPUs; not
//               overlapped. Inside a node the best ring of all GPUs it has there; between nodes all
//               the rails they have in common at full rate, all else over the spine at a part of it
//               (topology/rails.h).
// Wires - ports of devices, switches, root ports, sockets, NVLinks - are shared max-min fairly. A
// job takes the others on its node to send at the mean rate they would have alone.
//
// Without the model every second of work takes a second. Leaves to others: when something happens
// (timeline.cc). Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/placement.h"
#include "replay/cluster.h"
#include "replay/node_links.h"
#include "replay/trace.h"

namespace aliquot::replay {

enum class TimeModel : std::uint8_t {
  kAsListed,  // a job runs for its duration, whatever it runs on
  kModelled,  // as above
};

// A NIC where the node's links are not known: 100 Gbit/s.
inline constexpr double kUnknownNicMbS = 12'500;

class Pace {
 public:
  // Borrows both.
  Pace(const Cluster& cluster, const Trace& trace, TimeModel model);

  // The job runs there from now on / no more. Adds to `touched` whose speed may have changed: all
  // with a pod on one of its nodes.
  void start(std::size_t job, std::span<const model::Placement> placements,
             std::vector<std::size_t>& touched);
  void end(std::size_t job, std::vector<std::size_t>& touched);

  // Seconds of work a second, of a running job, as things are now.
  double speed(std::size_t job);
  // Of each GPU that the job holds: what it uses over time at full speed, milli x seconds of GPU
  // for each second of work.
  double used_milli(std::size_t job) const;

 private:
  struct Part {  // a pod
    std::size_t node = 0;
    model::GpuSet gpus;
    double used = 0;    // of each GPU
    double weight = 0;  // guaranteed of each GPU; its weight beyond that
  };
  struct Spot {  // all its pods on one node
    std::size_t node = 0;
    model::GpuSet gpus;
    std::vector<topology::Traffic> mean;  // what others count it for
  };
  struct Running {
    std::vector<Part> parts;
    std::vector<Spot> spots;  // in the order of its pods; the ring goes through them
    double hop_mb = 0;        // over each hop, a second of work
  };
  enum class Company : std::uint8_t { kAlone, kAsNow };

  Part part_of(const Job& job, const model::Placement& placement) const;
  static std::vector<Spot> spots_of(const std::vector<Part>& parts);
  NodeLinks* links(std::size_t node);
  double seconds(std::size_t job, const Running& running, Company company);
  double got(const Part& part, unsigned gpu) const;
  double compute_s(const Job& job, const Part& part, Company company) const;
  double reading_s(const Job& job, std::size_t id, const Part& part, Company company);
  double hop_mb_s(std::size_t id, const Running& running, Company company);
  double network_mb_s(std::size_t id, const Spot& one, const Spot& next, Company company);
  double rate(std::size_t id, std::size_t node, const topology::Traffic& mine, Company company);
  void note_means(std::size_t id, Running& running);
  void touch(const Running& running, std::vector<std::size_t>& touched) const;

  const Cluster& cluster_;
  const Trace& trace_;
  TimeModel model_;
  std::map<std::string, std::unique_ptr<NodeLinks>> links_;  // by NodeSpec::topology
  std::vector<std::vector<std::size_t>> on_node_;            // jobs, each once
  std::map<std::size_t, Running> running_;
};

}  // namespace aliquot::replay
