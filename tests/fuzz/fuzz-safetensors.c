/*
 * A hostile safetensors file.
 *
 * An accepted file must keep the table's promises: names are found again, every range lies in the
 * file and is as long as shape and type say, and the ranges follow one another from the header's
 * end to the file's.  Read a second time it gives the same table, and a file one byte longer or
 * shorter is refused.
 *
 * Then scales join their weights.  A scale is removed from the table only if it joins a tensor of
 * eight bits.  Whatever rows are asked for, their scales lie within the tensor that has them.
 */
#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/tensor-names.h"
#include "daemon/files/safetensors.h"
#include "daemon/files/scales.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct safetensors *s, uint64_t data, uint64_t file_bytes)
{
        char name[TENSOR_NAME_MAX + TENSOR_NAME_GROWTH_MAX + 1];
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < s->tensors.count; i++) {
                const struct tensor *t = &s->tensors.tensors[i];

                assert(tensor_table_find(&s->tensors, t->name) == t);
                assert(t->name[0] && strlen(t->name) <= TENSOR_NAME_MAX);
                assert(t->bytes && t->offset >= data && t->offset <= file_bytes);
                assert(t->bytes <= file_bytes - t->offset);
                assert(t->unserved ||
                       (uint64_t)row_bytes(t->type, t->columns) * t->rows == t->bytes);
                bytes += t->bytes;
                for (uint32_t j = 0; j < i && i < 64; j++) {
                        const struct tensor *u = &s->tensors.tensors[j];

                        assert(t->offset + t->bytes <= u->offset ||
                               u->offset + u->bytes <= t->offset);
                }
                for (unsigned naming = 0; naming < NAMING_N; naming++)
                        if (tensor_name_canonical((enum tensor_naming)naming, t->name, name))
                                assert(strlen(name) <= strlen(t->name) + TENSOR_NAME_GROWTH_MAX);
        }
        /* The ranges are disjoint, inside, and as many bytes as there are: so they tile the
         * file. */
        assert(data + bytes == file_bytes);
}

static void check_same(const struct safetensors *s, const struct safetensors *again)
{
        assert(s->tensors.count == again->tensors.count);
        for (uint32_t i = 0; i < s->tensors.count; i++) {
                const struct tensor *t = &s->tensors.tensors[i];
                const struct tensor *u = &again->tensors.tensors[i];

                assert(!strcmp(t->name, u->name) && t->unserved == u->unserved);
                assert(t->type == u->type && t->rows == u->rows && t->columns == u->columns);
                assert(t->offset == u->offset && t->bytes == u->bytes);
        }
}

static void check_scales(const struct tensor *t, uint32_t row, uint32_t rows)
{
        const struct tensor *scales = &t->scales->tensor;
        uint64_t from;
        uint32_t count = scales_of(t, row, rows, &from);

        assert(count && from + row_bytes(scales->type, count) <= scales->bytes);
}

/* The low bits choose the rows of blocks, so that small files have scales of every kind. */
static void check_joined(struct safetensors *s, uint8_t bits)
{
        const struct scale_block block = { 1u << (bits & 7), SCALES_COLUMNS << (bits >> 3 & 3) };
        uint32_t before = s->tensors.count, with = 0;
        struct scales *scales;

        assert(!scales_join(&s->tensors, &block, &scales));
        for (uint32_t i = 0; i < s->tensors.count; i++) {
                const struct tensor *t = &s->tensors.tensors[i];

                assert(tensor_table_find(&s->tensors, t->name) == t);
                with += t->scales != NULL;
                assert(!t->scales || t->type == ROW_F8_E4M3);
                if (!t->scales || t->unserved)
                        continue;
                assert(tensor_taken_bytes(t) == t->bytes / 128 * 132 && t->bytes % 128 == 0);
                check_scales(t, 0, t->rows);
                check_scales(t, t->rows - 1, 1);
                check_scales(t, t->rows / 2, (t->rows + 1) / 2);
        }
        /* More than one tensor goes for each joined one only where scales have scales. */
        assert(s->tensors.count <= before && before - s->tensors.count >= with);
        assert(with || s->tensors.count == before);
        free(scales);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct safetensors s = { 0 }, again = { 0 };
        uint64_t file_bytes = size, length;
        char why[256];

        /* The low bit of the last byte chooses whether the data is longer than the bytes here. */
        if (size && (data[size - 1] & 1))
                file_bytes += UINT64_C(1) << 20;
        why[0] = 0;
        if (safetensors_parse(data, size, file_bytes, &s, why, sizeof(why))) {
                assert(why[0] && !s.header);
                return 0;
        }
        memcpy(&length, data, sizeof(length));
        check(&s, sizeof(length) + le64toh(length), file_bytes);
        assert(!safetensors_parse(data, size, file_bytes, &again, why, sizeof(why)));
        check_same(&s, &again);
        safetensors_deinit(&again);
        assert(safetensors_parse(data, size, file_bytes + 1, &again, why, sizeof(why)) < 0);
        assert(safetensors_parse(data, size, file_bytes - 1, &again, why, sizeof(why)) < 0);
        check_joined(&s, data[size - 1]);
        safetensors_deinit(&s);
        return 0;
}
