/*
 * The auditor of public texts: which requests may be shown them, and how long?
 *
 * A request may be shown a block if it was computed in the request's own domain.  It may also
 * be shown a block of a public domain that it may look into, if all of these hold when it is
 * let in:
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
        struct sim_public *shown = NULL;

        for (uint32_t i = 0; i < SIM_PUBLICS; i++) {
                struct sim_public *at = &sim->publics[i];

                if (at->domain && at->until_step == SIM_NEVER)
                        continue;
                if (!shown || at->until_step < shown->until_step)
                        shown = at;
        }
        sim_must(sim, shown, "more is public than there are anchors");
        shown->domain = request->core.publish;
        shown->request = request;
        shown->anchor = 0;
        shown->count = request->core.prompt_count;
        shown->from_step = shown->until_step = SIM_NEVER;
        memcpy(shown->chain, request->chain, shown->count * sizeof(uint64_t));
}

static struct sim_public *public_of(struct sim *sim, const struct sim_request *request)
{
        for (uint32_t i = 0; i < SIM_PUBLICS; i++)
                if (sim->publics[i].domain && sim->publics[i].request == request)
                        return &sim->publics[i];
        return NULL;
}

void audit_published(struct sim *sim, const struct sim_request *request)
{
        struct sim_public *shown = public_of(sim, request);

        if (!shown)
                return;
        shown->anchor = request->core.anchor;
        shown->from_step = sim->step_count;
        audit_sound(sim, request);
}

void audit_unpublished(struct sim *sim, const struct sim_request *request)
{
        struct sim_public *shown = public_of(sim, request);

        if (!shown)
                return;
        shown->request = NULL;
        if (!shown->anchor && shown->until_step == SIM_NEVER)
                shown->until_step = sim->step_count - 1; /* before this plan let any request in */
}

void audit_lift(struct sim *sim, uint32_t anchor)
{
        for (uint32_t i = 0; i < SIM_PUBLICS; i++) {
                struct sim_public *shown = &sim->publics[i];

                if (shown->domain && shown->anchor == anchor) {
                        shown->anchor = 0;
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
            !(may_look_into(request, domain) && sim->block_shown[block] < request->let_in_step))
                return false;
        for (uint32_t i = 0; i < SIM_PUBLICS; i++) {
                const struct sim_public *shown = &sim->publics[i];

                if (shown->domain == domain && at < shown->count &&
                    (shown->from_step < request->let_in_step || request->core.publish) &&
                    shown->chain[at] == request->chain[at] &&
                    shown->until_step >= request->let_in_step)
                        return true;
        }
        return false;
}

bool audit_is_published(const struct sim *sim, const struct sim_request *request, block_t block,
                        uint32_t index)
{
        for (uint32_t i = 0; i < SIM_PUBLICS; i++) {
                const struct sim_public *shown = &sim->publics[i];
                uint32_t at = index * BLOCK_POSITIONS;

                if (sim->block_shown[block] != SIM_NEVER && shown->anchor &&
                    shown->domain == sim->block_domain[block] && at < shown->count &&
                    shown->chain[at] == request->chain[at])
                        return true;
        }
        return false;
}
