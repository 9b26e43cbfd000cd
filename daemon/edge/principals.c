#include "daemon/edge/principals.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/prefix-tree.h"
#include "daemon/edge/wire.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"

/* No process has this uid. */
#define NO_UID UINT32_MAX

/* A number is this one + serial * PRINCIPALS_MAX + the index of the principal in the table. */
#define FIRST_NUMBER PREFIX_PRINCIPALS

struct principals {
        const char *gateway;
        const struct quota *quota;
        uint32_t gateway_uid; /* NO_UID: there is none */
        uint64_t serial;
        struct principal *at[PRINCIPALS_MAX]; /* NULL: the entry is free */
};

/* ---- the gateway ---- */

/* A uid in digits, or NO_UID. */
static uint32_t uid_of_digits(const char *text)
{
        char *end = NULL;
        unsigned long long uid;

        if (*text < '0' || *text > '9')
                return NO_UID;
        errno = 0;
        uid = strtoull(text, &end, 10);
        return *end || errno || uid >= NO_UID ? NO_UID : (uint32_t)uid;
}

void principals_reload(struct principals *principals)
{
        const char *gateway = principals->gateway;
        int r = 0;

        principals->gateway_uid = gateway ? uid_of_digits(gateway) : NO_UID;
        if (gateway && principals->gateway_uid == NO_UID)
                r = sys_user(gateway, &principals->gateway_uid);
        if (!r)
                return;
        principals->gateway_uid = NO_UID;
        log_warn("gateway_unknown gateway=%s error=%s", gateway,
                 r == -ENOENT ? "there is no such user" : strerror(-r));
}

bool principals_is_gateway(const struct principals *principals, uint64_t uid)
{
        return principals->gateway_uid != NO_UID && uid == principals->gateway_uid;
}

int principals_new(const char *gateway, const struct quota *quota,
                   struct principals **ret_principals)
{
        struct principals *principals = calloc(1, sizeof(*principals));

        if (!principals)
                return error_raise(-ENOMEM);
        principals->gateway = gateway;
        principals->quota = quota;
        principals_reload(principals);
        *ret_principals = principals;
        return 0;
}

struct principals *principals_free(struct principals *principals)
{
        if (!principals)
                return NULL;
        for (uint32_t i = 0; i < PRINCIPALS_MAX; i++) {
                assert(!principals->at[i] || !principals->at[i]->connections);
                free(principals->at[i]);
        }
        free(principals);
        return NULL;
}

/* ---- the table ---- */

static struct principal *find(const struct principals *principals, uint32_t process_uid,
                              const struct wire_text *name)
{
        for (uint32_t i = 0; i < PRINCIPALS_MAX && principals->at[i]; i++) {
                struct principal *principal = principals->at[i];

                if (principal->process_uid == process_uid &&
                    strlen(principal->name) == name->count &&
                    !memcmp(principal->name, name->bytes, name->count))
                        return principal;
        }
        return NULL;
}

static bool is_in_use(const struct principals *principals, const struct principal *principal)
{
        return principal->connections || quota_holds(principals->quota, principal->uid);
}

/*
 * The entry for a new principal: the first free one, or else that of the principal which was here
 * longest ago; or PRINCIPALS_MAX, if all are in use.  Entries become free no more once they are
 * taken, so the free ones are the last.
 */
static uint32_t choose_entry(const struct principals *principals)
{
        uint64_t oldest = UINT64_MAX;
        uint32_t chosen = PRINCIPALS_MAX;

        for (uint32_t i = 0; i < PRINCIPALS_MAX; i++) {
                const struct principal *principal = principals->at[i];

                if (!principal)
                        return i;
                if (principal->entered < oldest && !is_in_use(principals, principal)) {
                        oldest = principal->entered;
                        chosen = i;
                }
        }
        return chosen;
}

static int add(struct principals *principals, const struct wire_text *name, uint32_t id,
               struct wire_problem *ret_problem, struct principal **ret_principal)
{
        uint32_t entry = choose_entry(principals);
        struct principal *principal;

        if (entry == PRINCIPALS_MAX)
                return wire_refuse(ret_problem, SMV_BUSY, id, "principal",
                                   "%u principals are in use, which is the limit; try again when "
                                   "one has ended its work",
                                   PRINCIPALS_MAX);
        principal = principals->at[entry];
        if (!principal)
                principal = malloc(sizeof(*principal));
        if (!principal)
                return error_raise(-ENOMEM);
        *principal = (struct principal){
                .uid = FIRST_NUMBER + principals->serial * PRINCIPALS_MAX + entry,
        };
        memcpy(principal->name, name->bytes, name->count);
        principals->at[entry] = principal;
        *ret_principal = principal;
        return 0;
}

int principals_enter(struct principals *principals, uint32_t process_uid,
                     const struct wire_text *name, uint32_t id, struct wire_problem *ret_problem,
                     struct principal **ret_principal)
{
        struct principal *principal;
        int r = 0;

        if (process_uid == NO_UID || process_uid != principals->gateway_uid)
                return wire_refuse(ret_problem, SMV_DENIED, id, "principal",
                                   "your uid is %u; only the user that the daemon's setting "
                                   "gateway names (now %s) may say for which principal it "
                                   "connects",
                                   process_uid,
                                   principals->gateway_uid != NO_UID ? principals->gateway
                                   : principals->gateway             ? "a user that is not known"
                                                                     : "none");
        principals->serial++;
        principal = find(principals, process_uid, name);
        if (!principal)
                r = add(principals, name, id, ret_problem, &principal);
        if (r)
                return error_pass(r);
        principal->process_uid = process_uid;
        principal->entered = principals->serial;
        principal->connections++;
        *ret_principal = principal;
        return 0;
}

void principal_leave(struct principal *principal)
{
        if (!principal)
                return;
        assert(principal->connections);
        principal->connections--;
}

bool principals_show(const struct principals *principals, uint64_t uid,
                     struct user_shown *ret_shown)
{
        const struct principal *principal;

        *ret_shown = (struct user_shown){ .uid = (uint32_t)uid, .principal = "" };
        if (uid < FIRST_NUMBER)
                return true;
        principal = principals->at[(uid - FIRST_NUMBER) % PRINCIPALS_MAX];
        if (!principal || principal->uid != uid)
                return false;
        *ret_shown =
                (struct user_shown){ .uid = principal->process_uid, .principal = principal->name };
        return true;
}
