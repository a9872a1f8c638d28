// Any text as an assignment, an ask and a change: an answer or an error, and what was understood
// reads the same again.
#include <cstdlib>

#include "kube/assignment.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  using namespace aliquot::kube;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto assignment = parse_assignment(text)) {
    const auto again = parse_assignment(assignment_text(*assignment));
    if (!again || !(*again == *assignment)) std::abort();
  }
  Pod pod;
  Container container;
  container.name = "main";
  container.limits.emplace(kMemoryResource, text);
  pod.annotations = {{std::string(kMemoryAnnotation), text},
                     {std::string(kCoresAnnotation), text},
                     {std::string(kShareAnnotation), text}};
  if (const auto ask = ask_of(pod, container)) {
    if (ask->cores && (*ask->cores == 0 || *ask->cores > aliquot::model::kWholeGpu)) std::abort();
  }
  if (const auto change = share_change(pod, container); change && *change) {
    if ((*change)->weight && (*(*change)->weight == 0 || *(*change)->weight > 1000)) std::abort();
  }
  return 0;
}
