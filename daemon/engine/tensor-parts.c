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

void tensor_parts_qkv(const struct traits *t, struct tensor_part ret_parts[3])
{
        const uint32_t heads[] = { t->heads, t->kv_heads, t->kv_heads };
        /* A period of the file has the heads of q that share a head of k and v, and these two. */
        uint32_t periods = t->qkv_order == QKV_STACKED ? 1 : t->kv_heads, first = 0;

        assert(t->qkv_order != QKV_BY_HEAD || t->heads == t->kv_heads);
        for (unsigned i = 0; i < 3; i++) {
                uint32_t group = heads[i] / periods * t->head_dim;

                ret_parts[i] = (struct tensor_part){ heads[i] * t->head_dim, first, group, 0 };
                first += group;
        }
        for (unsigned i = 0; i < 3; i++) {
                ret_parts[i].stride = first;
                if (periods == 1)
                        ret_parts[i].group = ret_parts[i].stride = 0;
        }
}

void tensor_parts_gate(const struct traits *t, struct tensor_part ret_parts[2])
{
        ret_parts[0] = (struct tensor_part){ .count = t->ffn };
        ret_parts[1] = (struct tensor_part){ .count = t->ffn, .first = t->ffn };
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
