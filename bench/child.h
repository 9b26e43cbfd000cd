/*
 * A program that a benchmark starts, and that dies with it.
 */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include <stddef.h>
#include <sys/types.h>

/* Flags before, then more flags; both end with NULL.  Its output goes to a file. */
pid_t child_spawn(const char *program, const char *const *before, const char *const *flags,
                  const char *log);

/* The last line of the file, or what is said instead of it. */
void child_last_words(const char *log, const char *otherwise, char *why, size_t why_bytes);

#endif
