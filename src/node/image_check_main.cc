// aliquot-image-check: an OCI hook (createRuntime) of containers with a share. An image that cannot
// load our library gets no GPU: the container is not created, and what this prints is the reason
// that people read in the pod's events. What cannot be looked at is let through.
#include <iostream>
#include <iterator>
#include <string>

#include "node/image_libc.h"

int main() {
  using aliquot::node::ImageLibc;
  const std::string state(std::istreambuf_iterator<char>(std::cin), {});
  const auto root = aliquot::node::root_of_state(state);
  if (root.empty() || aliquot::node::libc_of(root) != ImageLibc::kOther) return 0;
  std::cerr
      << "aliquot: this image has no glibc, so it can load neither the GPU driver nor the "
         "library that keeps its share; use an image built on glibc (Debian, Ubuntu, UBI), or "
         "ask for no GPU\n";
  return 1;
}
