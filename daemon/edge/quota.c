#include "daemon/edge/quota.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "json/plural.h"

/* The part of a total that is kept for root and the user that runs the daemon. */
#define RESERVE_DIVISOR 8u

struct quota {
        struct quota_conf conf;
        struct quota_user *users;
        uint32_t count, room;
        uint64_t now_ns; /* of the last attempt to connect */
        /* Of each kind: what is held, and how many accounts without privileges hold some of it. */
        struct sum {
                uint64_t privileged, others;
                uint32_t accounts;
        } sums[QUOTA_KIND_N];
};

static const struct kind {
        const char *name;
        const char *one, *many, *setting, *total_setting; /* for messages */
} kinds[QUOTA_KIND_N] = {
        [QUOTA_CONNECTIONS] = { "connections", "connection", "connections", "uid_connections",
                                "connections" },
        [QUOTA_REQUESTS] = { "requests", "request", "requests", "uid_requests", "requests" },
        [QUOTA_PROMPT_BYTES] = { "prompt_bytes", "byte of prompts and handles",
                                 "bytes of prompts and handles", "uid_prompt_bytes", NULL },
        [QUOTA_RING_BYTES] = { "ring_bytes", "byte of rings", "bytes of rings", "uid_ring_bytes",
                               NULL },
        [QUOTA_HANDLES] = { "handles", "handle", "handles", "uid_handles", NULL },
        [QUOTA_PINS] = { "pins", "pinned or published history", "pinned or published histories",
                         NULL, NULL },
        [QUOTA_PINNED_BLOCKS] = { "pinned_blocks", "pinned block", "pinned blocks",
                                  "uid_pinned_percent", NULL },
        [QUOTA_RESUMABLE] = { "resumable", "resumable stream", "resumable streams", "uid_resumable",
                              "resumable" },
        [QUOTA_RESUMABLE_BYTES] = { "resumable_bytes", "byte of resumable streams",
                                    "bytes of resumable streams", "uid_resumable_bytes", NULL },
        [QUOTA_CONSTRAINT_BYTES] = { "constraint_bytes", "byte of constraints",
                                     "bytes of constraints", "uid_constraint_bytes", NULL },
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

bool quota_is_privileged(const struct quota *quota, uint64_t uid)
{
        return !uid || uid == quota->conf.owner;
}

const char *quota_name(enum quota_kind kind)
{
        return kinds[kind].name;
}

uint64_t quota_used(const struct quota *quota, enum quota_kind kind)
{
        return quota->sums[kind].privileged + quota->sums[kind].others;
}

/* ---- the table of users ---- */

static bool holds(const struct quota_user *user)
{
        for (uint32_t i = 0; i < QUOTA_KIND_N; i++)
                if (user->held[i])
                        return true;
        return false;
}

/* True if this is the account of any user that holds something. */
static bool is_charged(const struct quota_user *account)
{
        for (uint32_t i = 0; i < QUOTA_KIND_N; i++)
                if (account->all[i])
                        return true;
        return false;
}

struct quota *quota_free(struct quota *quota)
{
        if (!quota)
                return NULL;
        for (uint32_t i = 0; i < quota->count; i++)
                assert(!holds(&quota->users[i]) && !is_charged(&quota->users[i]));
        free(quota->users);
        free(quota);
        return NULL;
}

static void refill(const struct quota *quota, struct quota_user *account)
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
                struct quota_user *user = &quota->users[i];

                refill(quota, user);
                if (holds(user) || is_charged(user) || user->connects < quota->conf.connects_burst)
                        quota->users[kept++] = *user;
        }
        quota->count = kept;
}

/* Makes room for so many more; others that hold nothing may be swept. */
static int make_room(struct quota *quota, uint32_t more)
{
        uint32_t room = quota->room ? quota->room : 8;
        struct quota_user *users;

        if (quota->room - quota->count >= more)
                return 0;
        sweep(quota);
        if (quota->room - quota->count >= more)
                return 0;
        while (room - quota->count < more)
                room *= 2;
        users = realloc(quota->users, room * sizeof(*users));
        if (!users)
                return error_raise(-ENOMEM);
        quota->users = users;
        quota->room = room;
        return 0;
}

static struct quota_user *find(const struct quota *quota, uint64_t uid)
{
        for (uint32_t i = 0; i < quota->count; i++)
                if (quota->users[i].uid == uid)
                        return &quota->users[i];
        return NULL;
}

static uint64_t account_of(const struct quota *quota, uint64_t uid)
{
        if (!quota->conf.subuid || uid > UINT32_MAX || quota_is_privileged(quota, uid))
                return uid;
        return subuid_account(quota->conf.subuid, (uint32_t)uid);
}

/* There is room. */
static struct quota_user *find_or_add(struct quota *quota, uint64_t uid)
{
        struct quota_user *user = find(quota, uid);

        if (user)
                return user;
        assert(quota->count < quota->room);
        user = &quota->users[quota->count++];
        *user = (struct quota_user){
                .uid = uid,
                .account = account_of(quota, uid),
                .connects = quota->conf.connects_burst,
                .connects_at_ns = quota->now_ns,
        };
        return user;
}

/* The user and its account, which are made if they are not there. */
static int look_up(struct quota *quota, uint64_t uid, struct quota_user **ret_user,
                   struct quota_user **ret_account)
{
        struct quota_user *user = find(quota, uid);
        int r = 0;

        if (!user || !find(quota, user->account))
                r = make_room(quota, 2);
        if (r)
                return error_pass(r);
        *ret_user = find_or_add(quota, uid);
        *ret_account = find_or_add(quota, (*ret_user)->account);
        return 0;
}

/* ---- charges ---- */

static void add(struct quota *quota, struct quota_user *account, enum quota_kind kind,
                uint64_t amount)
{
        struct sum *sum = &quota->sums[kind];

        if (!amount)
                return;
        if (quota_is_privileged(quota, account->uid)) {
                sum->privileged += amount;
        } else {
                sum->others += amount;
                sum->accounts += !account->all[kind];
        }
        account->all[kind] += amount;
}

static void subtract(struct quota *quota, struct quota_user *account, enum quota_kind kind,
                     uint64_t amount)
{
        struct sum *sum = &quota->sums[kind];

        if (!amount)
                return;
        assert(account->all[kind] >= amount);
        account->all[kind] -= amount;
        if (quota_is_privileged(quota, account->uid)) {
                sum->privileged -= amount;
        } else {
                sum->others -= amount;
                sum->accounts -= !account->all[kind];
        }
}

static uint64_t reserve_of(uint64_t total)
{
        uint64_t reserve = total / RESERVE_DIVISOR;

        return reserve ? reserve : total > 1;
}

/* How much is left for accounts with or without privileges. */
static uint64_t left_for(const struct quota *quota, enum quota_kind kind, bool privileged)
{
        const struct sum *sum = &quota->sums[kind];
        uint64_t total = quota->conf.total[kind], reserve = reserve_of(total);
        uint64_t used = sum->others + sum->privileged;

        if (!privileged && sum->privileged < reserve)
                used = sum->others + reserve;
        return used < total ? total - used : 0;
}

/* The head of quota.h says why. */
static bool fits_total(const struct quota *quota, const struct quota_user *account,
                       enum quota_kind kind, uint64_t amount)
{
        bool privileged = quota_is_privileged(quota, account->uid);
        uint64_t left, held = account->all[kind], sharers;

        if (!quota->conf.total[kind])
                return true;
        left = left_for(quota, kind, privileged);
        if (amount > left)
                return false;
        if (privileged || (!held && amount == 1))
                return true;
        sharers = quota->sums[kind].accounts + !held;
        return held + amount <= (left - amount) / sharers;
}

/* After quota_reload() or quota_remap() an account may hold more than its limit. */
static bool fits_account(const struct quota *quota, const struct quota_user *account,
                         enum quota_kind kind, uint64_t amount)
{
        uint64_t max = quota->conf.max[kind], held = account->all[kind];

        return held <= max && amount <= max - held;
}

int quota_charge(struct quota *quota, uint64_t uid, enum quota_kind kind, uint64_t amount)
{
        struct quota_user *user = NULL, *account = NULL;
        int r;

        r = look_up(quota, uid, &user, &account);
        if (r)
                return error_pass(r);
        if (!fits_account(quota, account, kind, amount))
                return QUOTA_E_OVER;
        if (!fits_total(quota, account, kind, amount))
                return QUOTA_E_TOTAL;
        add(quota, account, kind, amount);
        user->held[kind] += amount;
        return 0;
}

void quota_recharge(struct quota *quota, uint64_t uid, enum quota_kind kind, uint64_t amount)
{
        struct quota_user *user = find(quota, uid);

        assert(user); /* it was charged a moment ago */
        add(quota, find(quota, user->account), kind, amount);
        user->held[kind] += amount;
}

void quota_uncharge(struct quota *quota, uint64_t uid, enum quota_kind kind, uint64_t amount)
{
        struct quota_user *user = find(quota, uid);

        if (!amount)
                return;
        assert(user && user->held[kind] >= amount);
        user->held[kind] -= amount;
        subtract(quota, find(quota, user->account), kind, amount);
}

static void move_to_account(struct quota *quota, struct quota_user *user, uint64_t account)
{
        for (uint32_t kind = 0; kind < QUOTA_KIND_N; kind++) {
                if (!user->held[kind])
                        continue;
                subtract(quota, find(quota, user->account), kind, user->held[kind]);
                add(quota, find_or_add(quota, account), kind, user->held[kind]);
        }
        user->account = account;
}

void quota_reload(struct quota *quota, const struct quota_conf *conf)
{
        quota->conf = *conf;
}

int quota_remap(struct quota *quota)
{
        uint32_t count;
        int r;

        /* Each may need an account that is not there yet. */
        r = make_room(quota, quota->count);
        if (r)
                return error_pass(r);
        count = quota->count;
        for (uint32_t i = 0; i < count; i++)
                move_to_account(quota, &quota->users[i], account_of(quota, quota->users[i].uid));
        return 0;
}

/* ---- refusals ---- */

static const char *noun(const struct kind *kind, uint64_t count)
{
        return count == 1 ? kind->one : kind->many;
}

/* "you have 64 connections, the limit (uid_connections)". */
static int refuse_account(const struct quota_user *account, uint64_t max, enum quota_kind kind,
                          uint64_t amount, uint32_t id, struct wire_problem *ret_problem)
{
        const struct kind *words = &kinds[kind];
        uint64_t held = account->all[kind];

        if (held > max) /* the limit was lowered, or met what was on its way */
                return wire_refuse(ret_problem, SMV_QUOTA, id, NULL,
                                   "you have %" PRIu64 " %s; the limit is %" PRIu64 " (%s)", held,
                                   noun(words, held), max, words->setting);
        if (amount == 1 || held == max)
                return wire_refuse(ret_problem, SMV_QUOTA, id, NULL,
                                   "you have %" PRIu64 " %s, the limit (%s)", held,
                                   noun(words, held), words->setting);
        return wire_refuse(ret_problem, SMV_QUOTA, id, NULL,
                           "you have %" PRIu64 " %s; %" PRIu64
                           " more would exceed the limit of %" PRIu64 " (%s)",
                           held, noun(words, held), amount, max, words->setting);
}

static int refuse_total(const struct quota *quota, const struct quota_user *account,
                        enum quota_kind kind, uint32_t id, struct wire_problem *ret_problem)
{
        bool privileged = quota_is_privileged(quota, account->uid);
        uint64_t left = left_for(quota, kind, privileged);
        const struct kind *words = &kinds[kind];
        char setting[40] = "";

        if (words->total_setting)
                snprintf(setting, sizeof(setting), " (%s)", words->total_setting);
        if (left)
                return wire_refuse(ret_problem, SMV_BUSY, id, NULL,
                                   "you have %" PRIu64 " %s, your share: the daemon has %" PRIu64
                                   " of %" PRIu64 "%s, and %u user%s share%s the rest",
                                   account->all[kind], noun(words, account->all[kind]),
                                   quota_used(quota, kind), quota->conf.total[kind], setting,
                                   quota->sums[kind].accounts, plural(quota->sums[kind].accounts),
                                   quota->sums[kind].accounts == 1 ? "s" : "");
        return wire_refuse(ret_problem, SMV_BUSY, id, NULL,
                           "the daemon has %" PRIu64 " %s; the limit is %" PRIu64 "%s%s",
                           quota_used(quota, kind), noun(words, quota_used(quota, kind)),
                           quota->conf.total[kind], setting,
                           privileged ? "" : ", a part of it for root and the daemon's user");
}

int quota_ask(struct quota *quota, uint64_t uid, enum quota_kind kind, uint64_t amount, uint32_t id,
              struct wire_problem *ret_problem)
{
        struct quota_user *user = NULL, *account = NULL;
        int r = quota_charge(quota, uid, kind, amount);

        if (r > 0) {
                user = find(quota, uid);
                account = find(quota, user->account);
        }
        if (r == QUOTA_E_OVER)
                return refuse_account(account, quota->conf.max[kind], kind, amount, id,
                                      ret_problem);
        if (r == QUOTA_E_TOTAL)
                return refuse_total(quota, account, kind, id, ret_problem);
        return error_pass(r);
}

/* Milliseconds until a token is there, rounded up. */
static uint32_t token_ms(const struct quota *quota, const struct quota_user *account)
{
        return (uint32_t)((1 - account->connects) * 1000 / quota->conf.connects_per_s) + 1;
}

int quota_connect(struct quota *quota, uint64_t uid, uint64_t now_ns,
                  struct wire_problem *ret_problem)
{
        struct quota_user *user = NULL, *account = NULL;
        int r;

        assert(now_ns >= quota->now_ns);
        quota->now_ns = now_ns;
        if (quota_is_privileged(quota, uid))
                return 0;
        r = look_up(quota, uid, &user, &account);
        if (r)
                return error_pass(r);
        refill(quota, account);
        if (account->connects < 1) {
                wire_refuse(ret_problem, SMV_QUOTA, 0, NULL,
                            "you connect more often than %u times a second, the limit "
                            "(uid_connects_per_s)",
                            quota->conf.connects_per_s);
                ret_problem->retry_ms = token_ms(quota, account);
                return WIRE_E_REFUSED;
        }
        account->connects -= 1;
        return 0;
}

void quota_connect_back(struct quota *quota, uint64_t uid)
{
        const struct quota_user *user = find(quota, uid);
        struct quota_user *account = user ? find(quota, user->account) : NULL;

        if (!account) /* its bucket was full again */
                return;
        account->connects += 1;
        if (account->connects > quota->conf.connects_burst)
                account->connects = quota->conf.connects_burst;
}

/* ---- for status ---- */

void quota_note_tokens(struct quota *quota, uint64_t uid, uint64_t tokens)
{
        struct quota_user *user = find(quota, uid);

        assert(user && holds(user));
        user->tokens += tokens;
}

bool quota_holds(const struct quota *quota, uint64_t uid)
{
        const struct quota_user *user = find(quota, uid);

        return user && holds(user);
}

const struct quota_user *quota_next(const struct quota *quota, uint32_t *index)
{
        while (*index < quota->count) {
                const struct quota_user *user = &quota->users[(*index)++];

                if (holds(user))
                        return user;
        }
        return NULL;
}
