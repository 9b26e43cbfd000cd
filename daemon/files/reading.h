/*
 * Reading traits out of a model's description, a key at a time.
 *
 * GGUF metadata and a Hugging Face config.json call things by other names, but
 * what a model may be is the same: bounds are here, once, and what no key shows
 * alone is judged by traits_check().  Everything has bounds, so that later
 * products of these numbers stay far from any overflow.
 *
 * A fault does not break off the reading: the first one is kept, the value takes
 * its lower bound, and the reader says rd.r at the end.
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

/* A kind of description.  The key being read is rd->key; whole, real ...: false, of another type. */
struct reading_kind {
        const char *whose;                /* before a key in a sentence: "metadata" */
        bool (*find)(struct reading *rd); /* false: it is not there; a null is not, either */
        bool (*whole)(const struct reading *rd, uint32_t *ret_value);
        bool (*real)(const struct reading *rd, double *ret_value);
        bool (*flag)(const struct reading *rd, bool *ret_value);
        const char *(*text)(const struct reading *rd); /* or NULL */
};

struct reading {
        const struct reading_kind *kind;
        const void *from;
        const char *prefix; /* stands before a key that is asked for as ".key" */
        char key[KEY_MAX];  /* the one being read, in full */
        uint32_t node;      /* where find() found it, if its kind needs that */
        int r;              /* of the first fault: 0 or -EINVAL */
        char *why;
        size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) void reading_fault(struct reading *rd, const char *format,
                                                         ...);

bool reading_has(struct reading *rd, const char *key);
/* Between low and high; *absent if the key is not there, NULL: it must be. */
uint32_t reading_whole(struct reading *rd, const char *key, uint32_t low, uint32_t high,
                       const uint32_t *absent);
double reading_real(struct reading *rd, const char *key, double low, double high,
                    const double *absent);
bool reading_flag(struct reading *rd, const char *key, bool absent);
/* NULL: it is not there, or, which is a fault, no text. */
const char *reading_text(struct reading *rd, const char *key);

/*
 * Keys that must not be there, unless they say nothing: false, 0 (which programs write that have
 * nothing to say) or this.
 */
struct refusal {
        const char *key;
        double harmless;
};
void reading_refuse(struct reading *rd, const struct refusal *refusals, size_t count);

/* The head's size from this key, or else the width's share; heads and width have been read. */
uint32_t reading_head_dim(struct reading *rd, const char *key, const struct traits *traits);

/* Another token that ends a stream; the same one twice is once. */
void traits_add_eos(struct reading *rd, struct traits *traits, uint32_t id);

/* Last: how the values go together, and what follows from them (the scale, a stretched context). */
void traits_check(struct reading *rd, struct traits *traits);

#endif
