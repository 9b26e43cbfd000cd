/*
 * The facts about a model that inspect.c has found: the setup, how far it came, and sizes that do
 * not depend on whether the model can be served.  inspect.c prints them for people, and
 * inspect-json.c for programs.
 */
#ifndef DAEMON_START_INSPECTION_H
#define DAEMON_START_INSPECTION_H

#include "daemon/start/model-setup.h"
#include "daemon/start/weight-sizes.h"

/* The last step that succeeded; what it found is in the setup. */
enum inspected {
        INSPECTED_NOTHING,
        INSPECTED_FILES,
        INSPECTED_TRAITS,
        INSPECTED_TEXT,
        INSPECTED_ALL
};

struct inspection {
        struct model_setup *setup;
        enum inspected step;
        int result; /* of the step that failed; 0: the model can be served */
        /* from INSPECTED_TRAITS on */
        uint64_t parameters;
        uint64_t memory;              /* the memory that we may have */
        uint64_t activations, drafts; /* with these settings */
        uint64_t sequence;            /* KV of one sequence of `context` positions */
        uint32_t context;
        uint64_t recipes[WEIGHT_RECIPES]; /* bytes of all weights in another quantisation */
};

/* Weights, activations, drafts and KV of one sequence. */
static inline uint64_t inspection_needs(const struct inspection *inspection, uint32_t recipe)
{
        return inspection->recipes[recipe] + inspection->activations + inspection->drafts +
               inspection->sequence;
}

static inline bool inspection_fits(const struct inspection *inspection, uint32_t recipe)
{
        return inspection_needs(inspection, recipe) <= inspection->memory;
}

/* The positions that one sequence may have in the memory that such weights leave. */
static inline uint64_t inspection_positions(const struct inspection *inspection, uint32_t recipe)
{
        uint64_t fixed = inspection->recipes[recipe] + inspection->activations + inspection->drafts;
        uint64_t block = inspection->sequence / blocks_for(inspection->context), fit;

        if (inspection_fits(inspection, recipe))
                return inspection->context;
        fit = fixed < inspection->memory ? (inspection->memory - fixed) / block : 0;
        return fit * BLOCK_POSITIONS;
}

/* Parts of both forms. */
struct type_bytes {
        uint64_t bytes[ROW_TYPE_N]; /* with their scales */
        uint32_t others;            /* tensors that no backend takes */
        const struct tensor *other; /* one of them */
};
struct type_bytes inspection_types(const struct tensor_table *table);
const char *inspection_architecture(const struct model_setup *setup);
extern const char *const inspection_tokenizers[]; /* by enum vocabulary_kind */
/* Of all that guesses need: with a draft model and its KV. */
uint64_t inspection_drafts(const struct model_setup *setup);
const char *inspection_why(const struct inspection *inspection);

/* Prints one object, and returns 0 or -ENOMEM. */
int inspection_print_json(const struct inspection *inspection, FILE *to);

#endif
