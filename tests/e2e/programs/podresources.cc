// Asks kubelet's podresources API, for the end-to-end tests:
//   podresources allocatable RESOURCE   how many devices kubelet would give out
//   podresources held RESOURCE          one line a container: namespace/pod container ids...
#include <cstdio>
#include <span>
#include <string>

#include "node/kubelet_book.h"

// NOLINTNEXTLINE(bugprone-exception-escape): then the test that asks fails
int main(int count, char** words) {
  const std::span arguments(words, static_cast<std::size_t>(count));
  if (arguments.size() != 3) {
    std::fprintf(stderr, "usage: podresources allocatable|held RESOURCE\n");
    return 2;
  }
  const std::string what = arguments[1];
  const auto kubelet =
      aliquot::node::open_pod_resources("/var/lib/kubelet/pod-resources/kubelet.sock");
  if (what == "allocatable") {
    const auto ids = kubelet->allocatable(arguments[2]);
    if (ids) return std::printf("%zu\n", ids->size()) < 0;
    std::fprintf(stderr, "podresources: %s\n", ids.error().message.c_str());
    return 1;
  }
  const auto book = kubelet->list({arguments[2]});
  if (!book) {
    std::fprintf(stderr, "podresources: %s\n", book.error().message.c_str());
    return 1;
  }
  for (const auto& held : book->held) {
    std::printf("%s/%s %s", held.pod_namespace.c_str(), held.pod.c_str(), held.container.c_str());
    for (const std::string& id : held.ids) std::printf(" %s", id.c_str());
    std::printf("\n");
  }
  return 0;
}
