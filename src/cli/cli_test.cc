// The frame of the program: parsing, errors, tables, and what is made from the parser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/completion_command.h"
#include "cli/program.h"
#include "cli/ps_command.h"
#include "cli/table.h"

namespace aliquot::cli {
namespace {

using testing::HasSubstr;

struct Ran {
  int status;
  std::string out, err;
};

Ran run(std::vector<std::string> words) {
  std::ostringstream out;
  std::ostringstream err;
  words.insert(words.begin(), "aliquot");
  Invocation invocation{out, err, std::move(words)};
  const int status = run_program(invocation);
  return {status, out.str(), err.str()};
}

TEST(Program, AnUnknownCommandIsOneLineAndAUsageError) {
  const Ran ran = run({"fly"});
  EXPECT_EQ(ran.status, kUsageError);
  EXPECT_THAT(ran.err, HasSubstr("fly"));
  EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1);
  EXPECT_EQ(ran.out, "");
}

TEST(Program, HelpListsEveryCommand) {
  const Ran ran = run({"--help"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.out, HasSubstr("completion"));
}

TEST(Completion, KnowsEveryCommandAndOptionOfTheParser) {
  CLI::App app;
  app.add_subcommand("run", "runs")->add_option("--memory", "limit");
  app.add_subcommand("hidden", "not shown")->group("");
  const std::string script = bash_completion(app);
  EXPECT_THAT(script, HasSubstr("'') words='run --help'"));
  EXPECT_THAT(script, HasSubstr("'run') words='--help --memory'"));
  EXPECT_THAT(script, testing::Not(HasSubstr("hidden")));
}

TEST(Completion, AsksForTheNamesOfMachinesWhereOneIsMeant) {
  CLI::App app;
  std::string sim, name;
  CLI::App* run = app.add_subcommand("run", "runs");
  run->add_option("--sim", sim, "which")->type_name("NAME|PRESET");
  app.add_subcommand("down", "ends")->add_option("name", name, "whose")->type_name("MACHINE");
  const std::string script = bash_completion(app);
  EXPECT_THAT(script, HasSubstr("'run --sim') words=\"$(\"$1\" completion names machines presets"));
  EXPECT_THAT(script, HasSubstr("'down') words='--help'\" \"\"$(\"$1\" completion names machines"));
}

// The parser keeps a group of options as a command without a name.
TEST(Completion, KnowsTheOptionsOfAGroup) {
  CLI::App app;
  CLI::App* fault = app.add_subcommand("fault", "breaks");
  fault->add_option_group("kinds")->add_flag("--lost")->description("It is gone");
  EXPECT_THAT(bash_completion(app), HasSubstr("'fault') words='--help --lost'"));
  EXPECT_THAT(man_page(app), HasSubstr(".B \\-\\-lost\nIt is gone"));
}

TEST(ManPage, DescribesEveryOptionAndEscapesDashes) {
  CLI::App app;
  std::string memory;
  app.add_subcommand("run", "Runs it")->add_option("--memory", memory, "The limit");
  EXPECT_THAT(man_page(app), HasSubstr(".SS aliquot run\nRuns it\n.TP\n.B \\-\\-memory"));
}

TEST(Ps, NamesALeaseThatHoldsWellMoreThanIsCharged) {
  broker::LeaseRow lease;
  lease.name = "web";
  lease.gpus.resize(1);
  lease.gpus[0].used_bytes = 4 * model::kGiB;
  lease.gpus[0].unaccounted_bytes = static_cast<std::int64_t>(100 * model::kMiB);
  EXPECT_EQ(notes_text({{"gpu_health", "GPU 3 GPU-x", "is lost: XID 79"}}),
            "GPU 3 GPU-x is lost: XID 79\n");
  EXPECT_EQ(unaccounted_text({lease}), "");
  lease.gpus[0].unaccounted_bytes = static_cast<std::int64_t>(2 * model::kGiB);
  EXPECT_EQ(unaccounted_text({lease}),
            "lease web holds 2GiB of GPU 0 beyond what is charged to it\n");
  lease.gpus[0].held_back_bytes = model::kGiB;
  EXPECT_THAT(unaccounted_text({lease}), HasSubstr("charged to it; it may take 1GiB less\n"));
}

TEST(Table, AlignsNumbersRightAndTrimsLineEnds) {
  Table table({{"GPU"}, {"used", Table::Align::kRight}, {"note"}});
  table.add({"0", "4GiB", "µ"});
  table.add({"10", "512MiB"});
  EXPECT_EQ(table.text(),
            "GPU    used  note\n"
            "0      4GiB  µ\n"
            "10   512MiB\n");
}

}  // namespace
}  // namespace aliquot::cli
