#include "contrib/dev/gguf-out.h"

#include <string.h>

/* Types of values in GGUF. */
enum { OUT_U32 = 4, OUT_I32 = 5, OUT_F32 = 6, OUT_BOOL = 7, OUT_STRING = 8, OUT_ARRAY = 9 };

void out_bytes(struct out *o, const void *bytes, size_t count)
{
        if (fwrite(bytes, 1, count, o->file) != count)
                o->failed = true;
        o->at += count;
}

void out_int(struct out *o, uint64_t value, unsigned bytes)
{
        unsigned char le[8];

        for (unsigned i = 0; i < 8; i++)
                le[i] = (unsigned char)(value >> (8 * i));
        out_bytes(o, le, bytes);
}

void out_string(struct out *o, const char *text)
{
        out_int(o, strlen(text), 8);
        out_bytes(o, text, strlen(text));
}

void out_align(struct out *o)
{
        while (o->at % OUT_ALIGNMENT)
                out_int(o, 0, 1);
}

void out_begin(struct out *o, uint64_t tensors, uint64_t pairs)
{
        out_bytes(o, "GGUF", 4);
        out_int(o, 3, 4);
        out_int(o, tensors, 8);
        out_int(o, pairs, 8);
}

static void pair(struct out *o, const char *key, uint32_t type)
{
        out_string(o, key);
        out_int(o, type, 4);
}

void out_pair_u32(struct out *o, const char *key, uint32_t value)
{
        pair(o, key, OUT_U32);
        out_int(o, value, 4);
}

void out_pair_f32(struct out *o, const char *key, float value)
{
        uint32_t bits;

        memcpy(&bits, &value, sizeof(bits));
        pair(o, key, OUT_F32);
        out_int(o, bits, 4);
}

void out_pair_bool(struct out *o, const char *key, bool value)
{
        pair(o, key, OUT_BOOL);
        out_int(o, value, 1);
}

void out_pair_string(struct out *o, const char *key, const char *value)
{
        pair(o, key, OUT_STRING);
        out_string(o, value);
}

static void pair_array(struct out *o, const char *key, uint32_t type, uint64_t count)
{
        pair(o, key, OUT_ARRAY);
        out_int(o, type, 4);
        out_int(o, count, 8);
}

void out_pair_strings(struct out *o, const char *key, uint64_t count)
{
        pair_array(o, key, OUT_STRING, count);
}

void out_pair_ints(struct out *o, const char *key, uint64_t count)
{
        pair_array(o, key, OUT_I32, count);
}

void out_tensor(struct out *o, const char *name, uint32_t rows, uint32_t columns, uint32_t type,
                uint64_t bytes)
{
        out_string(o, name);
        out_int(o, rows > 1 ? 2 : 1, 4);
        out_int(o, columns, 8);
        if (rows > 1)
                out_int(o, rows, 8);
        out_int(o, type, 4);
        out_int(o, o->data, 8);
        o->data += (bytes + OUT_ALIGNMENT - 1) / OUT_ALIGNMENT * OUT_ALIGNMENT;
}
