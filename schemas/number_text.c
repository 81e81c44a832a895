// SPDX-License-Identifier: Apache-2.0

#include "schemas/number_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The decimal sign of a locale may be any bytes: what is not of a number in C's
// own locale is the sign.
static void replace_decimal_sign(char* text) {
  static const char number_bytes[] = "0123456789+-e";
  size_t sign_begin = strspn(text, number_bytes);
  size_t sign_bytes = strcspn(text + sign_begin, number_bytes);
  if (sign_bytes == 0) return;
  text[sign_begin] = '.';
  char* rest = text + sign_begin + sign_bytes;
  memmove(text + sign_begin + 1, rest, strlen(rest) + 1);
}

void sg_number_text_from_double(double value,
                                char out_text[SG_NUMBER_TEXT_BYTES]) {
  for (int digits = 15; digits <= 17; ++digits) {
    snprintf(out_text, SG_NUMBER_TEXT_BYTES, "%.*g", digits, value);
    if (strtod(out_text, /*end=*/NULL) == value) break;
  }
  replace_decimal_sign(out_text);
}
