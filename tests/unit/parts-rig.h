/*
 * Divides texts into parts, in pieces of any sizes, and writes the parts down as one text:
 *
 *      T"text"  R"reasoning"  C0"name"  A0"arguments"  E0
 *
 * with "!" behind the quotes for UNPARSED, and "/" for CUT.  Neighbours of one kind are one.  In a
 * text that a test gives, bytes from 0x01 to 0x08 and from 0x0e on stand for the control tokens of
 * the marks, in their order, if the dialect has them.  The rig asserts what parts.h promises of
 * every feed.
 */
#ifndef TESTS_UNIT_PARTS_RIG_H
#define TESTS_UNIT_PARTS_RIG_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/text/parts.h"
#include "json/bytes.h"
#include "json/reader.h"
#include "json/utf8.h"

struct parts_rig {
        struct parts parts;
        char *shown; /* what was written down */
        size_t count, size;
        bool open; /* the last part may go on */
        struct smv_record_part last;
        struct bytes arguments; /* of the last call */
        uint32_t whole_calls;
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

/*
 * The arguments of a whole call are an object for another reader of JSON.  That reader also refuses
 * what the parser does not look at: keys that come twice, halves of surrogates, and bad UTF-8.
 */
static inline void rig_check_call(struct parts_rig *rig)
{
        struct json_document *json = NULL;
        char why[256];
        int r = json_parse(rig->arguments.at, rig->arguments.count, 4096, &json, why, sizeof(why));

        assert(!r || strstr(why, "duplicate") || strstr(why, "surrogate") ||
               utf8_valid(rig->arguments.at, rig->arguments.count) < rig->arguments.count);
        assert(r || json_kind(json, 0) == JSON_OBJECT);
        json_free(json);
        rig->whole_calls++;
}

static inline void rig_take_arguments(struct parts_rig *rig, const struct smv_record_part *part,
                                      const char *text)
{
        if (part->kind == SMV_PART_CALL)
                rig->arguments.count = 0;
        if (part->kind == SMV_PART_ARGUMENTS)
                assert(!bytes_add(&rig->arguments, text, part->bytes));
        if (part->kind == SMV_PART_CALL_END && !part->flags)
                rig_check_call(rig);
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
                rig_take_arguments(rig, part, text + bytes);
                rig_write(rig, text + bytes, part->bytes);
                bytes += part->bytes;
        }
        assert(bytes == out->bytes);
}

/* The exact room that parts.h asks for, so that a sanitizer sees a byte too many. */
static inline struct parts_out rig_room(const struct parts_rig *rig, size_t bytes)
{
        size_t count = parts_count_max(rig->parts.dialect, bytes);
        struct parts_out out = { .text = malloc(parts_bytes_max(bytes)),
                                 .parts = calloc(count, sizeof(*out.parts)) };

        assert(out.text && out.parts);
        return out;
}

static inline void rig_give_back(struct parts_rig *rig, struct parts_out *out, size_t bytes)
{
        assert(out->bytes <= parts_bytes_max(bytes));
        assert(out->count <= parts_count_max(rig->parts.dialect, bytes));
        rig_take(rig, out);
        free(out->text);
        free(out->parts);
}

/* The mark for whose token this byte stands; MARK_N: for none.  No blank stands for a mark. */
static inline enum dialect_mark rig_mark(const struct parts_rig *rig, char byte)
{
        int mark = byte >= 1 && byte <= 8 ? byte - 1 : byte >= 0x0e ? byte - 0x0e + 8 : MARK_N;

        return mark < MARK_N && rig->parts.dialect->marks[mark].is_token ? (enum dialect_mark)mark
                                                                         : MARK_N;
}

/* As dialect.c counts the bytes of a token. */
static inline size_t rig_escaped(const struct parts_rig *rig, const char *text, size_t bytes)
{
        bool raw = rig->parts.dialect->shape == SHAPE_TAGGED;
        size_t escaped = bytes;

        for (size_t i = 0; i < bytes; i++)
                if ((uint8_t)text[i] < ' ')
                        escaped += JSON_SCAN_ESCAPE_BYTES - 1;
                else if (raw && (text[i] == '"' || text[i] == '\\'))
                        escaped++;
        return rig->parts.dialect->shape == SHAPE_PYTHON || rig->parts.dialect->shape == SHAPE_BARE
                       ? 2 * escaped
                       : escaped;
}

/* Feeds a piece as one token; a byte that stands for a mark is a token of its own. */
static inline void rig_feed(struct parts_rig *rig, const char *text, size_t bytes)
{
        while (bytes) {
                size_t plain = 0, escaped;
                struct parts_out out;

                while (plain < bytes && rig_mark(rig, text[plain]) == MARK_N)
                        plain++;
                escaped = rig_escaped(rig, text, plain);
                out = rig_room(rig, escaped);
                if (plain)
                        parts_feed(&rig->parts, text, plain, &out);
                else
                        parts_mark(&rig->parts, rig_mark(rig, text[plain++]), &out);
                rig_give_back(rig, &out, escaped);
                parts_count(&rig->parts);
                text += plain;
                bytes -= plain;
        }
}

static inline void rig_end(struct parts_rig *rig)
{
        struct parts_out out = rig_room(rig, 0);

        parts_end(&rig->parts, &out);
        rig_give_back(rig, &out, 0);
        rig_close_part(rig);
        rig_write(rig, "", 0);
}

static inline void rig_begin_typed(struct parts_rig *rig, const struct dialect *dialect,
                                   const struct argument_types *types, bool calls,
                                   bool in_reasoning)
{
        *rig = (struct parts_rig){ 0 };
        parts_begin(&rig->parts, dialect, types, calls, in_reasoning);
}

static inline void rig_begin(struct parts_rig *rig, const struct dialect *dialect, bool calls,
                             bool in_reasoning)
{
        rig_begin_typed(rig, dialect, NULL, calls, in_reasoning);
}

static inline void rig_free(struct parts_rig *rig)
{
        bytes_deinit(&rig->arguments);
        free(rig->shown);
        rig->shown = NULL;
}

#endif
