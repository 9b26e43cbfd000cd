/*
 * A backend: every operator of the forward pass, behind one table of functions.
 *
 * kernels/ref defines what each operator means, in plain C with double sums. kernels/cpu is the
 * CPU backend that serves. Tests open two backends and compare their results. The operators are
 * fused as a good kernel is fused: a layer is five operator calls (qkv, attend, project, gate,
 * project). A layer whose two branches read the same x calls gate before the first project.
 *
 * Bits. A row's result depends only on that row, the pages of its sequence and the weights. Every
 * sum has a fixed order. The order does not depend on the other rows of the step, on how the
 * prompt was cut into steps, or on the number of threads. Two guarantees rest on this, "batched
 * == alone" and "chunked == whole", and tests check them bit for bit. The backends "ref" and
 * "cpu" always behave like that. Another backend may choose kernels by the number of rows in the
 * step, unless kernels_conf asks otherwise (`deterministic`). Then the bits of a row may differ
 * with the other rows of its step. The row's numbers are still as accurate as bfloat16 versions
 * of the weights and rows that it multiplies: an error of at most 2^-8 of each. The same step
 * still gives the same bits.
 *
 * Steps. A step is the set of rows that run together. step_begin() passes everything that varies
 * from step to step. So the operator calls themselves are the same sequence of launches every
 * time, and a device can replay them. The backend keeps the page tables, and each step passes
 * only the changes. A row's token may be the pick of an earlier step that the host has not seen
 * yet. If that pick was not finite, the backend uses token 0 and the host ignores the row's
 * result. Between step_begin() and step_end(), operators work on the rows of that step.
 *
 * Memory belongs to the backend. The pointers that it returns (float buffers, matrices, page
 * pools) are opaque to the host. The host copies with put() and get().
 *
 * Only one thread calls (the engine's), except where a function says otherwise. After the objects
 * are made, nothing allocates. Functions return 0 or a negative errno; contract violations are
 * asserts. Shapes are (rows, columns), row-major.
 *
 * If a step fails, or if weights cannot be put, the backend is lost: every later call that can
 * fail does fail, and the backend can only be closed. A failure to make an object because there
 * is not enough memory does not lose the backend.
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

/* How a model file stores a row of weights: as plain numbers, or in blocks (kernels/blocks.h). */
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
        ROW_IQ4_XS,
        ROW_IQ3_XXS,
        ROW_IQ3_S,
        ROW_IQ2_XXS,
        ROW_IQ2_XS,
        ROW_IQ2_S,
        ROW_IQ1_S,
        ROW_IQ1_M,
        ROW_TQ1_0,
        ROW_TQ2_0,
        ROW_NVFP4,
        ROW_TYPE_N,
};

/* Bytes of a file row of `columns` numbers; 0 if the type cannot have that many. */
size_t row_bytes(enum row_type type, uint32_t columns);
/* Bytes of a row of panels, in the backend "cpu"; 0 as above. */
size_t row_kept_bytes(enum row_type type, uint32_t columns);
const char *row_type_name(enum row_type type);
/* Converts `columns` numbers of a file row, whole blocks of them; `row` need not be aligned. */
void row_to_floats(enum row_type type, const void *row, uint32_t columns, float *ret_floats);

/* The name as it is written in a setting: "f16". */
const char *kv_type_name(enum kv_type type);

/*
 * A weight matrix of one or more parts, stacked: {q, k, v}, {gate, up}. Parts may have different
 * types. The backend decides how they lie in memory.
 */
#define MATRIX_PARTS_MAX 3
struct matrix_shape {
        uint32_t columns;
        uint32_t parts;
        uint32_t rows[MATRIX_PARTS_MAX];
        enum row_type type[MATRIX_PARTS_MAX];
};
struct matrix;
struct kv; /* a pool of pages, for some layers of a group */

/* One row of a step. */
struct step_row {
        /* The slot whose page tables the row uses. */
        uint32_t slot;
        uint32_t position;
        /*
         * The row's token, if from_row is STEP_TOKEN. Otherwise the token is the pick of row
         * `from_row` (an index into `rows`, wanted in that step) of step `from_step`, at most
         * STEPS_BACK steps ago.
         */
        uint32_t token;
        uint32_t from_row;
        uint64_t from_step;
        /* True: the row's K and V are written into the page. False: they are already there. */
        uint8_t write;
};
#define STEP_TOKEN UINT32_MAX
#define STEPS_BACK 2u

#define STEP_REPLAYED 1 /* a return value of step_begin() */

/* Consecutive rows of one slot at consecutive positions: attention's unit of work. */
struct step_run {
        uint32_t row, count;
};

/*
 * Entry `index` of the slot's table for `group` becomes `page`. Entries of pages that lie wholly
 * behind the windows of all layers of a group are not read: they may name any page, or none.
 */
struct step_page {
        uint32_t slot, index, page, group;
};

/*
 * Whole pages of a group, copied one after the other before any operator of the step runs. One page
 * of the two at most is a swap page.
 */
struct step_copy {
        uint32_t from, to, group;
};

/* What becomes of a token's logit before anything else: rep(logit + bias) - after. */
struct pick_edit {
        uint32_t token;
        float bias;  /* finite */
        float theta; /* above 0; rep() divides a positive number by it, and multiplies others */
        float after; /* INFINITY bans the token */
};

enum pick_order {
        TEMPERATURE_FIRST = 0, /* before all cuts but n_sigma */
        TEMPERATURE_LAST = 1,  /* after them */
};

/* Backends have memory for a mask and this many edits of each wanted row: 64 KiB at most. */
#define PICK_EDITS_MAX 4096u

static inline size_t mask_words(uint32_t vocab)
{
        return ((size_t)vocab + 31) / 32;
}

/* How one row's token is drawn (kernels/draw.h). */
struct pick {
        float temperature; /* 0: the largest logit, the lowest id among equals */
        float top_p, min_p;
        uint32_t top_k; /* 0: all */
        uint32_t sample_index;
        uint64_t seed;
        uint64_t position;
        /*
         * How many logprobs to return: first the picked token's, then those of the most likely
         * tokens.
         */
        uint32_t logprobs;
        /*
         * 1 + the token that is picked whatever the logits are, if these are finite; its logprobs
         * have the bits that they would have if it were drawn. 0: the token is drawn.
         */
        uint32_t given;
        /*
         * 1 + the index of a copy of the row's logits, before edits, which row() returns. The index
         * is below kernels_conf.row_copies_max, and no other pick of the step has it. 0: no copy.
         */
        uint32_t row;

        /* More cuts, by kernels/cuts.h. */
        float n_sigma;                                 /* 0: off */
        float typical;                                 /* 0: off */
        float xtc_chance, xtc_least;                   /* chance 0: off */
        float temperature_range, temperature_exponent; /* range 0: off */
        enum pick_order order;
        /*
         * Mirostat, by kernels/cuts.h: the tokens with a surprise of at most mu bits. Behind the
         * logprobs is then one more entry: the picked token and its surprise, or 0 if the
         * temperature is 0. Not with a given token.
         */
        bool mirostat;
        float mu;
        /*
         * Behind the logprobs and the surprise is then one more entry: the picked token, and
         * log(sum(exp(logit))) of the row, before edits. For each token that is logit - logprob.
         */
        bool log_sum;
        /*
         * The tokens that are legal: bit token % 32 of word token / 32. NULL: all are. It has
         * mask_words(kernels_conf.vocab_max) words. A replayed step reads mask and edits in
         * step_begin(), others may read them until step_end().
         */
        const uint32_t *mask;
        const struct pick_edit *edits; /* in ascending order of tokens */
        uint32_t edit_count;           /* at most PICK_EDITS_MAX */
        /*
         * The backend sets it in its copy: where the pick_entries() of this row begin among those
         * of the step, which lie one behind the other.
         */
        uint32_t first_entry;
};

/*
 * The log probability of a token by a row's logits, before edits, temperature and cuts:
 * log(softmax(logits)), summed in double. Among equal logits, the lower id counts as the more
 * likely.
 */
struct logprob {
        uint32_t token;
        float logprob;
};
#define PICK_LOGPROBS_MAX 257u /* the picked token and 256 others; and at most 1 + vocab */
#define PICK_ENTRIES_MAX  (PICK_LOGPROBS_MAX + 2)

/* How many entries a pick writes that does not fail: logprobs, the surprise, the log-sum. */
static inline uint32_t pick_entries(const struct pick *pick)
{
        return pick->logprobs + (pick->mirostat ? 1 : 0) + (pick->log_sum ? 1 : 0);
}

#define PICK_NOT_FINITE UINT32_MAX       /* a logit was NaN or infinite, or all were -inf */
#define PICK_NONE_LEGAL (UINT32_MAX - 1) /* the mask and the edits leave no token */

static inline bool pick_failed(uint32_t token)
{
        return token >= PICK_NONE_LEGAL;
}

struct step {
        uint64_t number; /* each step's number is one more than the last */
        uint32_t row_count, run_count, page_count, copy_count, want_count;
        const struct step_row *rows;
        const struct step_run *runs; /* cover all rows, in order */
        const struct step_page *pages;
        const struct step_copy *copies;
        /* The rows whose logits are wanted, ascending, and how to pick a token from each. */
        const uint32_t *want;
        const struct pick *picks;
};

enum rope_pairing {
        ROPE_ADJACENT = 0, /* (0,1) (2,3) ...: llama's own files */
        ROPE_HALVES = 1,   /* (0, n/2) (1, n/2+1) ...: Hugging Face files */
};

struct rope {
        /* How many numbers of a head are rotated; even. 0: none. */
        uint32_t dims;
        enum rope_pairing pairing;
        /* dims/2 of them, in backend memory: angle = position * frequency. */
        const float *frequency;
        float factor; /* multiplies cos and sin; 1 unless scaled */
};

/*
 * n(x) of a row x: what a branch of a layer reads, or what it adds.
 *
 *      NORM_NONE    x
 *      NORM_RMS     x / sqrt(mean(x^2) + eps) * weight
 *      NORM_LAYER   (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * weight + bias
 */
enum norm_kind { NORM_NONE = 0, NORM_RMS = 1, NORM_LAYER = 2 };
struct row_norm {
        enum norm_kind kind;
        const float *weight; /* NULL: ones */
        const float *bias;   /* NORM_LAYER; NULL: zeros */
        float eps;
};

/* Over which numbers q or k are normed, and how many weights the norm has. */
enum head_norm_span {
        SPAN_HEAD = 0,  /* each head; (head_dim) weights for all heads */
        SPAN_HEADS = 1, /* each head; (heads, head_dim) weights, each head its own */
        SPAN_WHOLE = 2, /* all heads together, as one row; (heads * head_dim) weights */
};

/*
 * x = norm(t * scale + p): t is the row of `table` for the token, p the row of `positions` for the
 * position, counted from `first_position` on.
 */
struct embed {
        const struct matrix *table;
        float scale;
        const struct matrix *positions; /* NULL: none */
        uint32_t first_position;
        struct row_norm norm;
};

/*
 * q = scaled(rope(q_norm(clip(Wq n + bq)))), k = rope(k_norm(clip(Wk n + bk))),
 * v = v_norm(clip(Wv n + bv)); n = norm(x). For rows with `write` set, k and v go into the pages.
 * q is (rows, heads * head_dim).
 *
 * If w has no part v, then v = v_norm(clip(Wk n + bk)). If it has no part k either, there is q
 * alone, and nothing is written: attend() reads the pages of another layer.
 */
struct qkv {
        const struct matrix *w; /* parts q, k, v; or q, k; or q */
        struct row_norm norm;
        const float *bias;        /* one for each row of w, or NULL */
        float clip;               /* numbers below -clip or above clip become these; 0: none do;
                            * NaN stays NaN, here and in activations */
        enum head_norm_span span; /* of q_norm and k_norm */
        struct row_norm q_norm, k_norm;
        struct row_norm v_norm; /* of each head of v: SPAN_HEAD */
        struct rope rope;
        /*
         * q of a row at position p is multiplied by 1 + beta * log(1 + floor(p / length)); beta 0:
         * by nothing.
         */
        float query_beta;
        uint32_t query_length; /* at least 1 if query_beta is not 0 */
        struct kv *kv;         /* with q alone: the pool that attend() will read */
        /* `layer`: its number in the pool */
        uint32_t layer, heads, kv_heads, head_dim;
};

/*
 * out = softmax(mask(cap(q k * scale))) v over the positions 0 .. own of the row's slot, where
 * `own` is the row's position; cap(s) = softcap * tanh(s / softcap). A window w hides positions
 * that are w or more behind `own`. A sink is one more logit per head that takes part in the
 * softmax and has no value. A slope adds slope * (position - own) to the score.
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

enum activation {
        ACT_SILU = 0,        /* g / (1 + exp(-g)) */
        ACT_GELU_TANH = 1,   /* g / 2 * (1 + tanh(sqrt(2 / pi) * (g + 0.044715 g^3))) */
        ACT_GELU = 2,        /* g / 2 * (1 + erf(g / sqrt(2))) */
        ACT_RELU = 3,        /* max(g, 0) */
        ACT_RELU_SQUARE = 4, /* max(g, 0)^2 */
        ACT_N,
};

/*
 * out = act(Wg n + bg) * (Wu n + bu), n = norm(x). With one part: out = act(Wg n + bg), or
 * act(Wg n + bg) * f, where f are the numbers from `factor_first` on in the same row of `factor`.
 */
struct gate {
        const struct matrix *w; /* parts gate, up; or gate alone */
        struct row_norm norm;
        const float *bias; /* gate's, then up's, or NULL */
        enum activation act;
        const float *factor; /* (rows, factor_columns), or NULL */
        uint32_t factor_columns, factor_first;
};

struct linear { /* x = after * (x + scale * norm(W y + b)) */
        const struct matrix *w;
        const float *bias; /* or NULL */
        struct row_norm norm;
        /*
         * The norm is one of each `norm_columns` of a row, a divisor of its numbers; they have the
         * same weights. 0: of the whole row.
         */
        uint32_t norm_columns;
        float scale, after; /* 0: none, like 1 */
};

/* x = norm(x), of each row */
struct renorm {
        struct row_norm norm;
        uint32_t columns; /* of x; a matrix has as many */
};

/* logits of the wanted rows = cap(scale * (W n + b)), n = norm(x); cap as in attend */
struct head {
        const struct matrix *w;
        struct row_norm norm;
        const float *bias; /* or NULL */
        float scale;       /* 0: none, like 1 */
        float softcap;     /* 0: none */
};

#define KERNELS_AHEAD_NONE UINT32_MAX

struct kernels_conf {
        /*
         * Threads of the thread pool, including the caller; 0: one for each core that the process
         * may use.
         */
        uint32_t threads;
        /*
         * Pin threads to cores if there is one thread for each core; the caller of step_begin()
         * is one of them.
         */
        bool pin;
        /*
         * The instruction set: "auto", or a lower one by force: "amx", "avx512bf16", "avx512",
         * "avx2", "c". "amx-emulated" has the bits of "amx" on any machine, slowly.
         */
        const char *isa;
        /*
         * For "cpu", with one row of x or a few: the bytes ahead at which weights are prefetched.
         * 0: those that suit the processor; KERNELS_AHEAD_NONE: as on a processor that needs none.
         */
        uint32_t lone_ahead;
        uint32_t rows_max; /* most rows in a step */
        uint32_t groups;   /* page tables of each slot; 1 to KV_GROUPS_MAX, 0 counts as 1 */
        uint32_t slots_max;
        uint32_t pages_max; /* entries of each page table */
        uint32_t vocab_max; /* most logits of a row */
        uint32_t wants_max; /* most wanted rows in a step */
        /* Most copies of rows of logits in a step; 0: no memory is made for them. */
        uint32_t row_copies_max;
        /*
         * A row's bits do not depend on the other rows of its step, even if that is slower: see
         * Bits above.
         */
        bool deterministic;
        /*
         * Or NULL: another backend of the same kind, which the same thread calls, and which is
         * closed later. On the cpu both use its threads; `threads` and `pin` do not matter then.
         */
        struct kernels *beside;
        /* For "cuda": the file of the library, and the number of the GPU. */
        const char *library;
        uint32_t device;
};

/* The objects that a model is going to make, so that memory can be planned. */
struct kernels_objects {
        const struct matrix_shape *matrices;
        const size_t *floats;
        /* One of each shape: heads, kv_heads, head_dim, window. */
        const struct attend *attends;
        uint32_t matrix_count, floats_count, attend_count;
};

/*
 * Bytes of a backend's own memory: how many are free, and how many the planned objects will take.
 */
struct kernels_memory {
        uint64_t left;
        uint64_t weights, floats;
        /* What operators need in addition, now or in their first step. */
        uint64_t scratch;
};

struct kernels {
        const char *name; /* "ref", "cpu/avx512" */
        enum kv_layout layout;
        /*
         * The types that kv_new() supports: bit 1 << type. For other types kv_new() returns
         * -ENOTSUP.
         */
        uint32_t kv_types;

        void (*close)(struct kernels *k);

        /*
         * Makes `count` floats: activations, (rows, columns), or anything else that the model
         * needs. They are zeroed, and their memory is already backed, so that no step waits for
         * the system to provide it. put() and get() take effect after all operators that were
         * called before them.
         */
        int (*floats_new)(struct kernels *k, size_t count, float **ret_floats);
        void (*floats_free)(struct kernels *k, float *floats);
        int (*put)(struct kernels *k, float *to, const float *host, size_t count);
        void (*get)(struct kernels *k, float *host, const float *from, size_t count);

        int (*matrix_new)(struct kernels *k, const struct matrix_shape *shape,
                          struct matrix **ret_matrix);
        void (*matrix_free)(struct kernels *k, struct matrix *matrix);
        /*
         * Puts `rows` rows of a part, as they are in the file, starting at row `row`. Any thread
         * may call it, if the threads put different rows. On 0 the rows are in the matrix; on an
         * error the matrix cannot be used.
         */
        int (*weights_put)(struct kernels *k, struct matrix *matrix, uint32_t part, uint32_t row,
                           uint32_t rows, const void *file_rows);

        /* The pool is zeroed.  It is large, so its memory need not be backed yet: kv_back(). */
        int (*kv_new)(struct kernels *k, const struct kv_shape *shape, struct kv **ret_kv);
        void (*kv_free)(struct kernels *k, struct kv *kv);
        /*
         * Or NULL: kv_new() has done it. Backs the next part of the pool's memory, from *at on
         * (first 0), as the memory of floats is backed; what is in the pool stays. A part takes
         * some 20 ms. Returns whether there is more. Between steps; until then, steps that use
         * such memory wait for the system.
         */
        bool (*kv_back)(struct kernels *k, struct kv *kv, size_t *at);

        /*
         * The time of a copy between a page of the pool and a swap page, measured now, in ns; at
         * least 1. The shape has swap pages. No step may be running. The first page and the
         * first swap page lose their content.
         */
        uint64_t (*kv_copy_ns)(struct kernels *k, struct kv *kv);

        /*
         * Copies what it needs of `step`; applies the page table changes, then copies pages. If
         * it returns STEP_REPLAYED, the operators run by themselves (see warm_up()) and the
         * next call is step_end(). `pools` are KV_POOLS_MAX, each with the layers of one shape in
         * one group, or NULL. A copy in a group is made in each of its pools.
         */
        int (*step_begin)(struct kernels *k, struct kv *const *pools, const struct step *step);

        int (*embed)(struct kernels *k, const struct embed *op, float *x); /* x: (rows, columns) */
        int (*qkv)(struct kernels *k, const struct qkv *op, float *q, const float *x);
        int (*attend)(struct kernels *k, const struct attend *op, float *out, const float *q);
        int (*project)(struct kernels *k, const struct linear *op, float *x, const float *y);
        int (*gate)(struct kernels *k, const struct gate *op, float *out, const float *x);
        int (*renorm)(struct kernels *k, const struct renorm *op, float *x);
        /* logits: (want_count, vocab) */
        int (*head)(struct kernels *k, const struct head *op, float *logits, const float *x);
        int (*pick)(struct kernels *k, const float *logits, uint32_t vocab);

        /*
         * Called after the last operator. The step may continue to run while the host does other
         * work.
         */
        int (*step_end)(struct kernels *k);
        /*
         * May be NULL. Called between steps, after all weights are put. `operators` calls all
         * operators of a step, the same for every later step. warm_up() calls it several times,
         * with no rows, and captures what it launches. Here the operators also allocate what they
         * need, so that no step allocates.
         */
        int (*warm_up)(struct kernels *k, int (*operators)(void *arg), void *arg);
        /*
         * Waits for step `number` and writes ret_tokens[want_count], which may contain
         * PICK_NOT_FINITE. It may be called again for the same step until STEPS_BACK more steps
         * have begun.
         */
        int (*collect)(struct kernels *k, uint64_t number, uint32_t *ret_tokens);
        /*
         * After collect(), until STEPS_BACK more steps have begun: writes the pick_entries()
         * of that row. Only for a row whose pick was finite.
         */
        void (*logprobs)(struct kernels *k, uint64_t number, uint32_t want,
                         struct logprob *ret_logprobs);
        /*
         * The same for a row whose pick asked for a copy, `row`, and did not fail: returns all its
         * logits. They stay valid until STEPS_BACK more steps have begun.
         */
        const float *(*row)(struct kernels *k, uint64_t number, uint32_t want);

        /*
         * Why the backend was lost, in a sentence that stays valid until it is closed; NULL: it
         * is not lost. Must not be called while a thread is in weights_put().
         */
        const char *(*lost)(const struct kernels *k);
        /*
         * NULL if the backend's memory is the host's. Otherwise it is called before anything is
         * made, and estimates what the objects will take. A pool of pages takes what
         * kv_page_bytes() says. It fails as making the objects would fail.
         */
        int (*memory)(struct kernels *k, const struct kernels_objects *objects,
                      struct kernels_memory *ret_memory);

        /*
         * The device and the libraries that the backend uses, for the log: "NVIDIA H200,
         * cuBLASLt 13.1.0 (FILE)"; or NULL.
         */
        const char *about;
        /* A sentence about a missing library, its cost, and the remedy; or NULL. */
        const char *missing;
};

/* For step_begin(): the pool of a model that has only one. */
#define KV_ALONE(pool) ((struct kv *const[KV_POOLS_MAX]){ (pool) })

/*
 * `name` is "ref", "cpu" or "cuda". -ENOENT: no such backend; -ENOTSUP: not possible in this way
 * on this machine; -ENODEV: the machine has no such device.
 */
int kernels_open(const char *name, const struct kernels_conf *conf, struct kernels **ret_kernels);
/*
 * Why this thread's last kernels_open() failed, in a sentence; "" if the error code says
 * everything.
 */
const char *kernels_errtext(void);

#ifdef __cplusplus
}
#endif

#endif
