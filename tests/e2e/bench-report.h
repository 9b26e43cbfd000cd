/*
 * Reads what `samovar bench` has printed: the JSON of --json, by paths like "runs.0.answered", or
 * the text.  A check that fails ends the test.
 */
#ifndef TESTS_E2E_BENCH_REPORT_H
#define TESTS_E2E_BENCH_REPORT_H

#include "tests/e2e/daemon-fixture.h"

/* The number at the path, or a truth as 1 or 0, or how many members there are; -1: nothing. */
double told(const struct run_result *ran, const char *path);
/* The same below the run of a server in a round. */
double told_of(const struct run_result *ran, char server, double round, const char *path);
bool has(const struct run_result *ran, const char *path);

void assert_status(const struct run_result *ran, int status);
void assert_told(const struct run_result *ran, const char *path, double wanted);
/* The text at the path has these words. */
void assert_words(const struct run_result *ran, const char *path, const char *words);
/* Apart from rounding. */
void assert_about(double value, double wanted);

/* The first line of the text that begins with `title` and has `word`; "": there is none.  Valid
 * until the next call. */
const char *line_of(const char *text, const char *title, const char *word);
void assert_line(const struct run_result *ran, const char *title, const char *word);
void assert_no_line(const struct run_result *ran, const char *title);

/* The command could not begin: no report, this status, and one line with these words.  Frees. */
void assert_refusal(struct run_result ran, int status, const char *words);

#endif
