/*
 * A play: the daemon's real main() in a child of this process, some of whose calls fail; clients
 * that act a scene with it; and a judge.
 *
 * The promise, whatever fails: the daemon does not crash and does not hang.  It does one of two
 * things:
 *
 *      It refuses to start, with one clear line and exit code 1.  Until its weights are loaded it
 *      may have answered hello before and taken requests, which get their END.
 *
 *      It serves: every request gets its one reply or the connection is closed, and every accepted
 *      request gets its one END or the connection is closed.
 *
 * When the fault is over, a new client is served as if nothing had happened, nothing is held, and
 * SIGTERM ends the daemon with exit code 0.
 *
 * The clients are raw (talk.h), so that only the daemon has faults.  A broken promise is reported,
 * with the calls that had failed and the daemon's log; a sweep continues after it.
 */
#ifndef TESTS_E2E_PLAY_H
#define TESTS_E2E_PLAY_H

#include "tests/e2e/faults.h"
#include "tests/e2e/talk.h"

struct play;

struct scene {
        const char *name;
        void (*act)(struct play *play);
        bool by_config;   /* its settings come from a file */
        const char *load; /* the way its weights are read; NULL: the daemon chooses */
        /* one client, over a socket that the daemon is given; the daemon ends with it */
        bool by_fd;
};

struct play {
        struct house *house;
        const struct scene *scene;
        struct fault_plan plan;
        uint64_t end_ms; /* when the patience ends */
        int fd;          /* our end, by_fd; -1: none */
        int status;      /* of the daemon, once its pid is 0 */
        bool served;     /* it has said ok to something */
        bool failed;     /* the promise is broken, and the failure was reported */
};

/* Call this once, before cmocka runs anything. */
void play_begin(void);
/* Makes the model, and plays every scene without a fault, to record the correct results. */
void play_prepare(struct house *house);
/* True: the promise was kept. */
bool play_once(struct house *house, const struct scene *scene, const struct fault_plan *plan);

struct plays_sum {
        uint64_t plays, crashes;
};
struct plays_sum plays_sum(void);

/* ---- for scenes ---- */

enum { HELLO = 1 }; /* its id */

/* A connection, or NULL when the daemon has ended. */
struct talk *play_reach(struct play *play);
void say_hello(struct talk *talk);
void say_hello_for(struct talk *talk, const char *transport, const char *doorbell);
/* Always sends the same prompt, so that all streams begin alike. */
void say_generate(struct talk *talk, uint32_t id, uint32_t tokens);

#define ID(id) (1u << (id))
/* Waits until the requests in `asked` are answered and those in `streams` have ended, or until the
 * daemon hangs up. */
void play_await(struct play *play, struct talk *talk, uint32_t asked, uint32_t streams);
void play_await_hangup(struct play *play, struct talk *talk);

extern const struct scene scene_asking, scene_crowd, scene_rings, scene_alone;

#endif
