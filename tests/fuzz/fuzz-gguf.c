/*
 * A hostile header of a model file.
 *
 * An accepted header must keep the table's promises: every tensor lies inside the file, none
 * overlaps another, names are found again, arrays are as long as they say.  Read a second time it
 * gives the same table.  The same bytes as the beginning of a larger file must not be read past
 * their end.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/gguf.h"
#include "daemon/files/scales.h"
#include "tests/fuzz/check-traits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads the array with every getter: one of them takes elements, and no more than there are. */
static void check_array(const struct gguf *gguf, const char *key)
{
        struct gguf_array array, texts, wholes, reals;
        uint64_t taken = 0;
        const char *text;
        uint32_t whole;
        size_t bytes;
        float real;

        if (!gguf_array(gguf, key, &array))
                return;
        texts = wholes = reals = array;
        while (gguf_next_string(&texts, &text, &bytes)) {
                assert(strnlen(text, bytes) <= bytes); /* each byte can be read */
                taken++;
        }
        assert(!taken || taken == array.left);
        while (gguf_next_u32(&wholes, &whole))
                taken++;
        while (gguf_next_f32(&reals, &real))
                taken++;
        assert(taken <= array.left);
}

/* One scale for the whole matrix, or none. */
static void check_scales(const struct tensor *t)
{
        uint64_t from;
        uint32_t count = scales_of(t, 0, t->rows, &from);

        assert(count <= 1 && !from && t->columns % 64 == 0);
        assert(tensor_taken_bytes(t) / 40 == t->bytes / 36);
}

static void check(const struct gguf *gguf, uint64_t file_bytes)
{
        static const char *const arrays[] = { "tokenizer.ggml.tokens", "tokenizer.ggml.scores",
                                              "tokenizer.ggml.token_type" };
        char why[256];
        struct traits traits;

        for (uint32_t i = 0; i < gguf_tensors(gguf)->count; i++) {
                const struct tensor *t = &gguf_tensors(gguf)->tensors[i];

                assert(gguf_tensor(gguf, t->name) == t);
                assert(t->offset <= file_bytes && t->bytes <= file_bytes - t->offset);
                assert(t->rows && t->columns && t->name[0] && strlen(t->name) <= TENSOR_NAME_MAX);
                if (!t->unserved && t->type == ROW_NVFP4)
                        check_scales(t);
                for (uint32_t j = 0; j < i && i < 64; j++) {
                        const struct tensor *u = &gguf_tensors(gguf)->tensors[j];

                        assert(t->offset + t->bytes <= u->offset ||
                               u->offset + u->bytes <= t->offset);
                }
        }
        for (size_t i = 0; i < sizeof(arrays) / sizeof(*arrays); i++)
                check_array(gguf, arrays[i]);
        if (!gguf_traits(gguf, &traits, why, sizeof(why)))
                check_traits(&traits);
}

static void check_same(const struct gguf *gguf, const struct gguf *again)
{
        assert(gguf_tensors(gguf)->count == gguf_tensors(again)->count);
        for (uint32_t i = 0; i < gguf_tensors(gguf)->count; i++) {
                const struct tensor *t = &gguf_tensors(gguf)->tensors[i];
                const struct tensor *u = &gguf_tensors(again)->tensors[i];

                assert(!strcmp(t->name, u->name) && !t->unserved == !u->unserved);
                assert(!t->unserved || !strcmp(t->unserved, u->unserved));
                assert(t->type == u->type && t->rows == u->rows && t->columns == u->columns);
                assert(t->offset == u->offset && t->bytes == u->bytes);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const uint64_t sizes[] = { size, (uint64_t)1 << 40 };
        struct gguf *gguf, *again;
        char why[256];

        /* The low bit of the last byte chooses the size that the file claims to have. */
        const uint64_t file_bytes = sizes[size && (data[size - 1] & 1)];

        why[0] = 0;
        if (gguf_parse(data, size, file_bytes, &gguf, why, sizeof(why))) {
                assert(why[0]);
                return 0;
        }
        check(gguf, file_bytes);
        assert(!gguf_parse(data, size, file_bytes, &again, why, sizeof(why)));
        check_same(gguf, again);
        gguf_close(again);
        gguf_close(gguf);
        return 0;
}
