/*
 * A model: traits, weights in a backend, and the forward pass as a list of
 * operator calls.
 *
 * model_forward() reads as the paper does: embed, then for every layer norm,
 * qkv with rope and KV write, attend, project, norm, gate, project; then head
 * and pick for the rows that want it.  Each layer names its backend.
 *
 * It is opened, which makes everything and reads the small tensors; then loaded, which reads the
 * matrices and may take long; then it may be run.  Opened before the threads start; then engine
 * thread only.
 */
#ifndef DAEMON_ENGINE_MODEL_H
#define DAEMON_ENGINE_MODEL_H

#include <stddef.h>

#include "daemon/engine/weights.h"
#include "daemon/files/checkpoint.h"
#include "daemon/traits.h"

struct model;

struct model_conf {
        uint32_t rows_max;  /* of a step */
        uint32_t wants_max; /* rows of a step whose logits are wanted */
        uint32_t blocks;    /* of the KV pool */
        enum kv_type kv;
};

/*
 * Bytes that model_open() will take, by purpose: for the plan of memory, before anything is
 * taken.  Weights are counted as the file has them, blocks as floats; a backend may hold them
 * padded.  A sum beyond 2^64 is shown as UINT64_MAX.
 */
struct model_bytes {
        uint64_t weights, activations, kv, block;
        uint64_t loading; /* of the host, besides these, at most, until it is loaded */
        uint64_t scratch; /* of the backend's own memory, for operators ... */
        uint64_t left; /* ... and all that it has, before anything is taken; or, of the host's: */
};
#define MODEL_BYTES_HOST UINT64_MAX
void model_measure(const struct checkpoint *checkpoint, const struct traits *traits,
                   const struct model_conf *conf, struct model_bytes *ret_bytes);

/*
 * As this backend will hold it, if it has memory of its own; else the same.  0 or negative errno and
 * *why: a model that it cannot hold, however much memory it had.
 */
int model_measure_in(const struct checkpoint *checkpoint, const struct traits *traits,
                     struct kernels *kernels, const struct model_conf *conf,
                     struct model_bytes *ret_bytes, char *why, size_t why_bytes);

/*
 * Takes every tensor it needs, checks names and shapes.  A tensor that is left over is a
 * fault too: the model it belongs to is another one.  0 or negative errno and *why.  The kernels
 * stay the caller's, and outlive the model; the checkpoint is needed until it is loaded, the traits
 * not at all.
 */
int model_open(const struct checkpoint *checkpoint, const struct traits *traits,
               struct kernels *kernels, const struct model_conf *conf, struct model **ret_model,
               char *why, size_t why_bytes);
struct model *model_close(struct model *model); /* takes NULL */

/* Bytes of the tensors that model_load() has to bring; 0 when it has. */
uint64_t model_to_load(const struct model *model);

/*
 * Brings them, once, as weights_read() does.  A failed model can only be closed.  It allocates what
 * it reads with, and the head's matrix, if that turns out to be one of its own.
 */
int model_load(struct model *model, const struct weights_conf *conf, enum load_way *ret_way,
               char *why, size_t why_bytes);

/* Starts the step; its picks come from model_collect(). */
int model_forward(struct model *model, const struct step *step);
int model_collect(struct model *model, uint64_t number, uint32_t *ret_tokens);
/* ... and then, of a wanted row whose pick asked for it: PICK_LOGPROBS_MAX fit. */
void model_logprobs(struct model *model, uint64_t number, uint32_t want,
                    struct logprob *ret_logprobs);

/* How its backend was lost, in a sentence that outlives the model; NULL: it is not. */
const char *model_lost(const struct model *model);

/* The logits of the step last begun, one wanted row: after its collect, for tests and goldens. */
void model_logits(struct model *model, uint32_t want, float *ret_logits);

#endif
