/*
 * A model: traits, weights in one backend or two, and the forward pass through them.
 *
 * What of it lies in one backend is a *stage* (model-stage.h).  A model that is all in one place is one
 * stage.  One that is larger than a GPU's memory is two: the embedding and the first layers are on the
 * host, by a backend that computes there; the other layers, the head and the pick on the GPU.  Both have
 * pages for their own layers, the same number of them, so a page table says the same to both.
 *
 * A step goes through the stages one after the other.  The host can begin only with tokens that it
 * knows, so where a row's token is a pick of a step that is under way, model_forward() waits for that
 * step; then it computes the first stage, hands over what that has left, and starts the second, which
 * runs on by itself.
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
        uint32_t
                host_layers; /* the first ones, that are on the host alone; fewer than all; 0: none is */
        struct kernels *host; /* ... with whom, once it is opened: one whose memory is the host's */
};

/*
 * Bytes that model_open() will take of one memory, by purpose: for the plan of memory, before anything
 * is taken.  Weights are counted as the file has them; a backend may hold them padded.  A sum beyond 2^64 is shown as UINT64_MAX.
 */
struct model_bytes {
        uint64_t weights, activations, kv, block;
        uint64_t loading; /* of the host, besides these, at most, until it is loaded */
        uint64_t scratch; /* of the backend's own memory, for operators ... */
        uint64_t left; /* ... and all that it has, before anything is taken; or, of the host's: */
};
#define MODEL_BYTES_HOST UINT64_MAX
/* All of it in the host's memory, whatever the conf says. */
void model_measure(const struct checkpoint *checkpoint, const struct traits *traits,
                   const struct model_conf *conf, struct model_bytes *ret_bytes);

/*
 * What a backend that has memory of its own will hold of it, and what of the layers that are on the
 * host (zeros, if none is) will be held there.  0 or negative errno and *why: what it cannot hold, however
 * much memory it had.
 */
int model_measure_in(const struct checkpoint *checkpoint, const struct traits *traits,
                     struct kernels *kernels, const struct model_conf *conf,
                     struct model_bytes *ret_bytes, struct model_bytes *ret_host, char *why,
                     size_t why_bytes);

/*
 * Takes every tensor it needs, checks names and shapes.  A tensor that is left over is a
 * fault too: the model it belongs to is another one.  0 or negative errno and *why.  The kernels, the
 * conf's too, stay the caller's, and outlive the model; the checkpoint is needed until it is loaded, the traits
 * not at all.
 */
int model_open(const struct checkpoint *checkpoint, const struct traits *traits,
               struct kernels *kernels, const struct model_conf *conf, struct model **ret_model,
               char *why, size_t why_bytes);
struct model *model_close(struct model *model); /* takes NULL */

/* Bytes of the tensors that model_load() has to bring, as often as it has to; 0 when it has. */
uint64_t model_to_load(const struct model *model);

/*
 * Brings them, once, as weights_read() does.  A failed model can only be closed.  It allocates what
 * it reads with, and the head's matrix, if that turns out to be one of its own.
 */
int model_load(struct model *model, const struct weights_conf *conf, enum load_way *ret_way,
               char *why, size_t why_bytes);

/* Starts the step; its picks come from model_collect().  With two stages only the last one is started. */
int model_forward(struct model *model, const struct step *step);
int model_collect(struct model *model, uint64_t number, uint32_t *ret_tokens);
/* ... and then, of a wanted row whose pick asked for it: PICK_LOGPROBS_MAX fit. */
void model_logprobs(struct model *model, uint64_t number, uint32_t want,
                    struct logprob *ret_logprobs);

/* How a backend of it was lost, in a sentence that outlives the model; NULL: it is not. */
const char *model_lost(const struct model *model);

/* The logits of the step last begun, one wanted row: after its collect, for tests and goldens. */
void model_logits(struct model *model, uint32_t want, float *ret_logits);

#endif
