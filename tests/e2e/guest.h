/*
 * A guest: a process of another user, at the other end of a pipe.
 *
 * It is forked, becomes that user for good, connects with libsamovar, and sends the requests that
 * it is told to send, one at a time.  It judges nothing: it reports how long each took and what
 * came back.  Only root can make a guest.
 */
#ifndef TESTS_E2E_GUEST_H
#define TESTS_E2E_GUEST_H

#include "tests/e2e/harness.h"

#define GUEST_PROMPT_MAX 1200u
#define GUEST_OUTPUT_MAX 800u

struct guest {
        pid_t pid; /* 0: none */
        int to, from;
        int connected; /* 0, or the result of connect() */
        char message[256];
};

/* Continue a prompt; publish a prompt; revoke the prompt that was published last; ask for
 * status. */
enum wish { GUEST_ASKS, GUEST_PUBLISHES, GUEST_REVOKES, GUEST_LOOKS };

struct question {
        enum wish wish;
        uint32_t group;             /* the group to publish to; 0: everyone */
        uint32_t count, max_tokens; /* count 0: the guest says goodbye and ends */
        uint32_t tokens[GUEST_PROMPT_MAX];
};

struct answer {
        int result; /* 0, or the library's errno */
        uint32_t reason, prompt_tokens, cached_tokens, output_tokens;
        uint64_t first_ns;   /* from the question to its first token, by the guest's clock */
        uint64_t prefill_ns; /* as the stream's END reports it */
        uint32_t tokens[GUEST_OUTPUT_MAX];
        char status[6000]; /* the reply to GUEST_LOOKS, as JSON */
};

bool there_are_users(void);
/* Ends the program as skipped, with the reason, where a second user can not be made. */
void need_users(void);

/* Starts a guest as user `uid`.  Its only group besides the one of the same number as the user is
 * `group`, if any. */
struct guest guest_begin(const struct house *house, uint32_t uid, uint32_t group);
/* Sends the question and does not wait for the answer. */
void guest_ask(const struct guest *guest, const struct question *question);
/* Returns the answer to the oldest question that is still open; fails if the guest failed. */
struct answer guest_hear(const struct guest *guest);
void guest_end(struct guest *guest);

/* Waits until the daemon has seen that all guests are gone. */
void guests_are_gone(const struct house *house);

#endif
