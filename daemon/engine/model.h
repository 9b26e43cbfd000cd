/*
 * A model: traits, weights in one backend or two, and the forward pass through them.
 *
 * The part of a model in one backend is a *stage* (model-stage.h).  A model in one place is one
 * stage.  A model that is larger than a GPU's memory has two.  The embedding and the first layers
 * are on the host, in a backend that computes there.  The other layers, the head and the pick are
 * on the GPU.  Each stage has KV pages for its own layers.  Both have the same number of pages and
 * of swap pages, so a page table and a list of copies are valid for both.
 *
 * A step goes through the stages in order.  The host's stage needs to know all tokens.  So if a
 * row's token is a pick of a step in flight, model_forward() waits for that step.  Then it computes
 * the first stage, copies the output to the second stage, and starts the second stage, which runs
 * asynchronously.
 *
 * First a model is opened, which makes all objects and reads the small tensors.  Then it is loaded,
 * which reads the matrices and may take long.  Then it can run steps.  It is opened before the
 * threads start; after that, engine thread only.
 */
#ifndef DAEMON_ENGINE_MODEL_H
#define DAEMON_ENGINE_MODEL_H

#include <stddef.h>

#include "daemon/engine/model-conf.h"
#include "daemon/engine/weights.h"
#include "daemon/files/checkpoint.h"
#include "daemon/model/traits.h"

struct model;

/*
 * Bytes that model_open() will allocate in one memory, by purpose.  The memory plan uses them
 * before anything is allocated.  Weights are counted as in the file; a backend may hold them
 * padded.  A sum beyond 2^64 is shown as UINT64_MAX.
 */
struct model_bytes {
        uint64_t weights, activations;
        uint64_t block, window, kv; /* of a block, of a window page, of all of them */
        uint64_t loading; /* host memory needed besides these until the model is loaded, at most */
        uint64_t scratch; /* the backend's own memory for operators */
        uint64_t swap;    /* of all layers; always in the host's memory */
        /* free memory of the backend before anything is allocated; host: MODEL_BYTES_HOST */
        uint64_t left;
};
#define MODEL_BYTES_HOST UINT64_MAX
/* Measures the whole model in the host's memory, whatever the conf says. */
void model_measure(const struct checkpoint *checkpoint, const struct traits *traits,
                   const struct model_conf *conf, struct model_bytes *ret_bytes);

/*
 * Measures a backend with its own memory: *ret_bytes is what it will hold.  *ret_host is what the
 * host's layers and the swap take in the host's memory (zeros if there are none).  Returns 0 or
 * negative errno and *why, if the backend could not hold it with any amount of memory.
 */
int model_measure_in(const struct checkpoint *checkpoint, const struct traits *traits,
                     struct kernels *kernels, const struct model_conf *conf,
                     struct model_bytes *ret_bytes, struct model_bytes *ret_host, char *why,
                     size_t why_bytes);

/*
 * Takes every tensor that it needs, and checks names and shapes.  An unused tensor is an error too:
 * it shows that the file is of another kind of model.  Returns 0 or negative errno and *why.  The
 * caller owns `kernels` and conf->host, which must outlive the model.  The checkpoint is needed
 * until the model is loaded; the traits are not needed after this call.
 */
int model_open(const struct checkpoint *checkpoint, const struct traits *traits,
               struct kernels *kernels, const struct model_conf *conf, struct model **ret_model,
               char *why, size_t why_bytes);
struct model *model_close(struct model *model); /* takes NULL */

/*
 * Bytes of the tensors that model_load() has to read; a tensor read twice counts twice.  0 when
 * loaded.
 */
uint64_t model_to_load(const struct model *model);

/*
 * Reads them, once, like weights_read().  After a failure the model can only be closed.  It
 * allocates its read buffers, and the head's matrix if the head differs from the embedding.
 */
int model_load(struct model *model, const struct weights_conf *conf, enum load_way *ret_way,
               char *why, size_t why_bytes);

/*
 * Makes the system provide the next part of the KV pool's memory, so that no step will wait for it.
 * Takes some 20 ms; returns whether there is more.  After model_load(), while no step is in flight.
 */
bool model_back_pool(struct model *model);

/*
 * The time to copy a block between the pool and the swap, measured now, in ns; at least 1.  The
 * model has a swap.  Before the first step: a block of each is overwritten.
 */
uint64_t model_swap_copy_ns(struct model *model);

/*
 * Starts the step; model_collect() returns its picks.  With two stages, the first one is computed
 * before this returns, and only the last one is started.
 */
int model_forward(struct model *model, const struct step *step);
int model_collect(struct model *model, uint64_t number, uint32_t *ret_tokens);
/*
 * After model_collect(): the pick_entries() of a wanted row whose pick asked for some; at most
 * PICK_ENTRIES_MAX.
 */
void model_logprobs(struct model *model, uint64_t number, uint32_t want,
                    struct logprob *ret_logprobs);
/*
 * After model_collect(): the logits of a wanted row whose pick asked for a copy and did not fail;
 * valid until STEPS_BACK more steps have begun.
 */
const float *model_row(struct model *model, uint64_t number, uint32_t want);

/* Why one of its backends was lost, as a sentence that outlives the model; NULL: none was. */
const char *model_lost(const struct model *model);

/* The logits of one wanted row of the last step; after its collect, for tests and goldens. */
void model_logits(struct model *model, uint32_t want, float *ret_logits);

#endif
