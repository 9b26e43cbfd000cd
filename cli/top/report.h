/* What `samovar top --once --json` prints. */
#ifndef CLI_TOP_REPORT_H
#define CLI_TOP_REPORT_H

#include "cli/top/snapshot.h"

/* Appends one JSON object and a newline.  0 or -ENOMEM. */
int report_write(const struct snapshot *snapshot, struct bytes *to);

#endif
