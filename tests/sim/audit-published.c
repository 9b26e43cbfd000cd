/*
 * The auditor of public texts: which requests may be shown them, and how long?
 *
 * A request may be shown a block if it was computed in the request's own domain.  It may also
 * be shown a block of a public domain that it may look into, if all of these hold when it is
 * admitted:
 *
 *      - that very text has been read to its end for the domain, in this very block and not in
 *        another with equal contents;
 *      - not all requests that published it have revoked it.
 *
 * A request that publishes is not shown blocks of its own user, nor blocks that others are
 * still reading for the same domain.
 */
#include "tests/sim/sim.h"

#include <string.h>

void audit_publish(struct sim *sim, struct sim_request *request)
{
        struct sim_published *shown = NULL;

        for (uint32_t i = 0; i < SIM_PUBLISHED_MAX; i++) {
                struct sim_published *at = &sim->published[i];

                if (at->domain && at->until_step == SIM_NEVER)
                        continue;
                if (!shown || at->until_step < shown->until_step)
                        shown = at;
        }
        sim_must(sim, shown, "more is public than there are pins");
        shown->domain = request->core.publish;
        shown->request = request;
        shown->pin = 0;
        shown->count = request->core.prompt_count;
        shown->from_step = shown->until_step = SIM_NEVER;
        memcpy(shown->chain, request->chain, shown->count * sizeof(uint64_t));
}

static struct sim_published *public_of(struct sim *sim, const struct sim_request *request)
{
        for (uint32_t i = 0; i < SIM_PUBLISHED_MAX; i++)
                if (sim->published[i].domain && sim->published[i].request == request)
                        return &sim->published[i];
        return NULL;
}

void audit_published(struct sim *sim, const struct sim_request *request)
{
        struct sim_published *shown = public_of(sim, request);

        if (!shown)
                return;
        shown->pin = request->core.pin;
        shown->from_step = sim->step_count;
        audit_sound(sim, request);
}

void audit_unpublished(struct sim *sim, const struct sim_request *request)
{
        struct sim_published *shown = public_of(sim, request);

        if (!shown)
                return;
        shown->request = NULL;
        if (!shown->pin)
                audit_swap_forget(sim, shown->chain, shown->count);
        if (!shown->pin && shown->until_step == SIM_NEVER)
                shown->until_step = sim->step_count - 1; /* before this plan let any request in */
}

void audit_unpin(struct sim *sim, uint32_t pin)
{
        for (uint32_t i = 0; i < SIM_PUBLISHED_MAX; i++) {
                struct sim_published *shown = &sim->published[i];

                if (shown->domain && shown->pin == pin) {
                        shown->pin = 0;
                        audit_swap_forget(sim, shown->chain, shown->count);
                        shown->until_step = sim->step_count;
                }
        }
}

static bool may_look_into(const struct sim_request *request, uint64_t domain)
{
        if (request->core.publish || !request->core.sees_public)
                return false;
        if (domain == PREFIX_EVERYONE)
                return true;
        for (uint32_t i = 0; i < request->core.group_count; i++)
                if (domain == PREFIX_GROUP(request->core.groups[i]))
                        return true;
        return false;
}

bool audit_may_see(const struct sim *sim, const struct sim_request *request, block_t block,
                   uint32_t index)
{
        uint64_t domain = sim->block_domain[block];
        uint32_t at = index * BLOCK_POSITIONS;

        if (domain == request->uid && !request->core.publish)
                return true;
        if (domain != request->core.publish &&
            !(may_look_into(request, domain) && sim->block_shown[block] < request->admitted_step))
                return false;
        for (uint32_t i = 0; i < SIM_PUBLISHED_MAX; i++) {
                const struct sim_published *shown = &sim->published[i];

                if (shown->domain == domain && at < shown->count &&
                    (shown->from_step < request->admitted_step || request->core.publish) &&
                    shown->chain[at] == request->chain[at] &&
                    shown->until_step >= request->admitted_step)
                        return true;
        }
        return false;
}

bool audit_is_published(const struct sim *sim, const struct sim_request *request, block_t block,
                        uint32_t index)
{
        for (uint32_t i = 0; i < SIM_PUBLISHED_MAX; i++) {
                const struct sim_published *shown = &sim->published[i];
                uint32_t at = index * BLOCK_POSITIONS;

                if (sim->block_shown[block] != SIM_NEVER && shown->pin &&
                    shown->domain == sim->block_domain[block] && at < shown->count &&
                    shown->chain[at] == request->chain[at])
                        return true;
        }
        return false;
}
