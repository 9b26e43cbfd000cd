/*
 * A run: one generate, from its options to the end of its last choice.
 *
 * It is the internal model of an answer, which all dialects write: pieces of text, of reasoning and
 * of calls, then the end of each choice with its usage.  The run also collects what it has passed
 * on, for answers that are sent as a whole, and for events that repeat it.
 *
 * The run lies in the arena of its call, and cancels its streams when the call is cleaned
 * (run_deinit()).  None of its callbacks is called after that.  Each callback may end the call.
 */
#ifndef BRIDGE_CORE_RUN_H
#define BRIDGE_CORE_RUN_H

#include "bridge/core/call.h"
#include "bridge/core/metrics.h"

enum piece_kind { PIECE_TEXT, PIECE_REASONING, PIECE_CALL, PIECE_ARGUMENTS, PIECE_CALL_END };

struct run_call {
        struct run_call *next;
        uint32_t index; /* in its choice, from 0 */
        char id[40];
        struct bytes name, arguments;
        bool cut; /* it has ended, but its arguments are not whole */
};

struct run_piece {
        enum piece_kind kind;
        struct text text;            /* TEXT, REASONING, ARGUMENTS */
        const struct run_call *call; /* CALL, ARGUMENTS, CALL_END */
};

/* Why a choice ended, as all dialects tell it. */
enum run_end {
        RUN_EOS,
        RUN_STOP,    /* a stop string: stop_text */
        RUN_LENGTH,  /* as asked; or a call was cut, so that no program makes it */
        RUN_CONTEXT, /* the context is full */
        RUN_CALLS,   /* it ended with whole calls */
};

/* Tokens with logprobs that no answer has shown yet. */
struct run_logprobs {
        struct bytes starts; /* of uint64_t: where the text of each token begins in the choice */
        struct bytes values; /* of struct smv_logprob: for each token 1 + top_count */
        size_t top_count;
        uint64_t end; /* of the text of the last token */
};

struct run_choice {
        struct bytes text, reasoning;
        struct run_call *calls, *last_call;
        bool in_call; /* the last call has not ended */
        struct run_logprobs logprobs;
        uint64_t shown; /* bytes of text that were passed on */
        bool ended;
        enum run_end end;
        struct text stop_text; /* RUN_STOP by a string */
        struct smv_event last; /* the END; its pointers are not valid */
        uint32_t reasoning_tokens;
};

/* As OpenAI's finish_reason says it. */
const char *run_end_word(enum run_end end);

struct run;
struct run_ops {
        /* The daemon has accepted it: run->accepted.  May be NULL. */
        void (*begun)(struct run *run);
        /* May be NULL.  So much of the prompt is read; only if options.progress asks for it. */
        void (*progress)(struct run *run, const struct smv_event *event);
        /* May be NULL: the pieces are only collected. */
        void (*piece)(struct run *run, uint32_t choice, const struct run_piece *piece);
        /* May be NULL.  run->choices[choice] says how it ended. */
        void (*ended)(struct run *run, uint32_t choice);
        /* Every choice has ended. */
        void (*done)(struct run *run);
        /*
         * May be NULL.  The daemon did not accept it.  True: another run has taken its place, and
         * this one is not counted as a request.  False: failed() is called, too.
         */
        bool (*refused)(struct run *run, const struct failure *failure);
        /*
         * The daemon refused it (not `begun`), or a choice failed.  Nothing follows.
         */
        void (*failed)(struct run *run, const struct failure *failure);
};

struct run {
        struct call *call;
        const struct run_ops *ops;
        void *own;
        struct smv_generate options;
        struct smv_accepted accepted;
        struct link_ask ask;
        struct run_choice *choices;
        uint32_t count, left;
        bool begun;
        /* Set by the dialect: */
        bool one_call;      /* what follows the first call is not passed on */
        bool end_logprob;   /* the token that ended a choice has logprobs, too */
        bool explains_miss; /* it finds the part of the prompt that was not cached, and counts it */
        uint64_t asked_ns;  /* when the daemon was asked */
        /* As `values` of run_logprobs, from the second token of the prompt on. */
        struct bytes prompt_values;
        uint64_t first_ns; /* when the first piece came; 0: none */
};

/*
 * Begins it; the options stay as they are until the call ends, and so do what they point at.  A
 * failure comes through ops->failed(), perhaps at once.
 */
struct run *run_new(struct call *call, const struct smv_generate *options,
                    const struct run_ops *ops, void *own);
void run_start(struct run *run);
/* How long a run of so many choices would go on without its client (`stream_keep_ms`); 0: ends. */
uint32_t run_keep_ms(const struct call *call, uint32_t count);
struct run *run_deinit(struct run *run); /* takes NULL; its memory is the arena's */

/*
 * The number of tokens with logprobs whose text has been shown; behind the end of the choice, all
 * that are left.  Tokens that a stop string has hidden are none, nor is one that ended the choice,
 * unless run->end_logprob is set.
 */
size_t run_logprobs_ready(const struct run_choice *choice);
/* Forgets the first `count` of them. */
void run_logprobs_take(struct run_choice *choice, size_t count);

/* Sums over all choices. */
struct run_usage {
        uint64_t prompt, cached, output, reasoning;
        uint64_t drafted, drafts_right, predicted, predictions_right; /* as END has them */
        uint64_t queued_ns, prefill_ns, decode_ns;                    /* of the first choice */
};
struct run_usage run_usage(const struct run *run);

/* Why its prompt was not cached as far as it could be.  False: nothing is to be said about it. */
bool run_miss(const struct run *run, enum miss_reason *ret_reason);

#endif
