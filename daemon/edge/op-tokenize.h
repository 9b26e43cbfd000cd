/*
 * The operations that only convert: tokenize, detokenize, pieces, template.  The text worker makes
 * their replies.  Loop thread only.
 */
#ifndef DAEMON_EDGE_OP_TOKENIZE_H
#define DAEMON_EDGE_OP_TOKENIZE_H

#include "daemon/edge/context.h"
#include "daemon/edge/wire-request.h"

int op_tokenize(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int op_detokenize(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int op_pieces(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int op_template(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

#endif
