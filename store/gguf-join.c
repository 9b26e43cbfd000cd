/*
 * The weights of each piece are copied as they are, one behind the other; a tensor's new offset is
 * its old one plus where the weights of its piece begin.
 */
#include "store/gguf-join.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json/bytes.h"
#include "store/gguf-head.h"

#define COPY_BYTES (1u << 20)

struct piece {
        const uint8_t *bytes; /* mapped */
        size_t count;
        struct gguf_head head;
        uint64_t base; /* where its weights begin in those of the whole file */
};

struct join {
        const struct gguf_joining *joining;
        struct piece *pieces;
        struct bytes head;
        uint64_t data_bytes, written, total;
        struct sha256 hash;
        int fd;
        char *why;
        size_t why_bytes;
};

__attribute__((format(printf, 3, 4))) static int fail(struct join *join, int r, const char *format,
                                                      ...)
{
        va_list args;

        va_start(args, format);
        vsnprintf(join->why, join->why_bytes, format, args);
        va_end(args);
        return r;
}

static const char *name_of(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static uint64_t aligned(uint64_t bytes, uint32_t alignment)
{
        return (bytes + alignment - 1) / alignment * alignment;
}

static int map_piece(struct join *join, size_t i)
{
        const char *path = join->joining->pieces[i];
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct piece *piece = &join->pieces[i];
        struct stat file;
        void *at;

        if (fd < 0 || fstat(fd, &file) < 0 || !file.st_size) {
                int r = fd < 0 ? -errno : -EINVAL;

                if (fd >= 0)
                        close(fd);
                return fail(join, r, "%s: %s", name_of(path), fd < 0 ? strerror(-r) : "is empty");
        }
        at = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        close(fd);
        if (at == MAP_FAILED)
                return fail(join, -ENOMEM, "%s: cannot be mapped", name_of(path));
        piece->bytes = at;
        piece->count = (size_t)file.st_size;
        return 0;
}

static int read_piece(struct join *join, size_t i)
{
        const char *name = name_of(join->joining->pieces[i]);
        struct piece *piece = &join->pieces[i];
        struct gguf_head *head = &piece->head;
        int r = map_piece(join, i);

        if (r)
                return r;
        r = gguf_head_read(piece->bytes, piece->count, head);
        if (r || head->data_at > aligned(piece->count, head->alignment))
                return fail(join, -EINVAL, "%s: is no GGUF file of version 2 or 3", name);
        if (head->piece != i || head->piece_count != join->joining->piece_count)
                return fail(join, -EINVAL, "%s: says that it is piece %u of %u, not %zu of %zu",
                            name, head->piece + 1, head->piece_count, i + 1,
                            join->joining->piece_count);
        if (head->alignment != join->pieces[0].head.alignment ||
            head->version != join->pieces[0].head.version)
                return fail(join, -EINVAL, "%s: has another alignment or version than the first",
                            name);
        piece->base = join->data_bytes;
        if (piece->count > head->data_at)
                join->data_bytes =
                        aligned(piece->base + (piece->count - head->data_at), head->alignment);
        return 0;
}

static bool is_split_key(struct gguf_entry key)
{
        return key.name_bytes > 6 && !memcmp(key.name, "split.", 6);
}

/* The keys of the first piece that the whole file has, too. */
static int add_keys(struct join *join, uint64_t *ret_count)
{
        const struct piece *first = &join->pieces[0];
        size_t at = first->head.keys.at;
        int r = 0;

        *ret_count = 0;
        for (uint64_t i = 0; i < first->head.key_count && !r; i++) {
                struct gguf_entry key = gguf_head_key(first->bytes, &at);

                if (is_split_key(key))
                        continue;
                r = bytes_add(&join->head, first->bytes + key.whole.at, key.whole.bytes);
                ++*ret_count;
        }
        return r;
}

static int add_tensors(struct join *join, const struct piece *piece)
{
        size_t at = piece->head.tensors.at;
        int r = 0;

        for (uint64_t i = 0; i < piece->head.tensor_count && !r; i++) {
                struct gguf_entry tensor = gguf_head_tensor(piece->bytes, &at);
                uint64_t offset = tensor.offset + piece->base;

                r = bytes_add(&join->head, piece->bytes + tensor.whole.at,
                              tensor.whole.bytes - sizeof(offset));
                if (!r)
                        r = bytes_add(&join->head, &offset, sizeof(offset));
        }
        return r;
}

static int make_head(struct join *join)
{
        uint64_t counts[2] = { 0, 0 }; /* of tensors and of keys */
        uint32_t begin[2] = { 0x46554747, join->pieces[0].head.version };
        static const char zeros[64];
        size_t padding;
        int r = bytes_add(&join->head, begin, sizeof(begin));

        if (!r)
                r = bytes_add(&join->head, counts, sizeof(counts));
        if (!r)
                r = add_keys(join, &counts[1]);
        for (size_t i = 0; i < join->joining->piece_count && !r; i++) {
                r = add_tensors(join, &join->pieces[i]);
                counts[0] += join->pieces[i].head.tensor_count;
        }
        if (r)
                return fail(join, r, "out of memory");
        memcpy(join->head.at + sizeof(begin), counts, sizeof(counts));
        padding = (size_t)(aligned(join->head.count, join->pieces[0].head.alignment) -
                           join->head.count);
        for (; padding && !r; padding -= padding < sizeof(zeros) ? padding : sizeof(zeros))
                r = bytes_add(&join->head, zeros,
                              padding < sizeof(zeros) ? padding : sizeof(zeros));
        return r ? fail(join, r, "out of memory") : 0;
}

static int put(struct join *join, const void *bytes, size_t count)
{
        const uint8_t *at = bytes;

        sha256_add(&join->hash, bytes, count);
        while (count) {
                ssize_t n = write(join->fd, at, count);

                if (n < 0 && errno != EINTR)
                        return fail(join, -errno, "%s: %s", join->joining->to, strerror(errno));
                if (n > 0) {
                        at += n;
                        count -= (size_t)n;
                        join->written += (uint64_t)n;
                }
        }
        if (join->joining->on_progress &&
            !join->joining->on_progress(join->joining->arg, join->written, join->total))
                return fail(join, -ECANCELED, "stopped");
        return 0;
}

static int put_weights(struct join *join, const struct piece *piece)
{
        static const uint8_t zeros[4096];
        uint64_t at = piece->head.data_at, padding;
        int r = 0;

        while (at < piece->count && !r) {
                size_t part =
                        piece->count - at < COPY_BYTES ? (size_t)(piece->count - at) : COPY_BYTES;

                r = put(join, piece->bytes + at, part);
                at += part;
        }
        padding = aligned(piece->count, piece->head.alignment) - piece->count;
        for (; padding && !r && piece->count > piece->head.data_at;) {
                size_t part = padding < sizeof(zeros) ? (size_t)padding : sizeof(zeros);

                r = put(join, zeros, part);
                padding -= part;
        }
        return r;
}

static int write_file(struct join *join)
{
        int r;

        join->fd = open(join->joining->to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (join->fd < 0)
                return fail(join, -errno, "%s: %s", join->joining->to, strerror(errno));
        join->total = join->head.count + join->data_bytes;
        sha256_begin(&join->hash);
        r = put(join, join->head.at, join->head.count);
        for (size_t i = 0; i < join->joining->piece_count && !r && !join->joining->head_only; i++)
                r = put_weights(join, &join->pieces[i]);
        if (!r && join->joining->head_only && ftruncate(join->fd, (off_t)join->total) < 0)
                r = fail(join, -errno, "%s: %s", join->joining->to, strerror(errno));
        if (!r && !join->joining->head_only && fdatasync(join->fd) < 0)
                r = fail(join, -errno, "%s: %s", join->joining->to, strerror(errno));
        close(join->fd);
        if (r)
                unlink(join->joining->to);
        return r;
}

int gguf_join(const struct gguf_joining *joining, uint64_t *ret_bytes,
              char ret_sha256[SHA256_HEX_BYTES], char *why, size_t why_bytes)
{
        struct join join = { .joining = joining, .why = why, .why_bytes = why_bytes };
        int r = 0;

        if (!joining->piece_count || joining->piece_count > GGUF_PIECES_MAX)
                return fail(&join, -EINVAL, "there are %zu pieces; 1 to %u can be joined",
                            joining->piece_count, GGUF_PIECES_MAX);
        join.pieces = calloc(joining->piece_count, sizeof(*join.pieces));
        if (!join.pieces)
                return fail(&join, -ENOMEM, "out of memory");
        for (size_t i = 0; i < joining->piece_count && !r; i++)
                r = read_piece(&join, i);
        if (!r)
                r = make_head(&join);
        if (!r)
                r = write_file(&join);
        if (!r) {
                *ret_bytes = join.written;
                sha256_end_hex(&join.hash, ret_sha256);
        }
        for (size_t i = 0; i < joining->piece_count; i++)
                if (join.pieces[i].bytes)
                        munmap((void *)join.pieces[i].bytes, join.pieces[i].count);
        free(join.pieces);
        bytes_deinit(&join.head);
        return r;
}
