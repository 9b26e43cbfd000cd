/*
 * A safetensors file from hell.
 *
 * What is accepted must keep the table's promises: names found again, every range
 * in the file and as long as shape and type say, the ranges one behind another from
 * the header's end to the file's.  Read a second time it is the same table, and a
 * file one byte longer or shorter is none.
 */
#include <assert.h>
#include <endian.h>
#include <string.h>

#include "daemon/files/names.h"
#include "daemon/files/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct safetensors *s, uint64_t data, uint64_t file_bytes)
{
        char name[TENSOR_NAME_MAX + NAME_GROWTH_MAX + 1];
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
                if (name_canonical(t->name, name))
                        assert(strlen(name) <= strlen(t->name) + NAME_GROWTH_MAX);
        }
        /* Apart from each other, inside, and as many bytes as there are: so they tile. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct safetensors s = { 0 }, again = { 0 };
        uint64_t file_bytes = size, length;
        char why[256];

        /* The low bit of the last byte chooses whether the data is longer than what is here. */
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
        safetensors_deinit(&s);
        return 0;
}
