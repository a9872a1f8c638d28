// Captures: whether a call's work goes to the device or into a graph.
//
// While a stream is captured, what is launched there runs only when the graph is: it passes the
// gate untouched, and around it the driver may be asked nothing that would spoil the capture. A
// count of captures under way answers for a program that captures nothing; only while there are
// some is the driver asked, by the one call that is always allowed. A stream that is destroyed in
// the middle of its capture leaves the count one too high: its program pays for that question from
// then on. Any thread.
#pragma once

#include <atomic>

#include "driver_abi/cuda_types.h"

namespace aliquot::interposer {

extern constinit std::atomic<int> captures_under_way;  // NOLINT: constant-initialised

inline bool capturing_anywhere() { return captures_under_way.load(std::memory_order_relaxed) != 0; }
// Whether work in this stream goes into a graph, or cannot be launched at all while another stream
// is captured (then the driver says so itself). Asks the driver.
bool goes_into_graph(CUstream stream);

// After the driver's answer to a call that begins or ends a capture.
void capture_began(CUresult result);
void capture_ended(CUresult result);

void forget_captures();

}  // namespace aliquot::interposer
