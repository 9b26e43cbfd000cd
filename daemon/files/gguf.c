/*
 * The table of a model file: pairs by key, tensors by name, both checked as a
 * whole once files/gguf-reader.c has read them one by one.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/gguf-reader.h"
#include "daemon/files/gguf.h"
#include "daemon/why.h"
#include "daemon/error.h"
#include "daemon/sys.h"

#define FIRST_PIECE (64u << 10)
#define ALIGNMENT   32u /* unless the file says otherwise */

struct gguf {
        int fd;
        uint8_t *header;
        struct pair *pairs; /* by key */
        uint32_t pair_count;
        struct tensor *tensors; /* as in the file */
        struct tensor **by_name;
        uint32_t tensor_count;
};

static int pair_compare(const void *a, const void *b)
{
        return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static int tensor_by_name(const void *a, const void *b)
{
        return strcmp((*(struct tensor *const *)a)->name, (*(struct tensor *const *)b)->name);
}

static int tensor_by_offset(const void *a, const void *b)
{
        const struct tensor *s = *(struct tensor *const *)a, *t = *(struct tensor *const *)b;

        return s->offset != t->offset ? (s->offset < t->offset ? -1 : 1) : 0;
}

static int read_pairs(struct gguf *g, struct reader *r, uint64_t count)
{
        int k;

        r->what = "metadata";
        g->pairs = calloc(count + 1, sizeof(*g->pairs));
        if (!g->pairs)
                return error_raise(-ENOMEM);
        for (r->index = 0; r->index < count; r->index++) {
                r->name = NULL;
                k = reader_take_pair(r, &g->pairs[r->index]);
                if (k)
                        return k;
        }
        g->pair_count = (uint32_t)count;
        qsort(g->pairs, count, sizeof(*g->pairs), pair_compare);
        for (uint64_t i = 1; i < count; i++) {
                r->name = g->pairs[i].key;
                if (!pair_compare(&g->pairs[i - 1], &g->pairs[i]))
                        return reader_refuse(r, "is there twice");
        }
        return 0;
}

static int read_tensors(struct gguf *g, struct reader *r, uint64_t count)
{
        int k;

        r->what = "tensor";
        g->tensors = calloc(count + 1, sizeof(*g->tensors));
        g->by_name = calloc(count + 1, sizeof(*g->by_name));
        if (!g->tensors || !g->by_name)
                return error_raise(-ENOMEM);
        for (r->index = 0; r->index < count; r->index++) {
                r->name = NULL;
                k = reader_take_tensor(r, &g->tensors[r->index]);
                if (k)
                        return k;
                g->by_name[r->index] = &g->tensors[r->index];
        }
        g->tensor_count = (uint32_t)count;
        return 0;
}

/* From offsets in the data to offsets in the file; inside it, aligned, apart. */
static int place_tensors(struct gguf *g, struct reader *r, uint32_t alignment)
{
        uint64_t data = (r->at + alignment - 1) / alignment * alignment, end = 0;

        for (uint32_t i = 0; i < g->tensor_count; i++) {
                struct tensor *t = &g->tensors[i];

                r->name = t->name;
                if (t->offset % alignment)
                        return reader_refuse(r, "offset %" PRIu64 " is not a multiple of %u",
                                             t->offset, alignment);
                if (data > r->file_bytes || t->offset > r->file_bytes - data ||
                    t->bytes > r->file_bytes - data - t->offset)
                        return reader_refuse(r,
                                             "%" PRIu64 " bytes at offset %" PRIu64
                                             " of the data reach past the end of the file",
                                             t->bytes, t->offset);
                t->offset += data;
        }
        qsort(g->by_name, g->tensor_count, sizeof(*g->by_name), tensor_by_offset);
        for (uint32_t i = 0; i < g->tensor_count; i++) {
                const struct tensor *t = g->by_name[i];

                r->name = t->name;
                if (t->offset < end)
                        return reader_refuse(r, "overlaps another tensor");
                end = t->offset + t->bytes;
        }
        return 0;
}

static int name_tensors(struct gguf *g, struct reader *r)
{
        qsort(g->by_name, g->tensor_count, sizeof(*g->by_name), tensor_by_name);
        for (uint32_t i = 1; i < g->tensor_count; i++) {
                r->name = g->by_name[i]->name;
                if (!tensor_by_name(&g->by_name[i - 1], &g->by_name[i]))
                        return reader_refuse(r, "is there twice");
        }
        return 0;
}

static int read_alignment(const struct gguf *g, struct reader *r, uint32_t *ret_alignment)
{
        uint32_t alignment = ALIGNMENT;

        r->what = NULL;
        if (gguf_has(g, "general.alignment") && !gguf_u32(g, "general.alignment", &alignment))
                return reader_refuse(r, "general.alignment is not a whole number");
        if (!alignment || (alignment & (alignment - 1)))
                return reader_refuse(r, "general.alignment is %u, not a power of two", alignment);
        *ret_alignment = alignment;
        return 0;
}

static int read_table(struct gguf *g, struct reader *r)
{
        uint64_t tensors, pairs;
        uint32_t alignment = ALIGNMENT;
        int k;

        if ((k = reader_take_preamble(r, &tensors, &pairs)) || (k = read_pairs(g, r, pairs)) ||
            (k = read_alignment(g, r, &alignment)) || (k = read_tensors(g, r, tensors)) ||
            (k = place_tensors(g, r, alignment)) || (k = name_tensors(g, r)))
                return k;
        return 0;
}

static uint64_t header_limit(uint64_t file_bytes)
{
        return file_bytes < GGUF_HEADER_MAX ? file_bytes : GGUF_HEADER_MAX;
}

/* Takes `header` over, whatever comes of it.  0, GGUF_E_MORE or a negative errno. */
static int parse(uint8_t *header, uint64_t have, uint64_t file_bytes, struct gguf **ret_gguf,
                 char *why, size_t why_bytes)
{
        struct reader r = {
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
                return error_raise(why_say(why, why_bytes, -ENOMEM, "no memory for its header"));
        }
        g->fd = -1;
        g->header = header;
        k = read_table(g, &r);
        if (k == -ENOMEM)
                why_say(why, why_bytes, k, "no memory for its header");
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
        uint8_t *header = malloc(have + 1);
        int k;

        if (!header)
                return error_raise(why_say(why, why_bytes, -ENOMEM, "no memory for its header"));
        memcpy(header, bytes, have);
        k = parse(header, have, file_bytes, ret_gguf, why, why_bytes);
        if (k == GGUF_E_MORE)
                return error_raise(why_say(why, why_bytes, -EINVAL,
                                           "the header is longer than the %zu bytes given", count));
        return error_pass(k);
}

static int read_piece(int fd, uint8_t *header, uint64_t bytes, char *why, size_t why_bytes)
{
        ssize_t n;

        for (uint64_t at = 0; at < bytes; at += (uint64_t)n) {
                n = sys_pread(fd, header + at, bytes - at, at);
                if (n < 0)
                        return error_raise(why_say(why, why_bytes, (int)n, "reading its header: %s",
                                                   strerror((int)-n)));
                if (!n)
                        return error_raise(why_say(why, why_bytes, -EIO,
                                                   "it became shorter while it was read"));
        }
        return 0;
}

static int read_header(int fd, uint64_t file_bytes, struct gguf **ret_gguf, char *why,
                       size_t why_bytes)
{
        uint64_t limit = header_limit(file_bytes), have = limit < FIRST_PIECE ? limit : FIRST_PIECE;
        int k;

        for (;;) {
                uint8_t *header = malloc(have + 1);

                if (!header)
                        return error_raise(
                                why_say(why, why_bytes, -ENOMEM, "no memory for its header"));
                k = read_piece(fd, header, have, why, why_bytes);
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
        uint64_t bytes;
        int fd, r;

        /* Non-blocking, so that opening a pipe by mistake does not wait for its writer. */
        fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
        if (fd < 0)
                return error_raise(why_say(why, why_bytes, fd, "%s", strerror(-fd)));
        r = sys_file_size(fd, &bytes);
        if (r == -EINVAL)
                why_say(why, why_bytes, r, "not a regular file");
        else if (r)
                why_say(why, why_bytes, r, "%s", strerror(-r));
        else
                r = read_header(fd, bytes, ret_gguf, why, why_bytes);
        if (r) {
                sys_close(fd);
                return error_pass(r);
        }
        (*ret_gguf)->fd = fd;
        return 0;
}

struct gguf *gguf_close(struct gguf *g)
{
        if (!g)
                return NULL;
        sys_close(g->fd);
        free(g->by_name);
        free(g->tensors);
        free(g->pairs);
        free(g->header);
        free(g);
        return NULL;
}

int gguf_fd(const struct gguf *g)
{
        return g->fd;
}

static int tensor_named(const void *name, const void *tensor)
{
        return strcmp(name, (*(struct tensor *const *)tensor)->name);
}

const struct tensor *gguf_tensor(const struct gguf *g, const char *name)
{
        struct tensor **t = bsearch(name, g->by_name, g->tensor_count, sizeof(*t), tensor_named);

        return t ? *t : NULL;
}

uint32_t gguf_tensor_count(const struct gguf *g)
{
        return g->tensor_count;
}

const struct tensor *gguf_tensor_at(const struct gguf *g, uint32_t index)
{
        assert(index < g->tensor_count);
        return &g->tensors[index];
}

static const struct pair *pair_of(const struct gguf *g, const char *key)
{
        struct pair wanted = { .key = key };

        return bsearch(&wanted, g->pairs, g->pair_count, sizeof(wanted), pair_compare);
}

bool gguf_has(const struct gguf *g, const char *key)
{
        return pair_of(g, key);
}

bool gguf_u32(const struct gguf *g, const char *key, uint32_t *ret_value)
{
        const struct pair *pair = pair_of(g, key);
        uint64_t bits = 0, high = UINT32_MAX;
        size_t bytes;

        if (!pair)
                return false;
        switch (pair->type) {
        case VALUE_I8:
        case VALUE_U8:
                bytes = 1;
                break;
        case VALUE_I16:
        case VALUE_U16:
                bytes = 2;
                break;
        case VALUE_I32:
        case VALUE_U32:
                bytes = 4;
                break;
        case VALUE_I64:
        case VALUE_U64:
                bytes = 8;
                break;
        default:
                return false;
        }
        /* A negative number has its top bit set, and is too large for its own type. */
        if (pair->type == VALUE_I8 || pair->type == VALUE_I16 || pair->type == VALUE_I32)
                high = (UINT64_C(1) << (bytes * 8 - 1)) - 1;
        memcpy(&bits, pair->value, bytes);
        bits = le64toh(bits);
        if (bits > high)
                return false;
        *ret_value = (uint32_t)bits;
        return true;
}

bool gguf_f32(const struct gguf *g, const char *key, float *ret_value)
{
        const struct pair *pair = pair_of(g, key);
        double wide;

        if (!pair || (pair->type != VALUE_F32 && pair->type != VALUE_F64))
                return false;
        if (pair->type == VALUE_F32) {
                memcpy(ret_value, pair->value, sizeof(*ret_value));
                return true;
        }
        memcpy(&wide, pair->value, sizeof(wide));
        *ret_value = isfinite(wide) && fabs(wide) > FLT_MAX ? (float)INFINITY : (float)wide;
        return true;
}

bool gguf_bool(const struct gguf *g, const char *key, bool *ret_value)
{
        const struct pair *pair = pair_of(g, key);

        if (!pair || pair->type != VALUE_BOOL)
                return false;
        *ret_value = *pair->value;
        return true;
}

const char *gguf_string(const struct gguf *g, const char *key)
{
        const struct pair *pair = pair_of(g, key);

        return pair && pair->type == VALUE_STRING ? (const char *)pair->value : NULL;
}
