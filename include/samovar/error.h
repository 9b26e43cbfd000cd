/*
 * The codes of refusals and failed requests, and the reasons why a stream ends.
 *
 * These numbers cross the socket (the `code` of an error reply, the `code` of
 * an END record) and never change their meaning.  Each has one short name, the
 * `error` of a reply, and one sentence for people.  The daemon never sends
 * SMV_LOST: the client library reports it when the daemon is gone.
 */
#ifndef SAMOVAR_ERROR_H
#define SAMOVAR_ERROR_H

/* clang-format off */
#define SMV_ERRORS(X)                                                                   \
        X( 0, OK,            "ok",            "no error")                               \
        X( 1, BAD_FRAME,     "bad_frame",     "the frame is not one well-formed msgpack map within the limits") \
        X( 2, BAD_FIELD,     "bad_field",     "a field is unknown, given twice, or not for this operation") \
        X( 3, BAD_VALUE,     "bad_value",     "a field has the wrong type or is out of range") \
        X( 4, RESERVED,      "reserved",      "a field is reserved for a later version") \
        X( 5, MISSING,       "missing",       "a required field is missing")            \
        X( 6, NO_HELLO,      "no_hello",      "the first request must be hello, once")  \
        X( 7, VERSION,       "version",       "no protocol version in common")          \
        X( 8, DUP_ID,        "dup_id",        "the id belongs to a request that is still alive") \
        X( 9, NO_MODEL,      "no_model",      "no model of that name is served")        \
        X(10, TOO_LONG,      "too_long",      "prompt and continuation do not fit the context") \
        X(11, TOO_LARGE,     "too_large",     "the request could never fit the KV pool") \
        X(12, QUOTA,         "quota",         "a limit for this user is reached")       \
        X(13, BUSY,          "busy",          "a limit of the whole daemon is reached") \
        X(14, SHUTTING_DOWN, "shutting_down", "the daemon is stopping")                 \
        X(15, NUMERIC,       "numeric",       "the model's output was not a finite number") \
        X(16, NO_MEMORY,     "no_memory",     "the daemon is out of memory")            \
        X(17, INTERNAL,      "internal",      "the daemon failed; its log says more")   \
        X(18, TIMEOUT,       "timeout",       "a deadline passed")                      \
        X(19, LOST,          "lost",          "the daemon is gone")                 \
        X(20, CANCELLED,     "cancelled",     "cancelled before it began") \
        X(21, NO_TEMPLATE,   "no_template",   "the model has no chat template that can be used") \
        X(22, NO_HANDLE,     "no_handle",     "there is no such handle") \
        X(23, HANDLE_BUSY,   "handle_busy",   "the handle is in use by an earlier request") \
        X(24, NO_STREAM,     "no_stream",     "the stream has ended, or has not begun") \
        X(25, NO_RESUMABLE,  "no_resumable",  "there is no resumable stream with this id") \
        X(26, MOVED,         "moved",         "another connection reads the stream now") \
        X(27, BACKEND,       "backend",       "the hardware that runs the model has failed, and the daemon stops") \
        X(28, DENIED,        "denied",        "the daemon cannot tell which user this is, or the process may not speak for another one") \
        X(29, NO_TOKEN,      "no_token",      "no token is allowed to come next") \
        X(30, CONSTRAINT,    "constraint",    "the constraint of the output takes too much work") \
        X(31, NO_ANSWER,     "no_answer",     "the client did not answer in time, and no other draw was asked for") \
        X(32, BAD_ANSWER,    "bad_answer",    "the client answered with a token that is not legal")
/* clang-format on */

enum smv_code {
#define X(number, name, word, text) SMV_##name = number,
        SMV_ERRORS(X)
#undef X
};

/* Why a stream ended: the `reason` of its one END record. */
enum smv_reason {
        SMV_END_EOS = 1,       /* the model generated an end token */
        SMV_END_STOP = 2,      /* a stop string or a stop token of the request */
        SMV_END_LENGTH = 3,    /* max_tokens is reached, or the context is full */
        SMV_END_CANCELLED = 4, /* the client asked for it */
        SMV_END_STALLED = 5,   /* the client has not read for too long */
        SMV_END_ERROR = 6,     /* `code` says which; the library itself sets LOST */
};

/* With SMV_END_STOP: which of the request's stops ended the stream, with its index. */
enum smv_stopped_by {
        SMV_STOPPED_BY_NOTHING = 0, /* another reason; or the daemon is older, and does not say */
        SMV_STOPPED_BY_STRING = 1,
        SMV_STOPPED_BY_TOKEN = 2,
};

#define SMV_DRAFT_TOKENS_MAX 16u /* of a guess at the next tokens */

/* Why no guess at the next tokens of a stream was computed. */
enum smv_no_drafts {
        SMV_DRAFTS_POSSIBLE = 0, /* ... or the daemon is older, and does not say */
        SMV_DRAFTS_OFF = 1,      /* by the daemon's setting, or the request's */
        SMV_DRAFTS_ASKED = 2,    /* the client is asked before each token */
        SMV_DRAFTS_MIROSTAT = 3, /* it learns from each token */
};

/* A stream asks its client for this before each token. */
enum smv_ask {
        SMV_ASK_NOTHING = 0,
        SMV_ASK_MASK = 1,  /* the tokens that are legal; then the daemon draws one */
        SMV_ASK_TOKEN = 2, /* the token; the daemon shows the one that it has drawn */
};
#define SMV_TOKEN_AS_DRAWN 0xffffffffu /* an answer: the token that the daemon has drawn */

/* The kinds of parts that a stream's text is divided into; a newer daemon may have more. */
enum smv_part_kind {
        SMV_PART_TEXT = 0,
        SMV_PART_REASONING = 1,
        SMV_PART_CALL = 2,      /* the name of a tool, whole: a call begins */
        SMV_PART_ARGUMENTS = 3, /* JSON text; those of a call together are one object */
        SMV_PART_CALL_END = 4,  /* no bytes: the call is whole, or has the flag CUT */
};

/* Of a part; the END has those of all its parts. */
enum smv_parts_flag {
        SMV_PARTS_UNPARSED = 1, /* TEXT: it began as a call, and could not be read as one */
        SMV_PARTS_CUT = 2,      /* CALL_END: the arguments are not whole; END: a call was cut */
        SMV_PARTS_LIMIT = 4, /* END: reasoning had as many tokens as it may have, and was ended */
};

#endif
