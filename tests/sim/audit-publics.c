/*
 * The auditor of what is public: to whom, and how long.
 *
 * One rule: somebody may be shown a block if it was computed in his own domain, or in a public one
 * that he may look into and in which that very text is being published, or is published, and was
 * not revoked by all who did before he was let in.  Who publishes is shown nothing of his own.
 */
#include "tests/sim/sim.h"

#include <string.h>

void audit_publish(struct sim *sim, struct sim_request *request)
{
        struct sim_public *open = NULL;

        for (uint32_t i = 0; i < SIM_PUBLICS; i++) {
                struct sim_public *at = &sim->publics[i];

                if (at->domain && at->until_step == SIM_NEVER)
                        continue;
                if (!open || at->until_step < open->until_step)
                        open = at;
        }
        sim_must(sim, open, "more is public than there are anchors");
        open->domain = request->core.publish;
        open->request = request;
        open->anchor = 0;
        open->count = request->core.prompt_count;
        open->until_step = SIM_NEVER;
        memcpy(open->chain, request->chain, open->count * sizeof(uint64_t));
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
        struct sim_public *open = public_of(sim, request);

        if (open)
                open->anchor = request->core.anchor;
}

void audit_unpublished(struct sim *sim, const struct sim_request *request)
{
        struct sim_public *open = public_of(sim, request);

        if (!open)
                return;
        open->request = NULL;
        if (!open->anchor && open->until_step == SIM_NEVER)
                open->until_step = sim->step_count - 1; /* before this plan let anybody in */
}

void audit_lift(struct sim *sim, uint32_t anchor)
{
        for (uint32_t i = 0; i < SIM_PUBLICS; i++) {
                struct sim_public *open = &sim->publics[i];

                if (open->domain && open->anchor == anchor) {
                        open->anchor = 0;
                        open->until_step = sim->step_count;
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
        if (domain != request->core.publish && !may_look_into(request, domain))
                return false;
        for (uint32_t i = 0; i < SIM_PUBLICS; i++) {
                const struct sim_public *open = &sim->publics[i];

                if (open->domain == domain && at < open->count &&
                    open->chain[at] == request->chain[at] &&
                    open->until_step >= request->let_in_step)
                        return true;
        }
        return false;
}

bool audit_is_published(const struct sim *sim, const struct sim_request *request, block_t block,
                        uint32_t index)
{
        for (uint32_t i = 0; i < SIM_PUBLICS; i++) {
                const struct sim_public *open = &sim->publics[i];
                uint32_t at = index * BLOCK_POSITIONS;

                if (open->anchor && open->domain == sim->block_domain[block] && at < open->count &&
                    open->chain[at] == request->chain[at])
                        return true;
        }
        return false;
}
