/*
 * The auditor of the forecast: which requests must wait because the pool will not hold them?
 *
 * It keeps a forecast of its own.  It teaches it from its own books, and asks it about the streams
 * as the books have them.  tests/unit/test-forecast.c checks the arithmetic, which is not done
 * twice here.  The blocks that were found for a request cannot be seen before its first row.  So
 * there are a hopeful and a careful reading, and the answer is known if they agree.
 */
#include "tests/sim/audit-walk.h"

void audit_learn(struct sim *sim, const struct sim_request *request)
{
        forecast_learn(&sim->forecast, request->uid, request->priority, request->made);
}

/* Only classes that are learned count, and no batches. */
void audit_note(struct sim *sim, const struct sim_request *request)
{
        if (sim->conf.learned[request->priority] && !sim->conf.batch_size)
                forecast_note(&sim->forecast, request->blocks_lost > 0);
}

static void add(struct sim *sim, const struct sim_request *request, uint32_t promised,
                uint32_t found)
{
        uint32_t positions = request->core.sequence.token_count - 1;

        forecast_add(&sim->forecast,
                     &(struct forecast_stream){
                             .rest = forecast_rest(&sim->forecast, request->uid, request->priority,
                                                   request->made, request->core.max_tokens),
                             .spare = promised * BLOCK_POSITIONS - positions,
                             .own = promised - found,
                     });
}

/*
 * The whole blocks that were found for it in the pool: at most, or at least.  Blocks that it found
 * in the swap count as blocks that it needs, even if another request has brought them to the pool.
 */
static uint32_t found(const struct walk *walk, const struct sim_request *request, bool most)
{
        uint32_t count = request->found / BLOCK_POSITIONS - request->came;

        if (walk_spot(walk, request)->moved && !most)
                return count > request->found_late ? count - request->found_late : 0;
        if (walk_spot(walk, request)->moved)
                return count;
        return most ? walk_most_found(walk, request) : 0;
}

/* A tail that it would copy counts as a block while victims are chosen. */
static int64_t taken_with(const struct walk *walk, const struct sim_request *request, bool careful)
{
        struct walk_range left = walk_available(walk);
        bool shares = walk_may_share(walk, request);
        int64_t shared = shares ? request->core.sequence.token_count / BLOCK_POSITIONS : 0;
        int64_t taken = (int64_t)walk->sim->conf.blocks + walk_promise(walk, request);

        return careful ? taken - left.least + shares : taken - left.most - shared;
}

static bool is_too_much(const struct walk *walk, const struct sim_request *request, bool careful)
{
        struct sim *sim = walk->sim;
        uint32_t promise = walk_promise(walk, request);
        uint32_t shared = walk_may_share(walk, request)
                                  ? request->core.sequence.token_count / BLOCK_POSITIONS
                                  : 0;
        int64_t taken = taken_with(walk, request, careful);

        forecast_clear(&sim->forecast);
        each_request(sim, r)
        {
                const struct walk_spot *spot = walk_spot(walk, r);

                if (spot->in && !spot->preempting && !r->decided && !walk_is_reserved(walk, r))
                        add(sim, r, spot->promised, found(walk, r, careful));
        }
        add(sim, request, promise, careful ? shared : 0);
        return forecast_most(&sim->forecast, taken > 0 ? (uint64_t)taken : 0) > sim->conf.blocks;
}

enum walk_answer walk_is_held_back(const struct walk *walk, const struct sim_request *request,
                                   struct sim_request *const *victims, uint32_t count)
{
        static struct walk then; /* large */
        uint32_t running = 0;

        then = *walk;
        for (uint32_t i = 0; i < count; i++)
                walk_spot(&then, victims[i])->in = walk_spot(&then, victims[i])->reserves = false;
        each_request(then.sim, r) running += walk_spot(&then, r)->in && !r->decided;
        if (!running || walk_is_reserved(&then, request))
                return WALK_NO;
        if (is_too_much(&then, request, false))
                return WALK_YES;
        return is_too_much(&then, request, true) ? WALK_PERHAPS : WALK_NO;
}
