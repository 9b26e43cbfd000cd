#include "daemon/core/request.h"

#include <assert.h>

#define TO(state) (1u << REQUEST_##state)

/* clang-format off */
static const struct {
        const char *name;
        uint32_t next;
} states[REQUEST_STATE_N] = {
        [REQUEST_WAITING] = { "waiting", TO(PREFILL) | TO(ENDING) },
        [REQUEST_PREFILL] = { "prefill", TO(DECODE) | TO(PREEMPTING) | TO(ENDING) },
        [REQUEST_DECODE]  = { "decode",  TO(PREEMPTING) | TO(ENDING) },
        [REQUEST_PREEMPTING] = { "preempting", TO(WAITING) | TO(ENDING) },
        [REQUEST_ENDING]  = { "ending",  TO(RETIRED) },
        [REQUEST_RETIRED] = { "retired", 0 },
};
/* clang-format on */

void request_move(struct request *request, enum request_state next)
{
        assert((unsigned)request->state < REQUEST_STATE_N && (unsigned)next < REQUEST_STATE_N);
        assert(states[request->state].next & 1u << next);

        request->state = next;
}

const char *request_state_name(enum request_state state)
{
        assert((unsigned)state < REQUEST_STATE_N);

        return states[state].name;
}
