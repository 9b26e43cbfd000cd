/*
 * A model file's header from hell.
 *
 * What is accepted must keep the table's promises: every tensor inside the file,
 * none upon another, names found again.  The same bytes as the beginning of a
 * larger file must not be read past their end.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/gguf.h"
#include "tests/fuzz/traits-hold.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct gguf *gguf, uint64_t file_bytes)
{
        char why[256];
        struct traits traits;

        for (uint32_t i = 0; i < gguf_tensors(gguf)->count; i++) {
                const struct tensor *t = &gguf_tensors(gguf)->tensors[i];

                assert(gguf_tensor(gguf, t->name) == t);
                assert(t->offset <= file_bytes && t->bytes <= file_bytes - t->offset);
                assert(t->rows && t->columns && t->name[0] && strlen(t->name) <= TENSOR_NAME_MAX);
                for (uint32_t j = 0; j < i && i < 64; j++) {
                        const struct tensor *u = &gguf_tensors(gguf)->tensors[j];

                        assert(t->offset + t->bytes <= u->offset ||
                               u->offset + u->bytes <= t->offset);
                }
        }
        if (!gguf_traits(gguf, &traits, why, sizeof(why)))
                traits_hold(&traits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const uint64_t sizes[] = { size, (uint64_t)1 << 40 };
        struct gguf *gguf;
        char why[256];

        /* The low bit of the last byte chooses what size the file pretends to have. */
        const uint64_t file_bytes = sizes[size && (data[size - 1] & 1)];

        why[0] = 0;
        if (gguf_parse(data, size, file_bytes, &gguf, why, sizeof(why))) {
                assert(why[0]);
                return 0;
        }
        check(gguf, file_bytes);
        gguf_close(gguf);
        return 0;
}
