/*
 * Splitters by name: the cuts into pre-tokens of tokenizers that a GGUF file or a setting only
 * names.  Files of other kinds have the expressions themselves.
 */
#ifndef DAEMON_FILES_SPLITTERS_H
#define DAEMON_FILES_SPLITTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/model/vocabulary.h"

struct splitter {
        const char *const *names; /* those of GGUF files and others; NULL ends them */
        const struct vocabulary_cut *cuts;
        uint32_t cut_count;
        /* For a GGUF file that does not say them itself. */
        bool whole_wins, add_bos;
};

/* NULL: no splitter has that name. */
const struct splitter *splitter_named(const char *name);

/* The first name of the splitter with these cuts; NULL: it has no name. */
const char *splitter_name_of(const struct vocabulary_cut *cuts, uint32_t count);

#endif
