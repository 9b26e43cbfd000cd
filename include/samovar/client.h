/*
 * libsamovar: ask a running samovard for tokens.
 *
 *      struct smv_client *c;
 *      struct smv_event e = { SMV_SIZE(smv_event) };
 *      uint32_t stream;
 *
 *      if (smv_connect(NULL, &c) < 0)
 *              return 1;
 *      smv_generate(c, &(struct smv_generate){ SMV_SIZE(smv_generate), .prompt = "Once" },
 *                   &stream);
 *      while (smv_next(c, &e, -1) > 0 && e.kind != SMV_EVENT_END)
 *              fwrite(e.text, 1, e.text_bytes, stdout);
 *      smv_close(c);
 *
 * A client is one connection.  It makes no threads, installs no signal handler,
 * allocates nothing per token and may be used from one thread at a time.  If the
 * daemon dies, the program loses only its streams.  Each of them still ends with
 * one END event (reason ERROR, code SMV_LOST), and no call hangs.  If no answer to
 * a request comes within reply_timeout_ms of struct smv_connect, the call returns
 * -ETIMEDOUT, and the connection is lost: the daemon was stopped, or has failed.
 * Calls whose names begin with smv_ask_ send a request and do not wait: smv_next()
 * returns the answer.
 *
 * Functions return 0 or a positive count on success.  They return -EREMOTEIO if
 * the daemon refused the request: smv_error() then has its code, field and
 * message; for smv_connect(), its member `problem` has them.  They return another
 * negative errno for any other failure.  Structs begin with
 * their size, so that a program compiled against an older header keeps working;
 * fill the size with SMV_SIZE.  All memory that an event or an answer points at is
 * valid until the next call on the client.  A call that fails leaves what its ret_
 * arguments point at as it was; only smv_connect() sets *ret_client to NULL.  Without
 * a client, functions do nothing: they return -EINVAL, and those that return no error
 * return 0 or NULL.  smv_error() then says that there is none.
 *
 * What you give is read during the call, and may be freed afterwards.  A pointer
 * may be NULL only where this file says so.  A client may move from one thread to
 * another between calls, but a child of fork(2) must not use it.
 *
 * The number of bytes of a text that you give may be 0 everywhere: then the text
 * ends at its NUL.  So an empty text must be "", and not a buffer without a NUL.
 */
#ifndef SAMOVAR_CLIENT_H
#define SAMOVAR_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <samovar/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The first member, which is `size`: `struct smv_event event = { SMV_SIZE(smv_event) };`.  Other
 * members may follow it by their names.  Below C++20 members cannot be named; there this is a whole
 * struct, in which only `size` is not 0, so that no compiler warns of missing members.
 */
#if defined(__cplusplus) && __cplusplus < 202002L
extern "C++" {
template <typename type> inline type smv_sized()
{
        type sized = type();

        sized.size = sizeof(type);
        return sized;
}
}
#define SMV_SIZE(type) smv_sized<struct type>()
#else
#define SMV_SIZE(type) .size = sizeof(struct type)
#endif

struct smv_client;
struct smv_problem;
struct smv_piece;

/* How records reach the client: through a ring in shared memory, or in frames on the socket. */
enum smv_transport {
        /* A ring if the daemon has one free and can pass its descriptors; else the socket. */
        SMV_TRANSPORT_AUTO = 0,
        SMV_TRANSPORT_RING = 1,   /* a ring; without one, connecting fails */
        SMV_TRANSPORT_SOCKET = 2, /* frames on the socket */
};

/* How the daemon wakes a client that sleeps until its ring has records. */
enum smv_doorbell {
        SMV_DOORBELL_KICK = 0,  /* smv_fd() becomes readable */
        SMV_DOORBELL_FUTEX = 1, /* cheaper for the daemon; works in smv_next(), not with poll() */
        SMV_DOORBELL_NONE = 2,  /* no wake-up: for programs that poll with smv_next(…, 0) */
};

struct smv_connect {
        size_t size;
        /*
         * A path; NULL: $SAMOVAR_SOCKET, else the user's own daemon, else the machine's
         * (SMV_SOCKET_PATH and SMV_SYSTEM_SOCKET in protocol.h).
         */
        const char *socket;
        /*
         * If `use_fd`: a connected socket that the client takes over.  smv_connect() closes it on
         * failure, unless it refuses this struct itself (-EINVAL or -E2BIG).
         */
        int fd;
        int use_fd;
        /* For connecting, waiting for a connection, and hello; 0: 10 s; -1: without limit. */
        int timeout_ms;
        char *message; /* where to write the reason of a failure, or NULL */
        size_t message_bytes;
        /*
         * Nonzero: accept a daemon that runs as any user.  0: the daemon must run as our user, as
         * root, or as a user that root trusts: the owner of the folder of SMV_SYSTEM_SOCKET, or one
         * that SMV_CLIENT_CONF names.  If the caller gives `fd`, its peer is not checked.
         */
        int any_uid;
        enum smv_transport transport;
        enum smv_doorbell doorbell;
        size_t ring_bytes; /* 64 KiB to 1 MiB, a power of two; 0: the daemon chooses */
        uint32_t spin_us;  /* smv_next() polls the ring for this long before it sleeps */
        /*
         * Nonzero: connect also to a daemon that is stopping.  It refuses new work; smv_status(),
         * smv_list(), smv_end() and smv_attach() show what it waits for, and end it.  Otherwise
         * smv_connect() waits for the next daemon, for timeout_ms.
         */
        int while_stopping;
        /*
         * NULL, or a struct with its size set, which is filled if the call fails, as smv_error()
         * does for other calls.  Its texts stay valid, although there is no client: name and field
         * are constants, and message is the buffer above; without one it is "".
         */
        struct smv_problem *problem;
        /*
         * NULL, or called before each wait for a connection, and if the daemon has not answered
         * hello for a second.  It says why smv_connect() waits, and for how long at most until it
         * tries again or fails.  If a daemon that is stopping leaves the socket to the next one,
         * its control socket says so, and `why` has the code SMV_SHUTTING_DOWN.  `why` is valid
         * during the call.
         */
        void (*on_wait)(void *arg, const struct smv_problem *why, uint32_t wait_ms);
        void *on_wait_arg;
        /* For the answer to each request on this connection; 0: 60 s; -1: without limit. */
        int reply_timeout_ms;
        /*
         * NULL, or the principal that this connection is for: a name of 1 to 64 of the characters
         * a-z, A-Z, 0-9, ".", "_" and "-".  For the daemon each principal is a user of its own.
         * Only a process of the user that the daemon's setting `gateway` names may give one.
         */
        const char *principal;
        /*
         * How many streams at a time may ask this client before each token (smv_generate.ask), up
         * to 64; 0: none.  Their answers need a ring.  whole_rows: nonzero if these streams may
         * also show all logits, for which each of them takes 4 bytes for each token of the
         * vocabulary.
         */
        uint32_t ask_slots;
        int whole_rows;
};

/*
 * A field that is 0 takes the default.  For temperature, top_p, min_p and top_k that is the
 * model's, if its files say one, and otherwise the daemon's.  To ask for the value 0 itself, set
 * the field's bit in `set`.
 */
enum smv_set {
        SMV_SET_TEMPERATURE = 1u << 0,
        SMV_SET_TOP_P = 1u << 1,
        SMV_SET_MIN_P = 1u << 2,
        SMV_SET_TOP_K = 1u << 3,
        SMV_SET_SEED = 1u << 4,
        SMV_SET_LOGPROBS = 1u << 5, /* with 0: only the logprobs of the generated tokens */
        SMV_SET_PRIORITY = 1u << 6, /* only for a fork */
        /* with 0: only the logprobs of the tokens of the prompt */
        SMV_SET_PROMPT_LOGPROBS = 1u << 7,
        SMV_SET_MAX_TOKENS = 1u << 8, /* with 0: no token; only with prompt_logprobs */
        /* with 0: the prompt ends behind the last message, and no answer begins */
        SMV_SET_ADD_GENERATION_PROMPT = 1u << 9,
        SMV_SET_XTC_LEAST = 1u << 10,
        SMV_SET_TEMPERATURE_EXPONENT = 1u << 11,
        SMV_SET_DRY_BREAKERS = 1u << 12, /* with a count of 0: there are no breakers */
        SMV_SET_REASONING_MAX = 1u << 13,
        SMV_SET_MIROSTAT_ETA = 1u << 14,
        SMV_SET_ROW_TOP = 1u << 15,      /* with 0: only the entry of the token that was drawn */
        SMV_SET_DRAFT_TOKENS = 1u << 16, /* with 0: no token is guessed */
};

/*
 * The order in which the daemon serves the requests of one user.  A request of a higher priority
 * may also preempt a running request of a lower one of its user, which continues later.  Between
 * users, the one that was served least goes first: the priority gains a second at most.
 */
enum smv_priority {
        SMV_PRIORITY_NORMAL = 0,
        SMV_PRIORITY_INTERACTIVE = 1, /* the highest: a person is waiting for the answer */
        SMV_PRIORITY_BACKGROUND = 2,  /* the lowest: the others of the user go first */
};

/* Where the temperature applies among the cuts of a draw. */
enum smv_order {
        SMV_ORDER_TEMPERATURE_FIRST = 0, /* before all but n_sigma */
        SMV_ORDER_TEMPERATURE_LAST = 1,  /* after all */
};

/* Whether an answer may have tool calls, or must be calls. */
enum smv_tool_choice {
        SMV_TOOLS_AUTO = 0, /* the model decides */
        SMV_TOOLS_NONE = 1, /* text that looks like a call is text */
        SMV_TOOLS_REQUIRED = 2,
};

/* One message of a conversation.  Only this struct has no size; it will never grow. */
struct smv_message {
        const char *role; /* "system", "user", "assistant" ... */
        const char *content;
        size_t content_bytes;
};

/* Added to the logit of a token.  This struct has no size, either. */
struct smv_bias {
        uint32_t token;
        float bias;
};

/* One msgpack value, encoded by the caller; bytes NULL: no value. */
struct smv_packed {
        const void *bytes;
        size_t count;
};

struct smv_generate {
        size_t size;
        const char *model; /* NULL: the default model */
        /* Give one of these: prompt (a text), tokens, messages, packed_messages, or handle. */
        const char *prompt;
        size_t prompt_bytes;
        const uint32_t *tokens;
        size_t token_count;
        uint32_t max_tokens; /* 0: the daemon's default */
        uint32_t set;        /* enum smv_set */
        float temperature, top_p, min_p;
        uint32_t top_k;
        uint64_t seed;
        /* Strings that end the stream.  The text of a stop string is not part of the output. */
        const char *const *stops;
        size_t stop_count;
        const uint32_t *stop_tokens;
        size_t stop_token_count;
        int ignore_eos;
        /*
         * A conversation; the model's chat template makes the prompt from it.  If role and content
         * cannot express a message (tool calls, content parts, ...), give packed_messages instead:
         * a msgpack array of maps (docs/reference/protocol.md).  With either form, packed_tools may
         * have the array of tools, and packed_vars a map, the template_vars.
         */
        const struct smv_message *messages;
        size_t message_count;
        struct smv_packed packed_messages; /* instead of messages */
        struct smv_packed packed_tools, packed_vars;
        enum smv_priority priority;
        uint64_t handle; /* instead of a prompt: the history to continue; 0: none */
        /*
         * The number of streams that continue this prompt; 0: one.  At most 64.  Their ids are
         * consecutive.  They have the same options and differ only in their sample index, which is
         * `sample_index`, `sample_index` + 1, ...  The draws depend on it, so each of the streams
         * can be reproduced alone by its index.
         */
        uint32_t n;
        uint32_t sample_index;
        /* The stream ends this long from now, unfinished, with the code SMV_TIMEOUT; 0: never. */
        uint32_t deadline_ms;
        /*
         * Each TOKENS event has the logprobs of its tokens and of this many likeliest tokens at
         * each place, up to 32.  0: no logprobs, unless `set` has SMV_SET_LOGPROBS.
         */
        uint32_t logprobs;
        /*
         * The stream, or the handle that smv_handle_open() opens, outlives this connection for this
         * long; 0: it ends with the connection.  A stream on a handle may have this only if the
         * handle was opened with it, too: otherwise its history would close with the connection.
         */
        uint32_t keep_ms;
        /*
         * Nonzero: if prompt and max_tokens together do not fit the context or the pool, max_tokens
         * is lowered.  smv_accepted() tells by how much.  0: the request is refused.
         */
        int clamp;
        /*
         * Nonzero: the text of the events has the text of control tokens, too, such as the marks of
         * tool calls and of reasoning.  Stop strings are found in it.  A token that ends the stream
         * has no text in either case.
         */
        int control_text;
        /*
         * Nonzero: while the prompt is read, PROGRESS events say how far.  Not with keep_ms.  Forks
         * of the stream have none.
         */
        int progress;
        /*
         * PROMPT_LOGPROBS events come before the first token: one for each token of the prompt but
         * the first, with its logprob after those before it, and with those of this many likeliest
         * tokens there, up to 32.  0: none, unless `set` has SMV_SET_PROMPT_LOGPROBS.  The whole
         * prompt is computed, also what is cached.  Forks of the stream have none.
         */
        uint32_t prompt_logprobs;
        /*
         * Nonzero: the text of the events is divided into parts: text, reasoning and tool calls.
         * Their marks are not in it, but stop strings are found in the text with its marks.  Calls
         * are looked for only if the model has a tool_dialect, and if the request has tools or its
         * handle was given some.
         */
        int parts;
        /*
         * With messages: nonzero, as by default, if the prompt ends where an answer begins.  For 0,
         * `set` must have SMV_SET_ADD_GENERATION_PROMPT.
         */
        int add_generation_prompt;
        /*
         * With messages: nonzero if the last one, which is the assistant's, is not complete.  The
         * prompt then ends exactly where its content ends, so the model continues it;
         * add_generation_prompt is not used.  The text of the events is only the continuation.
         */
        int continue_final_message;
        /*
         * The answer must follow this constraint: a text of JSON, such as {"schema": ...},
         * {"json": true}, {"regex": "..."}, {"grammar": "..."} or {"choices": [...]}
         * (docs/reference/protocol.md, Constraints).  NULL: none.  Forks of the stream follow it,
         * too.
         */
        const char *constraint;
        size_t constraint_bytes; /* 0: up to its NUL */
        /*
         * More cuts of the draws, which the daemon refuses if its backend does not have them
         * (docs/reference/protocol.md); forks of the stream inherit them.  n_sigma: only tokens at
         * most that many deviations of all logits below the largest.  typical: the tokens nearest
         * to the entropy that sum up to it.  xtc_chance: with this chance, all but the last of the
         * tokens with at least xtc_least are left out (0: 0.1, unless `set` has
         * SMV_SET_XTC_LEAST).
         */
        float n_sigma, typical, xtc_chance, xtc_least;
        /*
         * The temperature grows with the entropy, from temperature - temperature_range to
         * temperature + temperature_range.  The exponent shapes it (0: 1, unless `set` has
         * SMV_SET_TEMPERATURE_EXPONENT).
         */
        float temperature_range, temperature_exponent;
        enum smv_order order;
        /*
         * Penalties depend on the tokens before a draw (docs/reference/protocol.md, Penalties).
         * Forks inherit them.  0 is the daemon's default: no penalty, or the largest window.
         */
        float presence_penalty, frequency_penalty; /* for tokens of the answer */
        float repetition_penalty;                  /* for tokens of prompt and answer; 1: none */
        uint32_t repeat_window;
        float dry_multiplier, dry_base;
        uint32_t dry_allowed, dry_window;
        const char *const *dry_breakers;
        size_t dry_breaker_count;
        uint32_t no_repeat_ngram;
        uint32_t min_tokens; /* the answer does not end before, but at a stop string */
        const struct smv_bias *biases;
        size_t bias_count;
        /* Only these tokens are drawn, if there are any; and these are not drawn. */
        const uint32_t *allowed_tokens, *banned_tokens;
        size_t allowed_token_count, banned_token_count;
        /* No token completes one of these texts. */
        const char *const *banned_texts;
        size_t banned_text_count;
        /*
         * The most tokens of reasoning, with its marks: then the daemon writes reasoning_end, if it
         * is not NULL, and ends the reasoning.  0: no limit, unless `set` has
         * SMV_SET_REASONING_MAX; then reasoning ends as soon as it is opened.  Forks inherit it.
         */
        uint32_t reasoning_max;
        const char *reasoning_end;
        /*
         * With packed_tools, which may also come with a handle then.  SMV_TOOLS_REQUIRED: the
         * answer is calls and nothing else, by the schemas of the tools.  allowed_tools: only the
         * tools of these names are called, all if there are none.  calls_max: at most so many
         * calls; 0: no bound (docs/reference/protocol.md, Calls).
         */
        enum smv_tool_choice tool_choice;
        const char *const *allowed_tools;
        size_t allowed_tool_count;
        uint32_t calls_max;
        /*
         * Mirostat 2: tokens are kept so that the mean surprise of those that are drawn comes near
         * mirostat_tau bits (0: off).  It makes the only cut.  mirostat_eta: how fast it learns (0:
         * 0.1, unless `set` has SMV_SET_MIROSTAT_ETA).
         */
        float mirostat_tau, mirostat_eta;
        /*
         * Before each token the stream asks this client: for the tokens that are legal, or for the
         * token itself.  (The calls smv_ask_ are another thing.)  Each ASK event is a question,
         * which smv_answer_mask() or smv_answer_token() answers within ask_ms (0: 1000).  Without
         * an answer in time the stream ends with the code SMV_NO_ANSWER; if late_draws is nonzero,
         * the daemon draws by itself instead, and END says how often.  Needs ask_slots of
         * smv_connect.
         */
        enum smv_ask ask;
        uint32_t ask_ms;
        int late_draws;
        /*
         * Each token comes with a row: the model's numbers at its position.  It has the entry of
         * the token that was drawn and those of this many likeliest tokens, up to 256.  0: no rows,
         * unless `set` has SMV_SET_ROW_TOP or whole_row is not 0.  With whole_row, which needs
         * `ask`, it also has all logits.
         */
        uint32_t row_top;
        int whole_row;
        /*
         * A text that the answer will probably be, or have parts of, such as a file that is to be
         * edited.  The tokens are the same with it, but where they agree they come faster.  NULL:
         * none.
         */
        const char *prediction;
        size_t prediction_bytes; /* 0: it ends with a NUL */
        /*
         * The daemon guesses so many next tokens at most, up to 16, and no more than its own
         * setting says.  0: as the setting says, unless `set` has SMV_SET_DRAFT_TOKENS; then none.
         */
        uint32_t draft_tokens;
};

/* The daemon's report about a stream that it has accepted. */
struct smv_accepted {
        size_t size; /* set by the caller */
        uint32_t prompt_tokens;
        uint32_t max_tokens;     /* the most tokens that may follow the prompt */
        uint32_t queue_position; /* the number of requests that wait before it */
        uint64_t wait_ms;        /* estimated time to its first token */
        /*
         * The parameters of its draws, also those that the request did not give.  With this seed,
         * an equal request gets the same tokens.
         */
        float temperature, top_p, min_p;
        uint32_t top_k; /* 0: all tokens */
        uint64_t seed;
        /*
         * The samplers that are in effect, in order, with blanks between them, such as "mask
         * temperature top_k draw" (docs/reference/protocol.md, Chain).  "": an older daemon.
         */
        char chain[160];
};

/*
 * A field that is 0 takes the value of the stream that is forked.  To ask for the value 0 itself,
 * set the field's bit in `set`.
 */
struct smv_fork {
        size_t size;
        uint32_t count;      /* 1 to 1024 */
        uint32_t max_tokens; /* 0: as many as the stream has left */
        uint32_t set;        /* enum smv_set */
        float temperature, top_p, min_p;
        uint32_t top_k;
        uint64_t seed;
        /*
         * The sample index of the first fork; the next forks count on from it.  0: the first index
         * that no stream of the same generate, or of its forks, has used.
         */
        uint32_t sample_index;
        enum smv_priority priority;
};

enum smv_event_kind {
        SMV_EVENT_NONE = 0,
        SMV_EVENT_TOKENS = 1,
        SMV_EVENT_END = 2,
        SMV_EVENT_REPLY = 3,           /* the answer to an smv_ask_ call */
        SMV_EVENT_PROGRESS = 4,        /* only if the request asked for it ... */
        SMV_EVENT_PROMPT_LOGPROBS = 5, /* ... or for these */
        SMV_EVENT_ASK = 6, /* the daemon waits for an answer about the token at `position` */
};

/*
 * The logarithm of a token's probability at its place.  The probability is computed over all
 * tokens, before temperature, top-k, top-p and min-p.
 */
struct smv_logprob {
        uint32_t token;
        float logprob;
};

/* A piece of the text of an event.  This struct will never grow. */
struct smv_part {
        uint32_t kind;  /* enum smv_part_kind */
        uint32_t bytes; /* the next so many of the text */
        uint32_t call;  /* CALL, ARGUMENTS, CALL_END: the number of the call, from 0; else 0 */
        uint32_t flags; /* enum smv_parts_flag */
};

/* The model's numbers for the place of a token, before all rules and cuts of the request. */
struct smv_row {
        uint32_t position;
        float log_sum; /* log(sum(exp(logit))) over all tokens: a logit is logprob + log_sum */
        /* The entry of the token that the daemon has drawn, then those of the likeliest tokens. */
        const struct smv_logprob *entries;
        size_t top_count;
        /*
         * With whole_row: the logits of all tokens.  They stay until the client answers the next
         * question of the stream, or its time is over.  NULL: the request did not ask, or they are
         * gone already.
         */
        const float *logits;
        size_t logit_count;
};

struct smv_event {
        size_t size; /* set by the caller, as in the options */
        enum smv_event_kind kind;
        uint32_t stream; /* REPLY: the request */
        /*
         * TOKENS: the new tokens and the new text; PROMPT_LOGPROBS: the tokens, without text;
         * REPLY: what the request asked for
         */
        const uint32_t *tokens;
        size_t token_count;
        const char *text; /* not NUL-terminated */
        size_t text_bytes;
        uint32_t position; /* of the first of these tokens in the sequence, the prompt counted */
        /* END */
        enum smv_reason reason;
        enum smv_code code;                    /* REPLY: SMV_OK, or why the request failed */
        uint32_t prompt_tokens, cached_tokens; /* also of PROGRESS */
        uint32_t output_tokens; /* with the code LOST: those of the events on this connection */
        uint64_t queued_ns, prefill_ns, decode_ns;
        /*
         * Why no more of the prompt was cached.  At this position of the prompt, the longest match
         * in the daemon's cache for this user continues with another token.  0: there is no such
         * position.
         */
        uint32_t diverged_at;
        uint32_t diverged_cached_token; /* the cached token there */
        uint32_t diverged_prompt_token; /* the prompt's token there */
        /*
         * TOKENS, if the request asked for logprobs, and PROMPT_LOGPROBS: for each token its own
         * logprob, then those of the top_count likeliest tokens.  NULL: the request did not ask.
         */
        const struct smv_logprob *logprobs;
        size_t top_count;
        /*
         * The number of this record in its stream.  To continue behind it later, pass sequence + 1
         * to smv_attach().
         */
        uint32_t sequence;
        /*
         * END: how often the stream gave up its slot for others and continued later, with the same
         * tokens; how often of these because the pool was full; the positions that were computed
         * again after that; and those that came back from memory outside the pool instead.
         */
        uint32_t preemptions, blocks_lost, recomputed, restored;
        /*
         * END with the reason STOP: which stop it was: stops[stop_index] or stop_tokens[stop_index]
         * of the request.  Of several stop strings, it is the one that ended first in the text; of
         * those that ended together, the longest.
         */
        enum smv_stopped_by stopped_by;
        uint32_t stop_index;
        /* REPLY: what the request asked for; each smv_ask_ call says which members it sets. */
        const struct smv_piece *pieces;
        size_t piece_count;
        uint64_t number;
        uint64_t length;
        /*
         * PROGRESS: how many tokens of the prompt are read, the cached ones counted.  It only
         * grows, up to prompt_tokens.
         */
        uint32_t prefilled;
        /*
         * TOKENS, if the request asked for parts: they divide the text, in order.  The parts of a
         * stream may be cut anywhere; those of one kind and call that follow each other are one.
         * NULL: the request did not ask.
         */
        const struct smv_part *parts;
        size_t part_count;
        /*
         * END, if the request asked for parts: how many of the tokens were reasoning, with its
         * marks; the calls that have begun in the text; and whether a text was left unparsed, or a
         * call was cut (enum smv_parts_flag).  The flag of
         * reasoning_max also comes without parts.
         */
        uint32_t reasoning_tokens, calls, parts_flags;
        /* ASK: what for.  `position` is that of the token. */
        enum smv_ask ask;
        /*
         * If the request asked for rows: set in an ASK for a token, and in TOKENS that has a token
         * unless `ask` is SMV_ASK_TOKEN.  Else NULL.
         */
        const struct smv_row *row;
        /*
         * END: how many questions the stream has asked, and how often the daemon went on without an
         * answer.
         */
        uint32_t asked, late;
        /*
         * END: guesses at the next tokens that were computed with the steps of this stream, and how
         * many of them were right; of both, those of the prediction that the request had; how many
         * steps had guesses; and why there were none.  They change nothing but the time.  Then the
         * first two of the first token of a guess, of the second, ...
         */
        uint32_t drafted, drafts_right, predicted, predictions_right, draft_steps;
        enum smv_no_drafts no_drafts;
        uint32_t drafted_by_depth[SMV_DRAFT_TOKENS_MAX];
        uint32_t drafts_right_by_depth[SMV_DRAFT_TOKENS_MAX];
};

/* A model that the daemon serves.  The texts and end_tokens are valid until smv_close(). */
struct smv_model {
        size_t size; /* set by the caller */
        const char *name;
        const char *architecture; /* as its files name it: "llama"; this and the next may be "" */
        const char *quantisation; /* the type of most weights: "Q4_K" */
        /* 64 hexadecimal digits; the same for the same tensors in any folder */
        const char *digest;
        /* 0: the daemon did not say, for these and trained_context */
        uint64_t parameters; /* numbers of all weights */
        uint64_t bytes;      /* of all weights */
        uint64_t modified_s; /* when its newest file was written, in seconds since 1970 */
        uint32_t vocab;
        uint32_t context;         /* the most tokens of a sequence */
        uint32_t trained_context; /* ... that it was trained for */
        uint8_t chat;             /* it takes messages */
        uint8_t is_default;       /* requests that name no model use it */
        size_t end_token_count;
        const uint32_t *end_tokens; /* the tokens that end its output */
        /* How it writes tool calls: "hermes"; "": in no way that the daemon can read. */
        const char *tool_dialect;
        const char *format;  /* of its files: "gguf" or "safetensors"; "": the daemon did not say */
        uint32_t layers;     /* 0: the daemon did not say */
        uint32_t gpu_layers; /* those whose weights are in the memory of a GPU */
        uint8_t reasoning;   /* the daemon knows the marks around its reasoning */
};

struct smv_problem {
        size_t size;        /* set by the caller */
        enum smv_code code; /* LOST: the daemon is gone; OK: the library refused the call */
        const char *name;   /* of the code: "too_long"; without a code, of the errno: "EINVAL" */
        /*
         * The field of the request, or the member or argument of the call, that the refusal is
         * about; "" if there is none.
         */
        const char *field;
        const char *message;
        /* The daemon expects that the same call can succeed then; 0: it did not say. */
        uint32_t retry_ms;
};

/*
 * Connects to the daemon.  `options` may be NULL: all defaults.  Returns -EREMOTEIO if the daemon
 * refuses the connection, and -ENOENT or -ECONNREFUSED at once if no daemon is at the socket.
 *
 * In these cases the call waits and tries again, until its timeout, and then returns the last
 * failure (-ETIMEDOUT in the second case):
 *
 *      the daemon refuses the connection for now: the refusal has retry_ms
 *      the daemon's queue of new connections is full
 *      the daemon was stopping, and now no daemon is there: another one may follow it
 *
 * It does not try again if the caller gave `fd`.  On failure *ret_client is NULL.
 */
int smv_connect(const struct smv_connect *options, struct smv_client **ret_client);

/*
 * Closes the connection.  This cancels every stream that is still alive, except those with keep_ms.
 * NULL is fine.  Returns NULL.
 */
struct smv_client *smv_close(struct smv_client *client);

/*
 * Begins a stream, or `n` streams; *ret_stream is the id of the first.  Returns when the daemon has
 * accepted or refused all of them.
 */
int smv_generate(struct smv_client *client, const struct smv_generate *options,
                 uint32_t *ret_stream);

/*
 * Answers the question of the last ASK event of this stream.  A mask says which tokens are legal:
 * bit n % 32 of mask[n / 32] is for token n; `count` is (vocab + 31) / 32.  NULL: all are.  Tokens
 * that end the stream need their bits, too.  A mask without a legal token ends the stream with the
 * code SMV_NO_TOKEN.  SMV_TOKEN_AS_DRAWN takes the token that the daemon has drawn.  A token that
 * is not in the vocabulary, or that the constraint does not allow, ends the stream with
 * SMV_BAD_ANSWER.
 *
 * -EINVAL: the stream has no such question, or `count` is wrong.  An answer that comes too late has
 * no effect.
 */
int smv_answer_mask(struct smv_client *client, uint32_t stream, const uint32_t *mask, size_t count);
int smv_answer_token(struct smv_client *client, uint32_t stream, uint32_t token);

/* Describes the stream that this client began last; all 0 before the first one. */
void smv_accepted(const struct smv_client *client, struct smv_accepted *ret_accepted);

/*
 * Begins `count` streams that continue from the place where `stream` is when the daemon takes this
 * request.  `stream` itself continues too, and no earlier token is computed again.  The position
 * of a fork's first event says where it branched.  The text of `stream` up to there, followed by
 * the text of the fork, is one text.  The forks have the options of `stream`, but draw other
 * tokens.
 *
 * If `stream` has ended, the call is refused with SMV_NO_STREAM.  If it ends while the request is
 * on its way, the forks begin, but end at once with that code.  ret_streams must have space for
 * `count` ids.
 */
int smv_fork(struct smv_client *client, uint32_t stream, const struct smv_fork *options,
             uint32_t *ret_streams);

/*
 * Gets the next event of any stream.  Returns:
 *
 *      1           *ret_event is filled
 *      0           no event came within timeout_ms (0: do not wait, -1: wait without limit)
 *      -ENODATA    no stream is alive and no reply is outstanding, so no event will come
 *      -ENOTCONN   the daemon is gone, every stream has had its END, and every request its REPLY
 *
 * It also sends what the daemon has not taken so far.
 */
int smv_next(struct smv_client *client, struct smv_event *ret_event, int timeout_ms);

/*
 * A descriptor for poll(): it is readable when there is news, including the death of the daemon.
 * Before sleeping on it, call smv_next(…, 0) until it returns 0.
 */
int smv_fd(const struct smv_client *client);

/*
 * Trades latency for fewer wake-ups.  From now on, the daemon wakes a client that sleeps in
 * smv_next() or on smv_fd() when about `bytes` bytes of records have come (32 for a token).  It
 * also wakes the client when a stream ends.  smv_next() also looks at the ring by itself after
 * about a second.  0, the default: each record wakes the client.  This has an effect only with a
 * ring.
 */
void smv_wake_after(struct smv_client *client, size_t bytes);

/* The transport that the connection uses: RING or SOCKET. */
enum smv_transport smv_transport_used(const struct smv_client *client);

/*
 * The path of the daemon's socket, valid until smv_close(); NULL if smv_connect() was given `fd`.
 * It is the same if the daemon stops and answers at its control socket.
 */
const char *smv_socket_used(const struct smv_client *client);

/*
 * Model `index`, counted from 0, of those that the daemon serves.  Asks nobody: the daemon has said
 * it when the client connected.  Returns 0, or -ENOENT if there are no more.
 */
int smv_model(const struct smv_client *client, size_t index, struct smv_model *ret_model);

/*
 * Asks the daemon to end a stream.  Does not wait for it: the stream still ends with its END.  It
 * is no error if the stream has ended already.  If the stream's REPLY has not come yet, it may be a
 * refusal with the code SMV_CANCELLED.
 */
int smv_cancel(struct smv_client *client, uint32_t stream);

/*
 * Resumable streams outlive their connection.  A generate with `.keep_ms` begins one; other
 * connections name it by its resume id.  When its connection ends, for any reason, the stream
 * goes on.  For keep_ms, the same user may attach to it from any connection, starting at any
 * record.  The new connection gets the same events as the old one would have got, including the
 * END.
 *
 * So a program can continue after a crash.  It has to save the resume id and, together with the
 * text that it saves, the sequence of the next record: that of the last event + 1, and 0 before the
 * first event.  When it has the whole stream it should call
 * smv_drop(), because the daemon limits how many such streams a user may have.  Events of these
 * streams come through the socket, even if the connection has a ring for its other streams.
 */

/* The resume id of a living stream.  0: the stream is not resumable, or has had its END. */
uint64_t smv_resume_id(const struct smv_client *client, uint32_t stream);

/*
 * Attaches to the stream with this resume id.  Its events start at the record with the sequence
 * `from`; 0: all records.  If another connection is attached, its stream gets an END with the code
 * SMV_MOVED: the connection that attached last wins.
 */
int smv_attach(struct smv_client *client, uint64_t resume_id, uint32_t from, uint32_t *ret_stream);
/*
 * Stops reading a stream, which goes on.  No more of its events come, and no END.  It is no error
 * if the stream has ended.  -EINVAL: the stream is not resumable.
 */
int smv_detach(struct smv_client *client, uint32_t stream);
/* The daemon forgets the stream; if it is still running, it ends as if it had been cancelled. */
int smv_drop(struct smv_client *client, uint64_t resume_id);

/* Returns the token ids of a text. */
int smv_tokenize(struct smv_client *client, const char *model, const char *text, size_t text_bytes,
                 const uint32_t **ret_tokens, size_t *ret_count);
/* Returns the text of token ids. */
int smv_detokenize(struct smv_client *client, const char *model, const uint32_t *tokens,
                   size_t token_count, const char **ret_text, size_t *ret_bytes);

/* The kinds of tokens.  A newer daemon may know more. */
enum smv_piece_kind {
        SMV_PIECE_TEXT = 0,    /* its bytes are text */
        SMV_PIECE_USER = 1,    /* text that is found before all other text: "<tool_call>" */
        SMV_PIECE_BYTE = 2,    /* one byte of a character that has no token */
        SMV_PIECE_CONTROL = 3, /* not text: "<|im_end|>"; in streams only with control_text */
        SMV_PIECE_UNKNOWN = 4, /* not text: stands for text that has no token */
        SMV_PIECE_UNUSED = 5,  /* no text becomes this token; it may have no bytes */
};

/* The bytes of one token; part of a character, perhaps.  This struct will never grow. */
struct smv_piece {
        const char *bytes; /* not NUL-terminated */
        uint32_t count;
        uint32_t kind; /* enum smv_piece_kind */
};

/*
 * Returns the bytes of each of these tokens, token_count pieces.  Unlike smv_detokenize(), it drops
 * no blank, and shows tokens that are not text as the vocabulary writes them.
 */
int smv_pieces(struct smv_client *client, const char *model, const uint32_t *tokens,
               size_t token_count, const struct smv_piece **ret_pieces);
/*
 * Returns the pieces of the tokens `from`, `from` + 1, ...: at most `count` of them (0: all), fewer
 * if the vocabulary ends, or if they do not fit one frame; at least one.  *ret_vocab is the number
 * of tokens that there are.  So a program gets the whole vocabulary if it asks again from
 * `from` + *ret_count on until that is *ret_vocab.
 */
int smv_vocabulary(struct smv_client *client, const char *model, uint32_t from, uint32_t count,
                   const struct smv_piece **ret_pieces, size_t *ret_count, size_t *ret_vocab);
/* The name of a kind: "control".  Never NULL. */
const char *smv_piece_kind_name(uint32_t kind);

/*
 * Renders a conversation with the model's chat template.  Of the options only the model and the
 * conversation are used.  Returns the text and, unless ret_tokens is NULL, the token ids that a
 * generate would continue.
 */
int smv_template(struct smv_client *client, const struct smv_generate *options,
                 const char **ret_text, size_t *ret_bytes, const uint32_t **ret_tokens,
                 size_t *ret_count);

/*
 * Handles: token histories that the daemon stores, for conversations of many turns.  The tokens of
 * a generate with `.handle` are part of the history as soon as its END event comes.  So the next
 * turn sends only its new tokens, and the earlier turns are neither rendered nor tokenized again.
 *
 * Every connection of the same user may use a handle.  The handle closes with the connection that
 * made it; with `.keep_ms`, it closes when it has not been used for that long.  While a generate
 * on the handle runs, all requests except close are refused with SMV_HANDLE_BUSY.
 *
 * ret_length may be NULL.
 */

/*
 * Opens a handle.  Of the options only the model and the history are used: prompt, tokens or a
 * conversation.
 */
int smv_handle_open(struct smv_client *client, const struct smv_generate *options,
                    uint64_t *ret_handle, size_t *ret_length);
/* Appends tokens to the history. */
int smv_handle_append(struct smv_client *client, uint64_t handle, const uint32_t *tokens,
                      size_t token_count, size_t *ret_length);
/*
 * Tokenizes the text as smv_tokenize() does, and appends the tokens.  Tokens that a chat template
 * would put around the text are not added: append them as tokens.
 */
int smv_handle_append_text(struct smv_client *client, uint64_t handle, const char *text,
                           size_t text_bytes, size_t *ret_length);
/*
 * Appends a turn of a conversation: of the options only messages (or packed_messages),
 * packed_tools, packed_vars, add_generation_prompt and continue_final_message are used.  The
 * messages are those that follow the model's last answer.  The
 * model's chat template renders them alone, with the end of that answer before them and the
 * beginning of the next one behind them, so the history is neither sent nor rendered again.  To
 * begin a conversation, give smv_handle_open() its first messages.  If the model has not answered
 * them yet, the turn follows an empty answer.  The template decides which roles there may be, as
 * for a whole conversation: it refuses a role, or shows it, or skips the message.
 */
int smv_handle_append_messages(struct smv_client *client, uint64_t handle,
                               const struct smv_generate *options, size_t *ret_length);
/* Keeps the first `length` tokens of the history, which must have at least that many. */
int smv_handle_truncate(struct smv_client *client, uint64_t handle, size_t length);
/* Makes `count` (1 to 1024) new handles with the same history.  Each then changes independently. */
int smv_handle_fork(struct smv_client *client, uint64_t handle, size_t count,
                    uint64_t *ret_handles);
/*
 * Pins the history in the KV pool: prefills the part that is not there, so that every process of
 * the user finds it.  Then, for `ms` milliseconds, the pool evicts it only when it can evict
 * nothing else.
 *
 * This is a stream without tokens.  Its END says what the prefill cost, and the time starts there.
 * ms 0 unpins the history; then there is no stream, and *ret_stream is not set.
 */
int smv_handle_pin(struct smv_client *client, uint64_t handle, uint32_t ms,
                   enum smv_priority priority, uint32_t *ret_stream);
/*
 * Does the same as smv_handle_fork(), but the new handles outlive this connection.  Each stays open
 * until `keep_ms` after its last use.
 */
int smv_handle_fork_keep(struct smv_client *client, uint64_t handle, size_t count, uint32_t keep_ms,
                         uint64_t *ret_handles);
/*
 * Shares the first `length` tokens of the history (0: all of them) with other users, if the
 * daemon's settings allow it.  `group`: share with the members of that group, to which this
 * process must belong; NULL: share with every user.  Prompts that begin with these tokens then
 * find them in the cache.  So other users can learn that the tokens are published, by trying.
 *
 * This is a stream as in smv_handle_pin().  The tokens are shared until smv_handle_revoke(), or
 * until the handle closes.
 */
int smv_handle_publish(struct smv_client *client, uint64_t handle, size_t length,
                       const uint32_t *group, uint32_t *ret_stream);
/* Ends the sharing of a published history. */
int smv_handle_revoke(struct smv_client *client, uint64_t handle);
/* Closes the handle.  A stream that runs on it ends as if it had been cancelled. */
int smv_handle_close(struct smv_client *client, uint64_t handle);

/*
 * Beam search: finds the continuations that are the likeliest as a whole.  No other stream of the
 * client may be alive, and no reply may be outstanding (-EBUSY).  Returns when the search is done,
 * with at most `width` results, the best first.  Their memory is valid until the next call.
 */
#define SMV_BEAM_WIDTH_MAX 16u

struct smv_beam {
        size_t size;
        /*
         * Of this the search uses the model, the prompt or handle (the handle does not change),
         * max_tokens (0: 256) and the priority.
         */
        const struct smv_generate *start;
        /* The number of beams; 0: 4.  width * (1 + the model's end tokens) may be at most 32. */
        size_t width;
        /*
         * The score of a beam: the sum of its logprobs / (its number of tokens ^ length_penalty).
         */
        float length_penalty;
        size_t count; /* how many results are wanted; 0: all */
};

struct smv_beam_result {
        const uint32_t *tokens; /* without the end token, if there is one */
        size_t token_count;
        const char *text;
        size_t text_bytes;
        double score;
        int ended; /* 1: by an end token of the model; 0: max_tokens was reached */
};

/*
 * Runs a beam search, and returns its results.  It takes as long as it needs; it ends with
 * -ETIMEDOUT only if the daemon does not answer (reply_timeout_ms).
 */
int smv_beam(struct smv_client *client, const struct smv_beam *options,
             const struct smv_beam_result **ret_results, size_t *ret_count);

/* The daemon's counters as one JSON object, NUL-terminated. */
int smv_status(struct smv_client *client, const char **ret_json);

/*
 * The streams and handles of this user as one JSON object, NUL-terminated; for root and the user of
 * the daemon, those of all users.  Each has a number, which names it to smv_end(): for a resumable
 * stream its resume id, for a handle its id.  docs/reference/protocol.md has the keys.
 */
int smv_list(struct smv_client *client, const char **ret_json);
/*
 * The use of each block of the KV pool, from block `from` on, as one JSON object, NUL-terminated.
 * Root and the user of the daemon see the blocks of all users, others their own.  `next` in the
 * object is the first block that is not described: ask again from there, unless it is `blocks`.
 * docs/reference/protocol.md has the keys.
 */
int smv_pool(struct smv_client *client, uint32_t from, const char **ret_json);
/*
 * Ends a stream, or closes a handle, whichever connection it belongs to.  A stream still has its
 * END (cancelled).  The code is SMV_NO_STREAM if there is none of this number, or if the stream is
 * ending already.  Root and the user of the daemon may end those of all users.
 */
int smv_end(struct smv_client *client, uint64_t number);
/*
 * The number of a living stream, by which smv_list() and `samovar ps` show it and smv_end() ends
 * it, for a log.  0: the stream has had its END, or the daemon is older than the library.
 */
uint64_t smv_stream_number(const struct smv_client *client, uint32_t stream);

/*
 * Requests that do not wait, for programs with an event loop.  Each does what the call of the same
 * name without `ask_` does, but returns at once, even if the daemon is stopped or busy.  0 means
 * that the request is sent, or waits to be sent.  smv_next() returns the answer as an event REPLY,
 * whose `stream` is the id that the call has returned.
 *
 * If its `code` is not SMV_OK, the request failed, and smv_error() describes the failure until the
 * next call.  The daemon refused the request; or the code is SMV_LOST; or it is SMV_INTERNAL, and
 * the daemon's answer lacks something.
 *
 * If a request begins streams, there is one REPLY, whose `stream` is the id of the first.  It comes
 * before all other events of these streams.  With SMV_OK they have begun, and smv_accepted()
 * describes them.  With another code they have not: no END comes, and their ids are free.  Until
 * the REPLY, smv_cancel() is the only call that takes such an id.
 *
 * Replies come in no particular order.  Calls that wait may be mixed with these; they leave the
 * replies to others for smv_next().  There is no time limit for a reply: a program that wants one
 * has its own, and may smv_close().  If the connection is lost, each outstanding request has its
 * REPLY, with the code SMV_LOST; its streams have no END.
 *
 * -EBUSY: 4096 replies are outstanding, or the daemon has not taken 64 MiB of requests.
 */

/* As smv_generate(); the REPLY has the resume id as `number`, with keep_ms. */
int smv_ask_generate(struct smv_client *client, const struct smv_generate *options,
                     uint32_t *ret_stream);
/* As smv_fork(): it returns the ids of `count` streams, of which the first is that of the REPLY. */
int smv_ask_fork(struct smv_client *client, uint32_t stream, const struct smv_fork *options,
                 uint32_t *ret_streams);
/* As smv_attach(); the REPLY has the resume id as `number`. */
int smv_ask_attach(struct smv_client *client, uint64_t resume_id, uint32_t from,
                   uint32_t *ret_stream);
/*
 * As smv_detach(); events of the stream may come until the REPLY.  -EBUSY: the REPLY of the
 * stream itself has not come.
 */
int smv_ask_detach(struct smv_client *client, uint32_t stream, uint32_t *ret_request);
/* As smv_drop(); the REPLY has only its code. */
int smv_ask_drop(struct smv_client *client, uint64_t resume_id, uint32_t *ret_request);
/* As smv_template(); the REPLY has `text`, and `tokens` if `tokenize` is not 0. */
int smv_ask_template(struct smv_client *client, const struct smv_generate *options, int tokenize,
                     uint32_t *ret_request);
/* As smv_tokenize(); the REPLY has `tokens`. */
int smv_ask_tokenize(struct smv_client *client, const char *model, const char *text,
                     size_t text_bytes, uint32_t *ret_request);
/* As smv_detokenize(); the REPLY has `text`. */
int smv_ask_detokenize(struct smv_client *client, const char *model, const uint32_t *tokens,
                       size_t token_count, uint32_t *ret_request);
/* As smv_pieces(); the REPLY has `pieces`. */
int smv_ask_pieces(struct smv_client *client, const char *model, const uint32_t *tokens,
                   size_t token_count, uint32_t *ret_request);
/*
 * As smv_vocabulary(); the REPLY has `pieces`, and the number of tokens that there are as
 * `number`.
 */
int smv_ask_vocabulary(struct smv_client *client, const char *model, uint32_t from, uint32_t count,
                       uint32_t *ret_request);
/* As smv_status(); the REPLY has the object as `text`, NUL-terminated. */
int smv_ask_status(struct smv_client *client, uint32_t *ret_request);
/* As smv_list(); the REPLY has the object as `text`, NUL-terminated. */
int smv_ask_list(struct smv_client *client, uint32_t *ret_request);
/* As smv_pool(); the REPLY has the object as `text`, NUL-terminated. */
int smv_ask_pool(struct smv_client *client, uint32_t from, uint32_t *ret_request);
/* As smv_end(); the REPLY has only its code. */
int smv_ask_end(struct smv_client *client, uint64_t number, uint32_t *ret_request);
/* As smv_handle_open(); the REPLY has the handle as `number`, and `length`. */
int smv_ask_handle_open(struct smv_client *client, const struct smv_generate *options,
                        uint32_t *ret_request);
/* As smv_handle_append(); the REPLY has `length`. */
int smv_ask_handle_append(struct smv_client *client, uint64_t handle, const uint32_t *tokens,
                          size_t token_count, uint32_t *ret_request);
/* As smv_handle_append_text(); the REPLY has `length`. */
int smv_ask_handle_append_text(struct smv_client *client, uint64_t handle, const char *text,
                               size_t text_bytes, uint32_t *ret_request);
/* As smv_handle_append_messages(); the REPLY has `length`. */
int smv_ask_handle_append_messages(struct smv_client *client, uint64_t handle,
                                   const struct smv_generate *options, uint32_t *ret_request);
/* As smv_handle_truncate(); the REPLY has `length`. */
int smv_ask_handle_truncate(struct smv_client *client, uint64_t handle, size_t length,
                            uint32_t *ret_request);
/*
 * As smv_handle_fork_keep() for one new handle, which the REPLY has as `number`; keep_ms 0: it
 * closes with this connection.
 */
int smv_ask_handle_fork(struct smv_client *client, uint64_t handle, uint32_t keep_ms,
                        uint32_t *ret_request);
/* As smv_handle_pin(); with ms 0 there is only the REPLY. */
int smv_ask_handle_pin(struct smv_client *client, uint64_t handle, uint32_t ms,
                       enum smv_priority priority, uint32_t *ret_stream);
/* As smv_handle_publish(). */
int smv_ask_handle_publish(struct smv_client *client, uint64_t handle, size_t length,
                           const uint32_t *group, uint32_t *ret_stream);
/* As smv_handle_revoke(); the REPLY has only its code. */
int smv_ask_handle_revoke(struct smv_client *client, uint64_t handle, uint32_t *ret_request);
/* As smv_handle_close(); the REPLY has only its code. */
int smv_ask_handle_close(struct smv_client *client, uint64_t handle, uint32_t *ret_request);

/*
 * 1: requests wait to be sent, because the daemon does not take them.  Then also wait until
 * smv_fd() is writable, and call smv_next(…, 0), which sends them.  0: nothing waits.
 */
int smv_wants_write(const struct smv_client *client);

/* Describes the last failed call on this client, or the failure that its last event reports. */
void smv_error(const struct smv_client *client, struct smv_problem *ret_problem);

/* The name of a code: "too_long".  Never NULL. */
const char *smv_code_name(enum smv_code code);
/* The description of a code: a sentence for people.  Never NULL. */
const char *smv_code_text(enum smv_code code);
/* The name of the reason why a stream ended: "length".  Never NULL. */
const char *smv_reason_name(enum smv_reason reason);

/* The version of the library in use: "0.1.0". */
const char *smv_version(void);

#ifdef __cplusplus
}
#endif

#endif
