/*
 * The control socket: what a frame is, and the words in it.
 *
 *      frame   u32 length, little-endian; then `length` bytes: one msgpack map
 *
 * A frame of length 0 is a doorbell.  From the daemon: look at the ring.  From
 * the client: I have read on after a stall.
 * The client sends requests {op, id, ...}; the daemon answers each with
 * exactly one reply {id, ok: true, ...} or {id, error, code, message, field?};
 * replies carry their request's id and come in any order.
 * A `generate` that is answered ok has thereby begun a stream of the same id,
 * which ends with exactly one END record; records come through the ring (ring.h),
 * whose two descriptors come with the first byte of hello's reply, or (transport
 * "socket") as frames {records: bin}, the bin holding whole records; those of a stream that
 * is to outlive its connection always in frames.
 *
 * Nothing is ignored and nothing is coerced: an unknown field, a value of
 * another type or out of its range is refused by name.  docs/protocol.md has
 * every operation and field, for someone writing a client in another language.
 *
 * Version 0: it may still change with any release.
 */
#ifndef SAMOVAR_PROTOCOL_H
#define SAMOVAR_PROTOCOL_H

#define SMV_PROTOCOL_VERSION 0

#define SMV_FRAME_BYTES_MAX (8u << 20) /* the default limit; hello's reply names the daemon's */
#define SMV_DEPTH_MAX       32u        /* of nested arrays and maps */
#define SMV_KEYS_MAX        64u        /* in one map */

#define SMV_TOKENS_MAX   (1u << 20) /* ids in one request */
#define SMV_MESSAGES_MAX (1u << 14) /* messages, or tools, of a conversation */
#define SMV_VALUES_MAX   (1u << 16) /* of one: every text, number, array, map and key in it */

#define SMV_STOPS_MAX      16u  /* stop strings, and as many stop ids */
#define SMV_STOP_BYTES_MAX 256u /* of one stop string */
#define SMV_NAME_BYTES_MAX 64u  /* of a model's name */
#define SMV_TOP_K_MAX      1024u
#define SMV_LOGPROBS_MAX   32u       /* likeliest tokens told of beside each that is picked */
#define SMV_FORKS_MAX      1024u     /* of a handle or a stream, in one request */
#define SMV_CHOICES_MAX    64u       /* streams of one generate */
#define SMV_KEEP_MS_MAX    86400000u /* that something is kept for nobody */

/* Where it is found without --socket: $XDG_RUNTIME_DIR, else /run, then this. */
#define SMV_SOCKET_PATH "samovar/sock"

#endif
