/*
 * A guest: a process of another user, at the other end of a pipe.
 *
 * It is forked, becomes that user for good, connects by libsamovar, and asks what it is told to,
 * one thing at a time.  It judges nothing: it says how long it took and what came back.  It can
 * not be made by anybody but root.
 */
#ifndef TESTS_E2E_GUEST_H
#define TESTS_E2E_GUEST_H

#include "tests/e2e/harness.h"

#define GUEST_PROMPT_MAX 1200u
#define GUEST_OUTPUT_MAX 800u

struct guest {
        pid_t pid; /* 0: none */
        int to, from;
        int connected; /* 0, or what connect() said */
        char message[256];
};

/* To continue a prompt; to publish one, or to revoke what was published last; to look at status. */
enum wish { GUEST_ASKS, GUEST_PUBLISHES, GUEST_REVOKES, GUEST_LOOKS };

struct question {
        enum wish wish;
        uint32_t group;             /* to publish to; 0: everyone */
        uint32_t count, max_tokens; /* no count: farewell */
        uint32_t tokens[GUEST_PROMPT_MAX];
};

struct answer {
        int result; /* 0, or the errno of the library */
        uint32_t reason, prompt_tokens, cached_tokens, output_tokens;
        uint64_t first_ns;   /* from the question to its first token, by the guest's clock */
        uint64_t prefill_ns; /* as its END has it */
        uint32_t tokens[GUEST_OUTPUT_MAX];
        char status[6000]; /* of a look, as JSON */
};

bool there_are_users(void);
/* Ends the program as skipped, with the reason, where no second user can be made. */
void need_users(void);

/* Of this user, whose only group beside his own (of the same number) is `group`, if any. */
struct guest guest_begin(const struct house *house, uint32_t uid, uint32_t group);
/* Does not wait. */
void guest_ask(const struct guest *guest, const struct question *question);
/* Of the eldest question not heard yet; fails if the guest did. */
struct answer guest_hear(const struct guest *guest);
void guest_end(struct guest *guest);

/* Until the daemon has seen that all of them are gone. */
void guests_are_gone(const struct house *house);

#endif
