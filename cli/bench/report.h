/*
 * All runs of a command, and what they ran on.  table.c prints a report for people, export.c writes
 * it for programs, and picture.c draws it.
 */
#ifndef CLI_BENCH_REPORT_H
#define CLI_BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/bench/figures.h"
#include "cli/bench/host.h"
#include "cli/bench/target.h"
#include "json/bytes.h"

#define SERVERS_MAX 2u

struct report_run {
        char label[16]; /* what else differs: "static"; "": nothing */
        uint32_t server, round;
        uint32_t concurrency; /* 0: no limit */
        double rate;          /* 0: none */
        char why[256];        /* the words of the first error */
        struct figures figures;
};

struct report {
        struct host host;
        struct target_facts servers[SERVERS_MAX];
        uint32_t server_count, rounds;
        char workload[256], load[256];
        char title[64];
        bool open, by_rate, trace; /* an open loop; levels are rates */
        bool batches;              /* the concurrency is also the size of the batch */
        struct slo slo;
        uint64_t seed;
        struct report_run *runs;
        uint32_t count, size;
};

/* Space for one more run, all 0; NULL: out of memory. */
struct report_run *report_add(struct report *report);
void report_deinit(struct report *report);

/* The level of a run: its rate, or its concurrency. */
double report_level(const struct report *report, const struct report_run *run);

/* What tells a run from the others: "round 2, B, 8 at a time". */
#define RUN_NAME_MAX 112
const char *report_run_name(const struct report *report, const struct report_run *run,
                            char to[RUN_NAME_MAX]);

/*
 * Walks over the groups of runs that differ only in their round: *at begins with 0 and is the next
 * group's first run afterwards.  NULL: there is none.
 */
const struct report_run *report_group(const struct report *report, uint32_t *at);
bool report_same_group(const struct report *report, const struct report_run *a,
                       const struct report_run *b);

struct range {
        double median, least, most;
};
/* A metric over the rounds of a group that have it; false: none has. */
bool report_range(const struct report *report, const struct report_run *group,
                  const struct metric *metric, struct range *ret_range);
/*
 * The ratio of the first server to the second, over the rounds in which both have answered and have
 * the metric, and the second not 0; false: there is no such round.
 */
bool report_ratio(const struct report *report, const struct report_run *group,
                  const struct metric *metric, struct range *ret_range);

/* The text for people.  These return 0 or -ENOMEM. */
int report_table(const struct report *report, struct bytes *to);
int report_json(const struct report *report, struct bytes *to);
int report_csv(const struct report *report, struct bytes *to);
int report_svg(const struct report *report, struct bytes *to);
/* A line for each sample of a run. */
int report_raw(const struct report *report, const struct report_run *run,
               const struct samples *samples, struct bytes *to);

/* For these: appends a text. */
int put(struct bytes *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
