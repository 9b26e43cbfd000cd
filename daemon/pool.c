#include "daemon/pool.h"

#include <errno.h>

#include "daemon/error.h"
#include "daemon/why.h"

#define SPARE_PART 16u
#define SPARE_MAX  ((uint64_t)1 << 30)
#define BLOCKS_MAX (UINT32_MAX / 2)
#define MIB        1048576.0

static uint64_t add_or_max(uint64_t a, uint64_t b)
{
        uint64_t sum;

        return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t mul_or_max(uint64_t a, uint64_t b)
{
        uint64_t product;

        return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

uint64_t pool_spare(uint64_t left)
{
        return left / SPARE_PART < SPARE_MAX ? left / SPARE_PART : SPARE_MAX;
}

/* Bytes of that many sequences at full length, of one at least. */
static uint64_t full(const struct pool_conf *conf, uint32_t sequences)
{
        return mul_or_max((uint64_t)(sequences ? sequences : 1) * conf->blocks_one, conf->block);
}

static uint64_t bytes_on_host(const struct pool_conf *conf)
{
        uint64_t wanted = full(conf, conf->sequences / 4);

        if (conf->asked)
                return conf->asked;
        return wanted < conf->machine / 4 ? wanted : conf->machine / 4;
}

/* What is left there and for what it is needed, behind what does not fit. */
static int refuse(const struct pool_conf *conf, const char *what, char *why, size_t why_bytes)
{
        return error_raise(why_say(
                why, why_bytes, -EINVAL,
                "%s not fit backend %s: of %.1f MiB that are left there, weights take %.1f, "
                "activations %.1f, scratch %.1f, and %.1f stay free",
                what, conf->backend, (double)conf->left / MIB, (double)conf->weights / MIB,
                (double)conf->activations / MIB, (double)conf->scratch / MIB,
                (double)pool_spare(conf->left) / MIB));
}

static int plan_on_backend(const struct pool_conf *conf, uint64_t *ret_bytes, char *why,
                           size_t why_bytes)
{
        uint64_t taken = add_or_max(add_or_max(conf->weights, conf->activations),
                                    add_or_max(conf->scratch, pool_spare(conf->left)));
        uint64_t room = taken < conf->left ? conf->left - taken : 0;
        uint64_t wanted = full(conf, conf->sequences);
        char what[64];

        if (room < conf->block)
                return refuse(conf, "the model and a block of KV do", why, why_bytes);
        if (conf->asked > room) {
                snprintf(what, sizeof(what), "--kv-bytes: %.1f MiB do", (double)conf->asked / MIB);
                return refuse(conf, what, why, why_bytes);
        }
        *ret_bytes = wanted < room ? wanted : room;
        if (conf->asked)
                *ret_bytes = conf->asked;
        return 0;
}

int pool_plan(const struct pool_conf *conf, uint32_t *ret_blocks, char *why, size_t why_bytes)
{
        uint64_t bytes = bytes_on_host(conf);
        int r = conf->backend ? plan_on_backend(conf, &bytes, why, why_bytes) : 0;

        if (r)
                return error_pass(r);
        bytes /= conf->block;
        if (!bytes)
                return error_raise(
                        why_say(why, why_bytes, -EINVAL,
                                "--kv-bytes: one block of 16 positions alone takes %llu bytes",
                                (unsigned long long)conf->block));
        *ret_blocks = bytes < BLOCKS_MAX ? (uint32_t)bytes : BLOCKS_MAX;
        return 0;
}
