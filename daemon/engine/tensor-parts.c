#include "daemon/engine/tensor-parts.h"

#include <assert.h>

struct tensor tensor_transposed(const struct tensor *tensor)
{
        struct tensor transposed = *tensor;

        transposed.rows = tensor->columns;
        transposed.columns = tensor->rows;
        transposed.transposed = tensor->columns;
        return transposed;
}

struct tensor tensor_unit_rows(const struct tensor *tensor)
{
        struct tensor unit = *tensor;

        assert(!tensor->scales && !tensor->unserved);
        unit.unit_rows = true;
        unit.stored = tensor->type;
        if (tensor->type > ROW_BF16)
                unit.type = ROW_F16;
        return unit;
}

struct tensor tensor_times(const struct tensor *tensor, const float *matrix, uint32_t columns)
{
        struct tensor product = *tensor;

        assert(!tensor->scales && !tensor->unserved && tensor->columns <= columns);
        product.times = matrix;
        product.inner = tensor->columns;
        product.stored = tensor->type;
        product.columns = columns;
        product.type = ROW_F32;
        return product;
}

/* How often the rows of some q, their k and their v follow each other in the file. */
static uint32_t periods_of(const struct traits *t, const struct layer_traits *layer)
{
        switch (t->qkv_order) {
        case QKV_STACKED:
                return 1;
        case QKV_BY_HEAD:
                assert(t->heads == layer->kv_heads);
                return t->heads;
        case QKV_BY_GROUP:
                return layer->kv_heads;
        case QKV_IN_FOURS:
                return 4;
        }
        assert(false);
        return 1;
}

void tensor_parts_qkv(const struct traits *t, const struct layer_traits *layer,
                      struct tensor_part ret_parts[3])
{
        static const unsigned usual[] = { 0, 1, 2 }, v_before_k[] = { 0, 2, 1 };
        const uint32_t heads[] = { t->heads, layer->kv_heads, layer->kv_heads };
        const unsigned *order = t->qkv_order == QKV_IN_FOURS ? v_before_k : usual;
        uint32_t periods = periods_of(t, layer), first = 0;

        assert(!(t->heads % periods) && !(layer->kv_heads % periods));
        for (unsigned i = 0; i < 3; i++) {
                unsigned part = order[i];
                uint32_t group = heads[part] / periods * layer->head_dim;

                ret_parts[part] =
                        (struct tensor_part){ heads[part] * layer->head_dim, first, group, 0 };
                first += group;
        }
        for (unsigned i = 0; i < 3; i++) {
                ret_parts[i].stride = first;
                if (periods == 1)
                        ret_parts[i].group = ret_parts[i].stride = 0;
        }
}

void tensor_parts_gate(const struct layer_traits *layer, struct tensor_part ret_parts[2])
{
        ret_parts[0] = (struct tensor_part){ .count = layer->ffn };
        ret_parts[1] = (struct tensor_part){ .count = layer->ffn, .first = layer->ffn };
}

struct tensor tensor_part_of(const struct tensor *whole, const struct tensor_part *part)
{
        bool vector = whole->rows == 1;
        struct tensor out = *whole;
        uint64_t step = whole->bytes / (vector ? whole->columns : whole->rows);

        assert(!whole->scales && !whole->unserved && !whole->group);
        out.group = part->group;
        out.stride = part->stride;
        *(vector ? &out.columns : &out.rows) = part->count;
        if (whole->transposed) {
                out.transposed_first = part->first;
                return out;
        }
        out.offset += part->first * step;
        out.bytes = part->count * step;
        return out;
}
