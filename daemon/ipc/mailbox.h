/*
 * A mailbox: one thread sends messages to one other thread.
 *
 * It is bounded, with one sender and one taker.  Ownership travels with the message: after
 * mailbox_post() the sender does not touch the object until it comes back.  Each mailbox is large
 * enough for all messages that can be under way at once: a request is submitted once (alone or with
 * siblings) and cancelled once, and a channel's flags let one message of a kind be under way.  So a
 * full mailbox is a bug, and an assert checks it.
 *
 * Two messages about a request may cross its RETIRED on the way: CANCEL, and the SUBMIT of forks
 * (which begin with the request's tokens).  So the loop counts the messages that it sends about a
 * request, and keeps the request until the engine has taken all of them.  The engine counts those
 * that it takes before RETIRED in mails_taken.  For each one that it takes later, it posts RETIRED
 * again.
 *
 *      loop -> text worker  JOB                     text worker -> loop  JOB_DONE
 *      loop -> engine       SUBMIT CANCEL SPACE UNPIN HANGUP PING POOL STOP
 *      engine -> loop       RETIRED
 *      engine -> masks      MASK_BEGIN MASK_FORK MASK_TAKE STOP
 *      engine -> waker      WAKE CHANNEL_GONE POOL_MAPPED FAILED STOPPED
 *      waker -> loop        the same, in the same order
 *
 * A taker sleeps in mailbox_take() on a futex.  The loop thread sleeps in epoll instead, so its
 * mailboxes have a bell: an eventfd.  RETIRED rings no bell.  A WAKE for the same channel follows
 * through the waker, so that the engine does not pay the cost of waking the loop.
 */
#ifndef DAEMON_IPC_MAILBOX_H
#define DAEMON_IPC_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

#include <samovar/error.h>

enum mail_kind {
        MAIL_JOB,      /* struct text_job */
        MAIL_JOB_DONE, /* struct text_job */
        MAIL_SUBMIT,   /* struct request, with its siblings; control_text */
        MAIL_CANCEL,   /* struct request; reason and code of its END */
        MAIL_SPACE,    /* struct channel: its reader has read on after a stall */
        MAIL_UNPIN,    /* number: of a pin */
        MAIL_HANGUP,   /* struct channel: write nothing more into it */
        MAIL_PING,     /* nothing: count it in stats.pings_taken; one is under way at most */
        MAIL_POOL,     /* struct pool_map: to be filled; one is under way at most */
        /* nothing: the last mail to the engine, when all requests and channels are gone */
        MAIL_STOP,
        MAIL_WAKE,         /* struct channel: it has something to read */
        MAIL_RETIRED,      /* struct request: only the loop refers to it now */
        MAIL_CHANNEL_GONE, /* struct channel: only the loop refers to it now */
        MAIL_POOL_MAPPED,  /* struct pool_map: the same one, filled */
        MAIL_FAILED,  /* result, why: the engine computes nothing more, but takes mail until STOP */
        MAIL_STOPPED, /* nothing: the last mail from the engine */
        /* Each has a seat of daemon/engine/masks.c. */
        MAIL_MASK_BEGIN,
        MAIL_MASK_FORK,
        MAIL_MASK_TAKE,
};

struct mail {
        enum mail_kind kind;
        enum smv_reason reason;
        enum smv_code code;
        int result;
        uint32_t number;
        bool control_text; /* the streams show control tokens; forks do as their parent */
        void *what;
        const char *why; /* a sentence valid until the threads have ended, or NULL */
};

struct mailbox;

/* bell: an eventfd that is written to for a taker that sleeps elsewhere, or -1. */
int mailbox_new(uint32_t capacity, int bell, struct mailbox **ret_mailbox);
struct mailbox *mailbox_free(struct mailbox *mailbox);

/* Sender's thread. */
void mailbox_post(struct mailbox *mailbox, const struct mail *mail);

/*
 * mailbox_post() in two steps, for many mails at once.  A taker woken by the first mail would
 * handle it and sleep again before the second mail is there.  So each mail would cost a wake-up.
 * The taker may not see mails from mailbox_put() until mailbox_ring().
 */
void mailbox_put(struct mailbox *mailbox, const struct mail *mail);
void mailbox_ring(struct mailbox *mailbox);

/*
 * Sender's thread: true if the taker has handled all mails and sleeps in mailbox_take() until the
 * next ring.  This stays true until the sender rings.  Meanwhile the sender may touch the state
 * that otherwise only the taker touches, and do its work.
 */
bool mailbox_is_asleep(struct mailbox *mailbox);

/*
 * Taker's thread: takes up to `most` mails, oldest first.  If there are none, sleeps until one
 * comes or until the deadline has passed (0: does not sleep).
 *
 * A taker with a bell passes 0, and clears its bell before it takes, never after.  Then it may take
 * as few as it likes: mails left behind ring again.
 */
uint32_t mailbox_take(struct mailbox *mailbox, struct mail *ret_mails, uint32_t most,
                      uint64_t deadline_ns);

#endif
