// `aliquot ps`: the leases of this user's broker and what they use. One thread.
#pragma once

#include <vector>

#include "broker/requests.h"
#include "cli/command.h"

namespace aliquot::cli {

void add_ps_command(CLI::App& app, Invocation& invocation);

// One line per lease and GPU, for people.
std::string lease_table(const std::vector<broker::LeaseRow>& leases);

// One line per lease and GPU where the driver measures well more than is charged: rounding explains
// little, a ledger rewritten by its tenant much. Empty: nowhere.
std::string unaccounted_text(const std::vector<broker::LeaseRow>& leases);

// One line a note.
std::string notes_text(const std::vector<broker::NoteRow>& notes);

// docs/formats/cli_json.md
std::string lease_json(const std::vector<broker::LeaseRow>& leases,
                       const std::vector<broker::BypassRow>& bypasses,
                       const std::vector<broker::NoteRow>& notes, int indent = 2);

}  // namespace aliquot::cli
