#include "kernels/cuda/staging.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define PIECE_ALIGN 16u

struct staging {
        struct device *device;
        size_t bytes;
        uint32_t count;
        uint8_t *memory;
        pthread_mutex_t lock;
        pthread_cond_t given;
        piece *first, *last; /* pieces that were given back, in that order */
        piece pieces[];
};

static int make_pieces(staging *staging, uint32_t pieces)
{
        int r = device_pinned_new(staging->device, pieces * staging->bytes,
                                  (void **)&staging->memory);

        for (uint32_t i = 0; i < pieces && !r; i++) {
                piece *piece = &staging->pieces[i];

                piece->at = staging->memory + i * staging->bytes;
                r = device_event_new(staging->device, &piece->last);
                staging->count += !r;
                if (!r)
                        staging_give(staging, piece);
        }
        return r;
}

int staging_new(device *device, uint32_t pieces, size_t bytes, staging **ret_staging)
{
        staging *staging;
        int r;

        assert(pieces && bytes && bytes % PIECE_ALIGN == 0);
        staging = (struct staging *)calloc(1, sizeof(*staging) + pieces * sizeof(piece));
        if (!staging)
                return -ENOMEM;
        staging->device = device;
        staging->bytes = bytes;
        pthread_mutex_init(&staging->lock, nullptr);
        pthread_cond_init(&staging->given, nullptr);
        r = make_pieces(staging, pieces);
        if (r) {
                staging_free(staging);
                return r;
        }
        *ret_staging = staging;
        return 0;
}

void staging_free(staging *staging)
{
        if (!staging)
                return;
        device_pinned_delete(staging->device, staging->memory);
        for (uint32_t i = 0; i < staging->count; i++)
                device_event_delete(staging->device, staging->pieces[i].last);
        pthread_cond_destroy(&staging->given);
        pthread_mutex_destroy(&staging->lock);
        free(staging);
}

size_t staging_bytes(const staging *staging)
{
        return staging->bytes;
}

int staging_take(staging *staging, piece **ret_piece)
{
        piece *piece;
        int r;

        pthread_mutex_lock(&staging->lock);
        while (!staging->first)
                pthread_cond_wait(&staging->given, &staging->lock);
        piece = staging->first;
        staging->first = piece->next;
        pthread_mutex_unlock(&staging->lock);
        r = device_event_wait(staging->device, piece->last);
        if (r) {
                staging_give(staging, piece);
                return r;
        }
        *ret_piece = piece;
        return 0;
}

void staging_give(staging *staging, piece *piece)
{
        piece->next = nullptr;
        pthread_mutex_lock(&staging->lock);
        if (staging->first)
                staging->last->next = piece;
        else
                staging->first = piece;
        staging->last = piece;
        pthread_cond_signal(&staging->given);
        pthread_mutex_unlock(&staging->lock);
}

int staging_upload(staging *staging, stream stream, piece *piece, void *to, size_t stride,
                   size_t from, size_t bytes, uint32_t count)
{
        int r;

        assert(from <= staging->bytes && bytes * count <= staging->bytes - from);
        pthread_mutex_lock(&staging->lock);
        r = device_upload_apart(staging->device, stream, to, stride, piece->at + from, bytes,
                                count);
        if (!r)
                r = device_event_record(staging->device, stream, piece->last);
        pthread_mutex_unlock(&staging->lock);
        return r;
}

int staging_download(staging *staging, stream stream, piece *piece, const void *from, size_t bytes)
{
        int r;

        assert(bytes <= staging->bytes);
        pthread_mutex_lock(&staging->lock);
        r = device_download(staging->device, stream, piece->at, from, bytes);
        if (!r)
                r = device_event_record(staging->device, stream, piece->last);
        pthread_mutex_unlock(&staging->lock);
        return r;
}

int staging_clear(staging *staging, stream stream, piece *piece, void *to, size_t bytes)
{
        int r;

        pthread_mutex_lock(&staging->lock);
        r = device_clear(staging->device, stream, to, bytes);
        if (!r)
                r = device_event_record(staging->device, stream, piece->last);
        pthread_mutex_unlock(&staging->lock);
        return r;
}

int staging_wait(staging *staging, piece *piece)
{
        return device_event_wait(staging->device, piece->last);
}
