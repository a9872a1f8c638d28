// Kernels a second of processor time through the Engine (one thread), virtual time. Prints one JSON
// object. Processor time, not wall clock: other programs on the machine do not count.
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "engine/engine.h"

namespace {

using aliquot::Nanoseconds;
using namespace aliquot::engine;

// `contexts` programs of `streams` streams keep 256 kernels of `duration` queued each, until
// `kernels` were submitted; graphs of `nodes` kernels if nodes > 1.
struct Load {
  const char* name;
  int contexts;
  int streams;
  Nanoseconds duration;
  int nodes;
};

double kernels_per_second(const Load& load, std::uint64_t kernels) {
  Engine engine{EngineSpec{}};
  std::vector<StreamId> streams;
  for (int c = 0; c < load.contexts; ++c) {
    const ContextId context = engine.add_context(0, {.process = static_cast<std::uint64_t>(c)});
    for (int s = 0; s < load.streams; ++s) streams.push_back(engine.add_stream(context));
  }
  Work work = timed_kernel(load.duration, load.streams > 1 ? 20 : 0);
  if (load.nodes > 1) {
    Graph graph;
    for (int i = 0; i < load.nodes; ++i) {
      graph.nodes.push_back({work, {}});
      if (i > 0) graph.nodes.back().after.push_back(static_cast<std::uint32_t>(i - 1));
    }
    work = launch_graph(*engine.define_graph(graph));
  }
  const std::clock_t start = std::clock();
  std::uint64_t done = 0;
  while (done < kernels) {
    const Nanoseconds now = engine.last_event();
    for (const StreamId stream : streams) {
      for (int i = 0; i < 256; ++i) engine.submit(now, stream, work);
    }
    done += streams.size() * 256 * static_cast<std::uint64_t>(load.nodes);
    // Drained in batches, as the device server does.
    for (Nanoseconds next = engine.next_event(); next != kNever; next = engine.next_event()) {
      engine.advance(next + 100'000);
    }
  }
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return static_cast<double>(done) / took;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t kernels = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 3'000'000;
  constexpr Load kLoads[] = {{"one_stream", 1, 1, 100, 1},
                             {"five_streams", 1, 5, 1'000, 1},
                             {"two_contexts", 2, 1, 1'000, 1},
                             {"eight_contexts", 8, 2, 5'000, 1},
                             {"graph_of_100", 1, 1, 1'000, 100}};
  std::printf("{\"bench\": \"engine\", \"simulated\": true, \"unit\": \"kernels/s\"");
  for (const Load& load : kLoads) {
    std::printf(", \"%s\": %.0f", load.name, kernels_per_second(load, kernels));
  }
  std::printf("}\n");
  return 0;
}
