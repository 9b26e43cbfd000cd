#include "daemon/edge/late.h"

#include <assert.h>
#include <inttypes.h>

#include "daemon/base/sys.h"

#define NS_PER_S UINT64_C(1000000000)
#define RETRY_MS 250u

int late_refuse(const struct edge *edge, uint32_t id, struct wire_problem *ret_problem)
{
        uint64_t now_ns = sys_clock_ns(), left_ns = 0;

        assert(edge->phase != EDGE_SERVING);
        if (edge->failure)
                return wire_refuse(ret_problem, SMV_SHUTTING_DOWN, id, NULL, "%s", edge->failure);
        if (edge->phase == EDGE_DRAINING && edge->drain_end_ns > now_ns)
                left_ns = edge->drain_end_ns - now_ns;
        wire_refuse(ret_problem, SMV_SHUTTING_DOWN, id, NULL,
                    "the daemon is stopping (%" PRIu64 " s at most; drain_timeout_ms)",
                    (left_ns + NS_PER_S - 1) / NS_PER_S);
        ret_problem->retry_ms = RETRY_MS;
        return WIRE_E_REFUSED;
}
