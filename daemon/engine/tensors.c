#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/tensor-parts.h"
#include "daemon/engine/tensors.h"
#include "daemon/engine/weights-rows.h"
#include "base/errtext.h"
#include "base/error.h"

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
        float *projections;
        char *why;
        size_t why_bytes;
};

#define refuse_memory(f)                                                                           \
        error_raise(errtext_set((f)->why, (f)->why_bytes, -ENOMEM, "no memory for its tensors"))
#define refuse(f, ...) error_raise(errtext_set((f)->why, (f)->why_bytes, -EINVAL, __VA_ARGS__))

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
static bool is_flat(const struct wanted_tensor *wanted, const struct tensor *tensor)
{
        return (wanted->is_of_heads && !tensor->unserved && !tensor->scales && tensor->rows > 1 &&
                (uint64_t)tensor->rows * tensor->columns == wanted->columns);
}

/*
 * The norm of each head may be a tensor: "attn_q_norm.norms.0.weight" and so on.  1: these are
 * found, and *ret_tensor is the vector of all.
 */
static int find_heads(struct finding *f, const struct wanted_tensor *wanted, const char *name,
                      const struct tensor **ret_tensor)
{
        const uint32_t columns = wanted->columns, head_dim = wanted->head_dim;
        struct tensor all = { .rows = 1, .columns = columns, .pieces = f->parts + f->part_count };
        int stem = (int)(strlen(name) - strlen(".weight"));
        char one[TENSOR_NAME_MAX];

        if (!wanted->is_of_heads)
                return 0;
        for (uint32_t i = 0; i < columns / head_dim; i++) {
                const struct tensor *t;
                int r;

                snprintf(one, sizeof(one), "%.*s.norms.%" PRIu32 ".weight", stem, name, i);
                t = checkpoint_tensor(f->checkpoint, one);
                if (!t && !i)
                        return 0;
                if (!t)
                        return refuse(f, "tensor '%s' is missing", one);
                r = check_shape(f, t, 1, head_dim);
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
static int find_tensor(struct finding *f, const struct wanted_tensor *wanted, const char *name,
                       bool transposed, const struct tensor **ret_tensor)
{
        const struct tensor *t =
                wanted->presence == NOT_THERE ? NULL : checkpoint_tensor(f->checkpoint, name);
        int r;

        *ret_tensor = NULL;
        if (!t && wanted->presence == MUST_BE_THERE) {
                r = find_heads(f, wanted, name, ret_tensor);
                if (r < 0)
                        return error_pass(r);
                return r ? 0 : refuse(f, "tensor '%s' is missing", name);
        }
        if (!t)
                return 0;
        if (is_flat(wanted, t)) {
                struct tensor flat = *t;

                flat.rows = 1;
                flat.columns = wanted->columns;
                note_found(f, t);
                *ret_tensor = add_part(f, flat);
                return 0;
        }
        transposed = transposed && wanted->is_matrix;
        r = check_transposed(f, t, wanted->rows, wanted->columns, transposed);
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
        const struct wanted_tensor wanted = wanted_in_layer(f->traits, layer, whole->first);
        const struct layer_traits *own = &f->traits->layer[layer];
        struct tensor_part parts[TENSOR_PARTS_MAX];
        bool matrix = wanted.is_matrix, transposed = matrix && f->traits->transposed;
        const struct tensor *t;
        struct tensor all;
        char name[TENSOR_NAME_MAX];
        uint32_t count = 0;
        int r;

        if (wanted.presence == NOT_THERE || layer_tensor(f, layer, wanted.name, name))
                return 0;
        t = layer_tensor(f, layer, whole->name, name);
        if (!t || (whole->parts == 2 && (matrix ? t->rows : t->columns) == own->ffn))
                return 0; /* `up` alone */
        if (whole->parts == 3)
                tensor_parts_qkv(f->traits, own, parts);
        else
                tensor_parts_gate(own, parts);
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
        bool second =
                layer_tensor(f, layer, wanted_in_layer(f->traits, layer, ATTN_NORM).second, name);
        int r;

        for (size_t i = 0; i < sizeof(wholes) / sizeof(*wholes); i++) {
                r = find_whole(f, layer, &wholes[i], ret_tensors);
                if (r < 0)
                        return error_pass(r);
        }
        for (unsigned i = 0; i < LAYER_TENSOR_N; i++) {
                const struct wanted_tensor wanted = wanted_in_layer(f->traits, layer, i);

                if (ret_tensors->at[i])
                        continue;
                if (!layer_tensor(f, layer, second && wanted.second ? wanted.second : wanted.name,
                                  name) &&
                    i == FFN_NORM && !f->traits->post_norms &&
                    !layer_tensor(f, layer, FFN_NORM_ELSE, name))
                        (void)layer_tensor(f, layer, wanted.name, name);
                r = find_tensor(f, &wanted, name, f->traits->transposed, &ret_tensors->at[i]);
                if (r)
                        return error_pass(r);
                if (wanted.is_unused)
                        ret_tensors->at[i] = NULL;
        }
        return 0;
}

static int make_unit_rows(struct finding *f, const struct tensor **tensor)
{
        if ((*tensor)->scales)
                return refuse(f,
                              "tensor '%s' has scales, and its rows are divided by their lengths, "
                              "which is not supported yet",
                              shown((*tensor)->name).text);
        *tensor = add_part(f, tensor_unit_rows(*tensor));
        return 0;
}

/* Row i of the result is row i of the matrix, or its column i. */
static int read_projection(struct finding *f, const struct tensor *t, bool transposed, float *ret)
{
        const uint32_t rows = t->rows, columns = t->columns;
        float *row = malloc(columns * sizeof(*row));
        struct tensor one = *t;
        int r = 0;

        if (!row)
                return refuse_memory(f);
        one.rows = 1;
        one.bytes = t->bytes / rows;
        for (uint32_t i = 0; !r && i < rows; i++, one.offset += one.bytes) {
                r = rows_read_floats(f->checkpoint, &one, row, f->why, f->why_bytes);
                for (uint32_t j = 0; !r && j < columns; j++)
                        ret[transposed ? (size_t)j * rows + i : (size_t)i * columns + j] = row[j];
        }
        free(row);
        return error_pass(r);
}

/* The ends get tables of their own, even if they are tied: their matrices differ. */
static int project_ends(struct finding *f, const struct tensor **at)
{
        const struct tensor *head = at[OUTPUT] ? at[OUTPUT] : at[TOKEN_EMBD];
        const struct tensor *all[] = { at[TOKEN_EMBD], head, at[PROJECT_IN], at[PROJECT_OUT] };
        const size_t count = (size_t)f->traits->width * f->traits->embed_width;
        int r;

        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
                if (all[i]->scales)
                        return refuse(f,
                                      "tensor '%s' has scales, and it is multiplied with another "
                                      "one, which is not supported yet",
                                      shown(all[i]->name).text);
        f->projections = malloc(2 * count * sizeof(*f->projections));
        if (!f->projections)
                return refuse_memory(f);
        if ((r = read_projection(f, at[PROJECT_IN], true, f->projections)) ||
            (r = read_projection(f, at[PROJECT_OUT], false, f->projections + count)))
                return error_pass(r);
        at[OUTPUT] = add_part(f, tensor_times(head, f->projections + count, f->traits->width));
        at[TOKEN_EMBD] =
                add_part(f, tensor_times(at[TOKEN_EMBD], f->projections, f->traits->width));
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
                missing = wanted_in_model(f->traits, TOKEN_EMBD).name;
        else if (!f->traits->tied && !at[OUTPUT])
                missing = wanted_in_model(f->traits, OUTPUT).name;
        if (missing)
                return refuse(f, "tensor '%s' is missing", missing);
        return f->traits->embed_width ? error_pass(project_ends(f, at)) : 0;
}

static int find_all(struct finding *f, struct tensors *tensors)
{
        const struct tensor_table *table = checkpoint_tensors(f->checkpoint);
        int r;

        for (unsigned i = 0; i < MODEL_TENSOR_N; i++) {
                const struct wanted_tensor wanted = wanted_in_model(f->traits, i);

                r = find_tensor(f, &wanted, wanted.name, false, &tensors->at[i]);
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
        /* Tensors of layers and the ends are parts at most once, and so are norms of heads. */
        const size_t parts = (size_t)traits->layers * LAYER_TENSOR_N + 2 + count;
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
                r = refuse_memory(&f);
        else
                r = find_all(&f, &tensors);
        tensors.projections = f.projections;
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
        free(tensors->projections);
        free(tensors->parts);
        free(tensors->layers);
        *tensors = (struct tensors){ 0 };
}
