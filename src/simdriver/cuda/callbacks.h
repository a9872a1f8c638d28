// Effects that have to wait: host functions and waits for values, which a thread of the context
// performs, and everything behind them. The thread starts with the first of them.
//
// Under the library's lock.
#pragma once

#include <memory>

#include "simdriver/cuda/work.h"

namespace aliquot::simdriver {

void note_pending(Stream& stream);
// Whether the stream's effects have not come to that place. A stream that is gone has none left;
// the pointer is only compared then.
bool effects_pending(const Stream* stream, std::uint64_t seq);
// A destroyed stream lives on while effects are pending in it.
void retire_stream(std::unique_ptr<Stream> stream);
void start_callbacks(Context& context);
void stop_callbacks(Lock& lock, Context& context);
void forget_pending(const Context& context);
void report_lost_data();

// work.cc's part of it.
void let_go(Stream& stream, std::uint64_t seq);
void wait_for_change(Lock& lock, ContextPages& pages, const Elsewhere& place, std::int64_t most);
void wake_waiters(ContextPages& pages);

}  // namespace aliquot::simdriver
