/*
 * Panels of weights, rows of x, and the instruction sets of this machine that multiply them: for
 * tests of the loops of isa.h.
 */
#ifndef TESTS_KERNELS_PANELS_RIG_H
#define TESTS_KERNELS_PANELS_RIG_H

#include "kernels/cpu/isa.h"
#include "tests/kernels/small-model.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

extern const struct isa *isas[VARIANTS_MAX]; /* the first is isa_portable */
extern uint32_t isa_count;

/* A set-up of cmocka's: opens the variants, and finds the instruction sets that they use. */
int isas_find(void **state);

bool has_tiles(const struct isa *isa);
/* It handles bfloats in its own way, and treats subnormal numbers as 0. */
bool is_own_kind(const struct isa *isa, enum row_type type);

struct panel {
        enum row_type type;
        uint32_t columns;
        size_t row_bytes, bytes;
        uint8_t *file, *panel;
};

/* Numbers of a model's size; some halves have no exponent. */
void panel_make(struct panel *p, enum row_type type, uint32_t columns);
/* Packs the rows of `file`, which the test has changed, once more. */
void panel_fill(struct panel *p);
void panel_free(struct panel *p);

/* Some panels of a type. They have the same rows of weights, in another order each. */
struct panels {
        struct panel one;
        uint32_t count;
        size_t stride;
        uint8_t *bytes;
};

void panels_make(struct panels *p, enum row_type type, uint32_t columns, uint32_t count);
/* Packs the rows of `one.file`, which the test has changed, once more. */
void panels_fill(struct panels *p);
void panels_free(struct panels *p);

/* Rows of x; a third of them are tiny, and some numbers are 0. */
float *rows_make(uint32_t columns, uint32_t rows);
/* Rows of x in the form that a type needs. */
uint8_t *acts_make(const struct isa *isa, enum row_type type, uint32_t columns, const float *x,
                   uint32_t rows);

#define PIECE_GUARD 64u /* floats behind `out`, which must stay as they are */

void piece_multiply(const struct isa *isa, const struct panels *p, uint32_t first, uint32_t count,
                    const uint8_t *acts, uint32_t rows, float *out);

#endif
