/*
 * Workloads from files.
 *
 * A file of prompts (prompt-file.c) is one of these:
 *      - lines of text: each is a prompt
 *      - lines of JSON, each an object with "prompt"; "messages" as OpenAI has them; "body", an
 *        object with one of the former; "conversations", as ShareGPT has them, of which those up to
 *        the first answer are asked; or "turns", a list of questions, of which the first is asked.
 *        "max_tokens", "output_tokens" or "output_length" is the length of the answer
 *      - a list of such objects in JSON, as ShareGPT is published
 *
 * A trace (trace-file.c) is CSV with a line of names, or lines of JSON.  Both have columns or
 * members for the time, the tokens of the prompt and those of the answer, by the names that
 * published traces use: Azure's, Mooncake's, BurstGPT's.  A time is a number, or a date and a time
 * of day.  "hash_ids" names the blocks of the prompt: where two requests have equal ids, their
 * prompts are equal.
 */
#ifndef CLI_BENCH_FILES_H
#define CLI_BENCH_FILES_H

#include "cli/bench/options.h"
#include "cli/bench/workload.h"

/* `text` is NUL-ended.  0, or a negative errno and one line in *why. */
int prompt_file_read(const char *text, size_t bytes, struct workload *workload, char *why,
                     size_t why_bytes);

/* Leaves out the first `skip` requests, and takes at most `count` (0: all). */
int trace_file_read(const char *text, size_t bytes, enum bench_unit unit, uint32_t skip,
                    uint32_t count, struct workload *workload, char *why, size_t why_bytes);

#endif
