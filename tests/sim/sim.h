/*
 * A world around the real scheduler.
 *
 * Time is a number, a model is a hash, a reader is a speed.  The world plays the
 * engine: it tells rooms, asks for a plan, runs it and brings results back, up
 * to `depth` plans late.  It computes what a model would: the KV of a position
 * is a hash over the row's token and the KV of the position before it, kept per
 * (block, offset) and read through the page tables that the plans wrote.  So a
 * block that is dealt twice, a page that is missing, a copy that was forgotten or a
 * row that is off by one does not only look wrong: it makes another token than the
 * request would have made alone, and that is known beforehand.
 *
 * The auditor (audit*.c) keeps books of its own from the plans, and judges every
 * plan by what sched.h promises.  Anything amiss fails the test with the seed and
 * the step; with a trace, if there is one.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stddef.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/sched.h"

#define SIM_NEVER    UINT64_MAX
#define SIM_FAST     UINT64_MAX
#define SIM_MS       UINT64_C(1000000)
#define SIM_DEPTH    2u
#define SIM_CHANNELS 8u
#define SIM_REQUESTS 128u

#define SIM_BEGINNINGS (UINT32_C(1) << 22)

/* One request as a test asks for it. */
struct sim_ask {
        const char *name;
        uint32_t uid;
        enum request_class class;
        uint32_t channel, prompt, most; /* most 0: it is read, and that is all */
        uint32_t anchor;                /* of such a one; 0: none */
        uint64_t publish;               /* ... for this public domain; 0: its own */
        bool sees_public;               /* it finds what is everyone's, and this group's */
        uint32_t group;                 /* 0: none */
        uint32_t text, shared;          /* its first `shared` tokens are those of this text */
        uint32_t record_bytes;          /* 0: 10 */
        uint64_t deadline_ns;           /* 0: none */
        uint32_t end_at;                /* its end_at-th token gets the verdict; 0: none does */
        enum sched_verdict verdict;     /* ... this one */
};

struct sim_request {
        struct request core; /* first: sim_of() counts on it */
        char name[12];
        bool alive; /* submitted, and not yet retired */

        /* What it would do alone, from its seed. */
        uint32_t worst; /* blocks */
        uint32_t end_at;
        enum sched_verdict verdict;
        uint32_t *truth; /* its tokens, if nothing ends it early */
        uint64_t *chain; /* the KV of every position */

        /* The auditor's books. */
        uint32_t uid, channel;
        enum request_class class;
        uint64_t let_in_step;   /* its plan, as plans are counted */
        uint64_t arrival, turn; /* when it came, when it was let in: as numbers in a row */
        bool turn_open;         /* ... and who of these of its plan came first is not known */
        uint64_t since_ns;      /* ... when it came, by the clock */
        uint64_t deadline_ns;   /* SIM_NEVER: it has none */
        bool admitted, decided, ended;
        enum smv_reason reason; /* once decided */
        enum smv_code code;
        uint32_t slot;
        uint32_t dealt;      /* the position of its next row */
        uint32_t dealt_then; /* ... as it was before this plan */
        uint32_t flying;     /* rows in flight */
        uint32_t made;       /* tokens that came back */
        uint32_t known;      /* tokens when it was let in: it reads them before it decodes */
        uint32_t charged;    /* positions that its user has been charged for */
        uint32_t found;      /* positions that it need not compute */
        uint32_t cached;     /* ... when it was let in first, as it says */
        uint32_t parks;      /* how often it had to give its slot up */
        bool parking;        /* ... and will, once its rows are back */
        bool moved;          /* it had a row, so the device knows what was found */
        block_t *blocks;
        uint32_t block_count;
        /* Left out for want of room; some cases are open to either reading, so two times. */
        uint64_t stalled_first, stalled_surely;

        /* As it stood before the plan that is judged. */
        bool asked_first; /* in this plan, before anybody is let in */
        bool was_stalled;
        uint64_t was_stalled_ns;
        uint32_t first_row; /* the position of its first row in this plan, or SIM_NO_ROW */
};
#define SIM_NO_ROW UINT32_MAX

/* What a user has been given, by class; for as long as one of his requests is alive. */
struct sim_account {
        bool used;
        uint32_t uid;
        uint64_t served[REQUEST_CLASS_N];
};

/* A text that is public, or was. */
struct sim_public {
        uint64_t domain;             /* 0: no text */
        struct sim_request *request; /* that reads it, until it has retired */
        uint32_t anchor;             /* with which it is published; 0: not yet, or no longer */
        uint32_t count;
        uint64_t *chain;
        uint64_t from_step;  /* plans after this one show it; SIM_NEVER: it is not read yet */
        uint64_t until_step; /* plans after this one show it to nobody new; SIM_NEVER: all may */
};
#define SIM_PUBLICS 64u
#define SIM_NOBODYS UINT64_MAX

/* Why one who waits may have a slot, or may not. */
enum sim_ground {
        SIM_WITHIN_HALF,
        SIM_ALONE,       /* above half, but nobody else waits */
        SIM_BEGINS,      /* above half, but its user has nothing */
        SIM_OVER_SLOTS,  /* above half, and others wait: it is passed over */
        SIM_OVER_BLOCKS, /* ... of the blocks only */
        SIM_OVER_MOST,   /* above what one user may have, whoever waits */
        SIM_GROUND_N,
};

struct sim_row {
        struct sim_request *owner;
        uint32_t position;
        bool pending; /* its result has not been told */
        uint32_t result;
};

struct sim_flight {
        uint64_t number, done_ns;
        uint32_t row_count, copy_count;
        struct sim_row *rows;
        block_t *sources; /* of its copies */
};

struct sim_channel {
        uint64_t capacity, used; /* bytes of a ring that TOKENS may take, and have taken */
        uint64_t speed;          /* bytes that are read in a millisecond */
        uint64_t read_ns;        /* up to when it has read */
        uint64_t told;
};

struct sim {
        struct sched_conf conf;
        struct sched *sched;
        struct plan plan;
        uint64_t now_ns;
        uint64_t step_ns, row_ns; /* what a step costs, and each row of it */
        uint64_t far_ns;          /* ... and one of a prompt, for each 1024 positions before it */
        uint64_t lag_ns;          /* what the next one takes beyond that */
        uint64_t took_ns;         /* the one before */

        uint64_t seed, random;
        uint64_t step_count, event_count, arrivals, turns;
        struct sim_request *requests; /* requests_max */
        struct sim_channel channels[SIM_CHANNELS];
        struct sim_flight flights[SIM_DEPTH];
        uint32_t flight_count;
        uint64_t last_plan;
        bool held; /* nobody may begin */

        /* The device. */
        block_t *tables; /* [slots][table_blocks] */
        uint32_t table_blocks;
        uint64_t *cells; /* [blocks][BLOCK_POSITIONS] */

        /* The auditor's. */
        struct sim_request **slot_owner;
        struct sim_account accounts[SIM_REQUESTS]; /* of users who have requests alive */
        struct sim_request *blocked;               /* who is next and could not be let in */
        uint32_t *block_holders;                   /* page tables that a block is in */
        uint64_t *block_domain;                    /* for which it was dealt; or SIM_NOBODYS */
        uint64_t *line_domain;                     /* ... as it stood when slots were dealt */
        uint32_t *holds, *his_holds;               /* of blocks, while a charge is reckoned */
        struct sched_user *users;                  /* as they were told last */
        uint64_t *block_spoilt;                    /* not for who is let in at this turn or later */
        uint64_t *block_copied;                    /* by this plan, last */
        uint64_t *block_shown;                     /* since this step, by one who has read it */
        uint64_t soonest_ns;                       /* no deadline that may wake it is earlier */
        struct sim_public publics[SIM_PUBLICS];
        uint64_t parts;                         /* of public blocks that somebody else has, too */
        uint64_t late_over;                     /* who gave way to one who was then passed over */
        uint64_t found_public;                  /* pages and copies of what others have published */
        uint64_t found_rows, copies, swaps;     /* what sharing was good for */
        uint64_t steps_shared;                  /* ... with a block in two page tables */
        uint32_t passed_over;                   /* when a plan was made last */
        uint64_t parked, resumed, late;         /* how often */
        uint64_t ground_counts[SIM_GROUND_N];   /* of all who were asked whether they may */
        uint64_t end_counts[SMV_END_ERROR + 1]; /* by reason */

        bool shares;                   /* some begin alike: blocks may be found */
        uint64_t *beginnings;          /* a set of users and first tokens, SIM_BEGINNINGS bits */
        uint64_t *said;                /* ... and of users and whole texts, up to each position */
        uint64_t divergences;          /* that were told */
        bool ragged;                   /* records smaller than their most; ending results dropped */
        void (*between)(struct sim *); /* called between the results of a plan, if set */

        char *trace; /* NULL: none kept */
        size_t trace_count, trace_max;
        char idle[128]; /* the last line, if nothing ran: not said twice */
};

void sim_open(struct sim *sim, const struct sched_conf *conf, uint64_t seed, bool trace);
/* A world for a story, with a trace: small, where conf says nothing. */
void sim_open_small(struct sim *sim, const struct sched_conf *conf);
/* Expects that everything has ended and everything is free. */
void sim_close(struct sim *sim);
/* Frees a world that has failed; nothing if it is closed. */
void sim_free(struct sim *sim);

/* NULL: requests_max are alive.  It must fit. */
struct sim_request *sim_submit(struct sim *sim, const struct sim_ask *ask); /* asks.c */
void sim_cancel(struct sim *sim, struct sim_request *request);
void sim_hold(struct sim *sim, bool held);
void sim_lift(struct sim *sim, uint32_t anchor);
void sim_speed(struct sim *sim, uint32_t channel, uint64_t bytes_per_ms);

/* Has this user ever asked, or been answered, what this one has up to `at`, and then that token? */
bool sim_was_said(const struct sim *sim, const struct sim_request *request, uint32_t at,
                  uint32_t token);

/* Rooms told, a plan asked for, audited and launched. */
void sim_step(struct sim *sim);
/* The oldest plan in flight comes back. */
void sim_collect(struct sim *sim);
/* As the engine turns: a step, and a wait for results or for the time of waking. */
void sim_turn(struct sim *sim, uint64_t until_ns);
/* Turns until then, which is when time stands at it or has just passed. */
void sim_run(struct sim *sim, uint64_t until_ms);
uint32_t sim_alive(const struct sim *sim);

/* Compares the trace since the last time with this text. */
void sim_expect(struct sim *sim, const char *text);

uint64_t sim_random(struct sim *sim);
uint32_t sim_below(struct sim *sim, uint32_t limit);
uint64_t sim_mix(uint64_t x);

/* The model: what the KV of a row is, and which token follows. */
uint64_t sim_cell_of(uint64_t before, uint32_t token, uint32_t position);
uint32_t sim_token_after(uint64_t cell);

void *sim_need(size_t count, size_t size); /* zeroed; there is some, or the test fails */
void sim_note(struct sim *sim, const struct sched_event *event);

/* Something is not as promised. */
#define sim_must(sim, what, ...)                                                                   \
        do {                                                                                       \
                if (!(what))                                                                       \
                        sim_fault(sim, __FILE__, __LINE__, #what, __VA_ARGS__);                    \
        } while (0)
void sim_fault(struct sim *sim, const char *file, int line, const char *what, const char *format,
               ...) __attribute__((noreturn, format(printf, 5, 6)));

/* trace.c: a line for the plan that has just been made: so many were passed over. */
void sim_trace(struct sim *sim, uint32_t passed_over);

/* audit.c: what stands before a plan is asked for, and what it says. */
void audit_before(struct sim *sim);
void audit_plan(struct sim *sim);
void audit_decide(struct sim *sim, struct sim_request *request, enum smv_reason reason,
                  enum smv_code code);
void audit_result(struct sim *sim, struct sim_request *request, uint32_t token,
                  enum sched_verdict verdict);
/* What rows in flight may still write into a channel. */
uint64_t audit_charged(const struct sim *sim, uint32_t channel);

/* audit-blocks.c: blocks that are taken, found, copied; and how many there are. */
void audit_pages(struct sim *sim);
void audit_copies(struct sim *sim);
void audit_blocks(struct sim *sim, const struct sched_counts *counts);

/* audit-charges.c: what is told of users. */
void audit_users(struct sim *sim, const struct sched_counts *counts);

/* What this request has computed is worth nothing, to nobody who comes from now on. */
void audit_spoil(struct sim *sim, const struct sim_request *request);
/* What it has was read to its end, and is sound. */
void audit_sound(struct sim *sim, const struct sim_request *request);
/* audit-publics.c: what is public, to whom, and how long. */
void audit_publish(struct sim *sim, struct sim_request *request);           /* it is submitted */
void audit_published(struct sim *sim, const struct sim_request *request);   /* ... read */
void audit_unpublished(struct sim *sim, const struct sim_request *request); /* ... gone */
void audit_lift(struct sim *sim, uint32_t anchor);
/* May this one be shown what is in a block, as block `index` of its own? */
bool audit_may_see(const struct sim *sim, const struct sim_request *request, block_t block,
                   uint32_t index);
/* Is it what somebody has published, as block `index` of this one's? */
bool audit_is_published(const struct sim *sim, const struct sim_request *request, block_t block,
                        uint32_t index);

/* A page of a block that was found, or taken instead of another; else it is to be written. */
bool audit_page_is_found(const struct sim *sim, const struct plan_page *page);

/* audit-accounts.c: what users are charged for. */
void audit_submit(struct sim *sim, struct sim_request *request); /* not alive yet */
void audit_forget(struct sim *sim);                              /* users who have nothing alive */
void audit_charge(struct sim *sim, bool stalled_ones); /* the rows of these, or of the others */
uint64_t audit_served(const struct sim *sim, const struct sim_request *request);

/* audit-slots.c: who is let in, and who is parked for it. */
void audit_slots(struct sim *sim);
/* audit-rows.c, audit-left.c, audit-order.c, audit-sleep.c: whose rows, whose first, until when. */
struct sim_stalls {
        uint32_t surely, maybe;
        uint64_t wake_first, wake_surely; /* when something is to happen */
};
void audit_rows(struct sim *sim);
void audit_left_out(struct sim *sim);
void audit_sleep(struct sim *sim, struct sim_stalls *stalls);
void audit_deadlines(struct sim *sim);
void audit_order(struct sim *sim, const uint64_t *room); /* ... of the channels, after this plan */
bool audit_no_page_left(const struct sim *sim, const struct sim_request *request);
bool audit_reads(const struct sim_request *request);         /* its next row was not yet its own */
uint32_t audit_rows_of(const struct sim *sim, bool prompts); /* of this plan */

#define each_request(sim, r)                                                                       \
        for (struct sim_request *r = (sim)->requests;                                              \
             r < (sim)->requests + (sim)->conf.requests_max; r++)                                  \
                if (r->alive)

/* In which domain what it computes is named. */
static inline uint64_t sim_domain(const struct sim_request *request)
{
        return request->core.publish ? request->core.publish : request->uid;
}

/* Rows that it has: what it makes last is never read back. */
static inline uint32_t sim_positions(const struct sim_request *request)
{
        return request->core.prompt_count + request->core.max_tokens -
               (request->core.max_tokens > 0);
}

/* Not by its number, which is gone once it has retired: a wrong plan must not lead astray. */
static inline struct sim_request *sim_of(struct sim *sim, const struct request *request)
{
        size_t at = (size_t)((const struct sim_request *)request - sim->requests);

        assert_true(at < sim->conf.requests_max);
        return &sim->requests[at];
}

#endif
