/*
 * Principals: the users of a gateway.
 *
 * A gateway is a process that serves users which the kernel does not know, for example the keys of
 * samovar-http.  The setting `gateway` names its user.  Only processes of that user may say in
 * hello for which principal the connection is (`principal`).  The daemon believes them: the
 * gateway has to know its users.
 *
 * For the daemon a principal is a user of its own, with a number in place of the uid.  So quotas,
 * fair share, the cache, handles and streams keep principals apart as they do uids.  The numbers
 * lie above all uids.  So a principal is never root or the user of the daemon, whatever the uid of
 * the gateway is.
 *
 * A principal is in no group: those of the process are the gateway's, and hold for its work only.
 * So a principal neither publishes to a group nor finds what is published to one.  Otherwise each
 * user of the gateway could read, by the clock, what the members of a Unix group share.
 *
 * A principal without a connection that holds nothing is remembered, so that it finds its prompts
 * in the cache when it comes back.  If PRINCIPALS_MAX are known, the one that was here longest ago
 * is forgotten for a new one.  A number is never given out again: blocks of a principal that was
 * forgotten may still be in the cache.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_PRINCIPALS_H
#define DAEMON_EDGE_PRINCIPALS_H

#include <stdbool.h>
#include <stdint.h>

#include <samovar/protocol.h>

#include "daemon/edge/quota.h"
#include "daemon/edge/wire-request.h"

#define PRINCIPALS_MAX 4096u

struct principal {
        uint64_t uid;         /* its number */
        uint32_t process_uid; /* the gateway's, when it was here last */
        uint32_t connections;
        uint64_t entered; /* serial number of its last hello */
        char name[SMV_PRINCIPAL_BYTES_MAX + 1];
};

/* For the log; "": it is NULL. */
static inline const char *principal_name(const struct principal *principal)
{
        return principal ? principal->name : "";
}

struct principals;

/* `gateway`: the user's name or uid, or NULL: there is none.  Both outlive the principals. */
int principals_new(const char *gateway, const struct quota *quota,
                   struct principals **ret_principals);
struct principals *principals_free(struct principals *principals); /* takes NULL */

/*
 * Looks the gateway's user up anew.  If there is no such user, there is no gateway: the log says
 * so.
 */
void principals_reload(struct principals *principals);

/* Is this user the gateway itself, and none of its principals? */
bool principals_is_gateway(const struct principals *principals, uint64_t uid);

/*
 * A connection of the process with this uid says that it is for the principal `name`, one more is
 * counted.  0; or WIRE_E_REFUSED and the problem: the process may not say so, or too many
 * principals are in use; or -ENOMEM.
 */
int principals_enter(struct principals *principals, uint32_t process_uid,
                     const struct wire_text *name, uint32_t id, struct wire_problem *ret_problem,
                     struct principal **ret_principal);
/* The connection has ended.  Takes NULL. */
void principal_leave(struct principal *principal);

/* How to show a user: the uid of its processes, and the name of the principal. */
struct user_shown {
        uint32_t uid;
        const char *principal; /* "": it is none.  Valid until a principal is entered */
};

/* False: it is a principal that was forgotten. */
bool principals_show(const struct principals *principals, uint64_t uid,
                     struct user_shown *ret_shown);

#endif
