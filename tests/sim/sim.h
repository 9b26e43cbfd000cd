/*
 * A simulated world around the real scheduler.
 *
 * Time is a number, a model is a hash, a reader is a speed.  The world plays the engine: it
 * tells the scheduler the free bytes of rings, asks for a plan, runs it and brings results
 * back, up to `depth` plans late.  It computes like a model: the KV of a position is a hash
 * over the row's token and the KV of the position before it.  It is kept per (block, offset)
 * and read through the page tables that the plans wrote.  If layers have a window, the positions
 * that a row sees in it are kept a second time, per (window page, offset).
 *
 * The tokens that a request makes alone are known beforehand.  A block that is given out twice,
 * a missing page, a forgotten copy or a row that is off by one changes a token, so the test
 * sees it.
 *
 * The auditor (audit*.c) keeps its own books from the plans, and checks every plan against the
 * promises of sched.h.  Any violation fails the test with the seed and the step, and with the
 * trace if there is one.
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stddef.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/forecast.h"
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
        uint64_t uid;
        enum request_priority priority;
        uint32_t channel, prompt, most; /* most 0: the prompt is read, and no token is made */
        uint32_t pin;                   /* the pin to set on a request with most 0; 0: none */
        /* ... publish it in this public domain; 0: keep it in its own */
        uint64_t publish;
        /* it may find blocks that are public to everyone, and those of this group */
        bool sees_public;
        uint32_t group;             /* 0: none */
        uint32_t text, shared;      /* its first `shared` tokens are those of this text */
        uint32_t record_bytes;      /* 0: 10 */
        uint64_t deadline_ns;       /* 0: none */
        uint32_t end_at;            /* the token with this number gets the verdict; 0: none */
        enum sched_verdict verdict; /* ... this verdict */
        bool alone;
        bool guided;          /* its tokens are drawn under masks ... */
        uint64_t mask_ns;     /* ... which come after this time; SIM_NEVER: none comes */
        bool outside;         /* alone, and its tokens come from outside ... */
        uint64_t token_ns;    /* ... this time after their rows; SIM_NEVER: none comes */
        uint32_t asked_bytes; /* of record_bytes: what is written when a row has run */
        bool drafts;          /* its tokens are guessed ... */
        uint32_t guesses;     /* ... before each plan, so many at most; 0: the test does that */
        /* its first `token_count` tokens are these, whatever its text is */
        const uint32_t *tokens;
        uint32_t token_count;
};

struct sim_request {
        struct request core; /* first: sim_of() counts on it */
        char name[12];
        bool alive; /* submitted, and not yet retired */

        /* Its results if it ran alone, computed from its seed. */
        uint32_t worst; /* blocks that it needs at most */
        uint32_t end_at;
        enum sched_verdict verdict;
        bool alone, guided, outside;
        uint64_t mask_ns, token_ns;
        bool drafts; /* its tokens are guessed, so many at once */
        uint32_t guesses;
        uint32_t *truth; /* its tokens, if nothing ends it early */
        uint64_t *chain; /* the KV of every position */

        /* The auditor's books. */
        uint64_t uid;
        uint32_t channel;
        enum request_priority priority;
        uint64_t admitted_step; /* the number of the plan that let it in */
        /* sequence numbers: of its arrival, and of its admission to a slot */
        uint64_t arrival, turn;
        /* ... and the order among the requests that this plan admitted is not known */
        bool turn_open;
        uint64_t since_ns; /* ... and the time of arrival by the clock */
        uint64_t idle_ns;  /* since when it has waited: for its slot, or for its next rows */
        uint64_t slot_ns;  /* when it was admitted, and the class that it counted as then */
        uint32_t granted;
        uint64_t deadline_ns; /* SIM_NEVER: it has none */
        bool admitted, decided, ended;
        enum smv_reason reason; /* once decided */
        enum smv_code code;
        uint32_t slot;
        uint32_t planned;        /* the position of its next row */
        uint32_t planned_before; /* ... before this plan */
        uint32_t in_flight;      /* rows in flight */
        uint32_t made;           /* tokens that came back */
        uint32_t known; /* tokens when it was admitted: it prefills them before it decodes */
        uint32_t found; /* positions that were found, so it need not compute them */
        /* ... as counted when it was first admitted, which is also the number that it reports */
        uint32_t cached;
        uint32_t preemptions; /* how often it was preempted */
        uint32_t blocks_lost; /* ... of these, how often because blocks ran out */
        uint32_t unanswered;  /* ... and how often because its client did not answer */
        uint32_t promised;    /* blocks that it has or may take, while it has a slot */
        bool reserves;        /* ... and counts towards the reserved part of the pool */
        bool lacks_block;     /* its next row needs one more, and there was none for it */
        bool preempting;      /* ... and it will be again, once its rows in flight are back */
        /* it had a row, so the device knows about the blocks that were found */
        bool moved;
        uint64_t moved_step; /* ... in this plan first */
        block_t *blocks;
        uint32_t *windows; /* their window pages, as told; or WINDOW_NONE */
        uint32_t block_count;
        /* the first of its blocks whose window page it may have: it has given back those before */
        uint32_t window_begin;
        uint32_t fetched;    /* blocks that came from the swap, and were not charged yet */
        uint32_t came;       /* ... and all that came since it was admitted */
        uint64_t came_since; /* blocks that came for all requests before it was admitted */
        /* Blocks that it may have found in the swap and that came for another request, at most. */
        uint32_t found_late;
        /*
         * The position of its next row when it was preempted, at least and at most: if it had no
         * row before that, it cannot be seen how much was found for it.
         */
        uint32_t computed, computed_most;
        /* Positions that had rows again, or came from the swap, after that; and what it says. */
        uint32_t recomputed, recomputed_most, recomputed_told;
        uint32_t restored, restored_most, restored_told;
        /*
         * Left out because its ring was full.  Some cases may be read either way, so there are
         * two times.
         */
        uint64_t stalled_first, stalled_surely;

        /* Its state before the plan that is being checked. */
        bool asked_first; /* in this plan, before any request is admitted */
        bool was_stalled;
        uint64_t was_stalled_ns;
        uint32_t first_row; /* the position of its first row in this plan, or SIM_NO_ROW */

        /* The time since which its mask or its token is awaited, if it is. */
        uint64_t asked_ns;

        /* Its next mask was not told yet, and comes at this time. */
        bool unready;
        uint64_t mask_due_ns;

        /*
         * Drafts: the guess for the next plan; the last one, and the position of its first token;
         * and the rows of this plan that are for it.
         */
        uint32_t guess_count, last_guess_count, guess_at, guess[SCHED_DRAFT_MAX];
        uint32_t drafted;
        /* The KV of the rows of its last run, from this position on. */
        uint32_t run_from;
        uint64_t run_chain[SCHED_DRAFT_MAX];
        /* When it came, its tokens from this position on were new, so they are not found. */
        uint32_t unsaid_from;

        /* Its last row has run, and its token was not told yet; it comes at this time. */
        bool held;
        uint64_t token_due_ns;
        uint32_t token;
};
#define SIM_NO_ROW UINT32_MAX

/* The time that a user was served.  It is kept while any user has a request alive. */
struct sim_account {
        bool used;
        uint64_t uid;
        uint64_t served_ns;
        uint64_t turn_ns[REQUEST_PRIORITY_N]; /* when one of the class got a slot last */
};

/* A text that is public, or was public. */
struct sim_published {
        uint64_t domain;             /* 0: no text */
        struct sim_request *request; /* the request that reads it, until that request has retired */
        /* the pin with which it is published; 0: not yet, or no longer */
        uint32_t pin;
        uint32_t count;
        uint64_t *chain;
        uint64_t from_step; /* plans after this step may show it; SIM_NEVER: it is not read yet */
        /* plans after this step show it to no new request; SIM_NEVER: no limit */
        uint64_t until_step;
};
#define SIM_PUBLISHED_MAX 64u
#define SIM_NO_DOMAIN     UINT64_MAX

/* Why a waiting request may have a slot, or may not. */
enum sim_ground {
        SIM_WITHIN_HALF,
        SIM_ALONE,       /* above half, but no other user waits */
        SIM_BEGINS,      /* above half, but its user has nothing */
        SIM_OVER_SLOTS,  /* above half, and others wait: it is passed over */
        SIM_OVER_BLOCKS, /* ... of the blocks only */
        SIM_OVER_MOST,   /* above the maximum of one user, whether others wait or not */
        SIM_GROUND_N,
};

struct sim_row {
        struct sim_request *owner;
        uint32_t position;
        bool decode;  /* ... of a token that it made; else it reads */
        bool pending; /* its result has not been told */
        uint32_t result;
        bool drafted; /* of a draft, whose token is this */
        uint32_t guess;
        uint32_t fetched; /* blocks that came from the swap, since the rows before */
};

/* The content of a block of the pool or of the swap, besides its KV (audit-swap.c). */
struct sim_content {
        bool full;    /* it has something, or will have; one that can never be whole has not */
        bool indexed; /* ... and is surely in the index */
        /* A request that was admitted before this turn may have found it when it was there. */
        uint64_t doubted;
        uint32_t index; /* of the block in its text */
};

/* The books of a window page. */
struct sim_window {
        block_t block;    /* that a request needs it for, or BLOCK_NONE */
        uint64_t writer;  /* the arrival of the request that writes it, or wrote it last */
        uint64_t copied;  /* the last plan that copied it */
        uint64_t invalid; /* useless to requests that are admitted at this turn or later */
};

struct sim_flight {
        uint64_t number, made_ns, done_ns;
        uint32_t row_count, copy_count;
        struct sim_row *rows;
        block_t *sources; /* of its copies */
};

struct sim_channel {
        uint64_t capacity, used; /* bytes of a ring that TOKENS may take, and have taken */
        uint64_t speed;          /* bytes that are read in a millisecond */
        uint64_t read_ns;        /* the time up to which its reading was simulated */
        uint64_t told;
};

struct sim {
        struct sched_conf conf;
        struct sched *sched;
        struct plan plan;
        uint64_t now_ns;
        uint64_t step_ns, row_ns; /* the time of a step, and of each row in it */
        /* ... and each row of a prompt, for each 1024 positions before it */
        uint64_t far_ns;
        /* ... and each decode, the same */
        uint64_t decode_far_ns;
        uint64_t lag_ns;       /* extra time that the next step takes */
        uint64_t took_ns;      /* the duration of the step before */
        uint64_t collected_ns; /* the time of the last DONE */

        uint64_t seed, random;
        uint64_t step_count, event_count, arrivals, turns;
        struct sim_request *requests; /* requests_max */
        struct sim_channel channels[SIM_CHANNELS];
        struct sim_flight flights[SIM_DEPTH];
        uint32_t flight_count;
        uint64_t last_plan;
        uint64_t digest; /* of all rows that were planned, and all ends */
        bool held;       /* admission is on hold: no request may begin */

        /* The device. */
        block_t *tables; /* [slots][table_blocks] */
        uint32_t table_blocks;
        uint64_t *cells;         /* [places][BLOCK_POSITIONS]: of the pool, then of the swap */
        uint32_t *window_tables; /* [slots][table_blocks] */
        uint64_t *window_cells;  /* [window pages][BLOCK_POSITIONS] */

        /* The auditor's books. */
        struct forecast forecast;
        struct sim_request **slot_owner;
        struct sim_account accounts[SIM_REQUESTS];
        /* the request that is next and could not be admitted */
        struct sim_request *blocked;
        uint32_t *block_table_count; /* page tables that a block is in */
        /* the domain for which it was given out; or SIM_NO_DOMAIN */
        uint64_t *block_domain;
        uint64_t *queue_domain; /* ... as it stood before slots were given out */
        /* counts per block, while a user's charge is computed */
        uint32_t *block_refs, *user_refs;
        struct sched_user *users; /* the users, as last reported */
        /* useless to requests that are admitted at this turn or later */
        uint64_t *block_invalid;
        struct sim_content *contents;
        struct sim_window *windows; /* by number */
        uint32_t *block_window;     /* of each block, the page that a request needs */
        uint32_t windows_free; /* free window pages, and evictions of others, after the last plan */
        uint64_t window_evictions;
        uint64_t windows_passed; /* window pages that requests gave back while they ran */
        uint64_t windows_unseen; /* blocks that were found, and not their window pages */
        uint64_t *lines; /* [places][table_blocks]: the KV at the end of each block of its text */
        uint64_t *block_copied; /* the last plan that copied this block */
        /* the step since which it is shown, after a request has read it */
        uint64_t *block_shown;
        uint64_t soonest_ns; /* no deadline that may wake it is earlier */
        struct sim_published published[SIM_PUBLISHED_MAX];
        /* parts of public blocks that another user has as well */
        uint64_t parts;
        /* requests that gave way to one that was then passed over */
        uint64_t late_over;
        uint64_t found_public;              /* pages and copies of what others have published */
        uint64_t found_rows, copies, swaps; /* how much sharing saved */
        uint64_t steps_shared;              /* ... steps with a block in two page tables */
        /* requests that were passed over when the last plan was made */
        uint32_t passed_over;
        uint64_t preempted, resumed, late; /* counts */
        uint64_t grown, blocks_lost;       /* blocks promised later; and preemptions for lack */
        uint64_t limited;                  /* ... of these, for the limit of a user */
        /* requests of reserving classes that began as learned ones, beyond the reserved part */
        uint64_t beyond;
        uint64_t lacked, held_back; /* of requests, times plans */
        uint64_t worn;       /* ... of requests that were preempted more often than the maximum */
        uint64_t unanswered; /* preemptions of requests whose clients did not answer */
        /* of all requests for which admission was decided */
        uint64_t ground_counts[SIM_GROUND_N];
        uint64_t end_counts[SMV_END_ERROR + 1]; /* by reason */
        uint64_t swapped_out, swapped_in;       /* moves */
        uint64_t swap_dropped;         /* blocks of the swap that others took the place of */
        uint64_t restored, recomputed; /* positions of preempted requests, as they say */
        uint64_t made_restored;        /* tokens of requests that were restored */
        /*
         * Requests that were left out, times plans: with a slot, and for lack of a mask, or because
         * a row was in flight; in the queue, while another one got a slot.
         */
        uint64_t left_unready, left_alone, skipped;
        uint64_t masks_in_vain; /* that came when their request was ending */
        /*
         * The same of requests that are held; and how many tokens came from outside, of these those
         * of requests that had given up their slots.
         */
        uint64_t left_held, held_skipped, tokens_in_vain, answers, answers_without_slot;

        /*
         * Runs; their rows of drafts, those that came true, and those that were not to be told;
         * blocks that were taken for them; and runs that a verdict or a cancel ended.
         */
        uint64_t runs, drafted, confirmed, rejected, draft_pages, runs_cut;
        bool public_texts;  /* some were published, so blocks may leave the index */
        bool *was_cached;   /* blocks that were cached before this plan */
        uint64_t evictions; /* ... and those that had been evicted */

        bool shares;          /* some requests begin alike: blocks may be found */
        uint64_t *beginnings; /* a set of users and first tokens, SIM_BEGINNINGS bits */
        uint64_t *said;       /* ... and of users and whole texts, up to each position */
        uint64_t divergences; /* divergences that were reported */
        /* records are smaller than their maximum; ending results are dropped */
        bool ragged;
        bool masks_hurry;              /* all masks and tokens come at once */
        void (*between)(struct sim *); /* called between the results of a plan, if set */

        char *trace; /* NULL: no trace is kept */
        size_t trace_count, trace_max;
        char idle[128]; /* the last line, if nothing ran: it is not repeated */
};

void sim_open(struct sim *sim, const struct sched_conf *conf, uint64_t seed, bool trace);
/* A world for one scenario, with a trace.  It is small where conf leaves sizes open. */
void sim_open_small(struct sim *sim, const struct sched_conf *conf);
/* Checks that everything has ended and everything is free. */
void sim_close(struct sim *sim);
/* Frees a world that has failed; does nothing if it is closed. */
void sim_free(struct sim *sim);

/* NULL: requests_max requests are alive already.  The ask must fit the world. */
struct sim_request *sim_submit(struct sim *sim, const struct sim_ask *ask); /* submit.c */
void sim_cancel(struct sim *sim, struct sim_request *request);
void sim_pause(struct sim *sim, bool held);
void sim_unpin(struct sim *sim, uint32_t pin);
void sim_speed(struct sim *sim, uint32_t channel, uint64_t bytes_per_ms);

/*
 * Whether any earlier request of this user had the same tokens up to `at`, in its prompt or its
 * answer, followed by that token.
 */
bool sim_was_said(const struct sim *sim, const struct sim_request *request, uint32_t at,
                  uint32_t token);

/* drafts.c: guesses so many tokens, the first ones of them right, and notes them as a draft. */
void sim_draft(struct sim *sim, struct sim_request *request, uint32_t count, uint32_t right);
/* Whether the contract allows to note a draft for this request. */
bool sim_may_draft(const struct sim *sim, const struct sim_request *request);
/* Notes the drafts of all requests whose tokens are guessed. */
void sim_draft_all(struct sim *sim);
/*
 * Does the result of the next row of its run come after this one?  Then it needs no mask that is
 * not there.  If not, no results of the rest come.
 */
void sim_end_run(struct sim *sim, struct sim_flight *flight, uint32_t row, bool told,
                 enum sched_verdict verdict);

/* device.c: carries out a plan, and computes its rows. */
void sim_launch(struct sim *sim);

/* Tells spaces, asks for a plan, audits it and launches it. */
void sim_step(struct sim *sim);
/* Brings back the results of the oldest plan in flight. */
void sim_collect(struct sim *sim);
/*
 * Does what the engine does in one turn: a step, then a wait for results or for the wake-up
 * time.
 */
void sim_turn(struct sim *sim, uint64_t until_ns);
/* Runs turns until time has reached or just passed this point. */
void sim_run(struct sim *sim, uint64_t until_ms);
uint32_t sim_alive(const struct sim *sim);

/* Compares the trace since the last call with this text. */
void sim_expect(struct sim *sim, const char *text);

uint64_t sim_random(struct sim *sim);
uint32_t sim_below(struct sim *sim, uint32_t limit);
uint64_t sim_mix(uint64_t x);

/* The model: what the KV of a row is, and which token follows. */
uint64_t sim_cell_of(uint64_t before, uint32_t token, uint32_t position);
uint32_t sim_token_after(uint64_t cell);

void *sim_need(size_t count, size_t size); /* zeroed; fails the test if there is no memory */
void sim_note(struct sim *sim, const struct sched_event *event);
/* The record of a token takes some of these bytes of its ring, or all.  Returns how many. */
uint32_t sim_write(struct sim *sim, const struct sim_request *request, uint32_t bytes);
/* The verdict about the token with this number. */
enum sched_verdict sim_verdict(const struct sim_request *request, uint32_t number);

/* Fails the test if `what` does not hold. */
#define sim_must(sim, what, ...)                                                                   \
        do {                                                                                       \
                if (!(what))                                                                       \
                        sim_fault(sim, __FILE__, __LINE__, #what, __VA_ARGS__);                    \
        } while (0)
void sim_fault(struct sim *sim, const char *file, int line, const char *what, const char *format,
               ...) __attribute__((noreturn, format(printf, 5, 6)));

/*
 * trace.c: writes a line for the plan that was just made; passed_over requests were passed over
 * in it.
 */
void sim_trace(struct sim *sim, uint32_t passed_over);

/* audit.c: the state before a plan is requested, and the plan itself. */
void audit_before(struct sim *sim);
void audit_plan(struct sim *sim);
void audit_decide(struct sim *sim, struct sim_request *request, enum smv_reason reason,
                  enum smv_code code);
void audit_result(struct sim *sim, struct sim_request *request, uint32_t token,
                  enum sched_verdict verdict);
/* Its end is not decided: it decodes, or gives way, or waits for a slot. */
void audit_goes_on(struct sim *sim, const struct sim_request *request);
/* Bytes that rows in flight, and tokens that are held, may still write into a channel. */
uint64_t audit_charged(const struct sim *sim, uint32_t channel);

/* audit-blocks.c: blocks that are taken, found and copied; and the totals. */
void audit_pages(struct sim *sim);
void audit_copies(struct sim *sim);
void audit_blocks(struct sim *sim, const struct sched_counts *counts);

bool audit_is_copied(const struct sim *sim, block_t block); /* by a plan in flight */

/* audit-swap.c: blocks that move to the swap and back, and what is said about it. */
uint32_t sim_places(const struct sim *sim); /* the number of blocks of pool and swap */
void audit_moves(struct sim *sim);
void audit_swap(struct sim *sim, const struct sched_counts *counts);
/* The block in which the content of this one was before this plan. */
block_t audit_moved_from(const struct sim *sim, block_t block);
bool audit_is_fetched(const struct sim *sim, block_t block); /* in this plan */
/* Blocks that came for others since this request was admitted; it may await some of them. */
uint32_t audit_came_for_others(const struct sim *sim, const struct sim_request *request);
/* A block of the pool is used for something else, or for this block of a request's text. */
void audit_swap_given_away(struct sim *sim, block_t block);
void audit_swap_written(struct sim *sim, const struct sim_request *owner, block_t block,
                        uint32_t index);
/* Blocks of this text, and of those that begin like it, may have left the index. */
void audit_swap_forget(struct sim *sim, const uint64_t *chain, uint32_t count);
/* ... because rows of this request were not valid. */
void audit_swap_invalidate(struct sim *sim, const struct sim_request *request);

/* audit-windows.c: the pages of layers with a window. */
/* Window pages that are promised to a request with its slot; and to all requests at most. */
uint32_t sim_windows_of(const struct sim *sim, const struct sim_request *request);
uint64_t sim_windows_promised_max(const struct sim *sim);
void audit_windows(struct sim *sim, const struct sched_counts *counts);
/* The request has window pages that it did not compute correctly; or all of its pages are sound. */
void audit_windows_invalidate(struct sim *sim, const struct sim_request *request);
void audit_windows_sound(struct sim *sim, const struct sim_request *request);

/* audit-usage.c: what the scheduler reports about users. */
void audit_users(struct sim *sim, const struct sched_counts *counts);

/* The blocks that this request has computed are useless to all requests that come from now on. */
void audit_invalidate(struct sim *sim, const struct sim_request *request);
/* Its blocks were read to their end, and are sound. */
void audit_sound(struct sim *sim, const struct sim_request *request);
/* audit-published.c: which texts are public, to which requests, and how long. */
void audit_publish(struct sim *sim, struct sim_request *request);           /* it is submitted */
void audit_published(struct sim *sim, const struct sim_request *request);   /* ... read */
void audit_unpublished(struct sim *sim, const struct sim_request *request); /* ... gone */
void audit_unpin(struct sim *sim, uint32_t pin);
/* Whether this request may be shown the contents of a block, as block `index` of its own. */
bool audit_may_see(const struct sim *sim, const struct sim_request *request, block_t block,
                   uint32_t index);
/* Whether it holds published contents, as block `index` of this request. */
bool audit_is_published(const struct sim *sim, const struct sim_request *request, block_t block,
                        uint32_t index);

/*
 * True for a page of a block that was found, or taken instead of another; false if it is to be
 * written.
 */
bool audit_page_is_found(const struct sim *sim, const struct plan_page *page);

/*
 * audit-guides.c: requests that are alone, and those whose masks are not there.
 */
/* Its mask is there, and is told. */
void audit_tell_mask(struct sim *sim, struct sim_request *request);
/* It waits for its next mask from now on. */
void audit_await_mask(struct sim *sim, struct sim_request *request);
/* Tells the masks that are there by now, also of requests that are ending. */
void audit_tell_masks(struct sim *sim);
uint64_t audit_next_mask_ns(const struct sim *sim); /* SIM_NEVER: none is due */
/* It has no row of a decode in this plan, as a token or a mask before it is not there. */
bool audit_is_left_alone(const struct sim *sim, const struct sim_request *request);
/* Its rows that want a result, and have none yet; those of this plan are not among them. */
uint32_t audit_pending(const struct sim *sim, const struct sim_request *request);
void audit_guides(struct sim *sim);

/*
 * audit-held.c: requests whose tokens come from outside.
 */
/* A row of it has run, and says LATER; this is its token. */
void audit_hold(struct sim *sim, struct sim_request *request, uint32_t token);
/* It is over, and a token may still be on its way: that must change nothing. */
void audit_forget_token(struct sim *sim, struct sim_request *request);
/* Tells the tokens that are there by now, also of requests that are ending. */
void audit_tell_tokens(struct sim *sim);
uint64_t audit_next_token_ns(const struct sim *sim); /* SIM_NEVER: none is due */
/* Bytes of a channel that are reserved for held requests. */
uint64_t audit_held_bytes(const struct sim *sim, uint32_t channel);
void audit_held(struct sim *sim);

/*
 * audit-drafts.c: rows of drafts.
 */
void audit_drafts_before(struct sim *sim);
/* Is it of a draft: behind the row of a decode? */
bool audit_is_drafted(const struct sim_request *owner, bool first);
void audit_draft_row(struct sim *sim, const struct plan_row *row, struct sim_request *owner);
void audit_drafts(struct sim *sim, const struct sched_counts *counts);
uint32_t audit_draft_rows(const struct sim *sim); /* of this plan */
/* Bytes of a channel that are reserved for rows of drafts in this plan. */
uint64_t audit_draft_bytes(const struct sim *sim, uint32_t channel);
bool audit_has_run(const struct sim *sim, const struct sim_request *request); /* in flight */
/* The bytes that are reserved of a channel are those of the books, at any time. */
void audit_pending_bytes(struct sim *sim, uint32_t channel);

/* audit-service.c: the time that users are charged for. */
void audit_submit(struct sim *sim, struct sim_request *request); /* not alive yet */
/* if no request is alive, all accounts are forgotten */
void audit_forget(struct sim *sim);
/* The oldest plan in flight has run, and its rows are still noted. */
void audit_charge(struct sim *sim, const struct sim_flight *flight);
/* the accounts that are told are those of the books */
void audit_accounts(struct sim *sim);
uint64_t audit_served(const struct sim *sim, const struct sim_request *request);
struct sim_account *audit_account(struct sim *sim, const struct sim_request *request);
/*
 * The class of a request that has a slot: that of its admission, as long as that counts.  And its
 * place among the prompts, before this plan.
 */
uint32_t audit_held_class(const struct sim *sim, const struct sim_request *request);
uint64_t audit_prompt_rank(const struct sim *sim, const struct sim_request *request);
uint32_t audit_promoted(const struct sim *sim, uint32_t class, uint64_t since_ns);

/* audit-forecast.c: a request has ended by itself; it has retired. */
void audit_learn(struct sim *sim, const struct sim_request *request);
void audit_note(struct sim *sim, const struct sim_request *request);

/* audit-map.c: the map of the pool agrees with the counts. */
void audit_map(struct sim *sim);

/* audit-slots.c: which requests are admitted, and which are preempted for them. */
void audit_slots(struct sim *sim);
/* It has given up its slot, and everything with it. */
void audit_release(struct sim *sim, struct sim_request *request);
/*
 * audit-growth.c: which running requests are promised more, and which are preempted for them.  It
 * comes before slots are given.
 */
void audit_growth(struct sim *sim);
/* ... and what requests say about it, once slots are given. */
void audit_promises(struct sim *sim);
/*
 * audit-rows.c, audit-left-out.c, audit-order.c, audit-sleep.c: which requests get rows, in which
 * order, and until when the engine sleeps.
 */
struct sim_stalls {
        uint32_t surely, maybe;
        uint64_t wake_first, wake_surely; /* when the next event is due */
};
void audit_rows(struct sim *sim);
void audit_left_out(struct sim *sim);
void audit_sleep(struct sim *sim, struct sim_stalls *stalls);
void audit_deadlines(struct sim *sim);
void audit_order(struct sim *sim, const uint64_t *space); /* ... of the channels, after this plan */
bool audit_no_page_left(const struct sim *sim, const struct sim_request *request);
bool audit_reads(const struct sim_request *request);         /* its next row was not yet its own */
uint32_t audit_rows_of(const struct sim *sim, bool prompts); /* of this plan */
uint32_t audit_rows_for_moves(const struct sim *sim);
bool audit_seemed_short(const struct sim *sim, const struct sim_request *request);

#define each_request(sim, r)                                                                       \
        for (struct sim_request *r = (sim)->requests;                                              \
             r < (sim)->requests + (sim)->conf.requests_max; r++)                                  \
                if (r->alive)

/* The first block that the row at this position sees in its window; 0 without windows. */
static inline uint32_t sim_window_begin(const struct sim *sim, uint32_t position)
{
        uint32_t window = sim->conf.prefix.window;

        return window && position >= window ? (position + 1 - window) / BLOCK_POSITIONS : 0;
}

/* The domain in which its blocks are named. */
static inline uint64_t sim_domain(const struct sim_request *request)
{
        return request->core.publish ? request->core.publish : request->uid;
}

/* The number of rows that it has: the last token that it makes is never read back. */
static inline uint32_t sim_positions(const struct sim_request *request)
{
        return request->core.prompt_count + request->core.max_tokens -
               (request->core.max_tokens > 0);
}

/*
 * Found by pointer, not by number: the number is gone once the request has retired, and a wrong
 * plan must not mislead the auditor.
 */
static inline struct sim_request *sim_of(struct sim *sim, const struct request *request)
{
        size_t at = (size_t)((const struct sim_request *)request - sim->requests);

        assert_true(at < sim->conf.requests_max);
        return &sim->requests[at];
}

#endif
