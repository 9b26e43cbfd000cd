/*
 * The auditor of the queue: which request is next?
 *
 * It is the request that came first, in the best class, of the user who was served least.  As
 * long as two users differ by less than a lead, the class of their requests decides.  That is:
 * each class behind the first counts like a lead of service.  Waiting makes a class better.  No
 * state is carried along: for each slot, the users' shares and the waiting requests
 * are counted anew from the books.  So if the core forgets to give back a share, or believes
 * that a user still waits, the next plan shows it.  A request whose mask is not there is skipped.
 */
#include "tests/sim/audit-walk.h"

uint64_t walk_turn(const struct walk *walk, const struct sim_request *request)
{
        struct sim *sim = walk->sim;

        for (uint32_t i = 0; i < walk->event_count; i++) {
                const struct walk_event *event = &walk->events[i];

                if (event->in && event->request->uid == request->uid &&
                    event->request->priority == request->priority)
                        return sim->now_ns;
        }
        return audit_account(sim, request)->turn_ns[request->priority];
}

/* The time since which it waits, for its slot or its next rows. */
static uint64_t idle_ns(const struct walk *walk, const struct sim_request *request)
{
        const struct walk_spot *spot = walk_spot(walk, request);
        uint64_t turn = walk_turn(walk, request);

        if (spot->fresh || spot->preemptions != request->preemptions)
                return walk->sim->now_ns; /* it has only just begun to */
        if (!spot->in)
                return turn > request->idle_ns ? turn : request->idle_ns;
        /* a stalled one had its rows before the queue */
        return request->asked_first && request->first_row != SIM_NO_ROW ? walk->sim->now_ns
                                                                        : request->idle_ns;
}

uint32_t walk_held_class(const struct walk *walk, const struct sim_request *request)
{
        const struct walk_spot *spot = walk_spot(walk, request);

        return spot->fresh ? spot->granted : audit_held_class(walk->sim, request);
}

uint32_t walk_class(const struct walk *walk, const struct sim_request *request)
{
        uint32_t class =
                walk_spot(walk, request)->in ? walk_held_class(walk, request) : request->priority;

        return audit_promoted(walk->sim, class, idle_ns(walk, request));
}

uint64_t walk_rank(const struct walk *walk, const struct sim_request *request)
{
        return audit_served(walk->sim, request) +
               walk_class(walk, request) * walk->sim->conf.lead_ns;
}

uint64_t walk_held_rank(const struct walk *walk, const struct sim_request *request)
{
        return audit_served(walk->sim, request) +
               walk_held_class(walk, request) * walk->sim->conf.lead_ns;
}

/* It is reserved whatever its class, and does not count towards the reserved part. */
static bool is_worn(const struct walk *walk, const struct sim_request *request)
{
        const struct sched_conf *conf = &walk->sim->conf;

        const struct walk_spot *spot = walk_spot(walk, request);

        return conf->batch_size || spot->preemptions - spot->unanswered >= conf->preemptions_max;
}

/* Its class is reserved, and it belongs to the part that may be, or would if it got a slot now. */
static bool is_of_reserved_part(const struct walk *walk, const struct sim_request *request)
{
        const struct sched_conf *conf = &walk->sim->conf;
        uint64_t blocks = request->worst;

        if (conf->learned[request->priority])
                return false;
        if (walk_spot(walk, request)->in)
                return walk_spot(walk, request)->reserves;
        each_request(walk->sim, r) blocks += walk_spot(walk, r)->reserves ? r->worst : 0;
        return !conf->reserve_max || blocks <= conf->reserve_max;
}

bool walk_reserves(const struct walk *walk, const struct sim_request *request)
{
        return !is_worn(walk, request) && is_of_reserved_part(walk, request);
}

bool walk_is_reserved(const struct walk *walk, const struct sim_request *request)
{
        return is_worn(walk, request) || is_of_reserved_part(walk, request);
}

uint32_t walk_promise(const struct walk *walk, const struct sim_request *request)
{
        uint32_t now = blocks_for(request->core.sequence.token_count + BLOCK_POSITIONS);

        return walk_is_reserved(walk, request) || now > request->worst ? request->worst : now;
}

bool walk_waits(const struct walk *walk, const struct sim_request *request)
{
        return request->alive && !request->decided && !walk_spot(walk, request)->in;
}

bool walk_waits_for_others(const struct walk *walk, const struct sim_request *request)
{
        return walk_waits(walk, request) && !request->unready && !request->held;
}

uint32_t walk_free_slots(const struct walk *walk)
{
        uint32_t left = walk->sim->conf.slots;

        each_request(walk->sim, r)
        {
                if (!walk_spot(walk, r)->in)
                        continue;
                sim_must(walk->sim, left, "more slots are taken than there are");
                left--;
        }
        return left;
}

static bool is_over(enum sim_ground ground)
{
        return ground >= SIM_OVER_SLOTS;
}

uint32_t walk_slots_of(const struct walk *walk, uint64_t uid)
{
        uint32_t slots = 0;

        each_request(walk->sim, r) slots += r->uid == uid && walk_spot(walk, r)->in;
        return slots;
}

/*
 * A request of the user stood still in its slot when the queue was asked.  Its client did not
 * answer for long; or it was stalled before the plan, and still is without a break.  A request that
 * this plan admits was not: it may be stalled again since, at the same time.
 */
static bool has_stalled_slot(const struct walk *walk, uint64_t uid)
{
        each_request(walk->sim, r)
        {
                const struct walk_spot *spot = walk_spot(walk, r);

                if (r->uid == uid && !r->decided && walk_is_unanswered(walk, r, walk->sim->now_ns))
                        return true;
                if (r->uid == uid && r->was_stalled && r->core.stalled &&
                    r->core.stalled_ns == r->was_stalled_ns && spot->in && !spot->fresh)
                        return true;
        }
        return false;
}

/*
 * Users that were served clearly more do not count, except for a user with slots that stand still.
 */
static bool others_wait(const struct walk *walk, const struct sim_request *request)
{
        const struct sim *sim = walk->sim;
        uint64_t most = has_stalled_slot(walk, request->uid)
                                ? UINT64_MAX
                                : audit_served(sim, request) + sim->conf.lead_ns;

        each_request(sim, r)
        {
                if (r->uid != request->uid && walk_waits_for_others(walk, r) &&
                    audit_served(sim, r) < most)
                        return true;
        }
        return false;
}

/*
 * No user gets above the maximum of one user, or above half of the slots or the blocks while
 * others wait, unless it has nothing.
 */
enum sim_ground walk_ground(const struct walk *walk, const struct sim_request *request,
                            uint64_t then)
{
        const struct sched_conf *conf = &walk->sim->conf;
        uint32_t slots = walk_slots_of(walk, request->uid);
        bool half;

        half = 2 * (slots + 1) <= conf->slots && 2 * then <= conf->blocks * WALK_PARTS;
        if (slots && conf->user_blocks && then > conf->user_blocks * WALK_PARTS)
                return SIM_OVER_MOST;
        if (half)
                return SIM_WITHIN_HALF;
        if (!others_wait(walk, request))
                return SIM_ALONE;
        if (!slots)
                return SIM_BEGINS;
        return 2 * (slots + 1) > conf->slots ? SIM_OVER_SLOTS : SIM_OVER_BLOCKS;
}

/*
 * Whether its user is passed over, as things stand.  The answer is certain in two cases.
 * First, the user is over the limit even if all is found that could be found.  Second, if way
 * would have to be made for the request, or it could have a slot, the core looks up all that
 * can be found; so if there is nothing to find, that is known, too.  A tail that would be too
 * much is not held.
 */
enum walk_answer walk_is_over(const struct walk *walk, const struct sim_request *request)
{
        struct walk_charge has = walk_charge(walk, request->uid, NULL);
        uint32_t promise = walk_promise(walk, request);
        uint64_t least = promise - request->core.sequence.token_count / BLOCK_POSITIONS;
        uint64_t most = has.most + promise * WALK_PARTS;

        if (is_over(walk_ground(walk, request, has.least + least * WALK_PARTS)))
                return WALK_YES;
        if (!is_over(walk_ground(walk, request, most)))
                return WALK_NO;
        return is_over(walk_ground(walk, request, walk_then(walk, request).least)) &&
                               !walk->sim->conf.batch_size && !walk_is_preempting(walk)
                       ? WALK_YES
                       : WALK_PERHAPS;
}

/* ... as if others waited.  A user that has nothing is never above half. */
enum walk_answer walk_is_above_half(const struct walk *walk, const struct sim_request *request)
{
        const struct sched_conf *conf = &walk->sim->conf;
        uint32_t slots = walk_slots_of(walk, request->uid);
        struct walk_charge then = walk_then(walk, request);

        if (!slots)
                return WALK_NO;
        if (2 * (slots + 1) > conf->slots || 2 * then.least > conf->blocks * WALK_PARTS)
                return WALK_YES;
        return 2 * then.most > conf->blocks * WALK_PARTS ? WALK_PERHAPS : WALK_NO;
}

bool walk_is_passed(const struct walk *walk, uint64_t uid)
{
        for (uint32_t i = 0; i < walk->passed_count; i++)
                if (walk->passed_uids[i] == uid)
                        return true;
        return false;
}

/*
 * Room beside rows in flight, and beside rows of this plan whose owners were asked before the
 * line.
 */
static bool has_space(const struct sim *sim, const struct sim_request *request)
{
        uint64_t bytes = audit_charged(sim, request->channel) + request->core.record_bytes_max;

        for (uint32_t i = 0; i < sim->plan.row_count; i++) {
                const struct plan_row *row = &sim->plan.rows[i];
                const struct sim_request *owner = sim_of((struct sim *)sim, row->sequence->request);

                if (row->want == PLAN_LOGITS && owner->asked_first &&
                    owner->channel == request->channel)
                        bytes += owner->core.record_bytes_max;
        }
        return bytes <= sim->channels[request->channel].told;
}

/*
 * It was preempted, and is stalled.  If requests asked before the queue took the space, it may have
 * been asked in between; then its own state says so.
 */
static bool is_stuck(const struct walk *walk, const struct sim_request *request)
{
        struct sim *sim = walk->sim;
        uint64_t bytes = audit_charged(sim, request->channel) + request->core.record_bytes_max;

        if (!walk_spot(walk, request)->preemptions || !request->was_stalled ||
            has_space(sim, request))
                return false;
        return bytes > sim->channels[request->channel].told ||
               (request->core.state == REQUEST_WAITING && request->core.stalled);
}

/*
 * The position of its next row, at most.  If a request comes back, its first row shows how much was
 * found; or nothing does.
 */
static uint32_t planned(const struct walk *walk, const struct sim_request *request)
{
        if (walk_spot(walk, request)->moved)
                return request->planned;
        if (!walk_spot(walk, request)->preemptions)
                return request->core.sequence.cached_count;
        return request->first_row;
}

/* ... and at least: blocks from the swap may have come only after the queue was asked. */
static uint32_t planned_least(const struct walk *walk, const struct sim_request *request)
{
        uint32_t most = planned(walk, request);
        bool open = most == SIM_NO_ROW || walk->sim->conf.prefix.swap_blocks;

        return open && !walk_spot(walk, request)->moved ? 0 : most;
}

static bool is_read(const struct walk *walk, const struct sim_request *request)
{
        const struct walk_spot *spot = walk_spot(walk, request);

        return spot->in && !spot->preempting && !request->decided &&
               (!spot->moved || request->planned < request->known);
}

static uint32_t common(const struct sim_request *a, const struct sim_request *b)
{
        const struct sequence *one = &a->core.sequence, *other = &b->core.sequence;
        uint32_t at = 0;

        while (at < one->token_count && at < other->token_count &&
               one->tokens[at] == other->tokens[at])
                at++;
        return at;
}

/* Whether another request is reading at least one block that this one would read as well. */
static enum walk_answer is_read_alike(const struct walk *walk, const struct sim_request *request)
{
        enum walk_answer answer = WALK_NO;

        if (walk->sim->conf.batch_size)
                return WALK_NO;
        each_request(walk->sim, r)
        {
                uint64_t alike = common(r, request);

                if (sim_domain(r) != sim_domain(request) || !is_read(walk, r) ||
                    walk_rank(walk, r) > walk_rank(walk, request))
                        continue;
                /* A stalled one whose blocks are in the swap is not being read. */
                if (alike >= (uint64_t)planned(walk, r) + BLOCK_POSITIONS && !r->was_stalled &&
                    !r->core.stalled)
                        return WALK_YES;
                if (alike >= planned_least(walk, r) + BLOCK_POSITIONS)
                        answer = WALK_PERHAPS;
        }
        return answer;
}

static bool is_before(const struct walk *walk, const struct sim_request *a,
                      const struct sim_request *b)
{
        uint64_t first = walk_rank(walk, a), second = walk_rank(walk, b);

        return first != second ? first < second : a->arrival < b->arrival;
}

struct sim_request *walk_next(const struct walk *walk, bool *ret_doubtful)
{
        struct sim_request *next = NULL;

        each_request(walk->sim, r)
        {
                const struct walk_spot *spot = walk_spot(walk, r);

                if (!walk_waits_for_others(walk, r) || walk_is_passed(walk, r->uid) ||
                    is_stuck(walk, r) || spot->left ||
                    (!spot->sure && is_read_alike(walk, r) == WALK_YES))
                        continue;
                if (!next || is_before(walk, r, next))
                        next = r;
        }
        if (next)
                *ret_doubtful = !walk_spot(walk, next)->sure && is_read_alike(walk, next);
        return next;
}
