// SPDX-License-Identifier: Apache-2.0
//
// Internal: doubles as text.

#ifndef STEPGRAPH_SCHEMAS_NUMBER_TEXT_H_
#define STEPGRAPH_SCHEMAS_NUMBER_TEXT_H_

#ifdef __cplusplus
extern "C" {
#endif

enum { SG_NUMBER_TEXT_BYTES = 40 };

// Writes the fewest of 15, 16 or 17 digits that read back as |value|, with a
// point as the decimal sign whatever the locale. |value| is finite.
void sg_number_text_from_double(double value,
                                char out_text[SG_NUMBER_TEXT_BYTES]);

#ifdef __cplusplus
}
#endif

#endif  // STEPGRAPH_SCHEMAS_NUMBER_TEXT_H_
