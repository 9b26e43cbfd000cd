#include "kernels/cuda/cuda.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/convert.h"

/*
 * Adds padding for rows of 16-bit numbers in place of the floats: these need half as much, and
 * this padding.
 */
bool cuda_floats_bytes(const struct cuda *cuda, size_t count, size_t *ret_bytes)
{
        size_t all;

        return !__builtin_add_overflow(count, (size_t)cuda->conf.rows_max * 64, &all) &&
               !__builtin_mul_overflow(all, sizeof(float), ret_bytes);
}

int cuda_floats_new(struct kernels *k, size_t count, float **ret_floats)
{
        struct cuda *cuda = cuda_of(k);
        buffer *buffer;
        size_t bytes;
        int r;

        if (!cuda_floats_bytes(cuda, count, &bytes))
                return -ENOMEM;
        buffer = (struct buffer *)calloc(1, sizeof(*buffer));
        if (!buffer)
                return -ENOMEM;
        r = device_new(cuda->device, bytes, &buffer->at);
        if (r) {
                free(buffer);
                return cuda_check_object(cuda, r);
        }
        buffer->count = count;
        buffer->bytes = bytes;
        buffer->next = cuda->buffers;
        cuda->buffers = buffer;
        r = cuda_clear(cuda, buffer->at, bytes);
        if (r) {
                cuda_floats_free(k, (float *)buffer->at);
                return cuda_check_object(cuda, r);
        }
        *ret_floats = (float *)buffer->at;
        return 0;
}

void cuda_floats_free(struct kernels *k, float *floats)
{
        struct cuda *cuda = cuda_of(k);

        for (buffer **at = &cuda->buffers; floats && *at; at = &(*at)->next) {
                buffer *buffer = *at;

                if (buffer->at != floats)
                        continue;
                *at = buffer->next;
                device_delete(cuda->device, buffer->at);
                free(buffer);
                return;
        }
        assert(!floats);
}

buffer *cuda_buffer(struct cuda *cuda, const float *floats)
{
        for (buffer *buffer = cuda->buffers; buffer; buffer = buffer->next)
                if (floats >= (float *)buffer->at && floats < (float *)buffer->at + buffer->count)
                        return buffer;
        assert(!"a buffer of this backend");
        return nullptr;
}

int cuda_clear(struct cuda *cuda, void *to, size_t bytes)
{
        piece *piece;
        int r = staging_take(cuda->staging, &piece);

        if (r)
                return r;
        r = staging_clear(cuda->staging, STREAM_LOADS, piece, to, bytes);
        if (!r)
                r = staging_wait(cuda->staging, piece);
        staging_give(cuda->staging, piece);
        return r;
}

static int send_piece(struct cuda *cuda, void *to, const void *from, size_t bytes)
{
        piece *piece;
        int r = staging_take(cuda->staging, &piece);

        if (r)
                return r;
        memcpy(piece->at, from, bytes);
        r = staging_upload(cuda->staging, STREAM_STEPS, piece, to, bytes, 0, bytes, 1);
        if (!r)
                r = staging_wait(cuda->staging, piece);
        staging_give(cuda->staging, piece);
        return r;
}

/*
 * Runs after the operators that were called before.  `to` may point into the middle of a buffer,
 * which then holds floats.
 */
int cuda_put(struct kernels *k, float *to, const float *host, size_t count)
{
        struct cuda *cuda = cuda_of(k);
        size_t bytes = count * sizeof(*to), part = staging_bytes(cuda->staging);
        int r = 0;

        cuda_buffer(cuda, to)->content = CONTENT_FLOATS;
        for (size_t done = 0; done < bytes && !r; done += part)
                r = send_piece(cuda, (uint8_t *)to + done, (const uint8_t *)host + done,
                               bytes - done < part ? bytes - done : part);
        return cuda_check(cuda, r);
}

static int fetch_piece(struct cuda *cuda, void *host, const void *from, size_t bytes)
{
        piece *piece;
        int r = staging_take(cuda->staging, &piece);

        if (r)
                return r;
        r = staging_download(cuda->staging, STREAM_STEPS, piece, from, bytes);
        if (!r)
                r = staging_wait(cuda->staging, piece);
        if (!r)
                memcpy(host, piece->at, bytes);
        staging_give(cuda->staging, piece);
        return r;
}

static void fetch(struct cuda *cuda, void *host, const void *from, size_t bytes)
{
        size_t part = staging_bytes(cuda->staging);
        int r = 0;

        for (size_t done = 0; done < bytes && !r; done += part)
                r = fetch_piece(cuda, (uint8_t *)host + done, (const uint8_t *)from + done,
                                bytes - done < part ? bytes - done : part);
        (void)cuda_check(cuda, r);
}

/* For tests and inspection: fetches one row at a time. */
void cuda_get(struct kernels *k, float *host, const float *from, size_t count)
{
        struct cuda *cuda = cuda_of(k);
        buffer *buffer = cuda_buffer(cuda, from);
        size_t row_bytes = buffer->width * sizeof(uint16_t), first = from - (float *)buffer->at;
        uint16_t *row;

        if (buffer->content == CONTENT_FLOATS) {
                fetch(cuda, host, from, count * sizeof(*host));
                return;
        }
        row = (uint16_t *)calloc(1, row_bytes);
        for (size_t i = 0; row && i < count; i++) {
                size_t number = (first + i) / buffer->columns;
                uint32_t column = (uint32_t)((first + i) % buffer->columns);

                if (!i || !column)
                        fetch(cuda, row, (uint8_t *)buffer->at + number * row_bytes, row_bytes);
                host[i] = buffer->content == CONTENT_HALVES ? half_to_float(row[column])
                                                            : bfloat_to_float(row[column]);
        }
        free(row);
}

int cuda_set_content(struct cuda *cuda, const float *floats, content content, uint32_t columns,
                     uint32_t width)
{
        buffer *buffer = cuda_buffer(cuda, floats);
        bool same = buffer->content == content && buffer->columns == columns;

        assert(floats == buffer->at);
        buffer->content = content;
        buffer->columns = columns;
        buffer->width = width;
        if (same || width == columns)
                return 0;
        return device_clear(cuda->device, STREAM_STEPS, buffer->at, buffer->bytes);
}

bool cuda_has_content(struct cuda *cuda, const float *floats, content content)
{
        return cuda_buffer(cuda, floats)->content == content;
}
