// PTX text cut into words, numbers, strings and punctuation, without comments. Pure; any input.
#pragma once

#include <string_view>

namespace aliquot::simdriver {

struct PtxToken {
  std::string_view text;  // empty: the end
  int line = 0;
  bool is(std::string_view what) const { return text == what; }
  bool is_directive() const { return text.size() > 1 && text.front() == '.'; }
};

class PtxTokens {
 public:
  explicit PtxTokens(std::string_view text) : rest_(text) { advance(); }

  const PtxToken& peek() const { return token_; }
  PtxToken next() {
    const PtxToken token = token_;
    advance();
    return token;
  }
  bool done() const { return token_.text.empty(); }

 private:
  void advance();
  void skip_blanks();

  std::string_view rest_;
  PtxToken token_;
  int line_ = 1;
};

}  // namespace aliquot::simdriver
