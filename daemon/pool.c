#include "daemon/pool.h"

#include <errno.h>

#include "daemon/error.h"
#include "daemon/why.h"

#define SPARE_PART 16u
#define SPARE_MAX  ((uint64_t)1 << 30)
#define BLOCKS_MAX (UINT32_MAX / 2)
#define ENOUGH     512u /* in blocks: 8192 positions */
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

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

uint64_t pool_spare(uint64_t left)
{
        return least(left / SPARE_PART, SPARE_MAX);
}

/* Blocks of that many sequences at full length; at least of one sequence. */
static uint64_t full(const struct pool_conf *conf, uint32_t sequences)
{
        return (uint64_t)(sequences ? sequences : 1) * conf->blocks_one;
}

static uint64_t asked_blocks(const struct pool_conf *conf)
{
        return conf->asked / (conf->host.block + conf->own.block);
}

/* Bytes that are taken from this memory for anything but the pool. */
static uint64_t taken_of(const struct pool_conf *conf, const struct pool_memory *memory)
{
        uint64_t taken =
                add_or_max(add_or_max(memory->weights, memory->activations), memory->scratch);

        return memory == &conf->own ? add_or_max(taken, pool_spare(memory->there)) : taken;
}

/* Says what does not fit, how much memory there is, and what it is needed for. */
static int refuse(const struct pool_conf *conf, const struct pool_memory *memory, const char *what,
                  uint64_t blocks, char *why, size_t why_bytes)
{
        uint64_t needed = add_or_max(taken_of(conf, memory), mul_or_max(blocks, memory->block));
        double missing = (double)(needed - memory->there) / MIB;

        if (memory == &conf->host)
                return error_raise(
                        why_say(why, why_bytes, -EINVAL,
                                "%s not fit in memory: of %.1f MiB for us, weights take %.1f and "
                                "activations %.1f; %.1f MiB are missing",
                                what, (double)memory->there / MIB, (double)memory->weights / MIB,
                                (double)memory->activations / MIB, missing));
        return error_raise(why_say(
                why, why_bytes, -EINVAL,
                "%s not fit backend %s: of %.1f MiB that are left there, weights take %.1f, "
                "activations %.1f, scratch %.1f, and %.1f stay free; %.1f MiB are missing",
                what, conf->backend, (double)memory->there / MIB, (double)memory->weights / MIB,
                (double)memory->activations / MIB, (double)memory->scratch / MIB,
                (double)pool_spare(memory->there) / MIB, missing));
}

/* Checks that this memory has space for `blocks`, and for the whole pool that was asked for. */
static int check_room(const struct pool_conf *conf, const struct pool_memory *memory,
                      uint64_t blocks, char *why, size_t why_bytes)
{
        uint64_t taken = taken_of(conf, memory);
        uint64_t room = taken < memory->there ? memory->there - taken : 0;
        bool shared = conf->host.block && conf->own.block;
        char what[96];

        if (room / memory->block < blocks) {
                snprintf(what, sizeof(what), "%s and %s of KV do",
                         shared ? "the layers that are to be there" : "the model",
                         blocks > 1 ? "a sequence's blocks" : "a block");
                return refuse(conf, memory, what, blocks, why, why_bytes);
        }
        if (room / memory->block < asked_blocks(conf)) {
                snprintf(what, sizeof(what), "--kv-bytes: %.1f MiB do", (double)conf->asked / MIB);
                return refuse(conf, memory, what, asked_blocks(conf), why, why_bytes);
        }
        return 0;
}

int pool_fits_backend(const struct pool_conf *conf, char *why, size_t why_bytes)
{
        uint64_t blocks = conf->asked ? 1 : least(conf->blocks_one, ENOUGH);

        return error_pass(check_room(conf, &conf->own, blocks, why, why_bytes));
}

/* As many blocks as fit, but no more than all sequences need. */
static uint64_t fill_own(const struct pool_conf *conf)
{
        return least((conf->own.there - taken_of(conf, &conf->own)) / conf->own.block,
                     full(conf, conf->sequences));
}

/* Takes at most a quarter: other programs on the machine need memory too. */
static uint64_t fill_host(const struct pool_conf *conf)
{
        uint64_t quarter = conf->host.there / 4 / conf->host.block;
        uint64_t room = (conf->host.there - taken_of(conf, &conf->host)) / conf->host.block;
        uint64_t wanted = conf->own.block ? UINT64_MAX : full(conf, conf->sequences / 4);

        return least(wanted, least(quarter, room));
}

int pool_plan(const struct pool_conf *conf, uint32_t *ret_blocks, char *why, size_t why_bytes)
{
        uint64_t blocks = UINT64_MAX;
        int r = 0;

        if (conf->own.block)
                r = check_room(conf, &conf->own, 1, why, why_bytes);
        if (!r && conf->host.block)
                r = check_room(conf, &conf->host, 1, why, why_bytes);
        if (r)
                return error_pass(r);
        if (conf->asked)
                blocks = asked_blocks(conf);
        if (!conf->asked && conf->own.block)
                blocks = fill_own(conf);
        if (!conf->asked && conf->host.block)
                blocks = least(blocks, fill_host(conf));
        if (!blocks)
                return error_raise(
                        why_say(why, why_bytes, -EINVAL,
                                "--kv-bytes: one block of 16 positions alone takes %llu bytes",
                                (unsigned long long)(conf->host.block + conf->own.block)));
        *ret_blocks = (uint32_t)least(blocks, BLOCKS_MAX);
        return 0;
}
