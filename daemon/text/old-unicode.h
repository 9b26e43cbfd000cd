/*
 * Characters that Hugging Face's normalisers for BERT take for something else than Unicode now has
 * them, as their tables are of Unicode 8.
 */
#ifndef DAEMON_TEXT_OLD_UNICODE_H
#define DAEMON_TEXT_OLD_UNICODE_H

#include <stdint.h>

struct old_range {
        uint32_t first, last;
};

/* Each in order: marks that are not removed, others that are, and controls that are not. */
extern const struct old_range old_kept_marks[], old_removed_marks[], old_kept_controls[];
extern const uint32_t old_kept_marks_count, old_removed_marks_count, old_kept_controls_count;

#endif
