/* The plan of a pull, for --dry-run: the files, their sizes, and whether they fit this machine. */
#ifndef CLI_PULL_PLAN_H
#define CLI_PULL_PLAN_H

#include "cli/pull/choose.h"
#include "cli/pull/fetch.h"
#include "cli/pull/verdict.h"

struct plan {
        const char *source, *revision, *name, *place;
        uint64_t bytes, free_bytes; /* bytes 0: not known; free_bytes UINT64_MAX: not known */
        const struct fetch_file *files;
        size_t file_count;
        const struct listing *listing; /* to name other quantisations; NULL: none */
        const struct choice *choice;
        const struct verdict *verdict;
};

/* Prints it on stdout: 0 or an exit status. */
int plan_print(const struct plan *plan);
int plan_print_json(const struct plan *plan);

#endif
