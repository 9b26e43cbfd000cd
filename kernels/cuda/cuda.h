/*
 * The internals of the backend that runs on a GPU:
 *
 *      cuda.cc             opens the backend, and has its table
 *      kv-pool.cc          the pool of pages, and the swap pages
 *      floats.cc           buffers of activations, and vectors
 *      matrix.cc           weights, in the layout that the operators need
 *      memory-estimate.cc  estimates how much of the GPU's memory a model will need
 *      steps.cc            sends a step to the device, and brings its tokens back
 *      operators.cc        each operator of the table, made from the kernels of this directory
 *      operator-attend.cc  the operator attend, and its plans
 *      graphs.cc           the operators of a step, captured once for each bucket
 *
 * A float buffer holds the output of its last operator: floats; or halves or bfloats in padded
 * rows, if the next operator wants those.  Only get() and the operators that read the buffer need
 * to know which, and the buffer says which.
 *
 * Number types in kernels: bfloats where weights are multiplied, halves in attention, floats for
 * all sums and for the residual.
 */
#ifndef KERNELS_CUDA_CUDA_H
#define KERNELS_CUDA_CUDA_H

#include <pthread.h>

#include "kernels/cuda/attend-prompt.h"
#include "kernels/cuda/attend.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/linear-blas.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/staging.h"
#include "kernels/cuda/step-view.h"
#include "kernels/cuda/upload-step.h"
#include "kernels/kernels.h"
#include "kernels/steps.h"

/* The smallest number of rows that launches are made for. */
#define BUCKET_MIN 8u
/* From here on there is also a bucket halfway between two powers of 2. */
#define BUCKET_HALVES 64u
#define LEVELS        24u /* buckets: 0, 8, 16, ... */
#define LINEAR_BLAS_SCRATCH_BYTES                                                                  \
        ((size_t)64 << 20) /* scratch of each kind for products of many rows */

/*
 * Pinned memory for put() and get(): one piece for each thread that may pack weights at the same
 * time.  A piece has room for a row of a million bfloats, and is large enough to use the bus
 * well.
 */
#define STAGING_PIECES 8u
#define STAGING_BYTES  ((size_t)2 << 20)

enum content { CONTENT_FLOATS, CONTENT_HALVES, CONTENT_BFLOATS };

struct buffer {
        void *at;
        /* `count`: floats that were asked for; `bytes`: size with all padding. */
        size_t count, bytes;
        enum content content;
        /* Of a row, and with its padding; not used for CONTENT_FLOATS. */
        uint32_t columns, width;
        buffer *next;
};

/* Rows of one format, which one product multiplies. */
struct matrix_run {
        linear_matrix w;
        /* Among all the matrix's rows, without padding. */
        uint32_t first, n;
        /* Bytes of a row's weights, and of its scales. */
        size_t row_bytes, scale_bytes;
};

struct matrix {
        matrix_shape shape;
        matrix_run runs[MATRIX_PARTS_MAX];
        uint32_t run_count;
        uint32_t run_of[MATRIX_PARTS_MAX]; /* the run that holds a part */
        bool paired; /* two parts of the same height, whose rows alternate: gate and up */
};

struct kv {
        kv_shape shape;
        size_t page_bytes, tile_bytes;
        uint8_t *pages;
        /* NULL if there are none. */
        uint8_t *swap_pages;
        event *copied; /* of cuda_kv_copy_ns() */
};

/*
 * The data that is sent to the device when a step begins, as one piece.  It is in pinned memory
 * on the host, and has the same layout on the device.
 */
struct step_upload {
        step_counts counts;
        uint32_t page_count;
        /*
         * Then follow:
         *         upload_row rows[rows_max]; view_run runs[rows_max]; uint32_t want[wants_max];
         *         pick picks[wants_max]; step_page pages[page_count];
         *         pick_edit edits[]; uint32_t masks[]
         * The last three have as many as the step needs. A pick has the addresses on the device.
         */
};

struct step_upload_offsets {
        size_t rows, runs, want, picks, pages, end; /* with as many pages and so on as possible */
};

struct step_download { /* of a step, in pinned memory */
        event *done;
        uint32_t *tokens; /* (wants_max) */
        logprob *entries; /* (wants_max * PICK_ENTRIES_MAX), packed */
        float *rows;      /* (row_copies_max, vocab_max): logits; NULL: no row can be copied */
};

/*
 * The plan of attention that is made once a step, for each shape of it: layers may differ in
 * their windows.
 */
#define PLANS_MAX 8u
struct plan {
        attend_scratch scratch;
        /* If rows_min is 0, there is no kernel for prompts, and `scratch` serves all runs. */
        attend_prompt_scratch prompts;
        bool made; /* for the current step */
};

struct cuda {
        /* First, because a `struct kernels` of this backend is cast to a `struct cuda`. */
        kernels table;
        kernels_conf conf;
        struct device *device;
        struct steps steps; /* except its tokens, which stay on the device */
        /*
         * Set once something failed in a step, or weights did not arrive: the error, and
         * `lost_errtext` says what failed.
         */
        int lost;
        char lost_errtext[512];
        char about[1024], missing[1024]; /* for the table */
        pthread_mutex_t lost_lock;

        /* steps.cc */
        step_upload_offsets offsets;
        uint32_t upload_pages_max;
        /* `uploads` are pinned, `sent` is on the device. */
        uint8_t *uploads[STEPS_RESULTS], *sent;
        /* Each marks that its upload has been read. */
        event *read[STEPS_RESULTS];
        step_download downloads[STEPS_RESULTS];
        uint32_t *tables; /* (groups, slots_max, pages_max) */
        step_counts *counts;
        view_row *rows;
        /* (STEPS_RESULTS, wants_max): tokens picked. */
        uint32_t *picked;
        /* Of the current step; with the page tables of group 0. */
        step_view view;
        /* 0: no row's logits are wanted. */
        uint32_t wants_bucket;
        /* [level of rows][level of wants]; filled once a graph was captured. */
        graph *graphs[LEVELS][LEVELS];

        /* operators.cc */
        uint16_t *bfloat_rows; /* rows of bfloats that are multiplied with weights */
        size_t bfloat_rows_size;
        float *stacked; /* q, k and v of rows before qkv_finish(), or what project() will add */
        size_t stacked_size;
        float *sums; /* scratch of linear() */
        size_t sums_size;
        unsigned *arrived; /* scratch of linear() */
        size_t arrived_size;
        /*
         * For products of many rows.  NULL if there is no library, or if a row's bits must not
         * depend on other rows.
         */
        blas *library;
        linear_blas_scratch linear_blas;
        size_t blas_weights_size, blas_sums_size;
        uint32_t *tokens;    /* (wants_max) of this step */
        logprob *entries;    /* (wants_max * PICK_ENTRIES_MAX), of this step, packed */
        float *edited;       /* scratch of picks: (wants_max, vocab_max) */
        const float *logits; /* that pick() was called with last */
        uint32_t vocab;
        plan plans[PLANS_MAX];
        uint32_t plan_count;
        float *parts; /* scratch of attend() */
        size_t parts_size;
        unsigned *attend_arrived; /* its `arrived` */
        size_t attend_arrived_size;

        /* floats.cc, matrix.cc */
        struct staging *staging;
        buffer *buffers;
};

/* The current step, with the page tables of this pool's group. */
static inline step_view cuda_view_of(const struct cuda *cuda, const kv *kv)
{
        step_view view = cuda->view;

        view.tables += steps_tables_of(&cuda->steps, kv->shape.group);
        return view;
}

static inline struct cuda *cuda_of(struct kernels *k)
{
        return (struct cuda *)k;
}

static inline size_t larger(size_t a, size_t b)
{
        return a > b ? a : b;
}

static inline size_t smaller(size_t a, size_t b)
{
        return a < b ? a : b;
}

/* Pads a number of columns to whole vectors of a product. */
static inline uint32_t padded(uint32_t columns)
{
        return (columns + 63) / 64 * 64;
}

/*
 * cuda.cc: passes on the result r of a part of a step.  A step that failed halfway cannot be
 * undone or repeated, so the first failure is permanent: it is recorded here.  Any thread may
 * call this.
 */
int cuda_check(struct cuda *cuda, int r);
/*
 * The same for the making of objects.  Only -EIO is permanent: a lack of memory is not, and the
 * caller may try again.
 */
int cuda_check_object(struct cuda *cuda, int r);
/* Grows scratch memory so that it holds at least `want`.  The previous contents are lost. */
int cuda_grow(struct cuda *cuda, void **memory, size_t *have, size_t want, size_t bytes);

/*
 * kv-pool.cc: the types that it serves.  KV_F32 is not one: tensor cores multiply 16-bit numbers,
 * so floats would need another attention kernel.
 */
#define KV_SERVED (1u << KV_F16 | 1u << KV_BF16 | 1u << KV_INT8 | 1u << KV_FP8)
int cuda_kv_new(struct kernels *k, const kv_shape *shape, kv **ret_kv);
void cuda_kv_free(struct kernels *k, kv *kv);
/* Puts a copy on the stream of the steps. */
int cuda_kv_copy(struct cuda *cuda, const kv *kv, const step_copy *copy);
uint64_t cuda_kv_copy_ns(struct kernels *k, kv *kv);

/* floats.cc */
int cuda_floats_new(struct kernels *k, size_t count, float **ret_floats);
void cuda_floats_free(struct kernels *k, float *floats);
int cuda_put(struct kernels *k, float *to, const float *host, size_t count);
void cuda_get(struct kernels *k, float *host, const float *from, size_t count);
/* The buffer that `floats` points into. */
buffer *cuda_buffer(struct cuda *cuda, const float *floats);
/*
 * Notes the content that an operator is going to write to a buffer.  Padding is not written, so
 * it is cleared if other rows may have left bits there that would be NaN in a product.
 */
int cuda_set_content(struct cuda *cuda, const float *floats, content content, uint32_t columns,
                     uint32_t width);
bool cuda_has_content(struct cuda *cuda, const float *floats, content content);
/* The bytes of `count` floats, with all padding.  Returns false if the size overflows. */
bool cuda_floats_bytes(const struct cuda *cuda, size_t count, size_t *ret_bytes);
/* Fills memory with zeros, and waits until that is done. */
int cuda_clear(struct cuda *cuda, void *to, size_t bytes);

/* matrix.cc */
int cuda_matrix_new(struct kernels *k, const matrix_shape *shape, matrix **ret_matrix);
void cuda_matrix_free(struct kernels *k, matrix *matrix);
int cuda_weights_put(struct kernels *k, matrix *matrix, uint32_t part, uint32_t row, uint32_t rows,
                     const void *file_rows);
/*
 * Bytes of a matrix, and of the scratch that operators need for its rows.  Two needs are told by a
 * neighbour in the layer, because the shape of a matrix of one part does not tell what it is for:
 * q, k and v read rows as wide as those that project() adds; and what a matrix of one part
 * multiplies may be the results of a gate of one part.
 */
struct matrix_memory {
        size_t weights, scales; /* the matrix itself */
        /* Scratch for all products. */
        size_t bfloat_rows, stacked, sums, arrived;
        /* Scratch for products of many rows. */
        size_t blas_weights, blas_sums;
};
int cuda_matrix_memory(const struct cuda *cuda, const matrix_shape *shape,
                       matrix_memory *ret_memory_needed);
/*
 * Grow scratch for qkv() and project() with results of `columns` numbers, and for gate().  A
 * model's matrices have usually made them grow already: matrix_memory says why.  Otherwise they
 * grow in the warm-up, or in the first step: for q and k of the same height, and for a project()
 * with more results than q, k and v have.
 */
int cuda_stacked_grow(struct cuda *cuda, uint32_t columns);
int cuda_gate_grow(struct cuda *cuda, const matrix *w);

/* memory-estimate.cc */
int cuda_memory(struct kernels *k, const kernels_objects *objects, kernels_memory *ret_memory);

/* steps.cc */
int cuda_steps_init(struct cuda *cuda);
void cuda_steps_deinit(struct cuda *cuda);
int cuda_step_begin(struct kernels *k, kv *const *pools, const step *step);
int cuda_step_end(struct kernels *k);
int cuda_collect(struct kernels *k, uint64_t number, uint32_t *ret_tokens);
void cuda_logprobs(struct kernels *k, uint64_t number, uint32_t want, logprob *ret_logprobs);
const float *cuda_row(struct kernels *k, uint64_t number, uint32_t want);

/* operators.cc */
int cuda_operators_init(struct cuda *cuda);
void cuda_operators_deinit(struct cuda *cuda);
int cuda_embed(struct kernels *k, const struct embed *op, float *x);
int cuda_qkv(struct kernels *k, const qkv *op, float *q, const float *x);
int cuda_project(struct kernels *k, const struct linear *op, float *x, const float *y);
int cuda_renorm(struct kernels *k, const struct renorm *op, float *x);
int cuda_gate(struct kernels *k, const gate *op, float *out, const float *x);
int cuda_head(struct kernels *k, const head *op, float *logits, const float *x);
int cuda_pick(struct kernels *k, const float *logits, uint32_t vocab);
/* For step_end(): picks for the rows that pick() leaves out, if there are any. */
int cuda_pick_more(struct cuda *cuda);

/* operator-attend.cc */
/* The type of queries that attention needs (attend.h). */
static inline content cuda_queries_of(const kv *kv)
{
        return kv->shape.type == KV_BF16 ? CONTENT_BFLOATS : CONTENT_HALVES;
}
int cuda_attend(struct kernels *k, const struct attend *op, float *out, const float *q);
/* The memory that attention of that shape needs, as attend_scratch_of() tells it. */
int cuda_attend_scratch(const struct cuda *cuda, const struct attend *op,
                        attend_scratch *ret_scratch, attend_scratch_bytes *ret_bytes);
/*
 * The same for long runs, if they have a kernel of their own.  Otherwise no bytes are needed, and
 * rows_min is 0.
 */
int cuda_prompt_scratch(const struct cuda *cuda, const attend_scratch *of,
                        attend_prompt_scratch *ret_scratch, size_t *ret_bytes);
/*
 * Forgets the plans: for another step or another graph, attention must list its work again.
 */
void cuda_plans_forget(struct cuda *cuda);
void cuda_plans_deinit(struct cuda *cuda);

/* graphs.cc: the bucket for `count` rows. */
uint32_t cuda_bucket(uint32_t count, uint32_t most);
/* The graph for the buckets of this step, or NULL. */
graph *cuda_graph(const struct cuda *cuda);
int cuda_warm_up(struct kernels *k, int (*operators)(void *arg), void *arg);
void cuda_graphs_deinit(struct cuda *cuda);

#endif
