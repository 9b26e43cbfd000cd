/*
 * The requests of a run: made up, or from a file.
 *
 * Every request is made of the seed of its run and its number, so that two servers get requests of
 * the same lengths at the same times.  No two runs have the same prompts, unless they come from a
 * file of prompts: otherwise a server would find in its cache what an earlier run has left there.
 */
#ifndef CLI_BENCH_WORKLOAD_H
#define CLI_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samovar/client.h>

#include "cli/bench/draws.h"
#include "json/bytes.h"

enum workload_kind {
        WORKLOAD_SYNTHETIC, /* lengths are drawn, prompts are made up */
        WORKLOAD_PROMPTS,   /* prompts of a file */
        WORKLOAD_TRACE,     /* times and lengths of a file, prompts are made up */
};

/* One request of a file. */
struct work {
        double at;              /* TRACE: seconds after the first */
        uint32_t input, output; /* tokens; output 0: not said */
        uint32_t first_hash, hash_count;
        /* PROMPTS: offsets of NUL-ended texts; no messages: the text is the whole prompt. */
        size_t text;
        uint32_t first_message, message_count;
};

struct work_message { /* offsets of NUL-ended texts */
        size_t role, content;
};

struct workload {
        enum workload_kind kind;
        struct lengths input, output; /* `input` counts the tokens behind the prefix */
        bool ignore_eos;

        /* SYNTHETIC: this share of the requests begins with one of these prefixes. */
        double prefix_share;
        uint32_t prefix_tokens, prefix_count;

        /* Of a file. */
        struct work *works;
        uint32_t count, size;
        struct bytes texts;
        struct work_message *messages;
        uint32_t message_count, message_size;
        /* TRACE: blocks of equal hashes have equal tokens. */
        uint64_t *hashes;
        uint32_t hash_count, hash_size, block_tokens;

        /* The prompt that was made last. */
        uint32_t *symbols, symbol_count, symbol_size;
        struct bytes text;
        struct smv_message *chat;
        uint32_t chat_size;
};

/* How a server is given prompts that are made up. */
struct encoding {
        const uint32_t *ids; /* tokens that are text; NULL: as text */
        uint32_t id_count;
        double words_a_token, more_tokens; /* as text: words = (tokens - more_tokens) * ... */
        uint64_t salt;                     /* makes other prompts of the same lengths */
};

struct prompt {
        /* One of these; valid until the next prompt is made. */
        const uint32_t *ids;
        size_t id_count;
        const char *text;
        const struct smv_message *messages;
        size_t message_count;
        uint32_t input, output; /* tokens that are wanted; 0: not known, the server's default */
        bool ignore_eos;
};

/* Request `number` of the run with this seed.  0 or -ENOMEM. */
int workload_prompt(struct workload *workload, const struct encoding *encoding, uint64_t seed,
                    uint32_t number, struct prompt *ret_prompt);

/* The most tokens that prompt and answer of one of the first `count` requests have together. */
uint64_t workload_longest(const struct workload *workload, uint64_t seed, uint32_t count);

/* For readers of files: 0 or -ENOMEM. */
int workload_add(struct workload *workload, const struct work *work);
int workload_add_text(struct workload *workload, const char *text, size_t bytes, size_t *ret_at);
int workload_add_message(struct workload *workload, const struct work_message *message);
int workload_add_hash(struct workload *workload, uint64_t hash);

/* TRACE: divides all lengths, and those of blocks; rounds up. */
void workload_divide(struct workload *workload, double divisor);

void workload_deinit(struct workload *workload);

#endif
