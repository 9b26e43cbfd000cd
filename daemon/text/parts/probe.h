/*
 * Probe: checks the dialect of a model by its chat template.
 *
 * A dialect is chosen by signs, which may deceive: a template may mention a mark and write calls in
 * another way.  So the template renders a conversation in which two tools were called at once, or
 * one if it takes no more, and the parser must find these calls in the text.
 */
#ifndef DAEMON_TEXT_PARTS_PROBE_H
#define DAEMON_TEXT_PARTS_PROBE_H

#include "daemon/text/chat.h"
#include "daemon/text/parts/dialect.h"

enum probe_outcome {
        PROBE_E_WRONG = 1,  /* the template writes the call, and it cannot be read */
        PROBE_E_SILENT = 2, /* the template does not show such a call */
};

/* 0: the call was found.  Or a probe_outcome, or -ENOMEM. */
int probe_dialect(const struct chat *chat, const struct dialect *dialect);

#endif
