/*
 * A mailbox: how one thread hands things to one other.
 *
 * Bounded, one sender, one taker.  Ownership travels with the message: after
 * mailbox_post() the sender does not touch what it sent until it comes back.
 * Each mailbox is made large enough for everything that can be under way at
 * once (a request is submitted once, alone or with siblings, and cancelled once, a
 * channel's flags let one message of a kind be under way), so a full one is a bug
 * and asserted.
 *
 * What is said about a request may cross RETIRED on its way: CANCEL, and the SUBMIT of
 * forks, which begin with its tokens.  So the loop counts what it sends about one, and keeps
 * it until the engine has taken all of that: what it takes before RETIRED, the engine
 * counts in mails_taken; for each that it takes after, it posts RETIRED once more.
 *
 *      loop -> scribe      JOB                          scribe -> loop   JOB_DONE
 *      loop -> engine      SUBMIT CANCEL ROOM LIFT HANGUP STOP
 *      engine -> loop      RETIRED
 *      engine -> waker     WAKE CHANNEL_GONE FAILED STOPPED
 *      waker -> loop       the same, in the same order
 *
 * A taker sleeps in mailbox_take() on a futex; the loop thread, which sleeps in
 * epoll, gives its mailboxes a bell instead, an eventfd of its own.  RETIRED rings
 * nothing: a WAKE for its channel follows, and comes through the waker, so that the
 * engine does not pay for waking the loop.
 */
#ifndef DAEMON_MAILBOX_H
#define DAEMON_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

#include <samovar/error.h>

enum mail_kind {
        MAIL_JOB,      /* struct scribe_job */
        MAIL_JOB_DONE, /* struct scribe_job */
        MAIL_SUBMIT,   /* struct request, with its siblings */
        MAIL_CANCEL,   /* struct request; reason and code of its END */
        MAIL_ROOM,     /* struct channel: its reader has read on after a stall */
        MAIL_LIFT,     /* number: of an anchor */
        MAIL_HANGUP,   /* struct channel: write no more into it */
        MAIL_STOP,     /* nothing: the last mail down, when all requests and channels are gone */
        MAIL_WAKE,     /* struct channel: it has something to read */
        MAIL_RETIRED,  /* struct request: nobody else knows it any more */
        MAIL_CHANNEL_GONE, /* struct channel: the same */
        MAIL_FAILED,  /* result, why: the engine runs nothing any more, but takes mail until STOP */
        MAIL_STOPPED, /* nothing: the last mail up */
};

struct mail {
        enum mail_kind kind;
        enum smv_reason reason;
        enum smv_code code;
        int result;
        uint32_t number;
        void *what;
        const char *why; /* a sentence that stays until the threads have ended, or NULL */
};

struct mailbox;

/* bell: an eventfd to write to for a taker that sleeps elsewhere, or -1. */
int mailbox_new(uint32_t capacity, int bell, struct mailbox **ret_mailbox);
struct mailbox *mailbox_free(struct mailbox *mailbox);

/* Sender's thread. */
void mailbox_post(struct mailbox *mailbox, const struct mail *mail);

/*
 * The same in two halves, for many mails at once: a taker who wakes for the first has done
 * it and sleeps again before the second is there, and each would pay for a wake-up.  What
 * was put may lie there unseen until mailbox_ring().
 */
void mailbox_put(struct mailbox *mailbox, const struct mail *mail);
void mailbox_ring(struct mailbox *mailbox);

/*
 * Sender's thread: the taker, who sleeps in mailbox_take(), is done with all that was sent
 * and sleeps until the next ring.  While that holds, and it holds until the sender rings,
 * what the taker alone touches may be touched by the sender in its stead.
 */
bool mailbox_is_asleep(struct mailbox *mailbox);

/*
 * Taker's thread: up to `most` mails, oldest first.  With none there, sleeps
 * until one comes or the deadline has passed (0: does not sleep).
 *
 * A taker with a bell gives 0, and silences its bell before it takes, never
 * after.  Then it may take as few as it likes: mails left behind ring again.
 */
uint32_t mailbox_take(struct mailbox *mailbox, struct mail *ret_mails, uint32_t most,
                      uint64_t deadline_ns);

#endif
