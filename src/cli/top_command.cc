#include "cli/top_command.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <algorithm>
#include <iterator>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <ostream>

#include "cli/ps_command.h"
#include "cli/surroundings.h"
#include "cli/top_view.h"

namespace aliquot::cli {
namespace {

struct TopOptions {
  double seconds = 1;
  bool once = false;
  bool json = false;
};

volatile std::sig_atomic_t ended = 0;
void end_soon(int /*signal*/) { ended = 1; }

// The terminal while it is ours: another screen, no cursor, keys at once. As it was afterwards.
class Screen {
 public:
  explicit Screen(std::ostream& out) : out_(out) {
    struct sigaction action{};
    action.sa_handler = &end_soon;  // no SA_RESTART: a wait ends
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    if (tcgetattr(STDIN_FILENO, &before_) == 0) {
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      keys_ = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    }
    out_ << "\x1b[?1049h\x1b[?25l";
  }
  ~Screen() {
    out_ << "\x1b[?25h\x1b[?1049l" << std::flush;
    if (keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Each line ends with "erase the rest of it": no flicker.
  void show(const std::string& text) {
    out_ << "\x1b[H";
    for (const char c : text) {
      if (c == '\n') out_ << "\x1b[K";
      out_ << c;
    }
    out_ << "\x1b[J" << std::flush;
  }
  // False: the reader has enough (q, Ctrl-C).
  bool wait(int ms) const {
    pollfd key{keys_ ? STDIN_FILENO : -1, POLLIN, 0};
    if (poll(&key, 1, ms) > 0) {
      char pressed = 0;
      if (read(STDIN_FILENO, &pressed, 1) == 1 && (pressed == 'q' || pressed == 'Q')) return false;
    }
    return ended == 0;
  }

 private:
  std::ostream& out_;
  termios before_{};
  bool keys_ = false;
};

TopStyle style_now(bool terminal) {
  TopStyle style;
  const char* plain = std::getenv("NO_COLOR");
  style.color = terminal && (plain == nullptr || *plain == '\0');
  winsize size{};
  if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    style.columns = size.ws_col;
    style.lines = size.ws_row > 1 ? size.ws_row - 1u : 0;
  }
  return style;
}

// No broker means no lease.
Result<TopFrame> look(const Clock& clock) {
  TopFrame frame;
  frame.time = clock.now();
  std::vector<broker::Client> brokers = running_brokers();
  if (brokers.empty() && inside_lease()) return running_broker().error();
  for (broker::Client& broker : brokers) {
    auto rows = broker.list();
    if (!rows) return rows.error();
    std::ranges::move(*rows, std::back_inserter(frame.leases));
    auto bypasses = broker.bypasses();
    if (!bypasses) return bypasses.error();
    std::ranges::move(*bypasses, std::back_inserter(frame.bypasses));
  }
  return frame;
}

Status show(const TopOptions& options, std::ostream& out) {
  const MonotonicClock clock;
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  const int pause_ms = static_cast<int>(options.seconds * 1000);
  std::unique_ptr<Screen> screen;
  if (terminal && !options.once && !options.json) screen = std::make_unique<Screen>(out);
  TopFrame before;
  for (bool first = true;; first = false) {
    auto frame = look(clock);
    if (!frame) return frame.error();
    const TopStyle style = style_now(terminal);
    if (options.json)
      out << lease_json(frame->leases, frame->bypasses, {}, -1)
          << std::endl;  // NOLINT: read line by line
    else if (screen)
      screen->show(top_text(*frame, first ? nullptr : &before, style));
    else
      out << (first ? "" : "\n") << top_text(*frame, first ? nullptr : &before, style)
          << std::flush;
    if (options.once || !out) return {};
    before = *std::move(frame);
    if (screen ? !screen->wait(pause_ms) : poll(nullptr, 0, pause_ms) < 0) return {};
  }
}

}  // namespace

void add_top_command(CLI::App& app, Invocation& invocation) {
  CLI::App* top = app.add_subcommand("top", "Watch the leases: memory, time, waiting");
  auto options = std::make_shared<TopOptions>();
  top->add_option("--interval", options->seconds, "Seconds between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  top->add_flag("--once", options->once, "One look, then end");
  top->add_flag("--json", options->json, "One JSON object a line, as ps --json has it");
  top->callback([options, &invocation] {
    if (const Status shown = show(*options, invocation.out); !shown)
      fail(invocation, "top", shown.error());
  });
}

}  // namespace aliquot::cli
