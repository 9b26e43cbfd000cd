/*
 * Constraints: the compiled constraints of all users, and the guides of streams that have one.
 *
 * A constraint is shared by all streams of a user whose answers have the same form.  Streams count
 * its references.  While it has one, its memory is charged to that user.  Then it is kept for a
 * while, the last `constraints_kept` of all users, and charged to nobody.
 *
 * A stream gets its guide here before it is submitted, and gives it back when it has retired.  In
 * between the guide and the grammar belong to the mask thread (daemon/engine/masks.h).
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_CONSTRAINTS_H
#define DAEMON_EDGE_CONSTRAINTS_H

#include "daemon/constraint/grammar.h"
#include "daemon/edge/answer-form.h"
#include "daemon/edge/quota.h"
#include "daemon/edge/stream.h"

struct constraint;

int constraints_new(struct quota *quota, uint32_t kept_max, struct constraints **ret_constraints);
struct constraints *constraints_free(struct constraints *constraints); /* takes NULL */

/*
 * Both give the stream and its siblings their guides.  0, WIRE_E_REFUSED or -ENOMEM.  Guides that
 * were given before a failure are given back with their streams.
 */

/*
 * If this form is known; else CONSTRAINTS_E_UNKNOWN, and nothing has changed.
 */
enum { CONSTRAINTS_E_UNKNOWN = 200 };
int constraints_find(struct constraints *constraints, struct stream *first,
                     const struct answer_form *form, struct wire_problem *ret_problem);
/* Takes the grammar, which was compiled from this form. */
int constraints_add(struct constraints *constraints, struct stream *first,
                    const struct answer_form *form, struct grammar *grammar,
                    struct wire_problem *ret_problem);

/* The same for a fork, or for a stream like `from`, which may be with the engine. */
int constraints_share(struct stream *stream, const struct stream *from,
                      struct wire_problem *ret_problem);

/* Takes the guide back from a stream that is about to be freed; it may have none. */
void constraints_release(struct stream *stream);

#endif
