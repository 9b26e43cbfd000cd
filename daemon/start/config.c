#include "daemon/start/config.h"

#include <inttypes.h>
#include <string.h>

#include "settings/refuse.h"

int config_check_together(const void *values, const struct settings_place *at)
{
        const struct config *c = values;
        bool no_gpu = !strcmp(c->backend, "cpu") || !strcmp(c->backend, "ref");

        if (no_gpu && c->gpu_layers && c->gpu_layers != CONFIG_AUTO)
                return settings_refuse(at,
                                       "gpu_layers puts layers on a GPU, but backend is %s, which "
                                       "has none; cuda and auto do",
                                       c->backend);
        if (c->swap_bytes && (no_gpu || !c->gpu_layers))
                return settings_refuse(at,
                                       "swap_bytes is for pools on a GPU, but %s is %s; raise "
                                       "kv_bytes instead",
                                       no_gpu ? "backend" : "gpu_layers",
                                       no_gpu ? c->backend : "0");
        if (c->step_tokens < c->max_seqs)
                return settings_refuse(
                        at,
                        "step_tokens is %u and max_seqs is %u; a step needs a row for "
                        "every sequence",
                        c->step_tokens, c->max_seqs);
        if (c->batch_size > c->max_seqs)
                return settings_refuse(
                        at, "batch_size is %u and max_seqs is %u; a batch runs all at once",
                        c->batch_size, c->max_seqs);
        if (c->ring_bytes & (c->ring_bytes - 1))
                return settings_refuse(at, "ring_bytes is %" PRIu64 "; it must be a power of two",
                                       c->ring_bytes);
        if (c->uid_ring_bytes < c->ring_bytes)
                return settings_refuse(at,
                                       "uid_ring_bytes is %" PRIu64 " and ring_bytes is %" PRIu64
                                       "; a user needs space for one ring",
                                       c->uid_ring_bytes, c->ring_bytes);
        if (c->socket_group && c->socket_mode == 0600)
                return settings_refuse(
                        at,
                        "socket_group is %.40s and socket_mode is 0600, which lets no group "
                        "in; 0660 does",
                        c->socket_group);
        return 0;
}

bool config_serves_socket(const void *values)
{
        const struct config *c = values;

        return c->fd < 0 && !c->inspect && !c->preview;
}
