/*
 * A checkpoint: a model on disk, whatever its format.
 *
 *      FILE.gguf             one file, with everything in it
 *      FILE.safetensors      the weights, and beside it config.json
 *      a folder              config.json, and model.safetensors or its shards
 *                            with model.safetensors.index.json
 *
 * It gives one table of tensors under GGUF's names (files/names.h), checked as a
 * whole: of shards, every tensor lies where the index says and nowhere else.  The
 * descriptors stay open, for whoever reads the weights.
 *
 * What the model is, is told by its own format: by GGUF metadata or by config.json.
 * Formats differ in the weights, too, and it is the traits that say so: Hugging
 * Face's files have the rows of Q and K in the order of ROPE_HALVES.
 */
#ifndef DAEMON_FILES_CHECKPOINT_H
#define DAEMON_FILES_CHECKPOINT_H

#include <stddef.h>

#include "daemon/files/gguf.h"
#include "daemon/files/tensor.h"
#include "daemon/json.h"
#include "daemon/traits.h"

#define CHECKPOINT_SHARDS_MAX 1000u
#define CHECKPOINT_INDEX_MAX  (32u << 20)
#define CHECKPOINT_CONFIG_MAX (1u << 20)

struct checkpoint;

/* On failure *why names the fault, and the file if there are several.  0 or negative errno. */
int checkpoint_open(const char *path, struct checkpoint **ret_checkpoint, char *why,
                    size_t why_bytes);
struct checkpoint *checkpoint_close(struct checkpoint *checkpoint); /* takes NULL */

const struct tensor_table *checkpoint_tensors(const struct checkpoint *checkpoint);
const struct tensor *checkpoint_tensor(const struct checkpoint *checkpoint, const char *name);

/* Bytes of a tensor, from its `from` on.  -EIO: the file became shorter.  *why names it. */
int checkpoint_read(const struct checkpoint *checkpoint, const struct tensor *tensor, uint64_t from,
                    void *ret_bytes, size_t bytes, char *why, size_t why_bytes);

/*
 * For whoever reads the weights in a way of their own: the descriptor that has this tensor; *why
 * of such a reading, with tensor and file put in front (returns r); and, when all was read, whether
 * every file is still the one that was opened: 0 or negative errno.
 */
int checkpoint_fd(const struct checkpoint *checkpoint, const struct tensor *tensor);
int checkpoint_blame(const struct checkpoint *checkpoint, const struct tensor *tensor, char *why,
                     size_t why_bytes, int r);
int checkpoint_check(const struct checkpoint *checkpoint, char *why, size_t why_bytes);

/* One of the two is NULL, and says which format it is. */
const struct gguf *checkpoint_gguf(const struct checkpoint *checkpoint);
const struct json *checkpoint_config(const struct checkpoint *checkpoint);

/* Where the other files of the model are (tokenizer.json): a descriptor; -1: it is all in one. */
int checkpoint_folder(const struct checkpoint *checkpoint);

/* What the model is, every value checked against limits.  0 or negative errno and *why. */
int checkpoint_traits(const struct checkpoint *checkpoint, struct traits *ret_traits, char *why,
                      size_t why_bytes);

#endif
