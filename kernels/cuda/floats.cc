#include "kernels/cuda/cuda.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/rows.h"

/* Padding of rows of 16-bit numbers, where floats had been asked for: half as much, and this. */
static bool room_for(const struct cuda *cuda, size_t count, size_t *ret_bytes)
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

        if (!room_for(cuda, count, &bytes))
                return -ENOMEM;
        buffer = (struct buffer *)calloc(1, sizeof(*buffer));
        if (!buffer)
                return -ENOMEM;
        r = device_new(cuda->device, bytes, &buffer->at);
        if (r) {
                free(buffer);
                return cuda_made(cuda, r);
        }
        buffer->count = count;
        buffer->bytes = bytes;
        buffer->next = cuda->buffers;
        cuda->buffers = buffer;
        r = cuda_clear(cuda, buffer->at, bytes);
        if (r) {
                cuda_floats_free(k, (float *)buffer->at);
                return cuda_made(cuda, r);
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
        assert(!"a buffer of ours");
        return nullptr;
}

/* Until the stream has come this far; with the lock. */
static int stand_by(struct cuda *cuda, stream stream)
{
        int r = device_mark(cuda->device, stream, cuda->staged);

        return r ? r : device_wait(cuda->device, cuda->staged);
}

int cuda_clear(struct cuda *cuda, void *to, size_t bytes)
{
        int r;

        pthread_mutex_lock(&cuda->staging_lock);
        r = device_clear(cuda->device, STREAM_LOADS, to, bytes);
        if (!r)
                r = stand_by(cuda, STREAM_LOADS);
        pthread_mutex_unlock(&cuda->staging_lock);
        return r;
}

int cuda_send(struct cuda *cuda, stream stream, void *to, const void *from, size_t bytes)
{
        int r = 0;

        pthread_mutex_lock(&cuda->staging_lock);
        for (size_t done = 0; done < bytes && !r; done += STAGING_BYTES) {
                size_t part = bytes - done < STAGING_BYTES ? bytes - done : STAGING_BYTES;

                memcpy(cuda->staging, (const uint8_t *)from + done, part);
                r = device_upload(cuda->device, stream, (uint8_t *)to + done, cuda->staging, part);
                if (!r)
                        r = stand_by(cuda, stream);
        }
        cuda_outcome(cuda, r);
        pthread_mutex_unlock(&cuda->staging_lock);
        return r;
}

/* After what operators were called before; into the middle of a buffer, too, that has floats then. */
void cuda_put(struct kernels *k, float *to, const float *host, size_t count)
{
        struct cuda *cuda = cuda_of(k);

        cuda_buffer(cuda, to)->content = CONTENT_FLOATS;
        cuda_send(cuda, STREAM_STEPS, to, host, count * sizeof(*to));
}

static int fetch(struct cuda *cuda, void *host, const void *from, size_t bytes)
{
        int r = 0;

        pthread_mutex_lock(&cuda->staging_lock);
        for (size_t done = 0; done < bytes && !r; done += STAGING_BYTES) {
                size_t part = bytes - done < STAGING_BYTES ? bytes - done : STAGING_BYTES;

                r = device_download(cuda->device, STREAM_STEPS, cuda->staging,
                                    (const uint8_t *)from + done, part);
                if (!r)
                        r = stand_by(cuda, STREAM_STEPS);
                if (!r)
                        memcpy((uint8_t *)host + done, cuda->staging, part);
        }
        cuda_outcome(cuda, r);
        pthread_mutex_unlock(&cuda->staging_lock);
        return r;
}

/* For tests and for who looks on: a row at a time. */
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
