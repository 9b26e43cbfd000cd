/*
 * The backend that runs on a GPU, from inside.
 *
 *      cuda.cc         opening it, and its table
 *      floats.cc       buffers of activations, and vectors
 *      mats.cc         weights, as operators want them to lie
 *      needs.cc        how much of the GPU's memory a model will take, before it does
 *      steps.cc        a step's way to the device, and its tokens' way back
 *      layers.cc       each operator of the table, from the kernels of this directory
 *      recordings.cc   those of a step, recorded once for each bucket
 *
 * A float buffer holds what its last operator left there: floats, or for the next operator's sake
 * halves or bfloats, in rows that are padded.  Only get() and the operators that read it
 * need to know, and find it noted.
 *
 * What kernels compute with: bfloats where weights are multiplied, halves in attention, floats
 * for all sums and for the residual.
 */
#ifndef KERNELS_CUDA_CUDA_H
#define KERNELS_CUDA_CUDA_H

#include <pthread.h>

#include "kernels/cuda/attend-prompt.h"
#include "kernels/cuda/attend.h"
#include "kernels/cuda/begin.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/staging.h"
#include "kernels/cuda/step.h"
#include "kernels/cuda/wide.h"
#include "kernels/kernels.h"
#include "kernels/steps.h"

#define BUCKET_MIN    8u                 /* rows that launches are made for, at least */
#define BUCKET_HALVES 64u                /* from here on there are also those halfway to the next */
#define LEVELS        24u                /* buckets: none, 8, 16, ... */
#define WIDE_BYTES    ((size_t)64 << 20) /* scratch of each kind for products of many rows */

/* For what is put and got: as many pieces as threads may pack weights at the same time; a piece has room for
 * a row of a million bfloats, and is large enough for a bus. */
#define STAGING_PIECES 8u
#define STAGING_BYTES  ((size_t)2 << 20)

enum content { CONTENT_FLOATS, CONTENT_HALVES, CONTENT_BFLOATS };

struct buffer {
        void *at;
        size_t count, bytes; /* floats that were asked for; with all padding */
        enum content content;
        uint32_t columns, width; /* of a row, and with its padding; unless floats */
        buffer *next;
};

/* Rows of one format, that are multiplied in one go. */
struct mat_run {
        linear_matrix w;
        uint32_t first, n;             /* of all the matrix's rows, without padding */
        size_t row_bytes, scale_bytes; /* of a row's weights, of its scales */
};

struct mat {
        mat_shape shape;
        mat_run runs[MAT_PARTS_MAX];
        uint32_t run_count;
        uint32_t run_of[MAT_PARTS_MAX]; /* where a part is */
        bool paired;                    /* of two parts, that alternate: gate and up */
};

struct kv {
        kv_shape shape;
        size_t page_bytes, tile_bytes;
        uint8_t *pages;
};

/* What goes to the device when a step begins, in one piece: pinned here, the same there. */
struct letter {
        step_counts counts;
        uint32_t page_count;
        /* sent_row rows[rows_max]; seen_run runs[rows_max]; uint32_t want[wants_max];
           pick picks[wants_max]; step_page pages[letter_pages_max] */
};

struct letter_offsets {
        size_t rows, runs, want, picks, pages, end;
};

struct reply { /* of a step, pinned */
        moment *done;
        uint32_t *tokens;  /* (wants_max) */
        logprob *logprobs; /* (wants_max, PICK_LOGPROBS_MAX) */
};

/* What attention needs once a step, for each shape of it: layers may differ in their windows. */
#define PLANS_MAX 8u
struct plan {
        attend_room room;
        attend_prompt_room prompts; /* rows_min 0: there is none, all runs are room's */
        bool made;                  /* for the step that runs */
};

struct cuda {
        kernels table; /* first: a struct kernels of ours is a struct cuda */
        kernels_conf conf;
        struct device *device;
        struct steps steps; /* but for tokens */
        int lost; /* once something failed in a step, or weights did not arrive: the error ... */
        char how[512];                   /* ... and in a sentence */
        char about[1024], missing[1024]; /* the table's */
        pthread_mutex_t lost_lock;

        /* steps.cc */
        letter_offsets offsets;
        uint32_t letter_pages_max;
        uint8_t *letters[STEPS_KEPT], *sent; /* pinned; on the device */
        moment *read[STEPS_KEPT];            /* the letter has been */
        reply replies[STEPS_KEPT];
        uint32_t *tables; /* (slots_max, pages_max) */
        step_counts *counts;
        seen_row *rows;
        uint32_t *kept;                        /* (STEPS_KEPT, wants_max): tokens picked */
        step_view view;                        /* of the step that runs */
        uint32_t wants_bucket;                 /* 0: no row is wanted */
        recording *recordings[LEVELS][LEVELS]; /* [level of rows][of wants], once rehearsed */

        /* layers.cc */
        uint16_t *narrow; /* rows that are multiplied */
        size_t narrow_room;
        float *stacked; /* q, k and v of rows */
        size_t stacked_room;
        float *sums; /* linear.h's */
        size_t sums_room;
        unsigned *arrived; /* likewise */
        size_t arrived_room;
        blas *library; /* for many rows; NULL: there is none, or rows are to have bits of their own */
        wide_scratch wide;
        size_t wide_weights_room, wide_sums_room;
        uint32_t *tokens;  /* (wants_max) of this step */
        logprob *logprobs; /* (wants_max, PICK_LOGPROBS_MAX) */
        plan plans[PLANS_MAX];
        uint32_t plan_count;
        float *parts; /* attend.h's */
        size_t parts_room;
        unsigned *merged; /* likewise: its `arrived` */
        size_t merged_room;

        /* floats.cc, mats.cc */
        struct staging *staging;
        buffer *buffers;
};

static inline struct cuda *cuda_of(struct kernels *k)
{
        return (struct cuda *)k;
}

static inline size_t larger(size_t a, size_t b)
{
        return a > b ? a : b;
}

/* So many numbers as whole vectors of a product. */
static inline uint32_t padded(uint32_t columns)
{
        return (columns + 63) / 64 * 64;
}

/*
 * cuda.cc: a step that failed halfway is no step, and there is no way back to the one before; so
 * what failed is the end, and the first time is told.  By any thread.
 */
int cuda_outcome(struct cuda *cuda, int r);
/* The same for objects, which may want for memory and be asked for again. */
int cuda_made(struct cuda *cuda, int r);
/* Scratch that can hold at least so much; what was in it is lost. */
int cuda_grow(struct cuda *cuda, void **memory, size_t *have, size_t want, size_t bytes);

/* floats.cc */
int cuda_floats_new(struct kernels *k, size_t count, float **ret_floats);
void cuda_floats_free(struct kernels *k, float *floats);
int cuda_put(struct kernels *k, float *to, const float *host, size_t count);
void cuda_get(struct kernels *k, float *host, const float *from, size_t count);
/* The one that it points into. */
buffer *cuda_buffer(struct cuda *cuda, const float *floats);
/* That many floats take, with all padding; false: more than can be counted. */
bool cuda_floats_bytes(const struct cuda *cuda, size_t count, size_t *ret_bytes);
/* Zeros, now. */
int cuda_clear(struct cuda *cuda, void *to, size_t bytes);

/* mats.cc */
int cuda_mat_new(struct kernels *k, const mat_shape *shape, mat **ret_mat);
void cuda_mat_free(struct kernels *k, mat *mat);
int cuda_weights_put(struct kernels *k, mat *mat, uint32_t part, uint32_t row, uint32_t rows,
                     const void *file_rows);
/* Bytes of a matrix, and of what operators make of its rows. */
struct mat_room {
        size_t weights, scales;                /* its own */
        size_t narrow, stacked, sums, arrived; /* scratch, for all ... */
        size_t wide_weights, wide_sums;        /* ... and for products of many rows */
};
int cuda_mat_room(const struct cuda *cuda, const mat_shape *shape, mat_room *ret_room);

/* needs.cc */
int cuda_memory(struct kernels *k, const kernels_needs *needs, kernels_memory *ret_memory);

/* steps.cc */
int cuda_steps_init(struct cuda *cuda);
void cuda_steps_deinit(struct cuda *cuda);
int cuda_step_begin(struct kernels *k, kv *kv, const step *step);
int cuda_step_end(struct kernels *k);
int cuda_collect(struct kernels *k, uint64_t number, uint32_t *ret_tokens);
void cuda_logprobs(struct kernels *k, uint64_t number, uint32_t want, logprob *ret_logprobs);

/* layers.cc */
int cuda_layers_init(struct cuda *cuda);
void cuda_layers_deinit(struct cuda *cuda);
int cuda_embed(struct kernels *k, const mat *table, float scale, float *x);
int cuda_qkv(struct kernels *k, const qkv *op, float *q, const float *x);
int cuda_attend(struct kernels *k, const struct attend *op, float *out, const float *q);
/* What attention of that shape takes, as attend_room_of() says. */
int cuda_attend_room(const struct cuda *cuda, const struct attend *op, attend_room *ret_room,
                     attend_bytes *ret_bytes);
/* Of long runs, if those have a kernel of their own; else no bytes, and rows_min is 0. */
int cuda_prompt_room(const struct cuda *cuda, const attend_room *of, attend_prompt_room *ret_room,
                     size_t *ret_bytes);
int cuda_project(struct kernels *k, const struct linear *op, float *x, const float *y);
int cuda_gate(struct kernels *k, const gate *op, float *out, const float *x);
int cuda_head(struct kernels *k, const head *op, float *logits, const float *x);
int cuda_pick(struct kernels *k, const float *logits, uint32_t vocab);
/* Another step, or another recording: attention lists its work anew. */
void cuda_plans_forget(struct cuda *cuda);

/* recordings.cc: the bucket that so many rows are in. */
uint32_t cuda_bucket(uint32_t count, uint32_t most);
/* That of the buckets of this step, or NULL. */
recording *cuda_recording(const struct cuda *cuda);
int cuda_rehearse(struct kernels *k, int (*operators)(void *arg), void *arg);
void cuda_recordings_deinit(struct cuda *cuda);

#endif
