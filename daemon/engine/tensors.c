#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/tensor-parts.h"
#include "daemon/engine/tensors.h"
#include "base/errtext.h"
#include "base/error.h"

enum extent {
        EXTENT_ONE,
        EXTENT_WIDTH,
        EXTENT_Q,
        EXTENT_KV,
        EXTENT_Q_NORM,
        EXTENT_K_NORM,
        EXTENT_TURNS,
        EXTENT_FFN,
        EXTENT_VOCAB,
        EXTENT_POSITIONS,
};

/* Tensors of a group are present or absent together. */
enum group {
        EVERY_MODEL,
        ENDS,
        EMBED_NORM,
        EMBED_NORM_BIAS,
        POSITIONS,
        ROPE_TABLE,
        ROPE_TABLES,
        LAST_NORM,
        LAST_NORM_BIAS,
        PRE_NORM,
        PRE_NORM_BIAS,
        FFN_PRE_NORM,
        FFN_PRE_NORM_BIAS,
        POST_NORM,
        POST_NORM_BIAS,
        QKV_BIAS,
        OUTPUT_BIAS_GROUP,
        GATE,
        GATE_BIAS,
        FFN_BIAS,
        HEAD_BIAS,
        QK_NORM,
        QK_NORM_BIAS,
};

struct entry {
        const char *name;
        enum extent rows, columns;
        enum group group;
        const char *second; /* its name in a layer that has "attn_norm_2.weight" */
};

static const struct entry model_entries[MODEL_TENSOR_N] = {
        [TOKEN_EMBD] = { "token_embd.weight", EXTENT_VOCAB, EXTENT_WIDTH, ENDS },
        [TOKEN_EMBD_NORM] = { "token_embd_norm.weight", EXTENT_ONE, EXTENT_WIDTH, EMBED_NORM },
        [TOKEN_EMBD_NORM_BIAS] = { "token_embd_norm.bias", EXTENT_ONE, EXTENT_WIDTH,
                                   EMBED_NORM_BIAS },
        [POSITION_EMBD] = { "position_embd.weight", EXTENT_POSITIONS, EXTENT_WIDTH, POSITIONS },
        [OUTPUT_NORM] = { "output_norm.weight", EXTENT_ONE, EXTENT_WIDTH, LAST_NORM },
        [OUTPUT_NORM_BIAS] = { "output_norm.bias", EXTENT_ONE, EXTENT_WIDTH, LAST_NORM_BIAS },
        [OUTPUT] = { "output.weight", EXTENT_VOCAB, EXTENT_WIDTH, ENDS },
        [OUTPUT_BIAS] = { "output.bias", EXTENT_ONE, EXTENT_VOCAB, HEAD_BIAS },
        [ROPE_FREQS] = { "rope_freqs.weight", EXTENT_ONE, EXTENT_TURNS, ROPE_TABLE },
        [ROPE_FACTORS_SHORT] = { "rope_factors_short.weight", EXTENT_ONE, EXTENT_TURNS,
                                 ROPE_TABLES },
        [ROPE_FACTORS_LONG] = { "rope_factors_long.weight", EXTENT_ONE, EXTENT_TURNS, ROPE_TABLES },
};

static const struct entry layer_entries[LAYER_TENSOR_N] = {
        [ATTN_NORM] = { "attn_norm.weight", EXTENT_ONE, EXTENT_WIDTH, PRE_NORM,
                        "attn_norm_2.weight" },
        [ATTN_NORM_BIAS] = { "attn_norm.bias", EXTENT_ONE, EXTENT_WIDTH, PRE_NORM_BIAS,
                             "attn_norm_2.bias" },
        [ATTN_Q] = { "attn_q.weight", EXTENT_Q, EXTENT_WIDTH },
        [ATTN_K] = { "attn_k.weight", EXTENT_KV, EXTENT_WIDTH },
        [ATTN_V] = { "attn_v.weight", EXTENT_KV, EXTENT_WIDTH },
        [ATTN_Q_BIAS] = { "attn_q.bias", EXTENT_ONE, EXTENT_Q, QKV_BIAS },
        [ATTN_K_BIAS] = { "attn_k.bias", EXTENT_ONE, EXTENT_KV, QKV_BIAS },
        [ATTN_V_BIAS] = { "attn_v.bias", EXTENT_ONE, EXTENT_KV, QKV_BIAS },
        [ATTN_Q_NORM] = { "attn_q_norm.weight", EXTENT_ONE, EXTENT_Q_NORM, QK_NORM },
        [ATTN_Q_NORM_BIAS] = { "attn_q_norm.bias", EXTENT_ONE, EXTENT_Q_NORM, QK_NORM_BIAS },
        [ATTN_K_NORM] = { "attn_k_norm.weight", EXTENT_ONE, EXTENT_K_NORM, QK_NORM },
        [ATTN_K_NORM_BIAS] = { "attn_k_norm.bias", EXTENT_ONE, EXTENT_K_NORM, QK_NORM_BIAS },
        [ATTN_OUTPUT] = { "attn_output.weight", EXTENT_WIDTH, EXTENT_Q },
        [ATTN_OUTPUT_BIAS] = { "attn_output.bias", EXTENT_ONE, EXTENT_WIDTH, OUTPUT_BIAS_GROUP },
        [ATTN_POST_NORM] = { "post_attention_norm.weight", EXTENT_ONE, EXTENT_WIDTH, POST_NORM },
        [ATTN_POST_NORM_BIAS] = { "post_attention_norm.bias", EXTENT_ONE, EXTENT_WIDTH,
                                  POST_NORM_BIAS },
        [FFN_NORM] = { "ffn_norm.weight", EXTENT_ONE, EXTENT_WIDTH, FFN_PRE_NORM,
                       "attn_norm.weight" },
        [FFN_NORM_BIAS] = { "ffn_norm.bias", EXTENT_ONE, EXTENT_WIDTH, FFN_PRE_NORM_BIAS,
                            "attn_norm.bias" },
        [FFN_GATE] = { "ffn_gate.weight", EXTENT_FFN, EXTENT_WIDTH, GATE },
        [FFN_UP] = { "ffn_up.weight", EXTENT_FFN, EXTENT_WIDTH },
        [FFN_GATE_BIAS] = { "ffn_gate.bias", EXTENT_ONE, EXTENT_FFN, GATE_BIAS },
        [FFN_UP_BIAS] = { "ffn_up.bias", EXTENT_ONE, EXTENT_FFN, FFN_BIAS },
        [FFN_DOWN] = { "ffn_down.weight", EXTENT_WIDTH, EXTENT_FFN },
        [FFN_DOWN_BIAS] = { "ffn_down.bias", EXTENT_ONE, EXTENT_WIDTH, FFN_BIAS },
        [FFN_POST_NORM] = { "post_ffw_norm.weight", EXTENT_ONE, EXTENT_WIDTH, POST_NORM },
        [FFN_POST_NORM_BIAS] = { "post_ffw_norm.bias", EXTENT_ONE, EXTENT_WIDTH, POST_NORM_BIAS },
};

/* What some call the norm of the feed-forward part, if there are no norms of what is added. */
#define FFN_NORM_ELSE "post_attention_norm.weight"

/* Tensors that a file may have instead of the parts from `first` on. */
static const struct whole {
        const char *name;
        enum layer_tensor first;
        uint32_t parts;
} wholes[] = {
        { "attn_qkv.weight", ATTN_Q, 3 },
        { "attn_qkv.bias", ATTN_Q_BIAS, 3 },
        { "ffn_up.weight", FFN_GATE, 2 },
        { "ffn_up.bias", FFN_GATE_BIAS, 2 },
};

struct finding {
        const struct checkpoint *checkpoint;
        const struct traits *traits;
        bool *found; /* indexed by position in the table */
        struct tensor *parts;
        uint32_t part_count;
        char *why;
        size_t why_bytes;
};

#define refuse(f, ...) error_raise(errtext_set((f)->why, (f)->why_bytes, -EINVAL, __VA_ARGS__))

static uint32_t extent_of(const struct traits *t, enum extent extent)
{
        bool one = t->qk_norm_span == SPAN_HEAD;

        switch (extent) {
        case EXTENT_ONE:
                return 1;
        case EXTENT_WIDTH:
                return t->width;
        case EXTENT_Q:
                return t->heads * t->head_dim;
        case EXTENT_KV:
                return t->kv_heads * t->head_dim;
        case EXTENT_Q_NORM:
                return one ? t->head_dim : t->heads * t->head_dim;
        case EXTENT_K_NORM:
                return one ? t->head_dim : t->kv_heads * t->head_dim;
        case EXTENT_TURNS:
                return t->ropes[0].dims / 2;
        case EXTENT_FFN:
                return t->ffn;
        case EXTENT_VOCAB:
                return t->vocab;
        case EXTENT_POSITIONS:
                return t->context + t->first_position;
        }
        assert(false);
        return 0;
}

static enum presence must_be(bool there)
{
        return there ? MUST_BE_THERE : NOT_THERE;
}

static enum presence norm_presence(const struct traits *t, bool there, bool bias)
{
        if (!there || !t->norm_weights)
                return NOT_THERE;
        return bias ? t->norm_bias : MUST_BE_THERE;
}

static enum presence presence_of(const struct traits *t, enum group group)
{
        bool second = t->pre_norms && t->residual != RESIDUAL_ONE_NORM;

        switch (group) {
        case EVERY_MODEL:
                return MUST_BE_THERE;
        case ENDS: /* find_ends() checks them together */
                return MAYBE_THERE;
        case EMBED_NORM:
                return t->embed_norm;
        case EMBED_NORM_BIAS:
                return t->embed_norm == NOT_THERE ? NOT_THERE : t->norm_bias;
        case POSITIONS:
                return must_be(t->positions == POSITIONS_LEARNED);
        case ROPE_TABLE:
                return t->rope_table;
        case ROPE_TABLES:
                return t->rope_tables;
        case LAST_NORM:
        case LAST_NORM_BIAS:
                return norm_presence(t, true, group == LAST_NORM_BIAS);
        case PRE_NORM:
        case PRE_NORM_BIAS:
                return norm_presence(t, t->pre_norms, group == PRE_NORM_BIAS);
        case FFN_PRE_NORM:
        case FFN_PRE_NORM_BIAS:
                return norm_presence(t, second, group == FFN_PRE_NORM_BIAS);
        case POST_NORM:
        case POST_NORM_BIAS:
                return norm_presence(t, t->post_norms, group == POST_NORM_BIAS);
        case QKV_BIAS:
                return t->qkv_bias;
        case OUTPUT_BIAS_GROUP:
                return t->output_bias;
        case GATE:
                return must_be(t->gated);
        case GATE_BIAS:
                return t->gated ? t->ffn_bias : NOT_THERE;
        case FFN_BIAS:
                return t->ffn_bias;
        case HEAD_BIAS:
                return t->head_bias;
        case QK_NORM:
                return t->qk_norm;
        case QK_NORM_BIAS:
                return t->qk_norm_bias;
        }
        assert(false);
        return NOT_THERE;
}

static void note_found(struct finding *f, const struct tensor *t)
{
        f->found[t - checkpoint_tensors(f->checkpoint)->tensors] = true;
}

static int check_shape(struct finding *f, const struct tensor *t, uint32_t rows, uint32_t columns)
{
        if (t->unserved)
                return refuse(f, "tensor '%s': %s", shown(t->name).text, t->unserved);
        if (t->rows == rows && t->columns == columns)
                return 0;
        return refuse(f,
                      "tensor '%s' is %" PRIu32 " x %" PRIu32 ", not %" PRIu32 " x %" PRIu32
                      " as the metadata says",
                      shown(t->name).text, t->rows, t->columns, rows, columns);
}

/* A part of its own: of a whole, or transposed. */
static const struct tensor *add_part(struct finding *f, struct tensor part)
{
        f->parts[f->part_count] = part;
        return &f->parts[f->part_count++];
}

/* Checks the shape as it is in the file. */
static int check_transposed(struct finding *f, const struct tensor *t, uint32_t rows,
                            uint32_t columns, bool transposed)
{
        if (transposed && !t->unserved && (t->scales || t->type > ROW_BF16))
                return refuse(f,
                              "tensor '%s' is of type %s, and its rows are columns: only F32, "
                              "F16 and BF16 are supported there",
                              shown(t->name).text, row_type_name(t->type));
        return transposed ? check_shape(f, t, columns, rows) : check_shape(f, t, rows, columns);
}

/* Weights of the norm of each head, as (heads, head_dim): one vector of all. */
static bool is_flat(const struct traits *t, const struct entry *entry, const struct tensor *tensor,
                    uint32_t columns)
{
        return (entry->group == QK_NORM && t->qk_norm_span == SPAN_HEADS && !tensor->unserved &&
                !tensor->scales && tensor->rows > 1 &&
                (uint64_t)tensor->rows * tensor->columns == columns);
}

/*
 * The norm of each head may be a tensor: "attn_q_norm.norms.0.weight" and so on.  1: these are
 * found, and *ret_tensor is the vector of all.
 */
static int find_heads(struct finding *f, const struct entry *entry, const char *name,
                      const struct tensor **ret_tensor)
{
        const struct traits *traits = f->traits;
        uint32_t columns = extent_of(traits, entry->columns);
        struct tensor all = { .rows = 1, .columns = columns, .pieces = f->parts + f->part_count };
        int stem = (int)(strlen(name) - strlen(".weight"));
        char one[TENSOR_NAME_MAX];

        if (entry->group != QK_NORM || traits->qk_norm_span != SPAN_HEADS)
                return 0;
        for (uint32_t i = 0; i < columns / traits->head_dim; i++) {
                const struct tensor *t;
                int r;

                snprintf(one, sizeof(one), "%.*s.norms.%" PRIu32 ".weight", stem, name, i);
                t = checkpoint_tensor(f->checkpoint, one);
                if (!t && !i)
                        return 0;
                if (!t)
                        return refuse(f, "tensor '%s' is missing", one);
                r = check_shape(f, t, 1, traits->head_dim);
                if (r)
                        return error_pass(r);
                note_found(f, t);
                add_part(f, *t);
                all.piece_count++;
        }
        all.name = all.pieces->name;
        all.type = all.pieces->type;
        *ret_tensor = add_part(f, all);
        return 1;
}

/* A tensor that must not exist is not looked up: then it is left over at the end. */
static int find_tensor(struct finding *f, const struct entry *entry, const char *name,
                       bool transposed, const struct tensor **ret_tensor)
{
        uint32_t rows = extent_of(f->traits, entry->rows);
        uint32_t columns = extent_of(f->traits, entry->columns);
        enum presence presence = presence_of(f->traits, entry->group);
        const struct tensor *t =
                presence == NOT_THERE ? NULL : checkpoint_tensor(f->checkpoint, name);
        int r;

        *ret_tensor = NULL;
        if (!t && presence == MUST_BE_THERE) {
                r = find_heads(f, entry, name, ret_tensor);
                if (r < 0)
                        return error_pass(r);
                return r ? 0 : refuse(f, "tensor '%s' is missing", name);
        }
        if (!t)
                return 0;
        if (is_flat(f->traits, entry, t, columns)) {
                struct tensor flat = *t;

                flat.rows = 1;
                flat.columns = columns;
                note_found(f, t);
                *ret_tensor = add_part(f, flat);
                return 0;
        }
        transposed = transposed && entry->rows != EXTENT_ONE;
        r = check_transposed(f, t, rows, columns, transposed);
        if (r)
                return error_pass(r);
        note_found(f, t);
        *ret_tensor = transposed ? add_part(f, tensor_transposed(t)) : t;
        return 0;
}

static const struct tensor *layer_tensor(struct finding *f, uint32_t layer, const char *name,
                                         char ret_name[TENSOR_NAME_MAX])
{
        snprintf(ret_name, TENSOR_NAME_MAX, "blk.%" PRIu32 ".%s", layer, name);
        return checkpoint_tensor(f->checkpoint, ret_name);
}

/* 1: the layer has the whole, and its parts are found. */
static int find_whole(struct finding *f, uint32_t layer, const struct whole *whole,
                      struct layer_tensors *ret_tensors)
{
        const struct entry *entry = &layer_entries[whole->first];
        struct tensor_part parts[TENSOR_PARTS_MAX];
        bool matrix = entry->rows != EXTENT_ONE, transposed = matrix && f->traits->transposed;
        const struct tensor *t;
        struct tensor all;
        char name[TENSOR_NAME_MAX];
        uint32_t count = 0;
        int r;

        if (presence_of(f->traits, entry->group) == NOT_THERE ||
            layer_tensor(f, layer, entry->name, name))
                return 0;
        t = layer_tensor(f, layer, whole->name, name);
        if (!t || (whole->parts == 2 && (matrix ? t->rows : t->columns) == f->traits->ffn))
                return 0; /* `up` alone */
        if (whole->parts == 3)
                tensor_parts_qkv(f->traits, parts);
        else
                tensor_parts_gate(f->traits, parts);
        for (uint32_t i = 0; i < whole->parts; i++)
                count += parts[i].count;
        r = matrix ? check_transposed(f, t, count, f->traits->width, transposed)
                   : check_shape(f, t, 1, count);
        if (r)
                return error_pass(r);
        if (t->scales)
                return refuse(f,
                              "tensor '%s' has several parts and scales, which is not supported "
                              "yet",
                              name);
        note_found(f, t);
        all = transposed ? tensor_transposed(t) : *t;
        for (uint32_t i = 0; i < whole->parts; i++)
                ret_tensors->at[whole->first + i] = add_part(f, tensor_part_of(&all, &parts[i]));
        return 1;
}

static int find_layer(struct finding *f, uint32_t layer, struct layer_tensors *ret_tensors)
{
        char name[TENSOR_NAME_MAX];
        bool second = layer_tensor(f, layer, layer_entries[ATTN_NORM].second, name);
        int r;

        for (size_t i = 0; i < sizeof(wholes) / sizeof(*wholes); i++) {
                r = find_whole(f, layer, &wholes[i], ret_tensors);
                if (r < 0)
                        return error_pass(r);
        }
        for (unsigned i = 0; i < LAYER_TENSOR_N; i++) {
                const struct entry *entry = &layer_entries[i];

                if (ret_tensors->at[i])
                        continue;
                if (!layer_tensor(f, layer, second && entry->second ? entry->second : entry->name,
                                  name) &&
                    i == FFN_NORM && !f->traits->post_norms &&
                    !layer_tensor(f, layer, FFN_NORM_ELSE, name))
                        (void)layer_tensor(f, layer, entry->name, name);
                r = find_tensor(f, entry, name, f->traits->transposed, &ret_tensors->at[i]);
                if (r)
                        return error_pass(r);
        }
        return 0;
}

static int make_unit_rows(struct finding *f, const struct tensor **tensor)
{
        struct tensor unit = **tensor;

        if (unit.scales || unit.type > ROW_BF16)
                return refuse(f,
                              "tensor '%s' is of type %s, and its rows are divided by their "
                              "lengths: only F32, F16 and BF16 are supported there",
                              shown(unit.name).text, row_type_name(unit.type));
        unit.unit_rows = true;
        *tensor = add_part(f, unit);
        return 0;
}

/* Only one tensor of a tied pair may be stored, and some programs store the head. */
static int find_ends(struct finding *f, const struct tensor **at)
{
        const char *missing = NULL;
        int r;

        if (f->traits->tied && !at[TOKEN_EMBD]) {
                at[TOKEN_EMBD] = at[OUTPUT];
                at[OUTPUT] = NULL;
        }
        if (at[OUTPUT] && f->traits->head_unit_rows && (r = make_unit_rows(f, &at[OUTPUT])))
                return error_pass(r);
        if (!at[TOKEN_EMBD])
                missing = model_entries[TOKEN_EMBD].name;
        else if (!f->traits->tied && !at[OUTPUT])
                missing = model_entries[OUTPUT].name;
        return missing ? refuse(f, "tensor '%s' is missing", missing) : 0;
}

static int find_all(struct finding *f, struct tensors *tensors)
{
        const struct tensor_table *table = checkpoint_tensors(f->checkpoint);
        int r;

        for (unsigned i = 0; i < MODEL_TENSOR_N; i++) {
                r = find_tensor(f, &model_entries[i], model_entries[i].name, false,
                                &tensors->at[i]);
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
                        return refuse(f, "tensor '%s' is unexpected: this model does not use it",
                                      shown(table->tensors[i].name).text);
        return 0;
}

int tensors_find(const struct checkpoint *checkpoint, const struct traits *traits,
                 struct tensors *ret_tensors, char *why, size_t why_bytes)
{
        const uint32_t count = checkpoint_tensors(checkpoint)->count;
        /* Tensors of layers and the head are parts at most once, and so are norms of heads. */
        const size_t parts = (size_t)traits->layers * LAYER_TENSOR_N + 1 + count;
        struct tensors tensors = {
                .layers = calloc(traits->layers, sizeof(*tensors.layers)),
                .parts = calloc(parts, sizeof(*tensors.parts)),
        };
        struct finding f = {
                .checkpoint = checkpoint,
                .traits = traits,
                .found = calloc((size_t)count + 1, sizeof(*f.found)),
                .parts = tensors.parts,
                .why = why,
                .why_bytes = why_bytes,
        };
        int r;

        if (!tensors.layers || !tensors.parts || !f.found)
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
        free(tensors->parts);
        free(tensors->layers);
        *tensors = (struct tensors){ 0 };
}
