#include "daemon/edge/quota.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/base/error.h"

struct quota {
        struct quota_conf conf;
        struct quota_account *accounts;
        uint32_t count, room;
        uint64_t now_ns; /* of the last attempt to connect */
};

static const char *const names[QUOTA_KIND_N] = {
        [QUOTA_CONNECTIONS] = "connections",   [QUOTA_REQUESTS] = "requests",
        [QUOTA_PROMPT_BYTES] = "prompt_bytes", [QUOTA_RING_BYTES] = "ring_bytes",
        [QUOTA_HANDLES] = "handles",           [QUOTA_PINNED_BLOCKS] = "pinned_blocks",
        [QUOTA_RESUMABLE] = "resumable",       [QUOTA_RESUMABLE_BYTES] = "resumable_bytes",
};

int quota_new(const struct quota_conf *conf, struct quota **ret_quota)
{
        struct quota *quota = calloc(1, sizeof(*quota));

        if (!quota)
                return error_raise(-ENOMEM);
        quota->conf = *conf;
        *ret_quota = quota;
        return 0;
}

void quota_reload(struct quota *quota, const struct quota_conf *conf)
{
        quota->conf = *conf;
}

static bool holds(const struct quota_account *account)
{
        for (uint32_t i = 0; i < QUOTA_KIND_N; i++)
                if (account->held[i])
                        return true;
        return false;
}

struct quota *quota_free(struct quota *quota)
{
        if (!quota)
                return NULL;
        for (uint32_t i = 0; i < quota->count; i++)
                assert(!holds(&quota->accounts[i]));
        free(quota->accounts);
        free(quota);
        return NULL;
}

static void refill(const struct quota *quota, struct quota_account *account)
{
        uint64_t passed_ns = quota->now_ns - account->connects_at_ns;

        account->connects += (double)passed_ns * 1e-9 * quota->conf.connects_per_s;
        if (account->connects > quota->conf.connects_burst)
                account->connects = quota->conf.connects_burst;
        account->connects_at_ns = quota->now_ns;
}

/*
 * An account that holds nothing is kept while its bucket is not full: otherwise its uid would get a
 * new burst.  So accounts are swept only when room is needed, and the table is as large as the
 * number of uids that were here lately.
 */
static void sweep(struct quota *quota)
{
        uint32_t kept = 0;

        for (uint32_t i = 0; i < quota->count; i++) {
                struct quota_account *account = &quota->accounts[i];

                refill(quota, account);
                if (holds(account) || account->connects < quota->conf.connects_burst)
                        quota->accounts[kept++] = *account;
        }
        quota->count = kept;
}

static int grow(struct quota *quota)
{
        uint32_t room = quota->room ? quota->room * 2 : 8;
        struct quota_account *accounts;

        accounts = realloc(quota->accounts, room * sizeof(*accounts));
        if (!accounts)
                return error_raise(-ENOMEM);
        quota->accounts = accounts;
        quota->room = room;
        return 0;
}

static struct quota_account *find_account(const struct quota *quota, uint32_t uid)
{
        for (uint32_t i = 0; i < quota->count; i++)
                if (quota->accounts[i].uid == uid)
                        return &quota->accounts[i];
        return NULL;
}

static int find_or_make(struct quota *quota, uint32_t uid, struct quota_account **ret_account)
{
        struct quota_account *account = find_account(quota, uid);
        int r;

        if (!account) {
                if (quota->count == quota->room)
                        sweep(quota);
                if (quota->count == quota->room) {
                        r = grow(quota);
                        if (r)
                                return error_pass(r);
                }
                account = &quota->accounts[quota->count++];
                *account = (struct quota_account){
                        .uid = uid,
                        .connects = quota->conf.connects_burst,
                        .connects_at_ns = quota->now_ns,
                };
        }
        *ret_account = account;
        return 0;
}

int quota_charge(struct quota *quota, uint32_t uid, enum quota_kind kind, uint64_t amount)
{
        struct quota_account *account = NULL;
        int r;

        r = find_or_make(quota, uid, &account);
        if (r)
                return error_pass(r);
        if (account->held[kind] > quota->conf.max[kind] ||
            amount > quota->conf.max[kind] - account->held[kind])
                return QUOTA_E_OVER;
        account->held[kind] += amount;
        return 0;
}

int quota_ask(struct quota *quota, uint32_t uid, enum quota_kind kind, uint64_t amount, uint32_t id,
              struct wire_problem *ret_problem)
{
        int r = quota_charge(quota, uid, kind, amount);

        if (r == QUOTA_E_OVER)
                return wire_refuse(ret_problem, SMV_QUOTA, id, NULL,
                                   "%" PRIu64 " more would exceed this user's limit of %" PRIu64
                                   " %s",
                                   amount, quota_max(quota, kind), quota_name(kind));
        return error_pass(r);
}

void quota_uncharge(struct quota *quota, uint32_t uid, enum quota_kind kind, uint64_t amount)
{
        struct quota_account *account = find_account(quota, uid);

        if (!amount)
                return;
        assert(account && account->held[kind] >= amount);
        account->held[kind] -= amount;
}

int quota_connect(struct quota *quota, uint32_t uid, uint64_t now_ns)
{
        struct quota_account *account = NULL;
        int r;

        assert(now_ns >= quota->now_ns);
        quota->now_ns = now_ns;
        r = find_or_make(quota, uid, &account);
        if (r)
                return error_pass(r);
        refill(quota, account);
        if (account->connects < 1)
                return QUOTA_E_OVER;
        account->connects -= 1;
        return 0;
}

uint64_t quota_max(const struct quota *quota, enum quota_kind kind)
{
        return quota->conf.max[kind];
}

const char *quota_name(enum quota_kind kind)
{
        return names[kind];
}

bool quota_holds(const struct quota *quota, uint32_t uid)
{
        const struct quota_account *account = find_account(quota, uid);

        return account && holds(account);
}

const struct quota_account *quota_next(const struct quota *quota, uint32_t *index)
{
        while (*index < quota->count) {
                const struct quota_account *account = &quota->accounts[(*index)++];

                if (holds(account))
                        return account;
        }
        return NULL;
}
