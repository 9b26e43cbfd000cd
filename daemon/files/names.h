/*
 * What a tensor is called: Hugging Face's names become GGUF's, which are ours.
 *
 *      model.layers.7.self_attn.q_proj.weight      blk.7.attn_q.weight
 *
 * A name that is not in the table stays what it is; whoever looks for tensors
 * refuses what it does not know.  A few that models have and nobody needs are to
 * be left out.  The table is that of llama and its kin; architectures that mean
 * other norms by the same names (gemma) are not in it.
 */
#ifndef DAEMON_FILES_NAMES_H
#define DAEMON_FILES_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A weight's scales, X.weight_scale or X.weight_scale_inv, are called after it.  Left out are scales for
 * rounding what is computed (of a layer's input, its output, K and V), which are
 * for who rounds it.
 *
 * Longer than the name by this much at most.
 */
#define NAME_GROWTH_MAX 16u

/* At ret_name, NUL-ended, in strlen(name) + NAME_GROWTH_MAX + 1 bytes.  False: to be left out. */
bool name_canonical(const char *name, char *ret_name);

#endif
