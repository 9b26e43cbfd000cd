/*
 * A process of another user, controlled by the test through a pipe.
 *
 * The test forks it.  It becomes that user for good, connects with libsamovar, and sends the
 * requests that the test asks for, one at a time.  It asserts nothing: it reports how long each
 * request took and the result.  Only root can start such a process.
 */
#ifndef TESTS_E2E_OTHER_USER_H
#define TESTS_E2E_OTHER_USER_H

#include <samovar/client.h>

#include "tests/e2e/daemon-fixture.h"

#define OTHER_USER_PROMPT_MAX 1200u
#define OTHER_USER_OUTPUT_MAX 800u
#define OTHER_USER_FLOOD      4u

struct other_user {
        pid_t pid; /* 0: none */
        int to, from;
        int connected; /* 0, or the result of connect() */
        char message[256];
};

/*
 * Continue a prompt; publish a prompt; revoke the prompt that was published last; ask for status.
 * To flood: continue the prompt in OTHER_USER_FLOOD requests at a time, until the next question
 * comes, and then say how many tokens have come.
 */
enum user_action { USER_GENERATES, USER_PUBLISHES, USER_REVOKES, USER_READS_STATUS, USER_FLOODS };

struct question {
        enum user_action action;
        uint32_t group;             /* the group to publish to; 0: everyone */
        enum smv_priority priority; /* of a flood */
        uint32_t count, max_tokens; /* count 0: the process ends */
        uint64_t seed;              /* of the draws; 0: the likeliest tokens are taken */
        uint32_t tokens[OTHER_USER_PROMPT_MAX];
};

struct answer {
        int result; /* 0, or the library's errno */
        uint32_t reason, prompt_tokens, cached_tokens, output_tokens;
        uint64_t first_ns; /* from the question to its first token, by the clock of that process */
        uint64_t all_ns;   /* the same to its END */
        uint64_t prefill_ns, decode_ns; /* as the stream's END reports them */
        uint32_t drafts_right;
        uint32_t tokens[OTHER_USER_OUTPUT_MAX];
        char status[6000]; /* the reply to USER_READS_STATUS, as JSON */
};

bool can_become_another_user(void);
/* Ends the program as skipped, with the reason, where a second user can not be made. */
void require_other_users(void);

/* Starts a process as user `uid`.  Its only group besides the one of the same number as the user is
 * `group`, if any. */
struct other_user other_user_start(const struct daemon_fixture *fixture, uint32_t uid,
                                   uint32_t group);
/* Sends the question and does not wait for the answer. */
void other_user_send(const struct other_user *other_user, const struct question *question);
/* Returns the answer to the oldest question that is still open; fails if the process failed. */
struct answer other_user_receive(const struct other_user *other_user);
void other_user_stop(struct other_user *other_user);

/* Waits until the daemon has noticed that all other users are gone. */
void await_other_users_gone(const struct daemon_fixture *fixture);

#endif
