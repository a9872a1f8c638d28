// Where one user's brokers, leases and simulated machines live while they run. Any thread.
#pragma once

#include <filesystem>

namespace aliquot {

// $ALIQUOT_STATE_DIR (tests, and people who keep several apart), else /run/aliquot/root for root,
// else $XDG_RUNTIME_DIR/aliquot, else /tmp/aliquot-UID. Not created here: who writes creates, 0700.
std::filesystem::path state_directory();

// Where the machine's daemon keeps its socket and what it tells everyone: $ALIQUOT_DAEMON_DIR, else
// /run/aliquot. Empty where ALIQUOT_STATE_DIR keeps things apart: no daemon is asked then.
std::filesystem::path daemon_directory();

}  // namespace aliquot
