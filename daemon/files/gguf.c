/*
 * The tables of a GGUF file: pairs by key, tensors by name.  files/gguf-reader.c parses them one by
 * one; this file checks each table as a whole.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/sys.h"
#include "daemon/files/file.h"
#include "daemon/files/gguf-reader.h"
#include "daemon/files/gguf.h"
#include "daemon/files/scales.h"

#define FIRST_PIECE (64u << 10)
#define ALIGNMENT   32u /* unless the file says otherwise */

struct gguf {
        int fd;
        struct sys_mark mark; /* of the file when it was opened */
        uint8_t *header;
        struct gguf_pair *pairs; /* sorted by key */
        uint32_t pair_count;
        struct tensor_table tensors;
        struct scales *scales; /* of NVFP4 tensors */
};

static int pair_compare(const void *a, const void *b)
{
        return strcmp(((const struct gguf_pair *)a)->key, ((const struct gguf_pair *)b)->key);
}

static int read_pairs(struct gguf *g, struct gguf_reader *r, uint64_t count)
{
        int k;

        r->what = "metadata";
        g->pairs = calloc(count + 1, sizeof(*g->pairs));
        if (!g->pairs)
                return error_raise(-ENOMEM);
        for (r->index = 0; r->index < count; r->index++) {
                r->name = NULL;
                k = gguf_reader_take_pair(r, &g->pairs[r->index]);
                if (k)
                        return k;
        }
        g->pair_count = (uint32_t)count;
        qsort(g->pairs, count, sizeof(*g->pairs), pair_compare);
        for (uint64_t i = 1; i < count; i++) {
                r->name = g->pairs[i].key;
                if (!pair_compare(&g->pairs[i - 1], &g->pairs[i]))
                        return gguf_reader_refuse(r, "occurs twice");
        }
        return 0;
}

static int read_tensors(struct gguf *g, struct gguf_reader *r, uint64_t count)
{
        int k = tensor_table_init(&g->tensors, (uint32_t)count);

        if (k)
                return error_pass(k);
        r->what = "tensor";
        for (r->index = 0; r->index < count; r->index++) {
                r->name = NULL;
                k = gguf_reader_take_tensor(r, &g->tensors.tensors[r->index]);
                if (k)
                        return k;
        }
        return 0;
}

/*
 * Converts offsets in the data to offsets in the file.  Checks that all tensors are inside the
 * file, aligned and without overlap.
 */
static int place_tensors(struct gguf *g, struct gguf_reader *r, uint32_t alignment)
{
        uint64_t data = (r->at + alignment - 1) / alignment * alignment, end = 0;

        for (uint32_t i = 0; i < g->tensors.count; i++) {
                struct tensor *t = &g->tensors.tensors[i];

                r->name = t->name;
                if (t->offset % alignment)
                        return gguf_reader_refuse(r, "offset %" PRIu64 " is not a multiple of %u",
                                                  t->offset, alignment);
                if (data > r->file_bytes || t->offset > r->file_bytes - data ||
                    t->bytes > r->file_bytes - data - t->offset)
                        return gguf_reader_refuse(r,
                                                  "%" PRIu64 " bytes at offset %" PRIu64
                                                  " of the data reach past the end of the file",
                                                  t->bytes, t->offset);
                t->offset += data;
        }
        tensor_table_by_place(&g->tensors);
        for (uint32_t i = 0; i < g->tensors.count; i++) {
                const struct tensor *t = g->tensors.sorted[i];

                r->name = t->name;
                if (t->offset < end)
                        return gguf_reader_refuse(r, "overlaps another tensor");
                end = t->offset + t->bytes;
        }
        return 0;
}

static int name_tensors(struct gguf *g, struct gguf_reader *r)
{
        const struct tensor *twice = tensor_table_by_name(&g->tensors);

        if (!twice)
                return 0;
        r->name = twice->name;
        return gguf_reader_refuse(r, "occurs twice");
}

static int read_alignment(const struct gguf *g, struct gguf_reader *r, uint32_t *ret_alignment)
{
        uint32_t alignment = ALIGNMENT;

        r->what = NULL;
        if (gguf_has(g, "general.alignment") && !gguf_u32(g, "general.alignment", &alignment))
                return gguf_reader_refuse(r, "general.alignment is not a whole number");
        if (!alignment || (alignment & (alignment - 1)))
                return gguf_reader_refuse(r, "general.alignment is %u, not a power of two",
                                          alignment);
        *ret_alignment = alignment;
        return 0;
}

static int read_table(struct gguf *g, struct gguf_reader *r)
{
        uint64_t tensors, pairs;
        uint32_t alignment = ALIGNMENT;
        int k;

        if ((k = gguf_reader_take_preamble(r, GGUF_PAIRS_MAX, &tensors, &pairs)) ||
            (k = read_pairs(g, r, pairs)) || (k = read_alignment(g, r, &alignment)) ||
            (k = read_tensors(g, r, tensors)) || (k = place_tensors(g, r, alignment)) ||
            (k = name_tensors(g, r)))
                return k;
        return error_pass(scales_join_nvfp4(&g->tensors, &g->scales));
}

static uint64_t header_limit(uint64_t file_bytes)
{
        return file_bytes < GGUF_HEADER_MAX ? file_bytes : GGUF_HEADER_MAX;
}

/* Takes ownership of `header`, also on failure.  0, GGUF_E_MORE or a negative errno. */
static int parse(uint8_t *header, uint64_t have, uint64_t file_bytes, struct gguf **ret_gguf,
                 char *why, size_t why_bytes)
{
        struct gguf_reader r = {
                .bytes = header,
                .have = have,
                .limit = header_limit(file_bytes),
                .file_bytes = file_bytes,
                .why = why,
                .why_bytes = why_bytes,
        };
        struct gguf *g = calloc(1, sizeof(*g));
        int k;

        if (!g) {
                free(header);
                return error_raise(
                        errtext_set(why, why_bytes, -ENOMEM, "out of memory for the header"));
        }
        g->fd = -1;
        g->header = header;
        k = read_table(g, &r);
        if (k == -ENOMEM)
                errtext_set(why, why_bytes, k, "out of memory for the header");
        if (k) {
                gguf_close(g);
                return error_pass(k);
        }
        *ret_gguf = g;
        return 0;
}

int gguf_parse(const uint8_t *bytes, size_t count, uint64_t file_bytes, struct gguf **ret_gguf,
               char *why, size_t why_bytes)
{
        uint64_t have = count < header_limit(file_bytes) ? count : header_limit(file_bytes);
        /* exact size, so that a read past the end is detected */
        uint8_t *header = malloc(have ? have : 1);
        int k;

        if (!header)
                return error_raise(
                        errtext_set(why, why_bytes, -ENOMEM, "out of memory for the header"));
        memcpy(header, bytes, have);
        k = parse(header, have, file_bytes, ret_gguf, why, why_bytes);
        if (k == GGUF_E_MORE)
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "the header is longer than the %zu bytes given",
                                               count));
        return error_pass(k);
}

static int read_header(int fd, uint64_t file_bytes, struct gguf **ret_gguf, char *why,
                       size_t why_bytes)
{
        uint64_t limit = header_limit(file_bytes), have = limit < FIRST_PIECE ? limit : FIRST_PIECE;
        int k;

        for (;;) {
                /* exact size, so that a read past the end is detected */
                uint8_t *header = malloc(have ? have : 1);

                if (!header)
                        return error_raise(errtext_set(why, why_bytes, -ENOMEM,
                                                       "out of memory for the header"));
                k = file_read(fd, 0, header, have, why, why_bytes);
                if (k) {
                        free(header);
                        return error_pass(k);
                }
                k = parse(header, have, file_bytes, ret_gguf, why, why_bytes);
                if (k != GGUF_E_MORE)
                        return error_pass(k);
                have = have > limit / 4 ? limit : have * 4;
        }
}

int gguf_open(const char *path, struct gguf **ret_gguf, char *why, size_t why_bytes)
{
        struct sys_mark mark;
        int fd, r;

        r = file_open(AT_FDCWD, path, &fd, &mark, why, why_bytes);
        if (r)
                return r == FILE_E_ABSENT ? error_raise(-ENOENT) : error_pass(r);
        r = read_header(fd, mark.bytes, ret_gguf, why, why_bytes);
        if (r) {
                sys_close(fd);
                return error_pass(r);
        }
        (*ret_gguf)->fd = fd;
        (*ret_gguf)->mark = mark;
        return 0;
}

struct gguf *gguf_close(struct gguf *g)
{
        if (!g)
                return NULL;
        sys_close(g->fd);
        tensor_table_deinit(&g->tensors);
        free(g->scales);
        free(g->pairs);
        free(g->header);
        free(g);
        return NULL;
}

int gguf_fd(const struct gguf *g)
{
        return g->fd;
}

const struct sys_mark *gguf_mark(const struct gguf *g)
{
        return &g->mark;
}

const struct tensor_table *gguf_tensors(const struct gguf *g)
{
        return &g->tensors;
}

const struct tensor *gguf_tensor(const struct gguf *g, const char *name)
{
        return tensor_table_find(&g->tensors, name);
}

static const struct gguf_pair *pair_of(const struct gguf *g, const char *key)
{
        struct gguf_pair wanted = { .key = key };

        return bsearch(&wanted, g->pairs, g->pair_count, sizeof(wanted), pair_compare);
}

bool gguf_has(const struct gguf *g, const char *key)
{
        return pair_of(g, key);
}

/* Bytes of an integer of that type; 0: not an integer type. */
static size_t whole_bytes(uint32_t type)
{
        switch (type) {
        case GGUF_I8:
        case GGUF_U8:
                return 1;
        case GGUF_I16:
        case GGUF_U16:
                return 2;
        case GGUF_I32:
        case GGUF_U32:
                return 4;
        case GGUF_I64:
        case GGUF_U64:
                return 8;
        default:
                return 0;
        }
}

static bool whole(uint32_t type, const uint8_t *value, uint32_t *ret_value)
{
        uint64_t bits = 0, high = UINT32_MAX;
        size_t bytes = whole_bytes(type);

        if (!bytes)
                return false;
        /* A negative number has its top bit set, so it is larger than `high`. */
        if (type == GGUF_I8 || type == GGUF_I16 || type == GGUF_I32)
                high = (UINT64_C(1) << (bytes * 8 - 1)) - 1;
        memcpy(&bits, value, bytes);
        bits = le64toh(bits);
        if (bits > high)
                return false;
        *ret_value = (uint32_t)bits;
        return true;
}

static bool real(uint32_t type, const uint8_t *value, float *ret_value)
{
        double wide;

        if (type == GGUF_F32) {
                memcpy(ret_value, value, sizeof(*ret_value));
                return true;
        }
        if (type != GGUF_F64)
                return false;
        memcpy(&wide, value, sizeof(wide));
        *ret_value = isfinite(wide) && fabs(wide) > FLT_MAX ? (float)INFINITY : (float)wide;
        return true;
}

bool gguf_u32(const struct gguf *g, const char *key, uint32_t *ret_value)
{
        const struct gguf_pair *pair = pair_of(g, key);

        return pair && whole(pair->type, pair->value, ret_value);
}

bool gguf_f32(const struct gguf *g, const char *key, float *ret_value)
{
        const struct gguf_pair *pair = pair_of(g, key);

        return pair && real(pair->type, pair->value, ret_value);
}

/* The bits of a whole number that is too large for int64_t mean a negative one there. */
static double signed_number(uint32_t type, const uint8_t *value)
{
        size_t bytes = whole_bytes(type);
        uint64_t bits = 0;
        unsigned unused = (unsigned)(64 - bytes * 8);

        memcpy(&bits, value, bytes);
        bits = le64toh(bits);
        if (type == GGUF_I8 || type == GGUF_I16 || type == GGUF_I32 || type == GGUF_I64)
                return (double)((int64_t)(bits << unused) >> unused);
        return (double)bits;
}

bool gguf_number(const struct gguf *g, const char *key, double *ret_value)
{
        const struct gguf_pair *pair = pair_of(g, key);
        float value;

        if (!pair)
                return false;
        if (whole_bytes(pair->type)) {
                *ret_value = signed_number(pair->type, pair->value);
                return true;
        }
        if (!real(pair->type, pair->value, &value))
                return false;
        *ret_value = (double)value;
        return true;
}

bool gguf_bool(const struct gguf *g, const char *key, bool *ret_value)
{
        const struct gguf_pair *pair = pair_of(g, key);

        if (!pair || pair->type != GGUF_BOOL)
                return false;
        *ret_value = *pair->value;
        return true;
}

const char *gguf_string(const struct gguf *g, const char *key)
{
        const struct gguf_pair *pair = pair_of(g, key);

        return pair && pair->type == GGUF_STRING ? (const char *)pair->value : NULL;
}

bool gguf_array(const struct gguf *g, const char *key, struct gguf_array *ret_array)
{
        const struct gguf_pair *pair = pair_of(g, key);

        if (!pair || pair->type != GGUF_ARRAY)
                return false;
        memcpy(&ret_array->type, pair->value, 4);
        memcpy(&ret_array->left, pair->value + 4, 8);
        ret_array->type = le32toh(ret_array->type);
        ret_array->left = le64toh(ret_array->left);
        ret_array->at = pair->value + 12;
        return true;
}

bool gguf_next_string(struct gguf_array *array, const char **ret_text, size_t *ret_bytes)
{
        uint64_t bytes;

        if (!array->left || array->type != GGUF_STRING)
                return false;
        memcpy(&bytes, array->at, sizeof(bytes));
        bytes = le64toh(bytes);
        *ret_text = (const char *)array->at + sizeof(bytes);
        *ret_bytes = bytes;
        array->at += sizeof(bytes) + bytes;
        array->left--;
        return true;
}

bool gguf_next_u32(struct gguf_array *array, uint32_t *ret_value)
{
        if (!array->left || !whole(array->type, array->at, ret_value))
                return false;
        array->at += whole_bytes(array->type);
        array->left--;
        return true;
}

bool gguf_bytes(const struct gguf_array *array, const char **ret_bytes)
{
        *ret_bytes = (const char *)array->at;
        return array->type == GGUF_U8 || array->type == GGUF_I8 || array->type == GGUF_BOOL;
}

bool gguf_next_f32(struct gguf_array *array, float *ret_value)
{
        if (!array->left || !real(array->type, array->at, ret_value))
                return false;
        array->at += array->type == GGUF_F32 ? 4 : 8;
        array->left--;
        return true;
}
