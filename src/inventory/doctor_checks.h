// What the doctor's checks have in common. Inside the room only; pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inventory/doctor.h"

namespace aliquot::inventory {

class Findings {
 public:
  // `code` is one of the table's.
  void add(std::string_view code, std::string subject, std::string evidence);
  std::vector<Finding> take();

 private:
  std::vector<Finding> all_;
};

// Host settings, containers, jobs, shares.
void check_software(const DoctorView& view, Findings& found);

}  // namespace aliquot::inventory
