#include "daemon/text/parts/state.h"

#include <assert.h>
#include <string.h>

/* Text and reasoning belong to no call. */
static uint32_t call_of(const struct parts *parts, enum smv_part_kind kind)
{
        return kind == SMV_PART_TEXT || kind == SMV_PART_REASONING ? 0 : parts->call_count - 1;
}

static void begin_part(struct parts_out *out, enum smv_part_kind kind, uint32_t call,
                       uint32_t flags)
{
        out->parts[out->count++] =
                (struct smv_record_part){ .kind = kind, .call = call, .flags = flags };
}

static bool goes_on(const struct parts_out *out, enum smv_part_kind kind, uint32_t call,
                    uint32_t flags)
{
        const struct smv_record_part *last = out->count ? &out->parts[out->count - 1] : NULL;

        return last && last->kind == kind && last->call == call && last->flags == flags;
}

void parts_put(struct parts *parts, struct parts_out *out, enum smv_part_kind kind, uint32_t flags,
               const char *text, size_t bytes)
{
        uint32_t call = call_of(parts, kind);

        if (!bytes)
                return;
        parts->flags |= flags;
        if (kind == SMV_PART_TEXT || kind == SMV_PART_REASONING)
                for (size_t i = 0; parts->fresh && i < bytes; i++)
                        parts->fresh = json_is_blank((uint8_t)text[i]);
        if (!goes_on(out, kind, call, flags))
                begin_part(out, kind, call, flags);
        memcpy(out->text + out->bytes, text, bytes);
        out->bytes += bytes;
        out->parts[out->count - 1].bytes += (uint32_t)bytes;
}

void parts_put_string(struct parts *parts, struct parts_out *out, uint8_t byte)
{
        char text[JSON_SCAN_ESCAPE_BYTES] = { (char)byte };
        size_t bytes = byte < ' ' ? json_scan_escape(byte, text) : 1;

        parts_put(parts, out, SMV_PART_ARGUMENTS, 0, text, bytes);
}

void parts_put_call_end(struct parts *parts, struct parts_out *out, uint32_t flags)
{
        parts->flags |= flags;
        begin_part(out, SMV_PART_CALL_END, parts->call_count - 1, flags);
}

void parts_release(struct parts *parts, struct parts_out *out, enum smv_part_kind kind,
                   uint32_t flags)
{
        parts_put(parts, out, kind, flags, parts->held, parts->held_count);
        parts_drop(parts);
}

void parts_hold(struct parts *parts, uint8_t byte)
{
        assert(parts->held_count < PARTS_HELD_MAX);
        parts->held[parts->held_count++] = (char)byte;
}

void parts_drop(struct parts *parts)
{
        parts->held_count = parts->escapes = 0;
}

bool parts_holds_only_blanks(const struct parts *parts)
{
        for (uint32_t i = 0; i < parts->held_count; i++)
                if (!json_is_blank((uint8_t)parts->held[i]))
                        return false;
        return true;
}
