#include "simdriver/cuda/ptx_tokens.h"

#include <algorithm>
#include <cctype>

namespace aliquot::simdriver {
namespace {

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

}  // namespace

void PtxTokens::skip_blanks() {
  while (!rest_.empty()) {
    const char c = rest_.front();
    if (rest_.starts_with("//")) {
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    } else if (rest_.starts_with("/*")) {
      const std::size_t end = std::min(rest_.find("*/", 2), rest_.size() - 2);
      line_ += static_cast<int>(std::count(rest_.begin(), rest_.begin() + end, '\n'));
      rest_.remove_prefix(end + 2);
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (c == '\n') ++line_;
      rest_.remove_prefix(1);
    } else {
      return;
    }
  }
}

void PtxTokens::advance() {
  skip_blanks();
  std::size_t length = rest_.empty() ? 0 : 1;
  if (!rest_.empty() && rest_.front() == '"') {
    const std::size_t end = rest_.find('"', 1);
    length = end == std::string_view::npos ? rest_.size() : end + 1;
  } else if (!rest_.empty() && in_word(rest_.front())) {
    while (length < rest_.size() && in_word(rest_[length])) ++length;
  }
  token_ = {rest_.substr(0, length), line_};
  rest_.remove_prefix(length);
}

}  // namespace aliquot::simdriver
