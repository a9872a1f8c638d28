// Every look-up that NVIDIA's runtime library and other clients were seen to make is answered in a
// share with the symbol that the driver would give, and that symbol is ours.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <map>
#include <sstream>

#include "support/share_programs.h"
#include "support/shared_data.h"

namespace aliquot {
namespace {

using test::SharePrograms;

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  return lines;
}

// base -> version -> symbol, from the data alone.
using Versions = std::map<std::string, std::map<int, std::string>>;
struct Expected {
  Versions plain, streams;

  explicit Expected(const std::filesystem::path& data) {
    std::map<std::string, std::vector<std::pair<std::string, int>>> uses;
    for (const std::string& line : lines_of(data / "cuda_proc_addresses.tsv")) {
      std::istringstream fields(line);
      std::string base, symbol, kind;
      int version = 0;
      fields >> base >> version >> symbol >> kind;
      (kind == "pt" ? streams : plain)[base][version] = symbol;
      if (kind == "pt") uses[symbol].emplace_back(base, version);
    }
    // The list names the newest per-thread symbol for every version of a call; versions differ in
    // signature, so each has its own.
    for (const auto& [symbol, pairs] : uses)
      if (pairs.size() > 1)
        for (const auto& [base, version] : pairs)
          streams[base][version] = plain[base][version] + symbol.substr(symbol.size() - 5);
  }

  static std::string newest(const Versions& table, const std::string& base, int version) {
    const auto found = table.find(base);
    std::string symbol;
    if (found == table.end()) return symbol;
    for (const auto& [since, name] : found->second)
      if (since <= version) symbol = name;
    return symbol;
  }
  std::string symbol_for(const std::string& base, int version, int flags) const {
    if ((flags & 2) != 0)
      if (const std::string symbol = newest(streams, base, version); !symbol.empty()) return symbol;
    return newest(plain, base, version);
  }
};

class ShareLookups : public SharePrograms {
 protected:
  // What a program is answered, line by line, without its own first line. The library, whichever
  // name led to it, is said as "ours".
  std::vector<std::string> answers(const std::string& environment, const std::string& way,
                                   const std::vector<std::string>& questions) {
    const std::filesystem::path asked = state_ / "questions";
    std::ofstream file(asked);
    for (const std::string& question : questions) file << question << "\n";
    file.close();
    const char* program = way == "linked" ? ALIQUOT_LINKED_PROGRAM : ALIQUOT_PROGRAM;
    std::istringstream output(
        run(environment, std::string(program) + " " + way + " answers < " + asked.string()));
    const std::array<std::string, 2> ours{ALIQUOT_LIBRARY, in_place_ / "libcuda.so.1"};
    std::vector<std::string> lines;
    for (std::string line; std::getline(output, line);) {
      for (const std::string& path : ours)
        if (const auto at = line.find(path); at != std::string::npos)
          line.replace(at, path.size(), "ours");
      lines.push_back(line);
    }
    if (!lines.empty()) lines.erase(lines.begin());
    return lines;
  }
};

TEST_F(ShareLookups, OfTheRuntimeLibraryAreAnsweredAsTheDriverDoesThroughEveryWay) {
  const auto data = test::shared_data();
  if (!data) GTEST_SKIP() << "no shared data";
  const Expected expected(*data);
  std::vector<std::string> questions, wanted;
  for (const char* list : {"cuda_runtime_13_requests.txt", "clients/cuda-bindings.gpa"})
    for (const std::string& line : lines_of(*data / list)) {
      questions.push_back(line);
      std::istringstream fields(line);
      std::string base;
      int version = 0, flags = 0;
      fields >> base >> version >> flags;
      const std::string symbol = expected.symbol_for(base, version, flags);
      wanted.push_back(symbol.empty() ? "- - 1" : symbol + " ours 0");
    }
  ASSERT_GT(questions.size(), 900u);
  const auto lease = lease_on({"0"}, 1u << 30);
  for (const std::string& environment : {preload(lease), in_place(lease), both(lease)})
    for (const char* way : {"linked", "dlopen", "deepbind", "dlmopen", "proc"}) {
      const auto given = answers(environment, way, questions);
      ASSERT_EQ(given.size(), questions.size()) << way << " with " << environment;
      for (std::size_t i = 0; i < questions.size(); ++i)
        EXPECT_EQ(given[i], wanted[i]) << questions[i] << ", " << way << " with " << environment;
    }
}

TEST_F(ShareLookups, ByNameGiveOurFunctionOfThatNameThroughEveryWay) {
  const auto data = test::shared_data();
  if (!data) GTEST_SKIP() << "no shared data";
  const std::vector<std::string> names = lines_of(*data / "cuda_exports.txt");
  const auto lease = lease_on({"0"}, 1u << 30);
  for (const std::string& environment : {preload(lease), in_place(lease), both(lease)})
    for (const char* way : {"linked", "dlopen", "deepbind", "dlmopen"}) {
      const auto given = answers(environment, way, names);
      ASSERT_EQ(given.size(), names.size()) << way << " with " << environment;
      for (std::size_t i = 0; i < names.size(); ++i)
        EXPECT_EQ(given[i], names[i] + " ours") << way << " with " << environment;
    }
}

}  // namespace
}  // namespace aliquot
