/* Submits requests, and computes the results that each would have alone. */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <string.h>

/* One step of splitmix64: random enough, and the same everywhere. */
uint64_t sim_mix(uint64_t x)
{
        x += UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        return x ^ x >> 31;
}

uint64_t sim_random(struct sim *sim)
{
        return sim_mix(sim->random++);
}

uint32_t sim_below(struct sim *sim, uint32_t limit)
{
        return (uint32_t)(sim_random(sim) % limit);
}

/* The model: what the KV of a row is, and which token follows. */
uint64_t sim_cell_of(uint64_t before, uint32_t token, uint32_t position)
{
        return sim_mix(before ^ sim_mix((uint64_t)token << 32 | position));
}

uint32_t sim_token_after(uint64_t cell)
{
        return (uint32_t)(cell % 50000);
}

/*
 * Its whole life, alone.  Each text differs from its pair in the first block only, so later
 * blocks have the same tokens behind another block.
 */
static void foretell(struct sim_request *request, const struct sim_ask *ask, uint64_t seed)
{
        uint32_t prompt = request->core.prompt_count, most = request->core.max_tokens;
        uint64_t cell = 0;

        for (uint32_t at = 0; at < prompt + most; at++) {
                uint32_t number = at < BLOCK_POSITIONS ? ask->text : ask->text / 2;
                uint64_t text = at < ask->shared ? sim_mix(number) : seed;

                request->truth[at] =
                        at < prompt ? (uint32_t)sim_mix(text + at) % 50000 : sim_token_after(cell);
                if (at < ask->token_count)
                        request->truth[at] = ask->tokens[at];
                cell = sim_cell_of(cell, request->truth[at], at);
                request->chain[at] = cell;
        }
}

/* If two are taken for the same by chance, the check only becomes less strict. */
static bool is_new_beginning(struct sim *sim, uint64_t uid, uint32_t token)
{
        uint64_t bit = sim_mix((uint64_t)uid << 32 | token) % SIM_BEGINNINGS;
        bool is_new = !(sim->beginnings[bit / 64] >> bit % 64 & 1);

        sim->beginnings[bit / 64] |= UINT64_C(1) << bit % 64;
        return is_new;
}

static uint64_t said_bit(uint64_t domain, uint64_t cell)
{
        return sim_mix(cell ^ sim_mix(domain)) % SIM_BEGINNINGS;
}

static bool was_said_in(const struct sim *sim, uint64_t domain, uint64_t cell)
{
        uint64_t bit = said_bit(domain, cell);

        return sim->said[bit / 64] >> bit % 64 & 1;
}

/* ... to this request: a text up to a position with this KV. */
static bool was_said_to(const struct sim *sim, const struct sim_request *request, uint64_t cell)
{
        bool said = was_said_in(sim, sim_domain(request), cell);

        if (!request->core.sees_public || request->core.publish)
                return said;
        for (uint32_t i = 0; i < request->core.group_count; i++)
                said |= was_said_in(sim, PREFIX_GROUP(request->core.groups[i]), cell);
        return said || was_said_in(sim, PREFIX_EVERYONE, cell);
}

bool sim_was_said(const struct sim *sim, const struct sim_request *request, uint32_t at,
                  uint32_t token)
{
        return was_said_to(sim, request, sim_cell_of(request->chain[at - 1], token, at));
}

/*
 * Up to where others have said the text of a request before; and a new request says some of what
 * others wait to say.
 */
static void find_unsaid(struct sim *sim, struct sim_request *request)
{
        uint32_t total = request->core.prompt_count + request->core.max_tokens;
        uint32_t *from = &request->unsaid_from;

        for (*from = 0; *from < total && was_said_to(sim, request, request->chain[*from]);)
                ++*from;
        each_request(sim, r)
        {
                while (r->unsaid_from < r->core.prompt_count && r->unsaid_from < total &&
                       r->chain[r->unsaid_from] == request->chain[r->unsaid_from])
                        r->unsaid_from++;
        }
}

/*
 * Notes all token sequences of this request, present and future, that its user may be told
 * about from now on.
 */
static void say_all(struct sim *sim, const struct sim_request *request)
{
        for (uint32_t at = 0; at < request->core.prompt_count + request->core.max_tokens; at++) {
                uint64_t bit = said_bit(sim_domain(request), request->chain[at]);

                sim->said[bit / 64] |= UINT64_C(1) << bit % 64;
        }
}

struct sim_request *sim_submit(struct sim *sim, const struct sim_ask *ask)
{
        struct sim_request *request = sim->requests;
        uint32_t number = 0, total = ask->prompt + ask->most;

        while (number < sim->conf.requests_max && sim->requests[number].alive)
                number++;
        if (number == sim->conf.requests_max)
                return NULL;
        request = &sim->requests[number];
        *request = (struct sim_request){
                .core = { .number = number,
                          .uid = ask->uid,
                          .priority = ask->priority,
                          .deadline_ns = ask->deadline_ns,
                          .prompt_count = ask->prompt,
                          .max_tokens = ask->most,
                          .pin = ask->pin,
                          .publish = ask->publish,
                          .sees_public = ask->sees_public,
                          .group_count = ask->group > 0,
                          .groups = { ask->group },
                          .record_bytes_max = ask->record_bytes ? ask->record_bytes : 10,
                          .asked_bytes_max = ask->asked_bytes,
                          .end_bytes_max = 100,
                          .alone = ask->alone,
                          .awaits = ask->guided,
                          .drafts = ask->drafts,
                          /* Masks and tokens come from clients. */
                          .asking = (struct asking *)(void *)request,
                          .state = REQUEST_WAITING,
                          .sequence = { .token_count = ask->prompt, .slot = SEQUENCE_NO_SLOT } },
                .worst = blocks_for(total - (ask->most > 0)),
                .end_at = ask->end_at,
                .verdict = ask->verdict,
                .alone = ask->alone,
                .guided = ask->guided,
                .mask_ns = ask->mask_ns,
                .outside = ask->outside,
                .token_ns = ask->token_ns,
                .drafts = ask->drafts,
                .guesses = ask->guesses,
                .truth = request->truth,
                .chain = request->chain,
                .blocks = request->blocks,
                .windows = request->windows,
                .uid = ask->uid,
                .channel = ask->channel,
                .priority = ask->priority,
                .arrival = sim->arrivals++,
                .since_ns = sim->now_ns,
                .idle_ns = sim->now_ns,
                .deadline_ns = ask->deadline_ns ? ask->deadline_ns : SIM_NEVER,
                .slot = SEQUENCE_NO_SLOT,
                .stalled_first = SIM_NEVER,
                .stalled_surely = SIM_NEVER,
        };
        if (!ask->most)
                request->core.record_bytes_max = request->core.asked_bytes_max = 0;
        snprintf(request->name, sizeof(request->name), "%s", ask->name);
        foretell(request, ask, sim_random(sim));

        find_unsaid(sim, request);
        say_all(sim, request);
        sim->shares |= !is_new_beginning(sim, ask->uid, request->truth[0]) || ask->publish;

        /* Exactly as large as promised, so that a sanitizer sees one token too many. */
        request->core.sequence.request = &request->core;
        request->core.sequence.tokens = sim_need(total, sizeof(uint32_t));
        memcpy(request->core.sequence.tokens, request->truth, ask->prompt * sizeof(uint32_t));

        sim_must(sim, !sched_fits(&sim->conf, ask->prompt, ask->most), "%s does not fit",
                 request->name);
        audit_submit(sim, request);
        sim->public_texts |= ask->publish > 0;
        if (ask->publish)
                audit_publish(sim, request);
        request->alive = true;
        if (request->deadline_ns < sim->soonest_ns)
                sim->soonest_ns = request->deadline_ns;
        sim_note(sim, &(struct sched_event){ .kind = SCHED_SUBMIT,
                                             .request = &request->core,
                                             .channel = ask->channel });
        sim_must(sim, request->core.state == REQUEST_WAITING, "%s was submitted", request->name);
        if (ask->guided)
                audit_await_mask(sim, request);
        return request;
}
