#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/engine/tensors.h"
#include "base/errtext.h"
#include "base/error.h"

enum extent {
        EXTENT_ONE,
        EXTENT_WIDTH,
        EXTENT_Q,
        EXTENT_KV,
        EXTENT_HEAD,
        EXTENT_TURNS,
        EXTENT_FFN,
        EXTENT_VOCAB
};

/* Tensors of a group are present or absent together. */
enum group { EVERY_MODEL, ENDS, ROPE_TABLE, QKV_BIAS, OUTPUT_BIAS, FFN_BIAS, QK_NORM };

struct entry {
        const char *name;
        enum extent rows, columns;
        enum group group;
};

static const struct entry model_entries[MODEL_TENSOR_N] = {
        [TOKEN_EMBD] = { "token_embd.weight", EXTENT_VOCAB, EXTENT_WIDTH, ENDS },
        [OUTPUT_NORM] = { "output_norm.weight", EXTENT_ONE, EXTENT_WIDTH },
        [OUTPUT] = { "output.weight", EXTENT_VOCAB, EXTENT_WIDTH, ENDS },
        [ROPE_FREQS] = { "rope_freqs.weight", EXTENT_ONE, EXTENT_TURNS, ROPE_TABLE },
};

static const struct entry layer_entries[LAYER_TENSOR_N] = {
        [ATTN_NORM] = { "attn_norm.weight", EXTENT_ONE, EXTENT_WIDTH },
        [ATTN_Q] = { "attn_q.weight", EXTENT_Q, EXTENT_WIDTH },
        [ATTN_K] = { "attn_k.weight", EXTENT_KV, EXTENT_WIDTH },
        [ATTN_V] = { "attn_v.weight", EXTENT_KV, EXTENT_WIDTH },
        [ATTN_Q_BIAS] = { "attn_q.bias", EXTENT_ONE, EXTENT_Q, QKV_BIAS },
        [ATTN_K_BIAS] = { "attn_k.bias", EXTENT_ONE, EXTENT_KV, QKV_BIAS },
        [ATTN_V_BIAS] = { "attn_v.bias", EXTENT_ONE, EXTENT_KV, QKV_BIAS },
        [ATTN_Q_NORM] = { "attn_q_norm.weight", EXTENT_ONE, EXTENT_HEAD, QK_NORM },
        [ATTN_K_NORM] = { "attn_k_norm.weight", EXTENT_ONE, EXTENT_HEAD, QK_NORM },
        [ATTN_OUTPUT] = { "attn_output.weight", EXTENT_WIDTH, EXTENT_Q },
        [ATTN_OUTPUT_BIAS] = { "attn_output.bias", EXTENT_ONE, EXTENT_WIDTH, OUTPUT_BIAS },
        [FFN_NORM] = { "ffn_norm.weight", EXTENT_ONE, EXTENT_WIDTH },
        [FFN_GATE] = { "ffn_gate.weight", EXTENT_FFN, EXTENT_WIDTH },
        [FFN_UP] = { "ffn_up.weight", EXTENT_FFN, EXTENT_WIDTH },
        [FFN_GATE_BIAS] = { "ffn_gate.bias", EXTENT_ONE, EXTENT_FFN, FFN_BIAS },
        [FFN_UP_BIAS] = { "ffn_up.bias", EXTENT_ONE, EXTENT_FFN, FFN_BIAS },
        [FFN_DOWN] = { "ffn_down.weight", EXTENT_WIDTH, EXTENT_FFN },
        [FFN_DOWN_BIAS] = { "ffn_down.bias", EXTENT_ONE, EXTENT_WIDTH, FFN_BIAS },
};

struct finding {
        const struct checkpoint *checkpoint;
        const struct traits *traits;
        bool *found; /* indexed by position in the table */
        char *why;
        size_t why_bytes;
};

static uint32_t extent_of(const struct traits *t, enum extent extent)
{
        switch (extent) {
        case EXTENT_ONE:
                return 1;
        case EXTENT_WIDTH:
                return t->width;
        case EXTENT_Q:
                return t->heads * t->head_dim;
        case EXTENT_KV:
                return t->kv_heads * t->head_dim;
        case EXTENT_HEAD:
                return t->head_dim;
        case EXTENT_TURNS:
                return t->rope.dims / 2;
        case EXTENT_FFN:
                return t->ffn;
        case EXTENT_VOCAB:
                return t->vocab;
        }
        assert(false);
        return 0;
}

static enum presence presence_of(const struct traits *t, enum group group)
{
        switch (group) {
        case EVERY_MODEL:
                return MUST_BE_THERE;
        case ENDS: /* find_ends() checks them together */
                return MAYBE_THERE;
        case ROPE_TABLE:
                return t->rope_table;
        case QKV_BIAS:
                return t->qkv_bias;
        case OUTPUT_BIAS:
                return t->output_bias;
        case FFN_BIAS:
                return t->ffn_bias;
        case QK_NORM:
                return t->qk_norm;
        }
        assert(false);
        return NOT_THERE;
}

/* A tensor that must not exist is not looked up: then it is left over at the end. */
static int find_tensor(struct finding *f, const struct entry *entry, const char *name,
                       const struct tensor **ret_tensor)
{
        uint32_t rows = extent_of(f->traits, entry->rows);
        uint32_t columns = extent_of(f->traits, entry->columns);
        enum presence presence = presence_of(f->traits, entry->group);
        const struct tensor *t =
                presence == NOT_THERE ? NULL : checkpoint_tensor(f->checkpoint, name);

        if (!t && presence == MUST_BE_THERE)
                return error_raise(
                        errtext_set(f->why, f->why_bytes, -EINVAL, "tensor '%s' is missing", name));
        if (t && t->unserved)
                return error_raise(errtext_set(f->why, f->why_bytes, -EINVAL, "tensor '%s': %s",
                                               name, t->unserved));
        if (t && (t->rows != rows || t->columns != columns))
                return error_raise(errtext_set(f->why, f->why_bytes, -EINVAL,
                                               "tensor '%s' is %" PRIu32 " x %" PRIu32
                                               ", not %" PRIu32 " x %" PRIu32
                                               " as the metadata says",
                                               name, t->rows, t->columns, rows, columns));
        if (t)
                f->found[t - checkpoint_tensors(f->checkpoint)->tensors] = true;
        *ret_tensor = t;
        return 0;
}

static int find_layer(struct finding *f, uint32_t layer, struct layer_tensors *ret_tensors)
{
        char name[TENSOR_NAME_MAX];
        int r;

        for (unsigned i = 0; i < LAYER_TENSOR_N; i++) {
                snprintf(name, sizeof(name), "blk.%" PRIu32 ".%s", layer, layer_entries[i].name);
                r = find_tensor(f, &layer_entries[i], name, &ret_tensors->at[i]);
                if (r)
                        return error_pass(r);
        }
        return 0;
}

/* Only one tensor of a tied pair may be stored, and some programs store the head. */
static int find_ends(struct finding *f, const struct tensor **at)
{
        const char *missing = NULL;

        if (f->traits->tied && !at[TOKEN_EMBD]) {
                at[TOKEN_EMBD] = at[OUTPUT];
                at[OUTPUT] = NULL;
        }
        if (!at[TOKEN_EMBD])
                missing = model_entries[TOKEN_EMBD].name;
        else if (!f->traits->tied && !at[OUTPUT])
                missing = model_entries[OUTPUT].name;
        if (missing)
                return error_raise(errtext_set(f->why, f->why_bytes, -EINVAL,
                                               "tensor '%s' is missing", missing));
        return 0;
}

static int find_all(struct finding *f, struct tensors *tensors)
{
        const struct tensor_table *table = checkpoint_tensors(f->checkpoint);
        int r;

        for (unsigned i = 0; i < MODEL_TENSOR_N; i++) {
                r = find_tensor(f, &model_entries[i], model_entries[i].name, &tensors->at[i]);
                if (r)
                        return error_pass(r);
        }
        if ((r = find_ends(f, tensors->at)))
                return error_pass(r);
        for (uint32_t i = 0; i < f->traits->layers; i++) {
                r = find_layer(f, i, &tensors->layers[i]);
                if (r)
                        return error_pass(r);
        }
        for (uint32_t i = 0; i < table->count; i++)
                if (!f->found[i])
                        return error_raise(
                                errtext_set(f->why, f->why_bytes, -EINVAL,
                                            "tensor '%s' is unexpected: this model does not use it",
                                            shown(table->tensors[i].name).text));
        return 0;
}

int tensors_find(const struct checkpoint *checkpoint, const struct traits *traits,
                 struct tensors *ret_tensors, char *why, size_t why_bytes)
{
        struct tensors tensors = { .layers = calloc(traits->layers, sizeof(*tensors.layers)) };
        struct finding f = {
                .checkpoint = checkpoint,
                .traits = traits,
                .found =
                        calloc((size_t)checkpoint_tensors(checkpoint)->count + 1, sizeof(*f.found)),
                .why = why,
                .why_bytes = why_bytes,
        };
        int r;

        if (!tensors.layers || !f.found)
                r = error_raise(errtext_set(why, why_bytes, -ENOMEM, "no memory for its tensors"));
        else
                r = find_all(&f, &tensors);
        free(f.found);
        if (r) {
                tensors_deinit(&tensors);
                return error_pass(r);
        }
        *ret_tensors = tensors;
        return 0;
}

void tensors_deinit(struct tensors *tensors)
{
        free(tensors->layers);
        tensors->layers = NULL;
}
