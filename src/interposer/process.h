// What a forked child does before it attaches anew: everything this process believed to hold is its
// parent's, and locks may have been held by threads that do not exist here. One list, so that no
// part is forgotten. Called with no other thread in the library.
#pragma once

namespace aliquot::interposer {

void forget_process();

}  // namespace aliquot::interposer
