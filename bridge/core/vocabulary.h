/*
 * The vocabulary of the model: the bytes of each token, for logprobs.
 *
 * It is asked for in parts when a call first needs it, and kept.  If the daemon serves another
 * model later, it is asked for again.  Loop thread only.
 */
#ifndef BRIDGE_CORE_VOCABULARY_H
#define BRIDGE_CORE_VOCABULARY_H

#include "bridge/core/call.h"

struct vocabulary;

struct vocabulary *vocabulary_new(void);                           /* NULL: out of memory */
struct vocabulary *vocabulary_free(struct vocabulary *vocabulary); /* takes NULL */

/* Calls go() when the vocabulary of the default model is there, or fails the call. */
void call_with_vocabulary(struct call *call, void (*go)(struct call *call));

/* The bytes of a token; empty if there is no such token.  Only behind call_with_vocabulary(). */
struct text vocabulary_piece(const struct vocabulary *vocabulary, uint32_t token);

#endif
