/*
 * The auditor of accounts: how much has each user been given?
 *
 * A row counts one unit, and two if it makes a token.  It counts once for each position of a
 * request, to its user and class, when it is planned.  Requests that were stalled are asked
 * first in a plan, before any request is admitted, so they are also charged first.
 */
#include "tests/sim/sim.h"

static struct sim_account *account_of(struct sim *sim, uint32_t uid)
{
        struct sim_account *unused = NULL;

        for (struct sim_account *account = sim->accounts;
             account < sim->accounts + sim->conf.requests_max; account++) {
                if (account->used && account->uid == uid)
                        return account;
                if (!account->used && !unused)
                        unused = account;
        }
        sim_must(sim, unused, "there are more users than requests");
        *unused = (struct sim_account){ .used = true, .uid = uid };
        return unused;
}

static bool has_alive(struct sim *sim, uint32_t uid, enum request_priority priority)
{
        each_request(sim, r)
        {
                if (r->uid == uid && r->priority == priority)
                        return true;
        }
        return false;
}

/*
 * A user that comes (back) to a class gets no compensation for rows that others got there
 * meanwhile.
 */
void audit_submit(struct sim *sim, struct sim_request *request)
{
        enum request_priority priority = request->priority;
        struct sim_account *account = account_of(sim, request->uid);
        uint64_t least = UINT64_MAX;

        if (has_alive(sim, request->uid, priority))
                return;
        each_request(sim, r)
        {
                if (r->priority == priority && audit_served(sim, r) < least)
                        least = audit_served(sim, r);
        }
        if (least != UINT64_MAX && least > account->served[priority])
                account->served[priority] = least;
}

void audit_forget(struct sim *sim)
{
        for (uint32_t i = 0; i < sim->conf.requests_max; i++) {
                struct sim_account *account = &sim->accounts[i];
                bool alive = false;

                each_request(sim, r) alive |= r->uid == account->uid;
                account->used &= alive;
        }
}

void audit_charge(struct sim *sim, bool stalled_ones)
{
        for (uint32_t i = 0; i < sim->plan.row_count; i++) {
                const struct plan_row *row = &sim->plan.rows[i];
                struct sim_request *owner = sim_of(sim, row->sequence->request);

                if (!owner->alive || owner->asked_first != stalled_ones ||
                    row->position < owner->charged)
                        continue;
                owner->charged = row->position + 1;
                account_of(sim, owner->uid)->served[owner->priority] +=
                        row->want == PLAN_LOGITS ? 2 : 1;
        }
}

uint64_t audit_served(const struct sim *sim, const struct sim_request *request)
{
        for (uint32_t i = 0; i < sim->conf.requests_max; i++)
                if (sim->accounts[i].used && sim->accounts[i].uid == request->uid)
                        return sim->accounts[i].served[request->priority];
        return 0;
}
