/*
 * A sweep runs many trials.  A trial is the daemon's real main() in a child of this process, some
 * of whose calls fail, and clients that run a scenario against it.  Then the trial is judged.
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
 * The clients are raw (raw-client.h), so that only the daemon has faults.  A broken promise is
 * reported, with the calls that had failed and the daemon's log; a sweep continues after it.
 */
#ifndef TESTS_E2E_FAULT_SWEEP_H
#define TESTS_E2E_FAULT_SWEEP_H

#include "tests/e2e/fault-injection.h"
#include "tests/e2e/raw-client.h"

struct fault_trial;

struct scenario {
        const char *name;
        void (*act)(struct fault_trial *trial);
        bool by_config;   /* its settings come from a file */
        const char *load; /* the way its weights are read; NULL: the daemon chooses */
        /* one client, over a socket that the daemon is given; the daemon ends with it */
        bool by_fd;
};

struct fault_trial {
        struct daemon_fixture *fixture;
        const struct scenario *scenario;
        struct fault_plan plan;
        uint64_t end_ms; /* when the trial is given up */
        int fd;          /* our end, by_fd; -1: none */
        int status;      /* of the daemon, once its pid is 0 */
        bool served;     /* it has said ok to something */
        bool failed;     /* the promise is broken, and the failure was reported */
};

/* Call this once, before cmocka runs anything. */
void fault_sweep_begin(void);
/* Makes the model, and runs every scenario without a fault, to record the correct results. */
void fault_sweep_prepare(struct daemon_fixture *fixture);
/* True: the daemon kept its promise. */
bool fault_sweep_try(struct daemon_fixture *fixture, const struct scenario *scenario,
                     const struct fault_plan *plan);

struct fault_sweep_totals {
        uint64_t trials, crashes;
};
struct fault_sweep_totals fault_sweep_totals(void);

/* ---- for scenarios ---- */

enum { HELLO = 1 }; /* its id */

/* A connection, or NULL when the daemon has ended. */
struct raw_client *trial_connect(struct fault_trial *trial);
void send_hello(struct raw_client *client);
void send_hello_for(struct raw_client *client, const char *transport, const char *doorbell);
/* Always sends the same prompt, so that all streams begin alike. */
void send_generate(struct raw_client *client, uint32_t id, uint32_t tokens);

#define ID(id) (1u << (id))
/* Waits until the requests in `asked` are answered and those in `streams` have ended, or until the
 * daemon hangs up. */
void trial_await(struct fault_trial *trial, struct raw_client *client, uint32_t asked,
                 uint32_t streams);
void trial_await_hangup(struct fault_trial *trial, struct raw_client *client);

extern const struct scenario scenario_requests, scenario_load, scenario_rings, scenario_forms,
        scenario_single_client;

#endif
