#include "daemon/edge/late.h"

#include <assert.h>
#include <inttypes.h>

#include "base/sys.h"

#define NS_PER_S UINT64_C(1000000000)
#define RETRY_MS 250u

uint64_t late_left_s(const struct edge *edge)
{
        uint64_t now_ns = sys_clock_ns();

        if (edge->phase != EDGE_DRAINING || edge->drain_end_ns <= now_ns)
                return 0;
        return (edge->drain_end_ns - now_ns + NS_PER_S - 1) / NS_PER_S;
}

int late_refuse(const struct edge *edge, uint32_t id, struct wire_problem *ret_problem)
{
        assert(edge->phase != EDGE_SERVING);
        if (edge->failure)
                return wire_refuse(ret_problem, SMV_SHUTTING_DOWN, id, NULL, "%s", edge->failure);
        wire_refuse(ret_problem, SMV_SHUTTING_DOWN, id, NULL,
                    "the daemon is stopping (%" PRIu64 " s at most; drain_timeout_ms)",
                    late_left_s(edge));
        ret_problem->retry_ms = RETRY_MS;
        return WIRE_E_REFUSED;
}
