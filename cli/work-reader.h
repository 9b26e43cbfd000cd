/*
 * Reads the reply to `list`: rows of streams and of handles.  A number or a word that a row does
 * not have is 0 or "?": an older daemon leaves some out.
 */
#ifndef CLI_WORK_READER_H
#define CLI_WORK_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "json/document.h"

uint64_t work_number(const struct json_document *work, uint32_t row, const char *key);
const char *work_word(const struct json_document *work, uint32_t row, const char *key);
bool work_says(const struct json_document *work, uint32_t row, const char *key);

/*
 * Why a stream waits, and how often it was preempted: "needs 12 blocks, 9 free; preempted 2 times".
 * "" if neither; so it is for a handle.
 */
#define WORK_FACTS_BYTES 256
const char *work_facts(const struct json_document *work, uint32_t row, char to[WORK_FACTS_BYTES]);

#endif
