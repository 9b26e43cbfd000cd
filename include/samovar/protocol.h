/*
 * The control socket: the format of a frame, and the limits of its contents.
 *
 *      frame   u32 length, little-endian; then `length` bytes: one msgpack map
 *
 * A frame of length 0 is a doorbell.  From the daemon it means: look at the ring.
 * From the client it means: I have read again after a stall.
 *
 * The client sends requests {op, id, ...}.  The daemon answers each of them with
 * exactly one reply, {id, ok: true, ...} or {id, error, code, message, field?}.
 * A reply has the id of its request; replies come in any order.
 *
 * An ok reply to `generate` means that a stream with the same id has begun.  The
 * stream ends with exactly one END record.  Its records come through the ring
 * (ring.h), whose two descriptors come with the first byte of hello's reply.  With
 * the transport "socket" they come as frames {records: bin}, where the bin holds
 * whole records.  Records of a resumable stream (keep_ms) always come in frames.
 *
 * The daemon ignores no field and converts no value.  It refuses an unknown field,
 * a value of another type, or a value out of range, and names the field.
 * docs/reference/protocol.md describes every operation and field, for people who write a
 * client in another language.
 *
 * Version 0: it may still change with any release.
 */
#ifndef SAMOVAR_PROTOCOL_H
#define SAMOVAR_PROTOCOL_H

#define SMV_PROTOCOL_VERSION 0

#define SMV_FRAME_BYTES_MAX (8u << 20) /* the default; hello's reply has the daemon's limit */
#define SMV_NESTING_MAX     32u        /* levels of nested arrays and maps */
#define SMV_KEYS_MAX        64u        /* keys in one map */

#define SMV_TOKENS_MAX   (1u << 20) /* ids in one request */
#define SMV_MESSAGES_MAX (1u << 14) /* messages, or tools, of a conversation */
/* Values in one conversation: each text, number, array, map and key counts. */
#define SMV_VALUES_MAX (1u << 16)

/* Words of the field `priority`.  Of the requests of a user, the first is served first. */
#define SMV_PRIORITIES(X)                                                                          \
        X(INTERACTIVE, "interactive") /* a person waits for the answer */                          \
        X(NORMAL, "normal")                                                                        \
        X(BACKGROUND, "background") /* may be preempted for the other two of its user */

/* Kinds of tokens: the numbers in the field `kinds` of the reply to `pieces`. */
#define SMV_PIECE_KINDS(X)                                                                         \
        X(0, TEXT, "text")                                                                         \
        X(1, USER, "user")       /* text that is found before all other text: <tool_call> */       \
        X(2, BYTE, "byte")       /* one byte of a character that has no token */                   \
        X(3, CONTROL, "control") /* not text: <|im_end|> */                                        \
        X(4, UNKNOWN, "unknown") /* not text: stands for text that has no token */                 \
        X(5, UNUSED, "unused")   /* no text becomes this token */

#define SMV_STOPS_MAX            16u        /* stop strings; the same limit for stop tokens */
#define SMV_STOP_BYTES_MAX       256u       /* bytes of a stop string, banned text or breaker */
#define SMV_CONSTRAINT_BYTES_MAX (1u << 20) /* bytes of the description of a constraint */
#define SMV_NAME_BYTES_MAX       64u        /* bytes of a model's name */
#define SMV_ALLOWED_TOOLS_MAX    128u       /* names of tools that may be called */
#define SMV_TOOL_BYTES_MAX       128u       /* bytes of a tool's name */
#define SMV_CALLS_MAX            1024u      /* tool calls that calls_max may ask for */
#define SMV_PRINCIPAL_BYTES_MAX  64u        /* bytes of a principal's name */
#define SMV_TOP_K_MAX            1024u
#define SMV_TEMPERATURE_MAX      100u
#define SMV_N_SIGMA_MAX          100u
#define SMV_EXPONENT_MAX         100u  /* of a dynamic temperature */
#define SMV_BIASES_MAX           1024u /* pairs of logit_bias */
#define SMV_BIAS_MAX             1000  /* of one of them, and of its negative */
#define SMV_PENALTY_MAX          100
#define SMV_WINDOW_MAX           3072u /* tokens before a draw that penalties look at */
#define SMV_NGRAM_MAX            64u
#define SMV_BREAKERS_MAX         16u
#define SMV_BANNED_TEXTS_MAX     64u
#define SMV_CHAIN_BYTES          160u /* of a sampler chain, with its NUL */
#define SMV_MIROSTAT_TAU_MAX     100u /* bits */
#define SMV_MIROSTAT_ETA_MAX     10u
#define SMV_REASONING_END_MAX    1024u /* bytes of reasoning_end */
#define SMV_PREDICTION_BYTES_MAX (1u << 20)
/* The most likely tokens that are reported with each generated token. */
#define SMV_LOGPROBS_MAX  32u
#define SMV_ROW_TOP_MAX   256u      /* the same of a ROW record */
#define SMV_ASK_SLOTS_MAX 64u       /* of a connection: streams that ask their client at a time */
#define SMV_ASK_MS        1000u     /* milliseconds for an answer, if the request does not say */
#define SMV_ASK_MS_MAX    600000u   /* ... and the most that it may say */
#define SMV_FORKS_MAX     1024u     /* forks of a handle or a stream, in one request */
#define SMV_SAMPLES_MAX   64u       /* streams of one generate */
#define SMV_KEEP_MS_MAX   86400000u /* milliseconds that keep_ms may ask for: one day */

/*
 * The socket of a user's own daemon, below $XDG_RUNTIME_DIR, and that of the machine's daemon.  A
 * client looks for them in this order.
 */
#define SMV_SOCKET_PATH   "samovar/sock"
#define SMV_SYSTEM_SOCKET "/run/" SMV_SOCKET_PATH
/*
 * A service manager may keep a second socket, at the path of the first one and this.  While the
 * daemon stops, clients that want to be let in all the same (`while_stopping` in hello) connect
 * there; those that connect to the first one wait for the next daemon.
 */
#define SMV_CONTROL_SUFFIX ".control"
/* Root names here the other users whose daemons clients may trust: lines `trust = USER`. */
#define SMV_CLIENT_CONF "/etc/samovar/client.conf"

#endif
