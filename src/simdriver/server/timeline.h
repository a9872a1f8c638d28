// One GPU's time as the server needs it: commands of contexts go in with their time of submission,
// ended commands come out. The seam to the engine (src/engine), which knows how kernels share a
// GPU; this file knows the channel's commands. The server's loop only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "engine/engine.h"
#include "simdriver/channel/messages.h"
#include "simdriver/channel/ring.h"
#include "simdriver/machine_spec.h"

namespace aliquot::simdriver {

using ContextKey = std::uint64_t;

struct Ended {
  ContextKey context = 0;
  std::uint32_t stream = 0;
  std::uint64_t seq = 0;
  Nanoseconds at = 0;
};

class Timeline {
 public:
  explicit Timeline(const GpuModel& model);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // `session` is the process that telemetry asks about; `mps_percent`: it is an MPS client with
  // that ceiling.
  void open_context(ContextKey context, std::uint64_t session, Nanoseconds now,
                    std::optional<std::uint32_t> mps_percent = std::nullopt);
  // What it had queued never ends.
  void close_context(ContextKey context, Nanoseconds now);

  // False: a command that no right client sends (unknown op, stream or seq).
  [[nodiscard]] bool apply(ContextKey context, const Command& command);
  // A wait of this GPU for a command of another one: the server tells when that has ended.
  void let_go(ContextKey context, std::uint32_t stream, std::uint64_t seq, Nanoseconds at);

  // Up to `to`, which never goes back.
  void advance(Nanoseconds to);
  // What ended since the last call, in order of time.
  std::vector<Ended> take_ended();

  std::uint64_t done(ContextKey context, std::uint32_t stream) const;
  // When the command that last marked `event` ended; nothing: `seq` of `stream` has not.
  std::optional<Nanoseconds> mark(ContextKey context, const MarkRequest& request) const;
  // No earlier than this has the command ended; nothing: when the client says so.
  std::optional<Nanoseconds> earliest(ContextKey context, std::uint32_t stream,
                                      std::uint64_t seq) const;
  // When it ends, if nothing else comes; nothing: that is not certain.
  std::optional<Nanoseconds> certain_end(ContextKey context, std::uint32_t stream,
                                         std::uint64_t seq) const;
  // When something happens next, if nothing else comes.
  std::optional<Nanoseconds> next_event() const;
  bool idle() const;
  // Device time up to `now` in which the context had a kernel running; 0: it is not of this GPU.
  Nanoseconds busy(ContextKey context, Nanoseconds now) const;

  // For telemetry: utilisation, samples, XIDs.
  const engine::Engine& engine() const;
  engine::Engine& engine();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace aliquot::simdriver
