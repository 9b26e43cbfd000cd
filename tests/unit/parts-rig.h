/*
 * Divides texts into parts, in pieces of any sizes, and writes the parts down as one text:
 *
 *      T"text"  R"reasoning"  C0"name"  A0"arguments"  E0
 *
 * with "!" behind the quotes for UNPARSED, and "/" for CUT.  Neighbours of one kind are one.  In a
 * text that a test gives, a byte 0x01 to 0x04 stands for the control token of that mark, if the
 * dialect has tokens.  The rig asserts what parts.h promises of every feed.
 */
#ifndef TESTS_UNIT_PARTS_RIG_H
#define TESTS_UNIT_PARTS_RIG_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/text/parts.h"

struct parts_rig {
        struct parts parts;
        char *shown; /* what was written down */
        size_t count, size;
        bool open; /* the last part may go on */
        struct smv_record_part last;
        bool tokens; /* the dialect's marks are tokens */
};

static inline void rig_write(struct parts_rig *rig, const char *bytes, size_t count)
{
        while (rig->count + count + 1 > rig->size) {
                rig->size = 2 * rig->size + 256;
                rig->shown = realloc(rig->shown, rig->size);
                assert(rig->shown);
        }
        memcpy(rig->shown + rig->count, bytes, count);
        rig->count += count;
        rig->shown[rig->count] = '\0';
}

static inline void rig_close_part(struct parts_rig *rig)
{
        if (!rig->open)
                return;
        rig->open = false;
        if (rig->last.kind != SMV_PART_CALL_END)
                rig_write(rig, "\"", 1);
        if (rig->last.flags & SMV_PARTS_UNPARSED)
                rig_write(rig, "!", 1);
        if (rig->last.flags & SMV_PARTS_CUT)
                rig_write(rig, "/", 1);
}

static inline void rig_take(struct parts_rig *rig, const struct parts_out *out)
{
        const char *text = out->text;
        size_t bytes = 0;

        for (size_t i = 0; i < out->count; i++) {
                const struct smv_record_part *part = &out->parts[i];
                bool goes_on = rig->open && rig->last.kind == part->kind &&
                               rig->last.call == part->call && rig->last.flags == part->flags;
                char head[16];

                /* a name comes in one piece, and only the end of a call has no bytes */
                assert(part->bytes || part->kind == SMV_PART_CALL_END);
                assert(!goes_on || part->kind == SMV_PART_TEXT ||
                       part->kind == SMV_PART_REASONING || part->kind == SMV_PART_ARGUMENTS);
                if (!goes_on) {
                        rig_close_part(rig);
                        snprintf(head, sizeof(head), "%c", "TRCAE"[part->kind]);
                        if (part->kind >= SMV_PART_CALL)
                                snprintf(head, sizeof(head), "%c%u", "TRCAE"[part->kind],
                                         part -> call);
                        rig_write(rig, head, strlen(head));
                        if (part->kind != SMV_PART_CALL_END)
                                rig_write(rig, "\"", 1);
                        rig->open = true;
                        rig->last = *part;
                }
                rig_write(rig, text + bytes, part->bytes);
                bytes += part->bytes;
        }
        assert(bytes == out->bytes);
}

/* The exact room that parts.h asks for, so that a sanitizer sees a byte too many. */
static inline struct parts_out rig_room(size_t bytes)
{
        struct parts_out out = { .text = malloc(parts_bytes_max(bytes)),
                                 .parts = calloc(parts_count_max(bytes), sizeof(*out.parts)) };

        assert(out.text && out.parts);
        return out;
}

static inline void rig_give_back(struct parts_rig *rig, struct parts_out *out, size_t bytes)
{
        assert(out->bytes <= parts_bytes_max(bytes) && out->count <= parts_count_max(bytes));
        rig_take(rig, out);
        free(out->text);
        free(out->parts);
}

static inline size_t rig_escaped(const char *text, size_t bytes)
{
        size_t escaped = bytes;

        for (size_t i = 0; i < bytes; i++)
                escaped += (uint8_t)text[i] < ' ' ? JSON_SCAN_ESCAPE_BYTES - 1 : 0;
        return escaped;
}

/* Feeds a piece as one token; a byte that stands for a mark is a token of its own. */
static inline void rig_feed(struct parts_rig *rig, const char *text, size_t bytes)
{
        while (bytes) {
                size_t plain = 0, escaped;
                struct parts_out out;

                while (plain < bytes && !(rig->tokens && text[plain] >= 1 && text[plain] <= MARK_N))
                        plain++;
                escaped = rig_escaped(text, plain);
                out = rig_room(escaped);
                if (plain)
                        parts_feed(&rig->parts, text, plain, &out);
                else
                        parts_mark(&rig->parts, (enum dialect_mark)(text[plain++] - 1), &out);
                rig_give_back(rig, &out, escaped);
                parts_count(&rig->parts);
                text += plain;
                bytes -= plain;
        }
}

static inline void rig_end(struct parts_rig *rig)
{
        struct parts_out out = rig_room(0);

        parts_end(&rig->parts, &out);
        rig_give_back(rig, &out, 0);
        rig_close_part(rig);
        rig_write(rig, "", 0);
}

static inline void rig_begin(struct parts_rig *rig, const struct dialect *dialect, bool calls,
                             bool in_reasoning)
{
        *rig = (struct parts_rig){ .tokens = dialect->marks[MARK_CALL].is_token ||
                                             dialect->marks[MARK_THINK].is_token };
        parts_begin(&rig->parts, dialect, calls, in_reasoning);
}

static inline void rig_free(struct parts_rig *rig)
{
        free(rig->shown);
        rig->shown = NULL;
}

#endif
