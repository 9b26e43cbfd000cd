/*
 * libsamovar: ask a running samovard for tokens.
 *
 *      struct smv_client *c;
 *      struct smv_event e = { SMV_SIZE(smv_event) };
 *      uint32_t stream;
 *
 *      smv_connect(NULL, &c);
 *      smv_generate(c, &(struct smv_generate){ SMV_SIZE(smv_generate), .prompt = "Once" }, &stream);
 *      while (smv_next(c, &e, -1) > 0 && e.kind != SMV_EVENT_END)
 *              fwrite(e.text, 1, e.text_bytes, stdout);
 *      smv_close(c);
 *
 * A client is one connection.  It makes no threads, installs no signal handler,
 * allocates nothing per token and may be used from one thread at a time.  A
 * daemon that dies costs nothing but its streams: each of them still ends with
 * one END event, reason ERROR, code SMV_LOST, and no call ever hangs on it.
 *
 * Functions return 0 or a positive count, a negative errno where the world
 * failed, and -EREMOTEIO where the daemon refused: smv_error() then has its
 * code, field and message.  Structs begin with their size, so that a program
 * compiled against an older header keeps working; fill it with SMV_SIZE.
 * Everything an event or an answer points at is valid until the next call.
 */
#ifndef SAMOVAR_CLIENT_H
#define SAMOVAR_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <samovar/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SMV_SIZE(type) .size = sizeof(struct type)

struct smv_client;

/* How records come: through memory that the daemon shares, or inside the socket's frames. */
enum smv_transport {
        SMV_TRANSPORT_AUTO = 0, /* a ring, where the daemon has one for us and can hand it over */
        SMV_TRANSPORT_RING = 1, /* that or no connection */
        SMV_TRANSPORT_SOCKET = 2,
};

/* How a reader of a ring that sleeps is woken. */
enum smv_doorbell {
        SMV_DOORBELL_KICK = 0,  /* smv_fd() becomes readable */
        SMV_DOORBELL_FUTEX = 1, /* cheaper for the daemon; smv_next() only, not for poll() */
        SMV_DOORBELL_NONE = 2,  /* not at all: for programs that call smv_next(…, 0) in turns */
};

struct smv_connect {
        size_t size;
        const char *socket; /* a path; NULL: $SAMOVAR_SOCKET, else the usual place */
        int fd;             /* a connected socket to take over, if `use_fd`; closed on failure */
        int use_fd;
        int timeout_ms; /* for connecting and hello; 0: 10 s */
        char *message;  /* where to put the reason of a failure, or NULL */
        size_t message_bytes;
        int any_uid; /* else the daemon has to run as us or as root; a given fd is not checked */
        enum smv_transport transport;
        enum smv_doorbell doorbell;
        size_t ring_bytes; /* 64 KiB to 1 MiB, a power of two; 0: the daemon's choice */
        uint32_t spin_us;  /* smv_next() looks at the ring for long before it sleeps */
};

/* Fields left zero take the daemon's defaults; `set` says which zeros are meant. */
enum smv_set {
        SMV_SET_TEMPERATURE = 1u << 0,
        SMV_SET_TOP_P = 1u << 1,
        SMV_SET_MIN_P = 1u << 2,
        SMV_SET_TOP_K = 1u << 3,
        SMV_SET_SEED = 1u << 4,
        SMV_SET_LOGPROBS = 1u << 5, /* 0 of them: only of the tokens that come */
        SMV_SET_PRIORITY = 1u << 6, /* of a fork */
};

/* Who goes first, and who may have to wait again in the midst of it. */
enum smv_class {
        SMV_CLASS_NORMAL = 0,
        SMV_CLASS_INTERACTIVE = 1, /* somebody sits there and waits */
        SMV_CLASS_BACKGROUND = 2,  /* gives way to all others */
};

/* What somebody said.  This one struct has no size, and never grows. */
struct smv_message {
        const char *role; /* "system", "user", "assistant" ... */
        const char *content;
        size_t content_bytes; /* 0: up to its NUL */
};

/* One msgpack value, made by the caller; bytes NULL: none. */
struct smv_packed {
        const void *bytes;
        size_t count;
};

struct smv_generate {
        size_t size;
        const char *model;   /* NULL: the default one */
        const char *prompt;  /* text, or one of the following: tokens, messages */
        size_t prompt_bytes; /* 0: up to its NUL */
        const uint32_t *tokens;
        size_t token_count;
        uint32_t max_tokens; /* 0: the daemon's default */
        uint32_t set;        /* enum smv_set */
        float temperature, top_p, min_p;
        uint32_t top_k;
        uint64_t seed;
        const char *const *stops; /* strings that end it, not part of the text */
        size_t stop_count;
        const uint32_t *stop_tokens;
        size_t stop_token_count;
        int ignore_eos;
        /*
         * A conversation, from which the model's chat template makes the prompt.  What two texts
         * cannot say (calls of tools, parts, ...) is said in msgpack: an array of maps as in
         * docs/protocol.md, and with either the same for tools, and a map of template_vars.
         */
        const struct smv_message *messages;
        size_t message_count;
        struct smv_packed packed_messages; /* in place of messages */
        struct smv_packed packed_tools, packed_vars;
        enum smv_class priority;
        uint64_t handle; /* in place of a prompt: the history to continue; 0: none */
        /*
         * So many streams of one prompt, with numbers in a row; 0: one, at most 64.  They say the same
         * and differ in their choice alone, which is `choice`, `choice` + 1, ...; so each of them can
         * be had again by itself.
         */
        uint32_t n;
        uint32_t choice;
        uint32_t deadline_ms; /* from now: it ends then, as it is, with SMV_TIMEOUT; 0: never */
        uint32_t logprobs; /* events tell of so many likeliest tokens, up to 32; or with `set`: 0 */
        /* The stream, or the handle that is opened, outlives this connection for so long; 0: it does not. */
        uint32_t keep_ms;
};

/* What the daemon said of a stream when it took it. */
struct smv_accepted {
        size_t size;            /* set by the caller */
        uint32_t prompt_tokens; /* and so many may follow: */
        uint32_t max_tokens;
        uint32_t position; /* requests that wait before it */
        uint64_t wait_ms;  /* about, to its first token */
};

/* What is left zero is as the stream that is forked has it; `set` says which zeros are meant. */
struct smv_fork {
        size_t size;
        uint32_t count;      /* 1 to 1024 */
        uint32_t max_tokens; /* 0: what the stream has left */
        uint32_t set;        /* enum smv_set */
        float temperature, top_p, min_p;
        uint32_t top_k;
        uint64_t seed;
        uint32_t choice; /* of the first; 0: the next that none of its family has */
        enum smv_class priority;
};

enum smv_event_kind { SMV_EVENT_NONE = 0, SMV_EVENT_TOKENS = 1, SMV_EVENT_END = 2 };

/* The log of a token's probability at its place, of all tokens', before temperature and cuts. */
struct smv_logprob {
        uint32_t token;
        float logprob;
};

struct smv_event {
        size_t size; /* set by the caller, as in the options */
        enum smv_event_kind kind;
        uint32_t stream;
        /* TOKENS: what is new */
        const uint32_t *tokens;
        size_t token_count;
        const char *text; /* not ended by a NUL */
        size_t text_bytes;
        uint32_t position;
        /* END */
        enum smv_reason reason;
        enum smv_code code;
        uint32_t prompt_tokens, cached_tokens, output_tokens;
        uint64_t queued_ns, prefill_ns, decode_ns;
        /* Why no more was cached: there, what the daemon knows of this user goes on otherwise. */
        uint32_t diverged_at;              /* a position of the prompt; 0: nowhere */
        uint32_t known_token, asked_token; /* what stands there, and in the prompt */
        /* TOKENS, if they were asked for: for each token its own, then the top_count likeliest */
        const struct smv_logprob *logprobs; /* NULL: not asked for */
        size_t top_count;
        uint32_t sequence; /* of this record in its stream: who has it goes on with the next one */
};

struct smv_problem {
        size_t size;        /* set by the caller */
        enum smv_code code; /* OK: it was not the daemon who refused */
        const char *name;   /* "too_long" */
        const char *field;  /* "" where no field is to blame */
        const char *message;
};

/* NULL options: all defaults. */
int smv_connect(const struct smv_connect *options, struct smv_client **ret_client);

/* Takes NULL.  Every stream still alive is cancelled by the hang-up. */
struct smv_client *smv_close(struct smv_client *client);

/* Begins a stream, or `n`, of which it returns the first's number.  Returns once the daemon has
 * accepted or refused all of them. */
int smv_generate(struct smv_client *client, const struct smv_generate *options,
                 uint32_t *ret_stream);

/* Of the stream that this client began last; all 0 before the first. */
void smv_accepted(const struct smv_client *client, struct smv_accepted *ret_accepted);

/*
 * Begins `count` streams that go on from where that one is when the daemon takes this, which goes on
 * itself; nothing before is computed again.  Their first event says by its position where that was; the text
 * of the stream up to there and theirs are one text.  They ask what it did, and draw otherwise.  A
 * stream that has ended is refused with SMV_NO_STREAM; where it ended on the way, so do the
 * forks, at once, with that code.  ret_streams has room for all their numbers.
 */
int smv_fork(struct smv_client *client, uint32_t stream, const struct smv_fork *options,
             uint32_t *ret_streams);

/*
 * The next event of any stream: 1 and *ret_event; 0 when nothing came within
 * timeout_ms (0: do not wait, -1: wait for ever); -ENODATA when no stream is
 * alive, so that nothing will come; -ENOTCONN once the daemon is gone and every
 * stream has had its END.
 */
int smv_next(struct smv_client *client, struct smv_event *ret_event, int timeout_ms);

/*
 * For poll(): readable when something has come, the death of the daemon included.
 * Call smv_next(…, 0) until it returns 0 before sleeping on it.
 */
int smv_fd(const struct smv_client *client);

/*
 * For readers in no hurry: from now on a sleep, in smv_next() or on smv_fd(), goes on
 * until about so many bytes of records have come (32 for a token), a stream ends, or
 * it has lasted long enough.  0: until the next record, as at the start.
 */
void smv_batch(struct smv_client *client, size_t bytes);

/* What AUTO became: RING or SOCKET. */
enum smv_transport smv_transport_used(const struct smv_client *client);

/* Does not wait; the stream still ends with its END.  An ended stream is no error. */
int smv_cancel(struct smv_client *client, uint32_t stream);

/*
 * Streams that outlive their connection: a generate with `.keep_ms` is known by a number, too, and
 * when its connection ends, however that happens, it goes on.  For keep_ms the same user may attach
 * to it from any connection, from any record on, and gets what he would have got, the END included.
 * So a program that notes the number, and with what it keeps of the text the sequence of the last
 * event, goes on after a crash where it was.  What it has whole it should drop, for a user may
 * have only so many.  Their events come by the socket, also where others come through a ring.
 */
uint64_t smv_kept(const struct smv_client *client, uint32_t stream); /* its number; 0: none */

/*
 * From the record with this sequence on; 0: all of it.  Another who is attached has an END with the
 * code SMV_MOVED: the last one who comes is right.
 */
int smv_attach(struct smv_client *client, uint64_t kept, uint32_t from, uint32_t *ret_stream);
/* No more of its events come, nor an END, and it goes on.  An ended stream is no error. */
int smv_detach(struct smv_client *client, uint32_t stream);
/* It is forgotten; if it runs it ends, as if cancelled. */
int smv_drop(struct smv_client *client, uint64_t kept);

int smv_tokenize(struct smv_client *client, const char *model, const char *text, size_t text_bytes,
                 const uint32_t **ret_tokens, size_t *ret_count);
int smv_detokenize(struct smv_client *client, const char *model, const uint32_t *tokens,
                   size_t token_count, const char **ret_text, size_t *ret_bytes);

/*
 * What the chat template makes of the conversation in these options, of which only that and the
 * model are looked at: the text, and unless ret_tokens is NULL its ids, as they would be continued.
 */
int smv_template(struct smv_client *client, const struct smv_generate *options,
                 const char **ret_text, size_t *ret_bytes, const uint32_t **ret_tokens,
                 size_t *ret_count);

/*
 * Handles: histories of tokens that the daemon holds, for conversations that go on turn by turn.
 * What a generate with `.handle` brings belongs to the history from its END event on; so the next
 * turn sends only what is new, and nothing is rendered or recognised a second time.  A handle may
 * be named by every connection of the same user, and closes with the one that made it; with
 * `.keep_ms`, when nobody has named it for so long.  While
 * something is generated on it, all but close are refused with SMV_HANDLE_BUSY.
 * Where a length comes back, NULL says that it is not wanted.
 */

/* Of these options the model and what is to be the history are looked at: prompt, tokens or a conversation. */
int smv_handle_open(struct smv_client *client, const struct smv_generate *options,
                    uint64_t *ret_handle, size_t *ret_length);
int smv_handle_append(struct smv_client *client, uint64_t handle, const uint32_t *tokens,
                      size_t token_count, size_t *ret_length);
/* A text as smv_tokenize() takes it apart: what a template would put around it has to come as tokens. */
int smv_handle_append_text(struct smv_client *client, uint64_t handle, const char *text,
                           size_t text_bytes, size_t *ret_length);
/* To so many tokens, of those that it has. */
int smv_handle_truncate(struct smv_client *client, uint64_t handle, size_t length);
/* `count` more with the same history, which from then on go their own ways; 1 to 1024. */
int smv_handle_fork(struct smv_client *client, uint64_t handle, size_t count,
                    uint64_t *ret_handles);
/*
 * Reads the history where it is not in the pool, so that every process of the user finds it there, and
 * asks for it to be evicted after all else, for so long.  That is a stream without tokens, whose END
 * says what it cost; then the time begins.  With ms 0 that is over, and there is no stream.
 */
int smv_handle_hold(struct smv_client *client, uint64_t handle, uint32_t ms,
                    enum smv_class priority, uint32_t *ret_stream);
/* The same, and they outlive this connection for so long after their last use. */
int smv_handle_fork_kept(struct smv_client *client, uint64_t handle, size_t count, uint32_t keep_ms,
                         uint64_t *ret_handles);
/*
 * Shows the first `length` tokens of the history (0: all of them) to other users, where the daemon lets
 * anybody publish: those of a group that this process is in, or with NULL everyone.  Prompts that begin
 * with them find them, and whoever tries can learn that they are there.  It is a stream as of a hold; it
 * lasts until smv_handle_revoke(), or as long as the handle.
 */
int smv_handle_publish(struct smv_client *client, uint64_t handle, size_t length,
                       const uint32_t *group, uint32_t *ret_stream);
int smv_handle_revoke(struct smv_client *client, uint64_t handle);
/* What is generated on it ends, as if cancelled. */
int smv_handle_close(struct smv_client *client, uint64_t handle);

/*
 * Beam search: of many ways to go on, the likeliest as a whole.  Other streams of the client must
 * be over.  It returns when it is done: with the best first, in memory that is valid until the
 * next call, at most `width` of them.
 */
#define SMV_BEAM_WIDTH_MAX 16u

struct smv_beam {
        size_t size;
        /* The model, where to begin (a handle stays as it is), max_tokens (0: 256) and the class. */
        const struct smv_generate *start;
        size_t width; /* ways that are followed; 0: 4.  With the tokens that end: 32 in all */
        float length_penalty; /* a way's score is its sum of logprobs / its tokens to this power */
        size_t count;         /* how many are wanted; 0: all */
};

struct smv_beam_result {
        const uint32_t *tokens; /* without the one that ended it */
        size_t token_count;
        const char *text;
        size_t text_bytes;
        double score;
        int ended; /* by a token of the model's; else max_tokens were reached */
};

int smv_beam(struct smv_client *client, const struct smv_beam *options,
             const struct smv_beam_result **ret_results, size_t *ret_count);

/* The daemon's counts as one JSON object, NUL-ended. */
int smv_status(struct smv_client *client, const char **ret_json);

/* What the last failed call on this client met. */
void smv_error(const struct smv_client *client, struct smv_problem *ret_problem);

/* Words for numbers: "too_long", "the prompt …"; never NULL. */
const char *smv_code_name(enum smv_code code);
const char *smv_code_text(enum smv_code code);
const char *smv_reason_name(enum smv_reason reason);

/* "0.1.0" of the library in use. */
const char *smv_version(void);

#ifdef __cplusplus
}
#endif

#endif
