/*
 * Fills the small vectors of a stage: norms, biases, the frequencies of ropes, slopes.
 *
 * They all lie in one buffer of the backend (struct stage: vectors).  Each is read from its tensor,
 * or computed, in the host's scratch, and then put there.
 *
 * Part of model-stage.c: no other file includes this.
 */
#ifndef DAEMON_ENGINE_STAGE_VECTORS_H
#define DAEMON_ENGINE_STAGE_VECTORS_H

#include "daemon/engine/stage-parts.h"

/* State needed only while opening. */
struct building {
        struct stage *stage;
        const struct stage_conf *conf;
        float *scratch; /* a vector between file and backend */
        size_t vectors_used, vectors_count;
};

/* Floats of the scratch that these functions need. */
size_t stage_scratch_count(const struct traits *traits);

/*
 * All return 0 or negative errno and *why.  A tensor that is NULL is absent: the vector is NULL, or
 * the norm has no weights.
 */
int stage_vector_load(struct building *b, const struct tensor *tensor, const float **ret_vector);
int stage_norm_load(struct building *b, const struct tensor *weight, const struct tensor *bias,
                    enum norm_kind kind, struct row_norm *ret_norm);
/* The bias of stacked matrices.  Some parts may be absent: their bias is zero. */
int stage_biases_load(struct building *b, const struct tensor *const *parts,
                      const uint32_t *columns, uint32_t part_count, const float **ret_bias);

/* The only number of a tensor.  Without a tensor *ret_factor stays as it is. */
int stage_factor_read(struct building *b, const struct tensor *tensor, float *ret_factor);

/* The ropes and the slopes of the stage. */
int stage_ropes_open(struct building *b);
int stage_slopes_open(struct building *b);
/* Fills the table of sinusoidal positions, of so many rows. */
int stage_sinusoidal_put(struct building *b, uint32_t rows);

#endif
