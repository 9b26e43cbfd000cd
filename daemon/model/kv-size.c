#include "daemon/model/kv-size.h"

#include <errno.h>

#include "base/error.h"
#include "base/errtext.h"

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

uint64_t kv_size_reserve(uint64_t left)
{
        return least(left / SPARE_PART, SPARE_MAX);
}

/* Bytes of a block with its shadow page. */
static uint64_t lone(const struct kv_size_memory *memory)
{
        return memory->block + memory->shadow;
}

/* ... and with its window page. */
static uint64_t whole(const struct kv_size_memory *memory)
{
        return lone(memory) + memory->window;
}

static uint64_t whole_of(const struct kv_size_conf *conf)
{
        return whole(&conf->host) + whole(&conf->own);
}

/* Blocks of that many sequences at full length; at least of one sequence. */
static uint64_t full(const struct kv_size_conf *conf, uint32_t sequences)
{
        return (uint64_t)(sequences ? sequences : 1) * conf->blocks_per_sequence;
}

static uint64_t requested_blocks(const struct kv_size_conf *conf)
{
        return conf->requested / whole_of(conf);
}

static uint64_t swap_block(const struct kv_size_conf *conf)
{
        return whole_of(conf) - conf->host.shadow - conf->own.shadow;
}

static uint64_t swap_blocks(const struct kv_size_conf *conf)
{
        return conf->swap / swap_block(conf);
}

static uint64_t swap_bytes(const struct kv_size_conf *conf)
{
        return conf->swap ? swap_blocks(conf) * swap_block(conf) : 0;
}

/* Bytes that are taken from this memory for anything but the pool. */
static uint64_t taken_of(const struct kv_size_conf *conf, const struct kv_size_memory *memory)
{
        uint64_t taken =
                add_or_max(add_or_max(memory->weights, memory->activations), memory->scratch);

        return add_or_max(taken, memory == &conf->own ? kv_size_reserve(memory->available)
                                                      : add_or_max(swap_bytes(conf), conf->drafts));
}

/* Says what does not fit, how much memory there is, and what it is needed for. */
static int refuse(const struct kv_size_conf *conf, const struct kv_size_memory *memory,
                  const char *what, uint64_t blocks, char *why, size_t why_bytes)
{
        uint64_t needed = add_or_max(taken_of(conf, memory), mul_or_max(blocks, whole(memory)));
        double missing = (double)(needed - memory->available) / MIB;
        char swap[48] = "", drafts[48] = "";

        if (conf->swap)
                snprintf(swap, sizeof(swap), " and the swap %.1f", (double)swap_bytes(conf) / MIB);
        if (conf->drafts)
                snprintf(drafts, sizeof(drafts), " and drafts %.1f", (double)conf->drafts / MIB);
        if (memory == &conf->host)
                return error_raise(errtext_set(
                        why, why_bytes, -EINVAL,
                        "%s not fit in memory: of %.1f MiB available, weights take %.1f and "
                        "activations %.1f%s%s; %.1f MiB are missing",
                        what, (double)memory->available / MIB, (double)memory->weights / MIB,
                        (double)memory->activations / MIB, drafts, swap, missing));
        return error_raise(errtext_set(
                why, why_bytes, -EINVAL,
                "%s not fit backend %s: of %.1f MiB that are free there, weights take %.1f, "
                "activations %.1f, scratch %.1f, and %.1f stay reserved; %.1f MiB are missing",
                what, conf->backend, (double)memory->available / MIB, (double)memory->weights / MIB,
                (double)memory->activations / MIB, (double)memory->scratch / MIB,
                (double)kv_size_reserve(memory->available) / MIB, missing));
}

/* Checks that this memory has space for `blocks`, and for the whole pool that was asked for. */
static int check_space(const struct kv_size_conf *conf, const struct kv_size_memory *memory,
                       uint64_t blocks, char *why, size_t why_bytes)
{
        uint64_t taken = taken_of(conf, memory);
        uint64_t space = taken < memory->available ? memory->available - taken : 0;
        bool shared = whole(&conf->host) && whole(&conf->own);
        char what[96];

        if (space / whole(memory) < blocks) {
                snprintf(what, sizeof(what), "%s and %s of KV do",
                         shared ? "the layers planned for it" : "the model",
                         blocks > 1 ? "a sequence's blocks" : "a block");
                return refuse(conf, memory, what, blocks, why, why_bytes);
        }
        if (space / whole(memory) < requested_blocks(conf)) {
                snprintf(what, sizeof(what), "kv_bytes: %.1f MiB do",
                         (double)conf->requested / MIB);
                return refuse(conf, memory, what, requested_blocks(conf), why, why_bytes);
        }
        return 0;
}

int kv_size_swap(const struct kv_size_conf *conf, uint32_t *ret_blocks, char *why, size_t why_bytes)
{
        uint64_t block = swap_block(conf);
        char what[96];

        if (conf->swap && conf->swap < block)
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "swap_bytes is %llu; one block of 16 positions "
                                               "takes %llu bytes",
                                               (unsigned long long)conf->swap,
                                               (unsigned long long)block));
        if (conf->swap && taken_of(conf, &conf->host) > conf->host.available) {
                snprintf(what, sizeof(what), "swap_bytes: %.1f MiB do", (double)conf->swap / MIB);
                return refuse(conf, &conf->host, what, 0, why, why_bytes);
        }
        *ret_blocks = conf->swap ? (uint32_t)least(swap_blocks(conf), BLOCKS_MAX) : 0;
        return 0;
}

int kv_size_fits_backend(const struct kv_size_conf *conf, char *why, size_t why_bytes)
{
        uint64_t blocks = conf->requested ? 1 : least(conf->blocks_per_sequence, ENOUGH);

        return error_pass(check_space(conf, &conf->own, blocks, why, why_bytes));
}

/* As many blocks as fit, but no more than all sequences need. */
static uint64_t fill_own(const struct kv_size_conf *conf)
{
        return least((conf->own.available - taken_of(conf, &conf->own)) / whole(&conf->own),
                     full(conf, conf->sequences));
}

/* Takes at most a quarter: other programs on the machine need memory too. */
static uint64_t fill_host(const struct kv_size_conf *conf)
{
        uint64_t quarter = conf->host.available / 4 / whole(&conf->host);
        uint64_t space = (conf->host.available - taken_of(conf, &conf->host)) / whole(&conf->host);
        uint64_t wanted = whole(&conf->own) ? UINT64_MAX : full(conf, conf->sequences / 4);

        return least(wanted, least(quarter, space));
}

/* Blocks that fit into the memory of `wholes` blocks with window pages, beside `windows`. */
static uint64_t blocks_beside(const struct kv_size_conf *conf, uint64_t wholes, uint64_t windows)
{
        const struct kv_size_memory *memories[] = { &conf->host, &conf->own };
        uint64_t blocks = full(conf, conf->sequences);

        if (conf->requested && conf->host.block + conf->own.block)
                blocks = BLOCKS_MAX;
        for (int i = 0; i < 2; i++) {
                uint64_t bytes = mul_or_max(wholes, whole(memories[i]));
                uint64_t taken = mul_or_max(windows, memories[i]->window);

                if (lone(memories[i]))
                        blocks = least(blocks,
                                       bytes > taken ? (bytes - taken) / lone(memories[i]) : 0);
        }
        return blocks;
}

/* The same the other way round; never more than there are blocks. */
static uint64_t windows_beside(const struct kv_size_conf *conf, uint64_t wholes, uint64_t blocks)
{
        const struct kv_size_memory *memories[] = { &conf->host, &conf->own };
        uint64_t windows = blocks;

        for (int i = 0; i < 2; i++) {
                uint64_t bytes = mul_or_max(wholes, whole(memories[i]));
                uint64_t taken = mul_or_max(blocks, lone(memories[i]));

                if (memories[i]->window)
                        windows = least(windows,
                                        bytes > taken ? (bytes - taken) / memories[i]->window : 0);
        }
        return windows;
}

/* The most blocks that leave a window page for four of them. */
static uint64_t blocks_of_four(const struct kv_size_conf *conf, uint64_t wholes)
{
        uint64_t low = wholes, high = blocks_beside(conf, wholes, 0);

        while (low < high) {
                uint64_t blocks = low + (high - low + 1) / 2;

                if (windows_beside(conf, wholes, blocks) >= blocks / 4)
                        low = blocks;
                else
                        high = blocks - 1;
        }
        return low;
}

/* Divides the memory of `wholes` blocks with window pages. */
static void divide(const struct kv_size_conf *conf, uint64_t wholes, struct kv_size *ret_size)
{
        uint64_t blocks = least(blocks_of_four(conf, wholes),
                                blocks_beside(conf, wholes, conf->windows_least));
        uint64_t windows = windows_beside(conf, wholes, blocks);
        bool divided = blocks > wholes + wholes / 4 && windows >= conf->windows_least;

        ret_size->blocks = (uint32_t)least(divided ? blocks : wholes, BLOCKS_MAX);
        ret_size->windows = divided ? (uint32_t)least(windows, BLOCKS_MAX) : 0;
}

int kv_size_plan(const struct kv_size_conf *conf, struct kv_size *ret_size, char *why,
                 size_t why_bytes)
{
        uint64_t blocks = UINT64_MAX;
        int r = 0;

        if (whole(&conf->own))
                r = check_space(conf, &conf->own, 1, why, why_bytes);
        if (!r && whole(&conf->host))
                r = check_space(conf, &conf->host, 1, why, why_bytes);
        if (r)
                return error_pass(r);
        if (conf->requested)
                blocks = requested_blocks(conf);
        if (!conf->requested && whole(&conf->own))
                blocks = fill_own(conf);
        if (!conf->requested && whole(&conf->host))
                blocks = least(blocks, fill_host(conf));
        if (!blocks)
                return error_raise(
                        errtext_set(why, why_bytes, -EINVAL,
                                    "kv_bytes: one block of 16 positions takes %llu bytes",
                                    (unsigned long long)whole_of(conf)));
        divide(conf, blocks, ret_size);
        return 0;
}
