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
#ifndef DAEMON_FILES_READING_H
#define DAEMON_FILES_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/traits.h"

#define LAYERS_MAX    1024u
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

#define KEY_MAX 160u

struct reading;

/*
 * A kind of description.  The key being read is rd->key.  whole(), real() and flag() return false
 * if the value has another type.
 */
struct reading_kind {
        const char *whose;                /* prefix of a key in an error sentence: "metadata" */
        bool (*find)(struct reading *rd); /* false: the key is absent, or its value is null */
        bool (*whole)(const struct reading *rd, uint32_t *ret_value);
        bool (*real)(const struct reading *rd, double *ret_value);
        bool (*flag)(const struct reading *rd, bool *ret_value);
        const char *(*text)(const struct reading *rd); /* or NULL */
};

struct reading {
        const struct reading_kind *kind;
        const void *from;
        const char *prefix; /* put in front of a key that is given as ".key" */
        char key[KEY_MAX];  /* the key being read, in full */
        uint32_t node;      /* where find() found it, if this kind uses nodes */
        int r;              /* result of the first fault: 0 or -EINVAL */
        char *why;
        size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) void reading_fault(struct reading *rd, const char *format,
                                                         ...);

bool reading_has(struct reading *rd, const char *key);
/* The value must be between low and high.  *absent is used if the key is absent; NULL: required. */
uint32_t reading_whole(struct reading *rd, const char *key, uint32_t low, uint32_t high,
                       const uint32_t *absent);
double reading_real(struct reading *rd, const char *key, double low, double high,
                    const double *absent);
bool reading_flag(struct reading *rd, const char *key, bool absent);
/* NULL: the key is absent; or, a fault, its value is not a string. */
const char *reading_text(struct reading *rd, const char *key);

/*
 * Keys that must be absent, or have a value without effect: false, 0 (which some programs write as
 * a default) or `harmless`.
 */
struct refusal {
        const char *key;
        double harmless;
};
void reading_refuse(struct reading *rd, const struct refusal *refusals, size_t count);

/* The head's size from this key; if absent, width / heads.  Heads and width must be read before. */
uint32_t reading_head_dim(struct reading *rd, const char *key, const struct traits *traits);

/* Adds a token that ends a stream; a duplicate is ignored. */
void traits_add_eos(struct reading *rd, struct traits *traits, uint32_t id);

/*
 * Call it last: checks values against each other, and sets what follows from them (the attention
 * scale, a stretched context).
 */
void traits_check(struct reading *rd, struct traits *traits);

#endif
