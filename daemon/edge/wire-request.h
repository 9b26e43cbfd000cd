/*
 * A request as it came over the wire, decoded; and why one is refused.
 *
 * Every field is a row of the table in fields.c.  wire.h says how bytes become a request.
 */
#ifndef DAEMON_EDGE_WIRE_REQUEST_H
#define DAEMON_EDGE_WIRE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samovar/error.h>
#include <samovar/protocol.h>

#include "daemon/draw/rules.h"
#include "daemon/edge/buffer.h"

enum wire_op {
        WIRE_HELLO,
        WIRE_GENERATE,
        WIRE_CANCEL,
        WIRE_TOKENIZE,
        WIRE_DETOKENIZE,
        WIRE_STATUS,
        WIRE_TEMPLATE,
        WIRE_OPEN,
        WIRE_APPEND,
        WIRE_TRUNCATE,
        WIRE_FORK,
        WIRE_CLOSE,
        WIRE_PIN,
        WIRE_ATTACH,
        WIRE_DETACH,
        WIRE_DROP,
        WIRE_PUBLISH,
        WIRE_REVOKE,
        WIRE_LIST,
        WIRE_END,
        WIRE_PIECES,
        WIRE_POOL,
        WIRE_OP_N,
};

/* In the order of the table. */
enum wire_field {
        WIRE_F_OP,
        WIRE_F_ID,
        WIRE_F_VERSIONS,
        WIRE_F_FEATURES,
        WIRE_F_TRANSPORT,
        WIRE_F_DOORBELL,
        WIRE_F_RING_BYTES,
        WIRE_F_WHILE_STOPPING,
        WIRE_F_PRINCIPAL,
        WIRE_F_MODEL,
        WIRE_F_PROMPT,
        WIRE_F_TOKENS,
        WIRE_F_MAX_TOKENS,
        WIRE_F_CLAMP,
        WIRE_F_TEMPERATURE,
        WIRE_F_TOP_K,
        WIRE_F_TOP_P,
        WIRE_F_MIN_P,
        WIRE_F_SEED,
        WIRE_F_N_SIGMA,
        WIRE_F_TYPICAL,
        WIRE_F_XTC_CHANCE,
        WIRE_F_XTC_LEAST,
        WIRE_F_TEMPERATURE_RANGE,
        WIRE_F_TEMPERATURE_EXPONENT,
        WIRE_F_ORDER,
        WIRE_F_LOGIT_BIAS,
        WIRE_F_PRESENCE_PENALTY,
        WIRE_F_FREQUENCY_PENALTY,
        WIRE_F_REPETITION_PENALTY,
        WIRE_F_REPEAT_WINDOW,
        WIRE_F_DRY_MULTIPLIER,
        WIRE_F_DRY_BASE,
        WIRE_F_DRY_ALLOWED,
        WIRE_F_DRY_WINDOW,
        WIRE_F_DRY_BREAKERS,
        WIRE_F_NO_REPEAT_NGRAM,
        WIRE_F_MIN_TOKENS,
        WIRE_F_ALLOWED_TOKENS,
        WIRE_F_BANNED_TOKENS,
        WIRE_F_BANNED_TEXTS,
        WIRE_F_STOP,
        WIRE_F_STOP_TOKENS,
        WIRE_F_IGNORE_EOS,
        WIRE_F_STREAM,
        WIRE_F_TEXT,
        WIRE_F_MESSAGES,
        WIRE_F_TOOLS,
        WIRE_F_TEMPLATE_VARS,
        WIRE_F_ADD_GENERATION_PROMPT,
        WIRE_F_CONTINUE_FINAL_MESSAGE,
        WIRE_F_TOKENIZE,
        WIRE_F_PRIORITY,
        WIRE_F_DEADLINE_MS,
        WIRE_F_HANDLE,
        WIRE_F_LENGTH,
        WIRE_F_COUNT,
        WIRE_F_LOGPROBS,
        WIRE_F_N,
        WIRE_F_SAMPLE_INDEX,
        WIRE_F_PIN_MS,
        WIRE_F_KEEP_MS,
        WIRE_F_RESUME_ID,
        WIRE_F_FROM,
        WIRE_F_TO,
        WIRE_F_GROUP,
        WIRE_F_NUMBER,
        WIRE_F_CONTROL_TEXT,
        WIRE_F_PROGRESS,
        WIRE_F_PROMPT_LOGPROBS,
        WIRE_F_PARTS,
        WIRE_F_CONSTRAINT,
        WIRE_F_REASONING_MAX,
        WIRE_F_REASONING_END,
        WIRE_F_PREDICTION,
        WIRE_F_DRAFT_TOKENS,
        WIRE_F_TOOL_CHOICE,
        WIRE_F_ALLOWED_TOOLS,
        WIRE_F_CALLS_MAX,
        WIRE_F_MIROSTAT_TAU,
        WIRE_F_MIROSTAT_ETA,
        WIRE_F_ASK_SLOTS,
        WIRE_F_WHOLE_ROWS,
        WIRE_F_ASK,
        WIRE_F_ASK_MS,
        WIRE_F_ASK_LATE,
        WIRE_F_ROW_TOP,
        WIRE_F_WHOLE_ROW,
        WIRE_FIELD_N,
};

#define WIRE_WORDS ((WIRE_FIELD_N + 63u) / 64u)

enum wire_transport { WIRE_SOCKET, WIRE_RING, WIRE_AUTO };
enum wire_doorbell { WIRE_KICK, WIRE_FUTEX, WIRE_NONE };
enum wire_priority { WIRE_INTERACTIVE, WIRE_NORMAL, WIRE_BACKGROUND };

enum wire_order { WIRE_TEMPERATURE_FIRST, WIRE_TEMPERATURE_LAST };

enum wire_tool_choice { WIRE_TOOLS_AUTO, WIRE_TOOLS_NONE, WIRE_TOOLS_REQUIRED };

enum wire_to { WIRE_TO_ALL, WIRE_TO_GROUP };

struct wire_text {
        const char *bytes; /* into the frame */
        uint32_t count;
};

/* The elements of an array, or the pairs of a map, as they lie in the frame: see values.h. */
struct wire_values {
        const uint8_t *bytes; /* NULL: not given */
        uint32_t size, count;
};

/* A conversation. */
struct wire_chat {
        struct wire_values messages, tools, template_vars;
        uint32_t value_count; /* in all three together */
        enum wire_tool_choice tool_choice;
        struct wire_values allowed_tools; /* names of tools that may be called */
        uint32_t calls_max;               /* 0: any number */
        bool add_generation_prompt, continue_final_message;
};

/*
 * A decoded request.  Fields that are not in `given` hold their defaults, except for the sampling
 * parameters: those depend on the model, and admission takes them from there.
 */
struct wire_request {
        enum wire_op op;
        uint32_t id;
        uint64_t given[WIRE_WORDS]; /* a bit for each enum wire_field; use wire_has() */
        uint32_t version_min, version_max;
        enum wire_transport transport;
        enum wire_doorbell doorbell;
        uint32_t ring_bytes;        /* 0: the daemon chooses */
        bool while_stopping;        /* hello: also if the daemon takes no new work */
        struct wire_text principal; /* hello: of a gateway's connection */
        uint32_t ask_slots;         /* hello: streams that ask the client, at a time */
        bool whole_rows;            /* hello: the slots have space for whole rows */
        struct wire_text model;
        /* generate, open: the prompt, unless tokens or messages are given */
        struct wire_text prompt;
        struct wire_text text;       /* tokenize, append */
        struct wire_text constraint; /* generate: a description, see constraint/description.h */
        const uint32_t *tokens;      /* generate, detokenize, open, append, pieces */
        uint32_t token_count;
        struct wire_chat chat; /* generate, open, template */
        bool tokenize;         /* template */
        uint32_t max_tokens;
        float temperature, top_p, min_p;
        uint32_t top_k;
        uint64_t seed;
        float n_sigma, typical, xtc_chance, xtc_least; /* kernels/cuts.h */
        float temperature_range, temperature_exponent;
        enum wire_order order;
        float mirostat_tau, mirostat_eta;
        struct penalties penalties;
        struct wire_values logit_bias; /* arrays of an id and a number */
        struct wire_values allowed_tokens, banned_tokens;
        struct wire_values banned_texts, dry_breakers;
        struct wire_text stop[SMV_STOPS_MAX];
        uint32_t stop_count;
        uint32_t stop_tokens[SMV_STOPS_MAX];
        uint32_t stop_token_count;
        bool ignore_eos;
        bool clamp;                     /* generate: a max_tokens that does not fit is lowered */
        bool control_text;              /* generate: the text of control tokens is shown */
        bool progress;                  /* generate: records say how much of the prompt is read */
        bool parts;                     /* generate: the text is divided into parts */
        uint32_t reasoning_max;         /* generate, if given: tokens of reasoning */
        struct wire_text reasoning_end; /* ... the text that is written behind them */
        struct wire_text prediction;    /* generate: the answer that the client expects */
        uint32_t draft_tokens;          /* generate, if given: of a guess, at most; 0: none */
        enum smv_ask ask;               /* generate: what the client gives before each token */
        uint32_t ask_ms;                /* ... within this time */
        bool late_draws;                /* ... or else the daemon draws by itself */
        uint32_t row_top;               /* generate, if given: the entries of ROW records */
        bool whole_row;                 /* ... and all logits stand in the slot */
        /* Generate on a handle: its history was given tools; the handle's types, or NULL. */
        bool had_tools;
        struct argument_types *argument_types;
        enum wire_priority priority;
        uint32_t deadline_ms;     /* 0: none */
        uint32_t stream;          /* cancel, fork, detach: the stream */
        uint64_t handle;          /* the handle; generate: in place of a prompt */
        uint32_t length;          /* truncate: the new length; publish, pieces: how many tokens */
        uint32_t count;           /* fork: the number of forks */
        uint32_t logprobs;        /* if given: the number of likeliest tokens to report ... */
        uint32_t prompt_logprobs; /* ... and that at each token of the prompt */
        uint32_t n;               /* generate: the number of streams; 0: one */
        uint32_t sample_index;    /* of the first stream */
        uint32_t pin_ms;          /* pin: how long; 0: no longer */
        uint32_t keep_ms;         /* generate, open, fork; 0: ends with the connection */
        uint64_t resume_id;       /* attach, drop: the resumable stream */
        uint32_t from;            /* attach: the first record to send; pieces: the first id */
        enum wire_to to;          /* publish */
        uint32_t group;           /* ... to this group */
        uint64_t number;          /* end: the stream or handle */
        /* wire_release() frees both.  A caller that takes one must clear it here. */
        uint32_t *memory;    /* of `tokens` */
        struct buffer frame; /* what the texts point into, if the request owns it */
};

static inline bool wire_has(const struct wire_request *request, enum wire_field field)
{
        return request->given[field / 64] >> field % 64 & 1;
}

static inline void wire_give(struct wire_request *request, enum wire_field field)
{
        request->given[field / 64] |= UINT64_C(1) << field % 64;
}

/* How many streams the request asks for; their numbers are id, id + 1 ... */
static inline uint32_t wire_streams(const struct wire_request *request)
{
        if (request->op == WIRE_FORK)
                return wire_has(request, WIRE_F_STREAM) ? request->count : 0;
        return request->op != WIRE_GENERATE ? 0 : request->n ? request->n : 1;
}

/* Why a request was refused: the content of an error reply. */
struct wire_problem {
        enum smv_code code;
        uint32_t id;    /* 0 if it could not be read */
        char field[32]; /* "" if no field is to blame */
        char message[224];
        uint32_t retry_ms; /* it may succeed when it is tried again after this time; 0: not known */
        bool fatal;        /* the connection ends after this reply */
};

enum wire_outcome {
        WIRE_E_PARTIAL = 1, /* the frame is not whole yet */
        WIRE_E_REFUSED = 2, /* *ret_problem has the reason */
};

/* Fills the problem and returns WIRE_E_REFUSED.  `format` is as for printf(). */
int wire_refuse(struct wire_problem *ret_problem, enum smv_code code, uint32_t id,
                const char *field, const char *format, ...) __attribute__((format(printf, 5, 6)));

/*
 * Makes text of a client fit to be shown: cut, without control bytes and without half characters.
 */
void wire_shown(char ret_shown[32], const char *name, size_t bytes);

const char *wire_op_name(enum wire_op op);

/*
 * A field of the protocol.  A number's range is [low, high].  For a text or an array, the range is
 * that of its count.
 */
struct wire_row {
        const char *name;
        enum wire_field field;
        /* "uint", "float", "bool", "text", "ids", "uints", "texts", "biases", "maps", "map" */
        const char *type;
        double low, high;
        bool above;             /* a float's: low itself is refused */
        uint32_t member_max;    /* texts: the most bytes of one text; the least are 1 */
        uint32_t ops, required; /* 1u << enum wire_op */
};

/* Are calls looked for in its answer? */
static inline bool wire_wants_calls(const struct wire_request *request)
{
        return (request->chat.tools.count || request->had_tools) &&
               request->chat.tool_choice != WIRE_TOOLS_NONE;
}

#endif
