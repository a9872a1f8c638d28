#include "simdriver/cuda/ptx.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "simdriver/cuda/ptx_tokens.h"

namespace aliquot::simdriver {
namespace {

constexpr std::uint64_t kLargestVariable = 1ull << 40;

template <typename T>
std::optional<T> number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  while (!text.empty() && (text.back() == 'U' || text.back() == 'u')) text.remove_suffix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// ".u32" -> 4; 0: not a type that has a size.
std::uint32_t type_bytes(std::string_view type) {
  const std::size_t digits = type.find_first_of("0123456789");
  if (type.size() < 3 || digits == std::string_view::npos) return 0;
  const auto bits = number<std::uint32_t>(type.substr(digits, type.find('x') - digits));
  if (!bits || *bits % 8 != 0 || *bits > 128) return 0;
  const std::uint32_t packed = type.ends_with("x2") ? 2 : 1;
  return *bits / 8 * packed;
}

std::uint32_t vector_width(std::string_view directive) {
  if (directive == ".v2") return 2;
  return directive == ".v4" ? 4 : 1;
}

// A declared variable: `.align 8 .b8 name[2][16] = {...}`.
struct Declaration {
  std::string name;
  std::uint32_t align = 0;
  std::uint32_t element_bytes = 0;
  std::uint64_t bytes = 0;
  bool managed = false;
  std::vector<std::byte> initial;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : tokens_(text) {}

  Result<CodeImage> read() {
    if (!tokens_.peek().is(".version")) fail("Missing .version directive at start of file");
    while (!tokens_.done() && !failure_) statement();
    if (failure_) return *failure_;
    if (image_.target == 0) return Error{Errc::kInvalid, "Missing .target directive"};
    return std::move(image_);
  }

 private:
  void fail(const std::string& what) {
    if (failure_) return;
    failure_ =
        Error{Errc::kInvalid, "line " + std::to_string(tokens_.peek().line) + "; error: " + what};
  }

  bool expect(std::string_view what) {
    if (tokens_.peek().is(what)) {
      tokens_.next();
      return true;
    }
    fail("expected '" + std::string(what) + "' near '" + std::string(tokens_.peek().text) + "'");
    return false;
  }

  void statement() {
    const PtxToken token = tokens_.next();
    if (token.is(".version")) return version();
    if (token.is(".target")) return target();
    if (token.is(".entry")) return entry();
    if (token.is(".func")) return function();
    if (token.is(".global") || token.is(".const")) return variables(token.is(".const"));
    if (token.is(".shared")) return shared_variable();
    if (token.is(".pragma")) return pragma();
    if (token.is(".tex") || token.is(".alias")) return skip_to_semicolon();
    if (token.is(".section")) return section();
    if (token.is("{") || token.is("}"))
      return fail("Parsing error near '" + std::string(token.text) + "'");
    // .visible, .extern, .weak, .common, .address_size 64, .file 1 "x", .loc 1 2 3: what follows
    // them is looked at by itself.
    const bool harmless = token.is_directive() || token.is(",") || token.text.front() == '"' ||
                          number<std::uint64_t>(token.text).has_value() || token.is(";");
    if (token.is(".extern")) external_ = true;
    if (!harmless) fail("Parsing error near '" + std::string(token.text) + "'");
  }

  void version() {
    const std::string_view text = tokens_.next().text;
    const std::size_t dot = text.find('.');
    const auto major = number<int>(text.substr(0, dot));
    const auto minor =
        dot == std::string_view::npos ? std::nullopt : number<int>(text.substr(dot + 1));
    if (!major || !minor || *major > 99 || *minor > 9) return fail("Invalid .version");
    image_.ptx_version = *major * 10 + *minor;
  }

  void target() {
    std::string_view text = tokens_.next().text;
    if (!text.starts_with("sm_")) return fail("Unknown .target '" + std::string(text) + "'");
    text.remove_prefix(3);
    while (!text.empty() && (text.back() == 'a' || text.back() == 'f')) text.remove_suffix(1);
    const auto sm = number<int>(text);
    if (!sm) return fail("Unknown .target");
    image_.target = *sm;
    while (tokens_.peek().is(",")) {
      tokens_.next();
      tokens_.next();
    }
  }

  void skip_to_semicolon() {
    while (!tokens_.done() && !tokens_.next().is(";")) {
    }
    external_ = false;
  }

  // Of whichever kernels use it. Without a size it is the launch's dynamic part.
  void shared_variable() {
    Declaration declared;
    if (!declaration(declared)) return;
    if (!external_) shared_[declared.name] = static_cast<std::uint32_t>(declared.bytes);
    skip_to_semicolon();
  }

  // What a linker was told about the registers of all kernels (jit_options.h).
  void pragma() {
    std::string_view text = tokens_.next().text;
    constexpr std::string_view kMost = "\"maxnreg ";
    if (text.starts_with(kMost)) {
      text.remove_prefix(kMost.size());
      if (!text.empty()) text.remove_suffix(1);
      const std::uint32_t most = std::max(number<std::uint32_t>(text).value_or(255), 16u);
      for (KernelImage& kernel : image_.kernels)
        kernel.registers = std::min(kernel.registers, most);
    }
    skip_to_semicolon();
  }

  void section() {
    tokens_.next();
    skip_block();
  }

  void skip_block() {
    if (!expect("{")) return;
    for (int depth = 1; depth > 0;) {
      if (tokens_.done()) return fail("Missing '}' at end of file");
      const PtxToken token = tokens_.next();
      depth += token.is("{") ? 1 : token.is("}") ? -1 : 0;
    }
  }

  void skip_parentheses() {
    if (!expect("(")) return;
    for (int depth = 1; depth > 0;) {
      if (tokens_.done()) return fail("Missing ')'");
      const PtxToken token = tokens_.next();
      depth += token.is("(") ? 1 : token.is(")") ? -1 : 0;
    }
  }

  // After the state space, up to `,` `;` `)`. Dimensions of 0 or none are extern arrays.
  bool declaration(Declaration& made) {
    std::uint64_t elements = 1;
    while (tokens_.peek().is_directive()) {
      const PtxToken token = tokens_.next();
      if (token.is(".align")) {
        made.align = number<std::uint32_t>(tokens_.next().text).value_or(0);
      } else if (token.is(".attribute")) {
        made.managed = managed_attribute() || made.managed;
      } else if (token.is(".ptr")) {
        skip_pointer_attributes();
      } else if (const std::uint32_t width = vector_width(token.text); width > 1) {
        elements *= width;
      } else if (const std::uint32_t bytes = type_bytes(token.text)) {
        made.element_bytes = bytes;
      } else if (token.is(".texref") || token.is(".samplerref") || token.is(".surfref")) {
        made.element_bytes = 8;
      }
    }
    made.name = tokens_.next().text;
    while (tokens_.peek().is("[")) {
      tokens_.next();
      const auto size = tokens_.peek().is("]") ? 0 : number<std::uint64_t>(tokens_.next().text);
      if (!size || (*size != 0 && elements > kLargestVariable / *size)) {
        fail("Invalid array size of '" + made.name + "'");
        return false;
      }
      elements *= *size;
      if (!expect("]")) return false;
    }
    if (made.element_bytes == 0 || elements > kLargestVariable) {
      fail("Type expected for '" + made.name + "'");
      return false;
    }
    if (made.align == 0) made.align = made.element_bytes;
    if (made.align > 4096 || (made.align & (made.align - 1)) != 0) {
      fail("Invalid alignment of '" + made.name + "'");
      return false;
    }
    made.bytes = elements * made.element_bytes;
    return true;
  }

  bool managed_attribute() {
    bool managed = false;
    if (!expect("(")) return false;
    while (!tokens_.done() && !tokens_.peek().is(")")) managed |= tokens_.next().is(".managed");
    expect(")");
    return managed;
  }

  // `.ptr .global .align 16`: of what a parameter points to, not of the parameter.
  void skip_pointer_attributes() {
    while (tokens_.peek().is_directive()) {
      const PtxToken token = tokens_.next();
      if (token.is(".align")) tokens_.next();
    }
  }

  void variables(bool constant) {
    bool more = true;
    Declaration shared_prefix;
    while (more && !failure_) {
      Declaration declared = shared_prefix;
      if (!declaration(declared)) return;
      shared_prefix.element_bytes = declared.element_bytes;
      shared_prefix.align = declared.align;
      shared_prefix.managed = declared.managed;
      if (tokens_.peek().is("=")) initialiser(declared);
      if (constant) image_.constant_bytes += static_cast<std::uint32_t>(declared.bytes);
      if (!external_) {
        image_.variables.push_back({declared.name, declared.bytes, declared.align, declared.managed,
                                    constant, std::move(declared.initial)});
      }
      more = tokens_.peek().is(",");
      if (more) tokens_.next();
    }
    external_ = false;
    expect(";");
  }

  // Numbers only; addresses of other symbols leave zeros.
  void initialiser(Declaration& declared) {
    tokens_.next();
    int depth = 0;
    bool negative = false;
    while (!tokens_.done() && !failure_) {
      const PtxToken& token = tokens_.peek();
      if (depth == 0 && (token.is(";") || (token.is(",")))) return;
      const PtxToken taken = tokens_.next();
      if (taken.is("{")) {
        ++depth;
      } else if (taken.is("}")) {
        --depth;
      } else if (taken.is("-")) {
        negative = true;
        continue;
      } else if (!taken.is(",") && declared.initial.size() < declared.bytes) {
        append(declared, taken.text, negative);
      }
      negative = false;
    }
  }

  static void append(Declaration& declared, std::string_view text, bool negative) {
    std::uint64_t bits = 0;
    if ((text.starts_with("0f") || text.starts_with("0F") || text.starts_with("0d") ||
         text.starts_with("0D")) &&
        text.size() > 2) {
      std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    } else if (text.find('.') != std::string_view::npos) {
      const double value = std::strtod(std::string(text).c_str(), nullptr);
      const auto narrow = static_cast<float>(value);
      if (declared.element_bytes == 8) std::memcpy(&bits, &value, sizeof(value));
      if (declared.element_bytes == 4) std::memcpy(&bits, &narrow, sizeof(narrow));
    } else {
      bits = number<std::uint64_t>(text).value_or(0);
    }
    if (negative) bits = ~bits + 1;
    const auto* bytes = reinterpret_cast<const std::byte*>(&bits);
    const std::size_t size = std::min<std::size_t>(declared.element_bytes, sizeof(bits));
    declared.initial.insert(declared.initial.end(), bytes, bytes + size);
    declared.initial.resize(declared.initial.size() + declared.element_bytes - size);
  }

  void function() {
    if (tokens_.peek().is("(")) skip_parentheses();
    tokens_.next();  // its name
    if (tokens_.peek().is("(")) skip_parentheses();
    while (!tokens_.done() && !tokens_.peek().is("{") && !tokens_.peek().is(";")) tokens_.next();
    external_ = false;
    if (tokens_.peek().is(";")) {
      tokens_.next();
    } else {
      skip_block();
    }
  }

  void entry() {
    KernelImage kernel;
    kernel.name = tokens_.next().text;
    if (tokens_.peek().is("(")) parameters(kernel);
    std::uint32_t most = 0;
    while (!tokens_.done() && !failure_ && !tokens_.peek().is("{") && !tokens_.peek().is(";")) {
      const PtxToken directive = tokens_.next();
      if (directive.is(".maxntid")) most = product();
      if (directive.is(".reqntid")) most = kernel.required_threads = product();
      if (directive.is(".maxnreg")) {
        kernel.registers = number<std::uint32_t>(tokens_.next().text).value_or(0);
      }
    }
    if (most > 0) kernel.max_threads = std::min(most, 1024u);
    external_ = false;
    if (tokens_.peek().is(";")) {
      tokens_.next();
      return;  // declared only
    }
    body(kernel);
    if (!failure_) image_.kernels.push_back(std::move(kernel));
  }

  std::uint32_t product() {
    std::uint64_t total = 1;
    for (;;) {
      const auto factor = number<std::uint32_t>(tokens_.next().text);
      if (!factor || *factor > 65536) {
        fail("Invalid number of threads");
        return 0;
      }
      total *= *factor;
      if (!tokens_.peek().is(","))
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(total, 65536));
      tokens_.next();
    }
  }

  void parameters(KernelImage& kernel) {
    expect("(");
    std::uint64_t at = 0;
    while (!tokens_.done() && !tokens_.peek().is(")") && !failure_) {
      if (!expect(".param")) return;
      Declaration declared;
      if (!declaration(declared)) return;
      at = (at + declared.align - 1) / declared.align * declared.align;
      if (declared.bytes > 65536 || at > 65536) return fail("Too many parameter bytes");
      kernel.parameters.push_back(
          {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(declared.bytes)});
      at += declared.bytes;
      if (tokens_.peek().is(",")) tokens_.next();
    }
    kernel.parameter_bytes = static_cast<std::uint32_t>(at);
    expect(")");
  }

  void body(KernelImage& kernel) {
    if (!expect("{")) return;
    std::uint64_t words = 0;  // of virtual registers
    std::set<std::string_view> used;
    for (int depth = 1; depth > 0 && !failure_;) {
      if (tokens_.done()) return fail("Missing '}' at end of file");
      const PtxToken token = tokens_.next();
      if (token.is("{")) ++depth;
      if (token.is("}")) --depth;
      if (token.is(".reg")) words += registers();
      if (token.is(".shared")) kernel.shared_bytes += local_bytes();
      if (token.is(".local")) kernel.local_bytes += local_bytes();
      const auto shared = shared_.find(token.text);
      if (shared != shared_.end() && used.insert(token.text).second) {
        kernel.shared_bytes += shared->second;
      }
    }
    // An assembler reuses registers; a quarter of the virtual ones is assumed to be live at once.
    const std::uint64_t live = std::clamp<std::uint64_t>((8 + words / 4 + 7) / 8 * 8, 16, 255);
    if (kernel.registers == 0) kernel.registers = static_cast<std::uint32_t>(live);
  }

  std::uint32_t local_bytes() {
    Declaration declared;
    if (!tokens_.peek().is_directive() || !declaration(declared)) return 0;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(declared.bytes, UINT32_MAX / 4));
  }

  // `.reg .b32 %r<10>;` or `.reg .pred p, q;`: their 32-bit words.
  std::uint64_t registers() {
    std::uint64_t width = 1;
    while (tokens_.peek().is_directive()) {
      const PtxToken type = tokens_.next();
      width = type.is(".pred") ? 0 : std::max<std::uint64_t>(1, type_bytes(type.text) / 4);
    }
    std::uint64_t count = 0;
    while (!tokens_.done() && !tokens_.peek().is(";")) {
      const PtxToken token = tokens_.next();
      if (token.is("<")) {
        count += number<std::uint32_t>(tokens_.next().text).value_or(1) - 1;
      } else if (!token.is(",") && !token.is(">")) {
        ++count;
      }
    }
    return std::min<std::uint64_t>(count, 1u << 20) * width;
  }

  PtxTokens tokens_;
  CodeImage image_;
  std::optional<Error> failure_;
  bool external_ = false;
  std::map<std::string, std::uint32_t, std::less<>> shared_;  // of the module: bytes by name
};

}  // namespace

Result<CodeImage> read_ptx(std::string_view text) {
  Result<CodeImage> image = Reader(text).read();
  if (image) image->code_bytes = text.size();
  return image;
}

}  // namespace aliquot::simdriver
