// SPDX-License-Identifier: BSD-3-Clause
#include "base/message.hpp"

#include <locale>
#include <sstream>

namespace gridlops {

void MessagePart::print_character(std::ostream& text, const Any& value) { text << value.character; }
void MessagePart::print_real(std::ostream& text, const Any& value) { text << value.real; }
void MessagePart::print_integer(std::ostream& text, const Any& value) { text << value.integer; }
void MessagePart::print_natural(std::ostream& text, const Any& value) { text << value.natural; }
void MessagePart::print_text(std::ostream& text, const Any& value) { text << value.text; }
void MessagePart::print_manipulator(std::ostream& text, const Any& value) { text << value.manipulator; }

std::string joined(std::initializer_list<MessagePart> parts) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(17);
  for (const MessagePart& part : parts) text << part;
  return text.str();
}

}  // namespace gridlops
