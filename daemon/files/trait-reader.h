/*
 * Reads traits from a model's description, one key at a time.
 *
 * GGUF metadata and a Hugging Face config.json use different names, but the limits of a model are
 * the same.  So the bounds are defined here, once.  traits_check() checks rules between several
 * values.  Every value has bounds, so that later products of these numbers cannot overflow.
 *
 * A fault does not stop the reading.  The first fault is kept, the value becomes its lower bound,
 * and rd.r has the result at the end.
 */
#ifndef DAEMON_FILES_TRAIT_READER_H
#define DAEMON_FILES_TRAIT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/model/traits.h"

#define LAYERS_MAX    TRAITS_LAYERS_MAX
#define WIDTH_MAX     (1u << 20)
#define HEADS_MAX     1024u
#define HEAD_DIM_MAX  512u
#define VOCAB_MAX     (1u << 22)
#define CONTEXT_MAX   (1u << 24)
#define EPS_MIN       1e-13
#define ROPE_BASE_MAX 1e12
#define STRETCH_MAX   65536.0
#define TURNS_MIN     1e-3
#define TURNS_MAX     1e6
#define ATTENTION_MIN 1e-3
#define ATTENTION_MAX 1e3

#define SCALE_MIN 1e-9
#define SCALE_MAX 1e9

#define KEY_MAX   160u
#define READS_MAX 160u

struct trait_reader;

/*
 * A kind of description.  The key being read is rd->key.  whole(), real() and flag() return false
 * if the value has another type.
 */
struct trait_source {
        const char *whose; /* prefix of a key in an error sentence: "metadata" */
        bool (*find)(struct trait_reader *rd); /* false: the key is absent, or its value is null */
        bool (*whole)(const struct trait_reader *rd, uint32_t *ret_value);
        bool (*real)(const struct trait_reader *rd, double *ret_value);
        bool (*flag)(const struct trait_reader *rd, bool *ret_value);
        const char *(*text)(const struct trait_reader *rd); /* or NULL */
};

struct trait_reader {
        const struct trait_source *kind;
        const void *from;
        const char *prefix; /* put in front of a key that is given as ".key" */
        char key[KEY_MAX];  /* the key being read, in full */
        uint32_t root;      /* the object that has the keys, if this kind uses nodes */
        uint32_t node;      /* where find() found the key there */
        /* keys whose values were read, and so need no refusal */
        const char *reads[READS_MAX];
        uint32_t read_count;
        int r; /* result of the first fault: 0 or -EINVAL */
        char *why;
        size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) void trait_reader_fault(struct trait_reader *rd,
                                                              const char *format, ...);

/* The key must stay valid, here and below. */
bool trait_reader_has(struct trait_reader *rd, const char *key);
/* The value must be between low and high.  *absent is used if the key is absent; NULL: required. */
uint32_t trait_reader_whole(struct trait_reader *rd, const char *key, uint32_t low, uint32_t high,
                            const uint32_t *absent);
double trait_reader_real(struct trait_reader *rd, const char *key, double low, double high,
                         const double *absent);
bool trait_reader_flag(struct trait_reader *rd, const char *key, bool absent);
/* NULL: the key is absent; or, a fault, its value is not a string. */
const char *trait_reader_text(struct trait_reader *rd, const char *key);

/* The same, and the caller reads the value, so that it needs no refusal. */
bool trait_reader_take(struct trait_reader *rd, const char *key);
/* The first of these keys that is there, or the first one; the list ends with NULL. */
const char *trait_reader_first(struct trait_reader *rd, const char *const *keys);

/*
 * Keys that must be absent or already read, or have a value without effect: false, 0 (which some
 * programs write as a default) or `harmless`.
 */
struct refusal {
        const char *key;
        double harmless;
};
void trait_reader_refuse(struct trait_reader *rd, const struct refusal *refusals, size_t count);

/* The head's size from this key; if absent, width / heads.  Heads and width must be read before. */
uint32_t trait_reader_head_dim(struct trait_reader *rd, const char *key,
                               const struct traits *traits);

/* Adds a token that ends a stream; a duplicate is ignored. */
void traits_add_eos(struct trait_reader *rd, struct traits *traits, uint32_t id);

/*
 * The last `count` layers have no keys and values: each attends to those of the last earlier layer
 * of its kind, with a window or without, that has them.
 */
void traits_share_kv(struct trait_reader *rd, struct traits *traits, uint32_t count);

/*
 * Call it last: checks values against each other, and sets what follows from them (the attention
 * scale, a stretched context).
 */
void traits_check(struct trait_reader *rd, struct traits *traits);

#endif
