/*
 * A checkpoint: a model on disk, whatever its format.
 *
 *      FILE.gguf             one file, with everything in it
 *      FILE.safetensors      the weights, and beside it config.json
 *      a folder              config.json, and model.safetensors or its shards
 *                            with model.safetensors.index.json
 *
 * It gives one table of tensors under GGUF's names (files/tensor-names.h), checked as a whole.
 * With shards, every tensor must be in the file that the index names, and in no other.  The
 * descriptors stay open for the code that reads the weights.
 *
 * The format's own description tells what the model is: GGUF metadata or config.json.  The weights
 * differ between formats too, and the traits tell how: Hugging Face's files have the rows of Q and
 * K in the order of ROPE_HALVES.
 */
#ifndef DAEMON_FILES_CHECKPOINT_H
#define DAEMON_FILES_CHECKPOINT_H

#include <stddef.h>

#include "daemon/files/gguf.h"
#include "daemon/files/tensor.h"
#include "daemon/model/facts.h"
#include "daemon/model/traits.h"
#include "json/reader.h"

#define CHECKPOINT_SHARDS_MAX 1000u
#define CHECKPOINT_INDEX_MAX  (32u << 20)
#define CHECKPOINT_CONFIG_MAX (1u << 20)

struct checkpoint;

/* Returns 0 or negative errno.  Then *why has the fault, and the file if there are several. */
int checkpoint_open(const char *path, struct checkpoint **ret_checkpoint, char *why,
                    size_t why_bytes);
struct checkpoint *checkpoint_close(struct checkpoint *checkpoint); /* takes NULL */

const struct tensor_table *checkpoint_tensors(const struct checkpoint *checkpoint);
const struct tensor *checkpoint_tensor(const struct checkpoint *checkpoint, const char *name);

/* Reads bytes of a tensor, starting at its byte `from`.  -EIO: the file became shorter. */
int checkpoint_read(const struct checkpoint *checkpoint, const struct tensor *tensor, uint64_t from,
                    void *ret_bytes, size_t bytes, char *why, size_t why_bytes);

/*
 * For code that reads the weights in its own way.  checkpoint_fd() returns the descriptor of the
 * file that has the tensor.  checkpoint_prefix_error() puts tensor and file in front of *why, and
 * returns r.  checkpoint_check(), called at the end, checks that every file is still unchanged
 * since it was opened: 0 or negative errno.
 */
int checkpoint_fd(const struct checkpoint *checkpoint, const struct tensor *tensor);
int checkpoint_prefix_error(const struct checkpoint *checkpoint, const struct tensor *tensor,
                            char *why, size_t why_bytes, int r);
int checkpoint_check(const struct checkpoint *checkpoint, char *why, size_t why_bytes);

/* One of the two returns NULL; the other one tells the format. */
const struct gguf *checkpoint_gguf(const struct checkpoint *checkpoint);
const struct json_document *checkpoint_config(const struct checkpoint *checkpoint);

/*
 * Descriptor of the folder with the model's other files (tokenizer.json); -1: a single GGUF file.
 */
int checkpoint_folder(const struct checkpoint *checkpoint);

/*
 * Reads what the model is; every value is checked against limits.  Returns 0 or negative errno and
 * *why.
 */
int checkpoint_traits(const struct checkpoint *checkpoint, struct traits *ret_traits, char *why,
                      size_t why_bytes);

/* Returns 0 or negative errno and *why: a file became shorter, or cannot be read. */
int checkpoint_facts(const struct checkpoint *checkpoint, struct model_facts *ret_facts, char *why,
                     size_t why_bytes);

#endif
