/*
 * A backend: every operator of the forward pass, behind one table.
 *
 * kernels/ref says what each operator means, in plain C with double sums;
 * kernels/cpu is the one that serves.  Tests open two tables and hold them
 * against each other.  The operators are fused the way a good kernel is fused:
 * a layer is five of them (qkv, attend, project, gate, project).
 *
 * Bits.  A row's result depends on that row, its sequence's pages and the
 * weights alone: every sum has a fixed order, whoever else is in the step,
 * however the prompt was cut into steps, on however many threads.  On this rest
 * "batched == alone" and "chunked == whole", which tests check bit for bit.  "ref" and "cpu" are
 * always like that.  Where kernels_conf does not ask for it (`deterministic`), another backend may choose
 * kernels by the number of rows in the step.  A row's numbers are then as near as the weights and
 * rows that it multiplies are to bfloats, 2^-8 of each at most, but the bits may be others in another
 * company; the same step gives the same bits still.
 *
 * Steps.  A step is the set of rows run together.  step_begin() hands over
 * everything that varies from step to step, so that the operator calls
 * themselves are the same sequence of launches every time and a device can
 * replay them; page tables are kept by the backend and change by differences;
 * a row's token may be the pick of an earlier step that the host has not seen
 * (where that pick was not finite, token 0 stands in and nobody will look).
 * Between step_begin() and step_end() operators work on the rows of that step.
 *
 * Memory is the backend's: the pointers it hands out (float buffers, matrices,
 * page pools) are opaque to the host, which copies with put() and get().
 *
 * One thread calls (the engine's).  After the objects are made, nothing
 * allocates.  Functions return 0 or a negative errno; contract violations are
 * asserts.  Shapes are (rows, columns), row-major.
 *
 * A step that fails, or weights that do not arrive, are the end of a backend: it is
 * lost, all that may fail does from then on, and it can only be closed.  Objects that there was
 * no memory for are not.
 */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/page.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a row of weights is written in a model file: as numbers, or in blocks (kernels/blocks.h). */
enum row_type {
        ROW_F32,
        ROW_F16,
        ROW_BF16,
        ROW_Q4_0,
        ROW_Q8_0,
        ROW_Q4_K,
        ROW_Q5_K,
        ROW_Q6_K,
        ROW_Q4_1,
        ROW_Q5_0,
        ROW_Q5_1,
        ROW_Q2_K,
        ROW_Q3_K,
        ROW_IQ4_NL,
        ROW_MXFP4,
        ROW_F8_E4M3,
        ROW_TYPE_N,
};

/* Bytes of a file row of `columns` numbers; 0 if the type cannot have that many. */
size_t row_bytes(enum row_type type, uint32_t columns);
const char *row_type_name(enum row_type type);

/* As a setting has it: "f16". */
const char *kv_type_name(enum kv_type type);

/*
 * A weight matrix of one or more parts, stacked: {q, k, v}, {gate, up}.  Parts
 * may have different types.  How they lie in memory is the backend's business.
 */
#define MAT_PARTS_MAX 3
struct mat_shape {
        uint32_t columns;
        uint32_t parts;
        uint32_t rows[MAT_PARTS_MAX];
        enum row_type type[MAT_PARTS_MAX];
};
struct mat;
struct kv; /* a pool of pages */

/* One row of a step. */
struct step_row {
        uint32_t slot; /* whose page table */
        uint32_t position;
        uint32_t token;     /* when from_row is STEP_TOKEN, else: */
        uint32_t from_row;  /* the pick of that row (an index into rows, wanted there) ... */
        uint64_t from_step; /* ... of that step, at most STEPS_BACK ago */
        uint8_t write;      /* its K and V go into the page, or are there already */
};
#define STEP_TOKEN UINT32_MAX
#define STEPS_BACK 2u

#define STEP_REHEARSED 1 /* an outcome of step_begin() */

/* Consecutive rows of one slot at consecutive positions: attention's unit of work. */
struct step_run {
        uint32_t row, count;
};

struct step_page { /* entry `index` of the slot's table becomes `page` */
        uint32_t slot, index, page;
};

struct step_copy { /* whole pages, before anything else in the step */
        uint32_t from, to;
};

/* How one row's token is drawn (kernels/draw.h). */
struct pick {
        float temperature; /* 0: the largest logit, the lowest id among equals */
        float top_p, min_p;
        uint32_t top_k; /* 0: all */
        uint32_t choice;
        uint64_t seed;
        uint64_t position;
        uint32_t logprobs; /* to tell of: the picked token's, then the likeliest ones' */
};

/*
 * What a row's logits say of a token, before temperature and cuts: log(softmax(logits)), summed in
 * double.  Of equals the lower id is the likelier one.
 */
struct logprob {
        uint32_t token;
        float logprob;
};
#define PICK_LOGPROBS_MAX 33u /* ... and no more than 1 + vocab */

#define PICK_NOT_FINITE UINT32_MAX /* a logit was NaN or infinite, or all were -inf */

struct step {
        uint64_t number; /* grows by one */
        uint32_t row_count, run_count, page_count, copy_count, want_count;
        const struct step_row *rows;
        const struct step_run *runs; /* cover all rows, in order */
        const struct step_page *pages;
        const struct step_copy *copies;
        const uint32_t *want;     /* rows whose logits are wanted, ascending ... */
        const struct pick *picks; /* ... and how to pick from each */
};

enum rope_pairing {
        ROPE_ADJACENT = 0, /* (0,1) (2,3) ...: llama's own files */
        ROPE_HALVES = 1,   /* (0, n/2) (1, n/2+1) ...: Hugging Face files */
};

struct rope {
        uint32_t dims; /* numbers of a head that turn, even; 0: none */
        enum rope_pairing pairing;
        const float *frequency; /* dims/2 of them: angle = position * frequency, backend memory */
        float factor;           /* multiplies cos and sin; 1 unless scaled */
};

/*
 * q = rope(qnorm(Wq n + bq)), the same for k; v = Wv n + bv; n = x / rms(x) * norm.
 * k and v go into the pages of rows that write; q is (rows, heads * head_dim).
 */
struct qkv {
        const struct mat *w; /* parts q, k, v */
        const float *norm;   /* (columns); NULL: x as it is */
        float eps;
        const float *bias;            /* (heads + 2 kv_heads) * head_dim, or NULL */
        const float *q_norm, *k_norm; /* (head_dim) rmsnorm of each head, or NULL */
        struct rope rope;
        struct kv *kv;
        uint32_t layer, heads, kv_heads, head_dim;
};

/*
 * out = softmax(mask(cap(q k * scale))) v over the positions 0 .. own of the row's
 * slot; cap(s) = softcap * tanh(s / softcap).  A window w hides positions that
 * are w or more behind.  A sink is one more logit per head that takes part in
 * the softmax and has no value.  A slope adds slope * (position - own).
 */
struct attend {
        const struct kv *kv;
        uint32_t layer, heads, kv_heads, head_dim;
        float scale;
        float softcap;       /* 0: none */
        uint32_t window;     /* 0: none */
        const float *sinks;  /* (heads) or NULL */
        const float *slopes; /* (heads) or NULL */
};

enum activation { ACT_SILU = 0, ACT_GELU_TANH = 1 };

struct gate {                /* out = act(Wg n + bg) * (Wu n + bu), n as in qkv */
        const struct mat *w; /* parts gate, up */
        const float *norm;
        float eps;
        const float *bias; /* gate's, then up's, or NULL */
        enum activation act;
};

struct linear { /* x += W y + b */
        const struct mat *w;
        const float *bias; /* or NULL */
};

struct head { /* logits of the wanted rows */
        const struct mat *w;
        const float *norm;
        float eps;
        float softcap; /* 0: none */
};

struct kernels_conf {
        uint32_t threads; /* of the crew, the caller's included; 0: one for each core we may use */
        bool pin;         /* a thread for each core stays on it, with the caller of step_begin() */
        const char *isa;  /* "auto", or a lower one by force: "avx512bf16", "avx512", "avx2", "c" */
        uint32_t rows_max;   /* in a step */
        uint32_t slots_max;  /* page tables ... */
        uint32_t pages_max;  /* ... of so many entries */
        uint32_t vocab_max;  /* logits of a row */
        uint32_t wants_max;  /* wanted rows in a step */
        bool deterministic;  /* a row's bits are its own, whatever it costs: see Bits */
        const char *library; /* "cuda": the file that it is in ... */
        uint32_t device;     /* ... and the number of the GPU */
};

/* What a model is going to have made, for the plan of memory. */
struct kernels_needs {
        const struct mat_shape *mats;
        const size_t *floats;
        const struct attend *attends; /* one of each shape: heads, kv_heads, head_dim, window */
        uint32_t mat_count, floats_count, attend_count;
};

/* Bytes of a backend's own memory: how many are left, and how many those will take. */
struct kernels_memory {
        uint64_t left;
        uint64_t weights, floats;
        uint64_t scratch; /* what operators need besides, now or in their first step */
};

struct kernels {
        const char *name; /* "ref", "cpu/avx512" */
        enum kv_layout layout;
        uint32_t kv_types; /* that kv_new() knows: bit 1 << type; of others it is -ENOTSUP */

        void (*close)(struct kernels *k);

        /* zeroed, and there: no step waits for the system to make it.  columns * rows floats for
         * activations, or anything the model needs.  put() and get() come after what operators were
         * called before */
        int (*floats_new)(struct kernels *k, size_t count, float **ret_floats);
        void (*floats_free)(struct kernels *k, float *floats);
        int (*put)(struct kernels *k, float *to, const float *host, size_t count);
        void (*get)(struct kernels *k, float *host, const float *from, size_t count);

        int (*mat_new)(struct kernels *k, const struct mat_shape *shape, struct mat **ret_mat);
        void (*mat_free)(struct kernels *k, struct mat *mat);
        /* `rows` rows of a part, as they lie in the file, from `row` on; any thread, rows apart.  0: they
         * are in the matrix, or else it cannot be used. */
        int (*weights_put)(struct kernels *k, struct mat *mat, uint32_t part, uint32_t row,
                           uint32_t rows, const void *file_rows);

        /* there, like floats */
        int (*kv_new)(struct kernels *k, const struct kv_shape *shape, struct kv **ret_kv);
        void (*kv_free)(struct kernels *k, struct kv *kv);

        /*
         * copies what it needs of `step`; applies pages, then copies.  STEP_REHEARSED: the operators
         * follow by themselves, step_end() is next
         */
        int (*step_begin)(struct kernels *k, struct kv *kv, const struct step *step);

        /* x: (rows, columns) = the tokens' rows of `table`, times scale */
        int (*embed)(struct kernels *k, const struct mat *table, float scale, float *x);
        int (*qkv)(struct kernels *k, const struct qkv *op, float *q, const float *x);
        int (*attend)(struct kernels *k, const struct attend *op, float *out, const float *q);
        int (*project)(struct kernels *k, const struct linear *op, float *x, const float *y);
        int (*gate)(struct kernels *k, const struct gate *op, float *out, const float *x);
        /* logits: (want_count, vocab) */
        int (*head)(struct kernels *k, const struct head *op, float *logits, const float *x);
        int (*pick)(struct kernels *k, const float *logits, uint32_t vocab);

        /* after the last operator; the step runs on while the host goes on */
        int (*step_end)(struct kernels *k);
        /*
         * Between steps, once all weights are there, or NULL.  `operators` calls all of a step, the same
         * for every step to come; it is called often, for no rows, and what it launches is
         * kept.  Here is made what operators want for themselves, that no step allocates.
         */
        int (*rehearse)(struct kernels *k, int (*operators)(void *arg), void *arg);
        /* waits for step `number`; ret_tokens[want_count], PICK_NOT_FINITE among them.  Again, if one
         * likes, until STEPS_BACK more have begun */
        int (*collect)(struct kernels *k, uint64_t number, uint32_t *ret_tokens);
        /* ... then, until STEPS_BACK more have begun: as many as that row's pick asked for; only of a
         * row whose pick was finite */
        void (*logprobs)(struct kernels *k, uint64_t number, uint32_t want,
                         struct logprob *ret_logprobs);

        /* How it was lost, in a sentence that stays until it is closed; NULL: it is not.  While
         * nobody puts weights. */
        const char *(*lost)(const struct kernels *k);
        /* NULL: its memory is the host's.  Else, before anything was made; a pool of pages takes what
         * kv_page_bytes() says.  Fails as making it would. */
        int (*memory)(struct kernels *k, const struct kernels_needs *needs,
                      struct kernels_memory *ret_memory);

        /* What it found on this machine, for the log: "NVIDIA H200, cuBLASLt 13.1.0 (FILE)"; or NULL. */
        const char *about;
        /* What it did not find, what that costs and what to do, in a sentence; or NULL. */
        const char *missing;
};

/*
 * "ref", "cpu" or "cuda"; -ENOENT: no such backend, -ENOTSUP: not this way on this machine, -ENODEV: it
 * has no such device.
 */
int kernels_open(const char *name, const struct kernels_conf *conf, struct kernels **ret_kernels);
/* Why this thread's last call failed, in a sentence; "" where the error says all. */
const char *kernels_why(void);

#ifdef __cplusplus
}
#endif

#endif
