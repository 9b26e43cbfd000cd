/*
 * The scheduler: decides which requests run in the next step.
 *
 * A pure state machine.  The engine calls sched_note() for each event and sched_next()
 * once a step.  Time comes in as an argument, and the work to do goes out as a plan; nothing
 * else goes in or out.  It reads no clock, owns no thread, does no I/O and allocates no memory
 * after sched_new(), so it can be simulated, replayed and fuzzed.
 *
 * Continuous batching under a token budget.  Every running decode that may continue gets its
 * row first.  Then prompts fill the rest of conf.rows in chunks: in the order of the queue, short
 * prompts first up to half of the rest, then as they got their slots.  Prompt rows are also
 * limited so that decodes do not wait longer than conf.token_gap_ns (prefill-budget.h).  With
 * conf.batch_size no request joins a running batch; this mode exists for comparison.
 *
 * Slots.  A slot goes to the next request in the queue (rank.c).  That is a request of the user
 * that was served least, measured in the time of steps (charge.c).  Of its requests it is one of
 * the best class, and of these the one that arrived first.  Users whose accounts differ by less
 * than conf.lead_ns are nearly equal, and then class decides between them, too.  For each
 * conf.promote_ns in which no request of a user and class got a slot, those that wait count as one
 * class better.  The next request gets the slot once its blocks can be promised to it (below).
 *
 * Promises.  A request with a slot was promised a number of blocks (request.promised): those that
 * it has, and those that it may still take.  All promises together fit the pool.  How many it is
 * promised first depends on its class.
 *
 *      Reserved: its worst case, so it never lacks a block.  Requests of a class without
 *      conf.learned are reserved, if the worst cases of all such requests that have a slot, with
 *      this one, are at most conf.reserve_max blocks.
 *      Learned: all others.  It is promised the blocks of the tokens that it has and of 16 more, or
 *      its worst case if that is less.  It gets the slot only if the forecast (forecast.h) says
 *      that the pool will hold what it and the running requests will need; else it is held back
 *      (request.held_back), and all requests behind it wait, too.  No request is held back while
 *      none is running.
 *      A request that was preempted conf.preemptions_max times, and every request in a batch, is
 *      reserved whatever its class, and does not count towards conf.reserve_max.
 *
 * In each plan, after ends and before slots are given, each decode whose next row needs a block
 * beyond its promise is promised one more, in the order in which they got their slots; but one that
 * waits for masks or for a token is promised it only when these have come.  If none is left that
 * nobody was promised, or its user has several slots and conf.user_blocks, another request is
 * preempted (request.blocks_lost counts that): in the latter case one of the same user.  No
 * reserved request is.  Of the others it is one whose preemption makes a block free, if there is
 * such a request; of these, one of the user that uses most of the pool (of equals the one with the
 * largest uid); of that user's, one of the last class as asked for; of these, the one that arrived
 * last.  It may be the request itself.  No second one is chosen while a preempted request still has
 * rows in flight.  Until it is promised its block, the decode has no row (request.lacks_block).
 *
 * While another user waits, no user gets more than half of the slots or blocks, unless it has to
 * catch up, and never more than conf.user_blocks.  Shared blocks are charged in parts
 * (fair-share.h, usage.c).  A running request may be preempted for one of a better class of its
 * user, or for a user that was served less, or when it has been stalled for conf.stall_preempt_ns,
 * or is unanswered (below), or when blocks run out.  Then it is WAITING again, keeps its tokens,
 * and continues later with the same result.  A request is preempted at most conf.preemptions_max
 * times, and more often only for a user that has no slot, by one that has several.
 * No request that counts towards conf.reserve_max gives way to one that is learned only because
 * that part of the pool is full, unless it is unanswered.  Then the other one may be reserved.  If
 * its user would get more than its share by that, with what it has now, the user is passed over.
 *
 * Unanswered.  A request with a slot is unanswered once it has waited for its masks or for a token
 * from outside (below) for conf.stall_preempt_ns: its client keeps its slot and blocks from others.
 * It may be preempted for any waiting request, whatever the ranks and the users, and as often as
 * this happens: these preemptions do not count towards conf.preemptions_max, so a client that does
 * not answer does not get its worst case reserved.  Nor does it matter that the other one's user
 * has half of the slots or blocks.  Only a request that asks its client can be unanswered.
 *
 * Sharing.  Computed blocks stay in the pool as long as there is space.  A request that begins
 * with the same tokens, in the same domain, references those blocks instead of computing them
 * (prefix.h).  It references all whole blocks.  If a part of one more block is equal, it gets a
 * copy of that block.  It needs the copy because a block that is written has only one reference.
 * The last token of the prompt is computed again in any case, without writing its KV.  That row
 * gives the first token of the answer.
 *
 * The swap.  It is a second place for blocks, in the host's memory.  A whole block that is
 * evicted from the pool moves to the swap and stays in the index (prefix.h).  A request finds the
 * blocks in the pool, and after them those in the swap.  The latter count as blocks that it needs:
 * they are promised to it, and it awaits them.  When it gets its first rows, they are moved back
 * before these.  Then they are like blocks found in the pool: no row writes them, and they count as
 * found (sequence.cached_count).  A block that another request has brought to the pool by then is
 * referenced there.  One that has left the swap is computed, with all that follow it.
 * In a plan with decodes each block that comes takes the place of a row of prompts, so a request
 * may get its blocks in several plans.  A prompt is short (above) by the rows that it takes in this
 * way.  If its blocks do not come then, it gets no more rows than a short one may.  If only the
 * last row would follow the blocks, and its record has no space, the last block is not awaited any
 * more, but computed: a plan needs rows.
 * While two copies of a block take longer than 16 rows at the beginning of a prompt, no block moves
 * to the swap, and none comes back.  Until the time of a row is known, moving counts as quicker.
 *
 * Windows.  With conf.prefix.window, layers with a sliding window have their keys and values in
 * window pages (prefix-windows.h).  A row at position p reads all positions up to p in the blocks,
 * and those from p - window + 1 on in window pages, too.  When a plan is made, each sequence gives
 * back the window pages that its next row does not see; so the memory of these layers does not grow
 * with the sequence.  They are cached with their blocks, and may be evicted alone.  A request goes
 * on from the last known position at which all window pages are there that its rows will see; what
 * follows is computed again.  Rows compute both parts of a block, so a block that the index knows
 * without its window page gets one when it is computed again.  A request gets its slot when the
 * window pages that it may need at once can be promised to it (sched_windows_of()); all that are
 * promised are at most sched_windows_max().  If they cannot, it is as if there were no free slot:
 * it waits, or others are preempted for it.
 *
 * Scores.  A request with prompt_logprobs wants the log probability of each token of its prompt, so
 * each row of the prompt but the last wants its logits.  A plan has logits for as many rows as
 * there are slots: one for each request with a slot, and those of free slots for prompts that are
 * scored.
 * Each score has a record, and needs space for it.  The positions that are still to be scored need
 * rows, so a request finds only the blocks before them in the index.  Its blocks are inserted as
 * always.  Positions that were scored before it was preempted are not scored again.
 *
 * Reading only.  With max_tokens 0 the prompt is computed and no token is generated.  Its last
 * row still wants a result, because that shows whether the numbers are valid.  The sampled
 * token is not used and not appended; the result ends the request.  Then its pin is set
 * (prefix.h): its blocks are evicted after all others, until SCHED_UNPIN.
 *
 * Publishing is reading for a public domain.  A publishing request finds nothing of its user's
 * own, and its blocks are inserted in the public domain, for others that publish the same text.
 * Once all of it is computed and the numbers are valid, every reader of that domain finds it,
 * until SCHED_UNPIN.  If two requests publish the same beginning at the same time, one may
 * end as BUSY; it will succeed later.
 *
 * Masks.  The tokens of a request that `awaits` are drawn under masks, which depend on all tokens
 * before.  So it gets a slot only when the masks of its first token are there (SCHED_READY),
 * and its next row when the masks of that row's token are there.  Meanwhile it is left out: others
 * do not wait for it.  In the queue it is not a request that waits for others: it does not count
 * for the shares of users, its user saves up no time, and it is not promoted for that time.  While
 * a row of it that wants a result is in flight, it has no other.  Nor has a request that is
 * `alone`.
 *
 * Tokens from outside.  The token of a request that is `alone` may come later than its row: the
 * verdict of the row is SCHED_LATER, and SCHED_TOKEN brings the token.  Until then it is held: it
 * keeps its slot, and is left out of plans.  Others do not wait for it: if it is preempted
 * meanwhile, it gives up its slot like any other request and waits again, but gets a slot only when
 * its token has come, and until then counts as one without masks.  Of the space for its record,
 * asked_bytes_max were used before SCHED_LATER, and are free for others once the client has read
 * them; the rest stays reserved.  It is written before SCHED_TOKEN, so the free bytes are reported
 * after these events and before the next plan.
 *
 * Drafts.  The tokens that follow may be guessed (SCHED_DRAFT).  Then the decode is a run: its row,
 * and one for each token of the draft, all of which want results.  The result of the first row is
 * the next token.  If that is the first token of the draft, the result of the second row is the one
 * after it, and so on.  The results behind the first difference mean nothing, and do not come.  So
 * the tokens are those of a request without drafts, whoever guesses.  Rows of a draft are for
 * nobody else: they are left over by decodes and prompts, have conf.drafts of the logits, and take
 * only blocks that the request was promised and that are free; they evict and preempt nothing.  If
 * conf.token_gap_ns limits prompts, a plan has no drafts beside prompts.  Each row needs space for
 * a record, like a row of its own, and takes none that others of the channel need in this plan;
 * while one of these is stalled, the others have no drafts.  Their positions count as planned when
 * their tokens are confirmed, so nothing behind is named in the index; it is written again.  A
 * request has no other row while its run is in flight.  If it awaits, SCHED_READY comes before each
 * further result of the run: whoever guesses a token makes its masks.
 *
 * Space in rings.  A token is computed only if its record is sure to fit.  A channel has the
 * free bytes that the engine reported last (before every sched_next), less the bytes that rows
 * in flight may still write.  A request without space for its record is stalled and left out;
 * plan.stalled counts these requests.  After conf.stall_timeout_ns a stalled request ends.  The
 * request that has been stalled longest is considered first, so that requests that share a
 * channel share its bytes.
 *
 * Deadlines.  A request that is not finished at its deadline ends, in whatever state it is.
 *
 * Ends.  Every submitted request gets exactly one plan_end and later exactly one
 * `retired`, in this order, possibly in the same plan.  From the event that decides
 * its end, its state is ENDING, and results that still arrive for it are
 * counted and ignored.  Its blocks and its slot are free again when no plan in
 * flight has a row of it: cancelled in one step, free by the next.
 *
 * Invariants:
 *      reserved + blocks in page tables == what was promised to all requests with a slot
 *      reserved <= free + cached
 *      plans noted done + plans in flight == plans made
 * sched_check() proves these and the pool's.  Engine thread only.
 */
#ifndef DAEMON_CORE_SCHED_H
#define DAEMON_CORE_SCHED_H

#include "daemon/core/plan.h"
#include "daemon/core/sched-conf.h"

/* The tokens of one draft, at most. */
#define SCHED_DRAFT_MAX 16u

enum sched_event_kind {
        SCHED_SUBMIT, /* request, channel; the request is WAITING from now on */
        SCHED_CANCEL, /* request; reason and code of its END.  No effect if it is ending already */
        SCHED_SPACE,  /* channel, free_bytes: besides those that ENDs need */
        /*
         * plan, row, token, verdict; in the order of rows; none for scores.  Of a run (above), the
         * last result is the first whose token is not that of the draft, or that has not CONTINUE.
         */
        SCHED_RESULT,
        /*
         * request, which has a slot, has had its prompt computed, has no result due, and is not
         * held; tokens and draft_count: a guess at those that follow its last one.  It is for the
         * next plan only.  No effect if it is ending.
         */
        SCHED_DRAFT,
        /*
         * request, which awaits: the masks of its next token are there.  Comes once after SUBMIT,
         * and once after each of its tokens.  No effect if it is ending.
         */
        SCHED_READY,
        /* request, which is held; token, a verdict with a token.  No effect if it is ending. */
        SCHED_TOKEN,
        SCHED_INVALID, /* request: the numbers of a score are not valid, as with SCHED_NUMERIC */
        /*
         * plan: it has run.  Comes after its results, and plans come in order.  Results of
         * requests that are ending may be missing.
         */
        SCHED_DONE,
        SCHED_UNPIN, /* pin: removed, so its text is evicted like all others */
        SCHED_PAUSE, /* there is no model yet: plans have ends and no rows, until SCHED_RESUME */
        SCHED_RESUME,
};

/* The engine's decision about a token; the core itself handles "max_tokens reached". */
enum sched_verdict {
        SCHED_CONTINUE,
        SCHED_EOS, /* ends the request; the token counts, its text is not shown */
        SCHED_STOP,
        SCHED_NUMERIC, /* no token, the numbers are not valid: only this request fails */
        SCHED_STUCK,   /* no token, as none is legal: the same, but the numbers are valid */
        SCHED_LATER,   /* no token yet: it comes with SCHED_TOKEN */
};

static inline bool sched_has_no_token(enum sched_verdict verdict)
{
        return verdict >= SCHED_NUMERIC;
}

struct sched_event {
        enum sched_event_kind kind;
        struct request *request;
        uint32_t channel;
        uint64_t free_bytes;
        enum smv_reason reason;
        enum smv_code code;
        uint64_t plan;
        uint32_t row;
        uint32_t token;
        enum sched_verdict verdict;
        uint32_t pin;
        const uint32_t *tokens; /* of a draft */
        uint32_t draft_count;
};

/* Counts that `status` shows. */
struct sched_counts {
        uint32_t blocks_total, blocks_free, blocks_cached, blocks_in_use, blocks_reserved;
        uint32_t blocks_shared; /* of those in use, blocks with more than one reference */
        uint32_t waiting, running, stalled, ending;
        uint32_t passed_over;           /* waiting because their user has its share */
        uint32_t waits[REQUEST_WAIT_N]; /* waiting for this, when the last plan was made */
        uint64_t submitted;             /* requests so far */
        uint32_t plans_in_flight;
        uint64_t stalls;      /* times so far that a request stalled */
        uint64_t preemptions; /* preemptions so far */
        uint64_t blocks_lost; /* ... of these, those because blocks ran out */
        uint64_t recomputed;  /* positions of preempted requests that are computed again, so far */
        uint64_t restored;    /* positions of preempted requests that came back from the swap */
        uint32_t trust;       /* the quantile of the forecast, in percent (forecast.h); 0: unused */
        uint64_t prompt_row_ns; /* time of a prompt row; 0: not known yet */
        uint64_t prompt_far_ns; /* time added for each PREFILL_FAR positions before that row */
        uint64_t evictions;     /* blocks evicted so far, to the swap or for good */
        /* Window pages; those that are neither free nor cached are in use. */
        uint32_t windows_total, windows_free, windows_cached;
        uint64_t window_evictions;        /* window pages evicted so far */
        uint32_t swap_total, swap_used;   /* blocks of the swap */
        uint64_t swapped_out, swapped_in; /* blocks moved so far: to the swap, and to the pool */
        uint64_t copies; /* blocks copied so far because a part of them was found */
};

/* Counts of one user. */
struct sched_user {
        uint64_t uid;
        uint32_t blocks;    /* blocks of its requests, shared ones in parts; rounded up */
        uint32_t cached;    /* its own blocks without references */
        uint32_t running;   /* its requests that have a slot ... */
        uint32_t waiting;   /* ... and those that wait for one */
        uint64_t served_ns; /* its account, which only differences give a meaning; 0: it is away */
};

struct sched;

int sched_new(const struct sched_conf *conf, struct sched **ret_sched); /* 0 or -ENOMEM */
struct sched *sched_free(struct sched *sched);

/*
 * A result of a request that is ending is counted and ignored.  Only SCHED_NUMERIC still has an
 * effect: the request's blocks are no longer shared.  now_ns never decreases.
 */
void sched_note(struct sched *sched, const struct sched_event *event, uint64_t now_ns);

/* Makes the next plan.  If conf.depth plans are in flight already, it has no rows. */
void sched_next(struct sched *sched, uint64_t now_ns, struct plan *ret_plan);

/* The bytes of a channel that rows in flight, and held requests, may still write. */
uint64_t sched_pending_bytes(const struct sched *sched, uint32_t channel);

void sched_count(const struct sched *sched, struct sched_counts *ret_counts);

/*
 * Writes the users with a request alive, then all others that have cached blocks; at most `max`.
 * Returns how many.
 */
uint32_t sched_users(const struct sched *sched, struct sched_user *users, uint32_t max);

/*
 * Can this request ever fit?  Returns 0 or the code to refuse it with.  For admission; may be
 * called on any thread.
 */
enum smv_code sched_fits(const struct sched_conf *conf, uint32_t prompt_count, uint32_t max_tokens);

/* Checks all state and asserts all invariants. */
void sched_check(const struct sched *sched);

#endif
