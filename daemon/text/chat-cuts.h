/*
 * Chat cuts: makes only a part of what a template writes of a conversation.
 *
 * A turn is the text behind an earlier answer; a prompt that continues the last message ends where
 * the text of that message ends.  A mark in the messages shows where that is in the text: words
 * with a random number, the nonce, so no text of the client contains it.
 *
 * Functions that fail for want of memory return -ENOMEM.
 */
#ifndef DAEMON_TEXT_CHAT_CUTS_H
#define DAEMON_TEXT_CHAT_CUTS_H

#include "daemon/text/template.h"

/* The same messages behind a question and an answer, which is a mark. */
int chat_put_behind_answer(struct arena *arena, uint64_t nonce, struct value messages,
                           struct value *ret_messages);
/* Takes away everything up to the end of that answer.  -EINVAL and *why: it is not shown. */
int chat_cut_turn(struct rendered *rendered, uint64_t nonce, char *why, size_t why_bytes);

/* NULL: the last message can be continued.  Else the sentence that says why not. */
const char *chat_check_last(struct value messages);
/* Puts a mark behind the text of the last message, for which chat_check_last() returned NULL. */
int chat_mark_end(struct arena *arena, uint64_t nonce, struct value *messages);
/* Takes away everything from that mark on.  -EINVAL and *why: it is not shown, or twice. */
int chat_cut_end(struct rendered *rendered, uint64_t nonce, char *why, size_t why_bytes);

#endif
