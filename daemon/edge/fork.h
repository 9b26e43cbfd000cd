/*
 * Forks: streams made from another one: the siblings of a generate with `n`, and forks of a live
 * stream.
 *
 * Such a stream has the parameters of the other one, but its own sample_index, so that it draws
 * otherwise.  A family is all streams that came of one generate.  In a family sample indices are
 * counted up, whichever member is forked.  So no two members that begin alike go on alike, unless
 * the client asks for it, and a client can ask again later for the same fork.  Loop thread only.
 */
#ifndef DAEMON_EDGE_FORK_H
#define DAEMON_EDGE_FORK_H

#include "daemon/edge/stream.h"
#include "daemon/edge/wire-request.h"

/*
 * Makes the other streams of a generate with `n`, as siblings of `stream`: all or none.  Each is
 * charged as if it had come alone.  0, WIRE_E_REFUSED or -ENOMEM.
 */
int fork_siblings(struct admission *admission, struct stream *stream,
                  const struct wire_request *asked, struct wire_problem *ret_problem);

/*
 * Forks of a stream that is alive, with the same outcomes.  Parameters that are not given are those
 * of the parent.  Only the engine knows how many tokens a fork begins with; here the largest
 * possible number is charged.
 */
int fork_stream(struct admission *admission, struct stream *parent,
                const struct wire_request *asked, struct stream **ret_first,
                struct wire_problem *ret_problem);

#endif
