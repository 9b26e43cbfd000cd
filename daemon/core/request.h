/*
 * A request: one generation, from its admission to its END, as core and engine know it.
 *
 * The loop thread creates it at admission, as part of a stream (edge/stream.h), and frees it after
 * it has retired.  Between, it belongs to the thread that received the last message that carries
 * it.  The sections below say which thread may touch which fields, and ARCHITECTURE.md's lifetime
 * table says when.
 *
 * The values that the client asked for do not change after admission.  The core knows a
 * request by this struct and nothing else: model, channel, guide and asking are opaque to it.
 */
#ifndef DAEMON_CORE_REQUEST_H
#define DAEMON_CORE_REQUEST_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include <samovar/error.h>
#include <samovar/protocol.h>

struct served;          /* daemon/model/served.h */
struct channel;         /* daemon/ipc/channel.h */
struct guide;           /* daemon/constraint/guide.h */
struct asking;          /* daemon/draw/asking.h */
struct rules;           /* daemon/draw/rules.h */
struct history;         /* daemon/draw/history.h */
struct reasoning_limit; /* daemon/draw/reasoning-limit.h */
struct prediction;      /* daemon/draft/prediction.h */
struct argument_types;  /* daemon/text/parts/argument-types.h */

enum request_state {
        REQUEST_WAITING,    /* in the queue, without slot and blocks */
        REQUEST_PREFILL,    /* has a slot; its prompt is being computed */
        REQUEST_DECODE,     /* has a slot; one row a step */
        REQUEST_PREEMPTING, /* preempted: waits again once none of its rows is in flight */
        REQUEST_ENDING,     /* its END is decided; rows in flight may still need its blocks */
        REQUEST_RETIRED,    /* the core no longer uses it */
        REQUEST_STATE_N,
};

#define REQUEST_GROUPS_MAX 16u

/* Scheduling class: orders the requests of one user, the first to be served first. */
enum request_priority {
        REQUEST_INTERACTIVE, /* a person waits for the answer */
        REQUEST_NORMAL,
        REQUEST_BACKGROUND, /* may be preempted for the other classes of its user */
        REQUEST_PRIORITY_N,
};

/* The reason why a request has no slot. */
enum request_wait {
        REQUEST_WAITS_FOR_NOTHING, /* it has a slot, or is over */
        REQUEST_WAITS_FOR_TURN,    /* others come before it, and wait themselves */
        REQUEST_WAITS_FOR_SLOT,
        REQUEST_WAITS_FOR_WINDOWS,  /* too few window pages that nobody was promised */
        REQUEST_WAITS_FOR_BLOCKS,   /* the pool has too few that nobody was promised */
        REQUEST_WAITS_FOR_FORECAST, /* the pool will have too few before it is over */
        REQUEST_WAITS_FOR_SHARE,    /* its user has its share, and others wait */
        REQUEST_WAITS_FOR_PREFIX,   /* its beginning is being computed for another request */
        REQUEST_WAITS_FOR_READER,   /* its client does not read */
        REQUEST_WAIT_N,
};

/*
 * The numbers that explain a wait.  Each belongs to one reason, and says nothing while the request
 * waits for another one.  Those of REQUEST_WAITS_FOR_SHARE come in pairs: what its user would have
 * with this request, and the most that it may have now.  One pair is 0: the other is exceeded.
 */
enum request_fact {
        /* BLOCKS: blocks that are still to be promised to it; WINDOWS: window pages */
        REQUEST_NEEDS,
        /* BLOCKS: those that are neither in use nor promised; WINDOWS: not promised */
        REQUEST_FREE,
        REQUEST_CACHED,   /* BLOCKS: of these, those with cached text; others are promised first */
        REQUEST_OWN,      /* BLOCKS: of the latter, those of its user; others' are promised first */
        REQUEST_EXPECTED, /* FORECAST: the most blocks that will be needed at once, with it */
        REQUEST_POOL,     /* FORECAST: the blocks that there are; fewer than expected */
        REQUEST_USER_SLOTS, /* SHARE */
        REQUEST_USER_SLOTS_MAX,
        REQUEST_USER_BLOCKS, /* SHARE; shared blocks count in parts, and the sum is rounded up */
        REQUEST_USER_BLOCKS_MAX,
        REQUEST_FOUND, /* positions of its prompt that were found in the cache */
        REQUEST_READ,  /* positions of its prompt that are read, with those */
        REQUEST_FACT_N,
};

struct sampling {
        float temperature, top_p, min_p;
        uint32_t top_k;
        uint64_t seed;
        /* The other cuts of a pick (kernels/cuts.h). */
        float n_sigma, typical, xtc_chance, xtc_least;
        float temperature_range, temperature_exponent;
        bool temperature_last;
        float mirostat_tau, mirostat_eta; /* tau 0: off */
        /* Log probabilities sent with each token: its own and the likeliest ones.  0: none. */
        uint32_t logprobs;
        uint32_t row_entries; /* the same in a ROW record; 0: none is sent */
        /* Index among requests that are otherwise equal; each index samples differently. */
        uint32_t sample_index;
};

/* A run of tokens with KV: the prompt, then the generated tokens.  One per request, today. */
struct sequence {
        struct request *request;
        uint32_t *tokens; /* space for tokens_max; the core appends */
        uint32_t token_count;
        uint32_t cached_count;          /* prompt positions found in the pool instead of computed */
        uint32_t diverged_at;           /* first position where a known text differs; 0: none */
        uint32_t diverged_cached_token; /* ... the token of that known text there */
        uint32_t slot;                  /* SEQUENCE_NO_SLOT while it waits */
};
#define SEQUENCE_NO_SLOT UINT32_MAX

struct request {
        /* Index in a table of requests_max entries; the engine's key for its own data about it. */
        uint32_t number;

        /* The values asked for.  Only the loop writes them, before the request is submitted. */
        uint32_t stream; /* the client's id for it, also in its records */
        uint64_t uid;    /* its user: the uid of the peer, or the number of a principal */
        enum request_priority priority;
        uint64_t deadline_ns; /* the request ends at this time in any state; 0: never */
        struct served *model;
        struct channel *channel;
        uint32_t prompt_count; /* tokens, at least 1 */
        /* prompt_count + max_tokens fits the context.  0: the prompt is only computed. */
        uint32_t max_tokens;
        uint32_t tokens_max; /* upper bound of prompt_count + max_tokens */
        uint32_t pin;        /* if max_tokens is 0: the pin to set at its end; or 0 */
        uint64_t publish;    /* ... and the public domain that it is read for; 0: its own */
        bool sees_public;    /* finds texts published to everyone and to the groups below */
        uint32_t group_count, groups[REQUEST_GROUPS_MAX];
        uint32_t submitted_count; /* tokens that it was submitted with */
        struct sampling sampling;
        struct rules *rules;     /* of its draws, or NULL */
        struct history *history; /* if the rules need one; used by the engine only */
        struct reasoning_limit *reasoning_limit; /* or NULL; used by the engine only */
        uint32_t draft_max;                      /* tokens of a draft, at most; 0: it has none */
        struct prediction *prediction;           /* the answer that its client expects, or NULL */
        /*
         * Log probabilities sent with each token of the prompt but the first: its own and those of
         * the likeliest tokens.  0: none.
         */
        uint32_t prompt_logprobs;
        struct guide *guide;   /* makes the masks of its draws, or NULL */
        struct asking *asking; /* the client is asked before each token, or NULL */
        /* Each draw waits for masks: a row that wants a result is planned after SCHED_READY. */
        bool awaits;
        bool ignore_eos;
        /*
         * A pick needs the tokens before it, besides the row: the next row is planned only when the
         * token of the last one is known.
         */
        bool alone;
        bool progress; /* records say how much of the prompt is read */
        /* The text is divided into parts; calls are looked for; it begins in reasoning. */
        bool parts, parts_calls, parts_reasoning;
        struct argument_types *argument_types; /* of its tools, for the parts; or NULL */
        uint32_t stop_count;
        uint32_t stop_token_count;
        const char *stops[SMV_STOPS_MAX];
        uint16_t stop_bytes[SMV_STOPS_MAX];
        uint32_t stop_tokens[SMV_STOPS_MAX];
        size_t record_bytes_max; /* upper bound of one of its TOKENS records, in the ring */
        /* Of record_bytes_max: what is written before the client is asked for a token; or 0. */
        size_t asked_bytes_max;
        size_t score_bytes_max; /* the same for a token of the prompt, with prompt_logprobs */
        size_t end_bytes_max;   /* upper bound of its last text and its END, in the ring */
        size_t held_bytes_max;  /* of record_bytes_max: text of earlier tokens, held back so far */

        /*
         * Requests submitted with this one in the same mail are linked by `sibling`.  A fork begins
         * with the tokens of the stream `parent`.  When the engine takes the mail, it sets both
         * pointers to NULL.  For a fork it also sets prompt_count and, if that is 0, max_tokens.
         * The loop keeps the parent alive until then.
         */
        struct request *sibling; /* the next one, or NULL */
        struct request *parent;  /* of all siblings, or NULL */

        struct sequence sequence;

        /* Core only; the engine reads `state`. */
        enum request_state state;
        uint32_t channel_number; /* number of the channel that its records are written to */
        uint64_t arrival;        /* serial number: its place in the queue, also after preemption */
        uint64_t since_ns; /* the time since which it waits, for a slot or for its next rows */
        uint64_t slot_ns;  /* when it got its slot ... */
        uint32_t granted;  /* ... and the class that it counted as then */
        uint64_t skipped_in_pass; /* the last pass over the queue that skipped it */
        uint32_t preemptions;     /* how often it was preempted */
        uint32_t blocks_lost;     /* ... of these, how often because blocks ran out */
        uint32_t unanswered;      /* ... and how often because its client did not answer */
        uint32_t computed;        /* positions that it had before it was preempted */
        uint32_t recomputed;      /* positions computed again after preemptions, so far */
        /*
         * With prompt_logprobs: its first `scored` positions had a row with a score, which is what
         * the logits of a position say of the next token of the prompt.
         */
        uint32_t scored;
        uint32_t restored;   /* positions that it brought from the swap after preemptions */
        bool reserves;       /* it has a slot, and counts towards conf.reserve_max */
        uint32_t promised;   /* blocks that it has, or may take at any time, since it has a slot */
        bool held_back;      /* the forecast says that the pool would not hold it */
        bool lacks_block;    /* it has a slot, and cannot go on until it is promised a block */
        bool ready;          /* if it awaits: the masks of its next token are there */
        bool held;           /* its row has run, and its token comes with SCHED_TOKEN */
        uint64_t asked_ns;   /* when it began to await masks or a token, or got them */
        bool stalled;        /* its channel has no space for its next record */
        uint64_t stalled_ns; /* when `stalled` changed last */
        bool pinned;         /* its pin is set.  The loop may read it once RETIRED has come */

        /*
         * How far it is, for people: written by the engine, read by the loop at any time.  Nothing
         * else depends on these.
         */
        _Atomic uint32_t waits_for; /* enum request_wait */
        _Atomic uint32_t facts[REQUEST_FACT_N];
        _Atomic uint32_t tokens_made;
        _Atomic uint32_t pauses; /* a copy of `preemptions` */
        _Atomic bool has_begun;  /* a step had a row of it */

        /*
         * With mirostat_tau: mu of the next draw.  It is the only state of a draw that is no
         * function of the tokens.  The loop sets it first; a fork begins with that of its parent.
         */
        float mu;

        uint32_t masks_due; /* engine only: how many masks of the next token are not there */

        /*
         * Set by the engine between plans: as with `alone`, its next row waits for the token of the
         * last one, so that a draft can follow that token (SCHED_DRAFT).
         */
        bool drafts;

        /* Engine only: what became of its drafts, as END tells it. */
        uint32_t drafted, drafts_right, predicted, predictions_right, draft_steps;
        uint32_t drafted_by_depth[SMV_DRAFT_TOKENS_MAX];
        uint32_t drafts_right_by_depth[SMV_DRAFT_TOKENS_MAX];

        /* Engine only; the loop may read these once RETIRED has come. */
        uint64_t accepted_ns, first_row_ns, first_token_ns, last_token_ns;
        uint32_t mails_taken; /* taken while it was alive: a cancel, and forks of it */
};

static inline uint32_t request_tokens_made(const struct request *request)
{
        return atomic_load_explicit(&request->tokens_made, memory_order_relaxed);
}

static inline enum request_wait request_waits_for(const struct request *request)
{
        return (enum request_wait)atomic_load_explicit(&request->waits_for, memory_order_acquire);
}

static inline uint32_t request_fact(const struct request *request, enum request_fact fact)
{
        return atomic_load_explicit(&request->facts[fact], memory_order_relaxed);
}

/* The facts of a reason are told before the reason. */
static inline void request_tell_fact(struct request *request, enum request_fact fact,
                                     uint32_t value)
{
        atomic_store_explicit(&request->facts[fact], value, memory_order_relaxed);
}

static inline void request_tell_wait(struct request *request, enum request_wait wait)
{
        atomic_store_explicit(&request->waits_for, wait, memory_order_release);
}

static inline uint32_t request_pauses(const struct request *request)
{
        return atomic_load_explicit(&request->pauses, memory_order_relaxed);
}

static inline void request_tell_pauses(struct request *request)
{
        atomic_store_explicit(&request->pauses, request->preemptions, memory_order_relaxed);
}

static inline bool request_has_begun(const struct request *request)
{
        return atomic_load_explicit(&request->has_begun, memory_order_relaxed);
}

/* The only place where a request changes its state; asserts that the transition is allowed. */
void request_move(struct request *request, enum request_state next);
const char *request_state_name(enum request_state state);

#endif
