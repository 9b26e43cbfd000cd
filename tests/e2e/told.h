/*
 * The tokens and the text of a stream; and if the text was divided, its parts as the rig of parts
 * writes them.
 */
#ifndef TESTS_E2E_TOLD_H
#define TESTS_E2E_TOLD_H

#include <assert.h>
#include <samovar/client.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/daemon-fixture.h"
#include "tests/unit/parts-rig.h"

struct told {
        struct parts_rig rig;
        char *text;
        size_t text_bytes;
        uint32_t *tokens;
        size_t token_count;
        uint32_t first; /* position of the first token */
        struct smv_event end;
};

static inline void tell(struct told *told, const struct smv_event *event)
{
        struct smv_record_part parts[64];
        struct parts_out out = { .text = (char *)(uintptr_t)event->text,
                                 .bytes = event->text_bytes,
                                 .parts = parts,
                                 .count = event->part_count };

        if (event->kind == SMV_EVENT_END) {
                told->end = *event;
                rig_close_part(&told->rig);
                rig_write(&told->rig, "", 0);
                return;
        }
        if (!told->token_count && event->token_count)
                told->first = event->position;
        told->tokens = realloc(told->tokens, (told->token_count + event->token_count + 1) *
                                                     sizeof(*told->tokens));
        told->text = realloc(told->text, told->text_bytes + event->text_bytes + 1);
        assert(told->tokens && told->text);
        memcpy(told->tokens + told->token_count, event->tokens,
               event->token_count * sizeof(*event->tokens));
        memcpy(told->text + told->text_bytes, event->text, event->text_bytes);
        told->token_count += event->token_count;
        told->text_bytes += event->text_bytes;
        told->text[told->text_bytes] = '\0';
        if (!event->parts)
                return;
        assert_true(event->part_count <= 64);
        memcpy(parts, event->parts, event->part_count * sizeof(*parts));
        rig_take(&told->rig, &out);
}

static inline void free_told(struct told *told)
{
        rig_free(&told->rig);
        free(told->text);
        free(told->tokens);
        *told = (struct told){ 0 };
}

/* Reads all streams with ids from `first` on to their ENDs. */
static inline void read_all(struct smv_client *client, uint32_t first, struct told *told,
                            uint32_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t left = count;

        while (left) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                assert_in_range(event.stream, first, first + count - 1);
                tell(&told[event.stream - first], &event);
                left -= event.kind == SMV_EVENT_END;
        }
}

#endif
