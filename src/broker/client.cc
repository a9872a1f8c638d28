#include "broker/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>

#include "broker/codec.h"
#include "broker/identity.h"
#include "broker/listener.h"
#include "common/files.h"

namespace aliquot::broker {
namespace {

constexpr int kConnectMs = 2000;
constexpr int kAnswerMs = 10'000;

Error no_answer(const std::string& why) {
  return {Errc::kUnavailable, "ask the broker: " + why + "; try again"};
}

template <typename T>
Result<T> decoded(const Result<std::string>& body) {
  if (!body) return body.error();
  T value;
  if (!decode(*body, value))
    return Error{Errc::kInternal,
                 "read the broker's answer: malformed; are the program and the "
                 "broker of one version?"};
  return value;
}

}  // namespace

Result<Client> Client::connect(const std::filesystem::path& state_directory) {
  auto socket = connect_to(state_directory / "broker.sock", kConnectMs);
  if (!socket) return socket.error();
  auto broker = peer_of(socket->get(), IdentityPath::kAuto);
  if (!broker) return Error{Errc::kUnavailable, broker.error().message};
  return Client(std::move(*socket), std::move(broker->pidfd));
}

Result<std::string> Client::ask(std::uint32_t verb, const std::string& body, bool patient) {
  AdminHeader header;
  header.verb = Verb{verb};
  std::string message(reinterpret_cast<const char*>(&header), sizeof header);
  message += body;
  if (message.size() > kLargestMessage)
    return Error{Errc::kInvalid, "ask the broker: the request is too long"};
  if (send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0)
    return no_answer(std::strerror(errno));
  pollfd p{socket_.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&p, 1, patient ? -1 : kAnswerMs);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return no_answer("it did not answer within 10 s");
  std::string reply(2 * kLargestMessage, '\0');
  const ssize_t n = recv(socket_.get(), reply.data(), reply.size(), 0);
  if (n < static_cast<ssize_t>(sizeof header)) return no_answer("it ended");
  std::memcpy(&header, reply.data(), sizeof header);
  reply.resize(static_cast<std::size_t>(n));
  reply.erase(0, sizeof header);
  if (header.magic != kAdminMagic || header.version != kAdminVersion)
    return Error{Errc::kInvalid,
                 "ask the broker: it is of another version; end it when its leases "
                 "are done"};
  if (header.verb != Verb::kFailed) return reply;
  Error error;
  if (!decode(reply, error)) return no_answer("its error was malformed");
  return error;
}

namespace {

std::uint32_t number(Verb verb) { return static_cast<std::uint32_t>(verb); }

}  // namespace

Result<LeaseGrant> Client::create_lease(const LeaseRequest& request) {
  return decoded<LeaseGrant>(ask(number(Verb::kCreate), encoded(request), request.wait));
}

Result<LeaseGrant> Client::join_lease(const std::string& name) {
  return decoded<LeaseGrant>(ask(number(Verb::kJoin), encoded(name)));
}

Result<std::vector<LeaseRow>> Client::list() {
  std::vector<LeaseRow> rows;
  std::string after;
  for (;;) {
    auto page = decoded<LeasePage>(ask(number(Verb::kList), encoded(after)));
    if (!page) return page.error();
    for (LeaseRow& row : page->rows) rows.push_back(std::move(row));
    if (!page->more || rows.empty()) return rows;
    after = rows.back().name;
  }
}

Result<LeaseRow> Client::get_lease(const std::string& name) {
  return decoded<LeaseRow>(ask(number(Verb::kGet), encoded(name)));
}

Status Client::set_memory(const std::string& lease, const std::string& gpu,
                          const model::MemoryQuantity& memory) {
  ShareChange change;
  change.memory = memory;
  change.compute.lease = lease;
  change.compute.gpu = gpu;
  return set_share(change);
}

Status Client::set_compute(const ComputeChange& change) {
  return set_share({std::nullopt, change});
}

Status Client::set_share(const ShareChange& change) {
  const auto done = ask(number(Verb::kSetShare), encoded(change));
  return done ? Status{} : Status{done.error()};
}

Status Client::set_gpu(const GpuChange& change) {
  const auto done = ask(number(Verb::kSetGpu), encoded(change));
  return done ? Status{} : Status{done.error()};
}

Result<std::vector<GpuSettings>> Client::gpus(const std::string& driver) {
  return decoded<std::vector<GpuSettings>>(ask(number(Verb::kGpus), encoded(driver)));
}

Result<std::vector<RoomRow>> Client::room(const std::string& driver) {
  return decoded<std::vector<RoomRow>>(ask(number(Verb::kRoom), encoded(driver)));
}

Result<std::vector<BypassRow>> Client::bypasses() {
  return decoded<std::vector<BypassRow>>(ask(number(Verb::kBypasses), {}));
}

Result<std::vector<NoteRow>> Client::notes() {
  return decoded<std::vector<NoteRow>>(ask(number(Verb::kNotes), {}));
}

Status Client::shutdown() {
  const auto done = ask(number(Verb::kShutdown), {});
  return done ? Status{} : Status{done.error()};
}

}  // namespace aliquot::broker
