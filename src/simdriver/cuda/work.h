// Work in streams: commands to the device server, which knows how long they take, and their
// effects on data, which this process applies itself. An effect is applied at once unless
// something before it in its stream has to wait (a host function, a wait for such a stream); so
// data moves in the order of submission, which any race-free program accepts.
//
// All under the library's lock; what takes a Lock& gives it up while it waits.
#pragma once

#include <array>
#include <functional>

#include "simdriver/cuda/library.h"

namespace aliquot::simdriver {

using CommandArgs = std::array<std::uint64_t, 5>;

// Contexts and streams come and go with the server.
CUresult open_context(DeviceView& device, unsigned flags, bool primary, Context*& context);
void close_context(Lock& lock, Context& context);
CUresult open_stream(Context& context, unsigned flags, int priority, Stream*& stream);
void close_stream(Stream& stream);

// The stream that a handle means in the calling thread, 0, 1 and 2 included. Waits while very much
// is queued in it already.
CUresult resolve_stream(Lock& lock, CUstream handle, Stream*& stream);

// Appends a command, after ordering it with the default stream. `apply` changes data; false means
// that the host has no memory for it: CUDA_ERROR_OPERATING_SYSTEM if that is known at once.
CUresult submit(Stream& stream, CommandOp op, const CommandArgs& a,
                std::function<bool()> apply = nullptr);
// Appends a command whose effect the callback thread performs: kHost or kPoll.
void submit_hold(Stream& stream, Effect::Kind kind, std::function<bool()> run);
// Nothing of `stream` begins before `other`'s command `seq` has ended.
struct Elsewhere {
  std::uint64_t context_key = 0;
  std::uint32_t slot = 0;
  std::uint64_t seq = 0;
  Stream* stream = nullptr;  // to wait for its effects; nullptr: none are pending
};
void submit_wait(Stream& stream, const Elsewhere& other);
inline Elsewhere last_of(const Stream& stream) {
  return {stream.context->key, stream.slot, stream.submitted, const_cast<Stream*>(&stream)};
}

bool ended(ContextPages& pages, std::uint32_t slot, std::uint64_t seq);
// Lets the server watch for it, so that polling programs see it end in time.
void show_interest(Context& context, std::uint32_t slot, std::uint64_t seq);

// Until the command has ended, or the context is lost, or the server gone.
CUresult wait_until_ended(Lock& lock, std::shared_ptr<ContextPages> pages, std::uint32_t slot,
                          std::uint64_t seq);
CUresult synchronise(Lock& lock, Stream& stream);
CUresult synchronise(Lock& lock, Context& context);

}  // namespace aliquot::simdriver
