// Client: an administrator's connection to the broker of one state directory.
//
// What `aliquot run`, `ps`, `share` and the node daemon use. One question at a time; blocking, with
// a deadline where the question itself does not wait. Not shared between threads. The process that
// creates or joins a lease becomes its runner: the lease lives while a runner or an attached
// process does, and admits the runners' descendants (set PR_SET_CHILD_SUBREAPER, so that daemons
// stay descendants).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "broker/requests.h"
#include "common/result.h"
#include "common/unique_fd.h"

namespace aliquot::broker {

class Client {
 public:
  // Errc::kUnavailable when no broker answers there.
  static Result<Client> connect(const std::filesystem::path& state_directory);

  // The broker of the state directory; started where there is none. `command` is what to execute
  // for that (absolute program first); it gets ALIQUOT_STATE_DIR=DIRECTORY, a session of its own,
  // /dev/null, and DIRECTORY/broker.log as stderr. One per directory, whoever races.
  static Result<Client> start_or_connect(const std::filesystem::path& state_directory,
                                         const std::vector<std::string>& command);

  // With request.wait this blocks until there is room.
  Result<LeaseGrant> create_lease(const LeaseRequest& request);
  Result<LeaseGrant> join_lease(const std::string& name);
  Result<std::vector<LeaseRow>> list();
  Result<LeaseRow> get_lease(const std::string& name);
  // In force when this returns ok, both halves; an error changed neither. For every GPU of the
  // lease, or the one named: by its index on the machine, as in a LeaseRequest and in the rows
  // above, or by UUID.
  Status set_share(const ShareChange& change);
  // One half alone.
  Status set_memory(const std::string& lease, const std::string& gpu,
                    const model::MemoryQuantity& memory);
  Status set_compute(const ComputeChange& change);
  // In force when it returns ok.
  Status set_gpu(const GpuChange& change);
  // How each GPU of the machine is shared, in PCI order.
  Result<std::vector<GpuSettings>> gpus(const std::string& driver);
  Result<std::vector<RoomRow>> room(const std::string& driver);
  Result<std::vector<BypassRow>> bypasses();
  Result<std::vector<NoteRow>> notes();
  // The broker ends; leases and attached processes stay for the next one.
  Status shutdown();

  // Readable when the broker has ended; another is then to be started. Borrowed.
  int broker_pidfd() const { return pidfd_.get(); }

 private:
  Client(UniqueFd socket, UniqueFd pidfd) : socket_(std::move(socket)), pidfd_(std::move(pidfd)) {}

  Result<std::string> ask(std::uint32_t verb, const std::string& body, bool patient = false);

  UniqueFd socket_;
  UniqueFd pidfd_;
};

}  // namespace aliquot::broker
