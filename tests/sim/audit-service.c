/*
 * The auditor of accounts: how much time has each user been given?
 *
 * The time of each step is charged to the users that had rows in it, and to no others.  How it is
 * divided among them is up to the scheduler's estimate of their costs.  So the auditor takes each
 * account as it is told, and checks how it has changed:
 *
 *      the sum is the time of the step: from the plan, or from the end of the step before, to DONE
 *      a user that had more rows of each kind, and those farther on, pays no less
 *      the account of a user is not more than ten leads behind the largest, if nothing waits that
 *      only others keep waiting
 *
 * Arrivals change accounts, too; there the auditor knows what must come out.
 */
#include "tests/sim/audit-walk.h"

#include <string.h>

#define CREDIT    10u                 /* leads */
#define STEP_MOST (UINT64_C(1) << 36) /* ns; a step that takes longer counts as this */

static struct sim_account *account_of(struct sim *sim, uint64_t uid)
{
        struct sim_account *unused = NULL;

        for (struct sim_account *account = sim->accounts; account < sim->accounts + SIM_REQUESTS;
             account++) {
                if (account->used && account->uid == uid)
                        return account;
                if (!account->used && !unused)
                        unused = account;
        }
        sim_must(sim, unused, "there are too many users for the books");
        *unused = (struct sim_account){ .used = true, .uid = uid };
        return unused;
}

struct sim_account *audit_account(struct sim *sim, const struct sim_request *request)
{
        return account_of(sim, request->uid);
}

static bool is_present(struct sim *sim, uint64_t uid)
{
        each_request(sim, r)
        {
                if (r->uid == uid)
                        return true;
        }
        return false;
}

/*
 * A user that comes (back) gets no compensation for time that others got meanwhile, and has not
 * lost its debt.
 */
void audit_submit(struct sim *sim, struct sim_request *request)
{
        struct sim_account *account = account_of(sim, request->uid);
        uint64_t least = SIM_NEVER;

        if (is_present(sim, request->uid))
                return;
        each_request(sim, r)
        {
                if (audit_served(sim, r) < least)
                        least = audit_served(sim, r);
        }
        if (least != SIM_NEVER && least > account->served_ns)
                account->served_ns = least;
}

void audit_forget(struct sim *sim)
{
        each_request(sim, r)
        {
                (void)r;
                return;
        }
        memset(sim->accounts, 0, sizeof(sim->accounts));
}

/* The rows that a user had in a step. */
struct rows {
        uint64_t decodes, prompts, decode_positions, prompt_positions, fetched;
};

static struct rows rows_of(const struct sim_flight *flight, uint64_t uid)
{
        struct rows rows = { 0 };

        for (uint32_t i = 0; i < flight->row_count; i++) {
                const struct sim_row *row = &flight->rows[i];

                if (row->owner->uid != uid)
                        continue;
                rows.decodes += row->decode;
                rows.prompts += !row->decode;
                rows.fetched += row->fetched;
                *(row->decode ? &rows.decode_positions : &rows.prompt_positions) += row->position;
        }
        return rows;
}

/* Positions may be weighed roughly: a difference of a block, for each row, does not count. */
static bool is_more(const struct rows *a, const struct rows *b)
{
        uint64_t rough = BLOCK_POSITIONS + 1;

        return a->decodes >= b->decodes && a->prompts >= b->prompts && a->fetched >= b->fetched &&
               a->decode_positions >= b->decode_positions + rough * (a->decodes + b->decodes) &&
               a->prompt_positions >= b->prompt_positions + rough * (a->prompts + b->prompts);
}

static uint64_t told_of(const struct sim *sim, uint32_t count, uint64_t uid)
{
        for (uint32_t i = 0; i < count; i++)
                if (sim->users[i].uid == uid)
                        return sim->users[i].served_ns;
        return 0;
}

static uint32_t ask(struct sim *sim)
{
        return sched_users(sim->sched, sim->users, sim->conf.requests_max + sim->conf.blocks);
}

/* A change of an account by a step, as far as it is known. */
struct change {
        uint64_t uid;
        struct rows rows;
        uint64_t ns;
        bool raised; /* it may be larger than the charge */
};

/*
 * Whether others keep it waiting, or may.  Requests that are stalled, or await their own masks or
 * tokens, could not run anyway.  And where users
 * have a maximum of blocks, that may be the reason.
 */
static enum walk_answer is_kept_waiting(struct sim *sim, uint64_t uid)
{
        each_request(sim, r)
        {
                if (r->uid == uid && !r->admitted && !r->decided && !r->core.stalled &&
                    !r->unready && !r->held)
                        return sim->conf.user_blocks ? WALK_PERHAPS : WALK_YES;
        }
        return WALK_NO;
}

static uint32_t list_changes(struct sim *sim, const struct sim_flight *flight,
                             struct change *ret_changes)
{
        uint32_t told = ask(sim), count = 0;
        uint64_t most = 0, credit = CREDIT * sim->conf.lead_ns;

        for (uint32_t i = 0; i < told; i++)
                if (is_present(sim, sim->users[i].uid) && sim->users[i].served_ns > most)
                        most = sim->users[i].served_ns;
        for (struct sim_account *account = sim->accounts; account < sim->accounts + SIM_REQUESTS;
             account++) {
                uint64_t now = told_of(sim, told, account->uid);
                enum walk_answer kept;

                if (!account->used || !is_present(sim, account->uid))
                        continue;
                sim_must(sim, now >= account->served_ns, "the account of user %llu shrinks",
                         (unsigned long long)account->uid);
                kept = is_kept_waiting(sim, account->uid);
                sim_must(sim, kept != WALK_NO || now + credit >= most,
                         "user %llu is too far behind", (unsigned long long)account->uid);
                ret_changes[count++] =
                        (struct change){ .uid = account->uid,
                                         .rows = rows_of(flight, account->uid),
                                         .ns = now - account->served_ns,
                                         .raised = kept != WALK_YES && now + credit == most };
                account->served_ns = now;
        }
        return count;
}

void audit_charge(struct sim *sim, const struct sim_flight *flight)
{
        uint64_t begun = flight->made_ns > sim->collected_ns ? flight->made_ns : sim->collected_ns;
        uint64_t ns = sim->now_ns - begun, surely = 0, maybe = 0;
        struct change changes[SIM_REQUESTS];
        uint32_t count = list_changes(sim, flight, changes);

        if (ns > STEP_MOST)
                ns = STEP_MOST;
        for (uint32_t i = 0; i < count; i++) {
                const struct change *a = &changes[i];

                sim_must(sim, a->rows.decodes || a->rows.prompts || a->raised || !a->ns,
                         "user %llu is charged, and had no rows", (unsigned long long)a->uid);
                *(a->raised ? &maybe : &surely) += a->rows.decodes || a->rows.prompts ? a->ns : 0;
                for (uint32_t j = 0; j < count; j++)
                        sim_must(sim,
                                 a->raised || changes[j].raised ||
                                         !is_more(&a->rows, &changes[j].rows) ||
                                         a->ns + ns / 1000 + 1000 >= changes[j].ns,
                                 "user %llu had more rows than user %llu, and is charged less",
                                 (unsigned long long)a->uid, (unsigned long long)changes[j].uid);
        }
        sim_must(sim, surely <= ns && surely + maybe >= ns, "a step took %llu ns, charged are %llu",
                 (unsigned long long)ns, (unsigned long long)surely);
        sim->collected_ns = sim->now_ns;
}

void audit_accounts(struct sim *sim)
{
        uint32_t told = ask(sim);

        for (uint32_t i = 0; i < told; i++) {
                uint64_t uid = sim->users[i].uid;
                uint64_t served = is_present(sim, uid) ? account_of(sim, uid)->served_ns : 0;

                sim_must(sim, sim->users[i].served_ns == served,
                         "the account of user %llu is %llu, it says %llu", (unsigned long long)uid,
                         (unsigned long long)served, (unsigned long long)sim->users[i].served_ns);
        }
}

uint64_t audit_served(const struct sim *sim, const struct sim_request *request)
{
        for (uint32_t i = 0; i < SIM_REQUESTS; i++)
                if (sim->accounts[i].used && sim->accounts[i].uid == request->uid)
                        return sim->accounts[i].served_ns;
        return 0;
}

/* One class better for each promote_ns, as far as there are better ones. */
uint32_t audit_promoted(const struct sim *sim, uint32_t class, uint64_t since_ns)
{
        uint64_t then = since_ns;

        if (!sim->conf.promote_ns)
                return class;
        for (; class && then + sim->conf.promote_ns <= sim->now_ns; class --)
                then += sim->conf.promote_ns;
        return class;
}

uint32_t audit_held_class(const struct sim *sim, const struct sim_request *request)
{
        if (sim->now_ns >= request->slot_ns + sim->conf.promote_ns)
                return request->priority;
        return request->granted;
}

uint64_t audit_prompt_rank(const struct sim *sim, const struct sim_request *request)
{
        uint32_t class = audit_promoted(sim, audit_held_class(sim, request), request->idle_ns);

        return audit_served(sim, request) + class * sim->conf.lead_ns;
}
