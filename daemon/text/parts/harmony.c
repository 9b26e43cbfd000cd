#include "daemon/text/parts/harmony.h"

#include <string.h>

#include "daemon/text/parts/call-state.h"

static enum smv_part_kind kind_of(const struct parts *parts)
{
        return parts->state == PARTS_REASONING ? SMV_PART_REASONING : SMV_PART_TEXT;
}

/* ---- headers ---- */

/* The last place of a word in what is held, or NULL. */
static const char *find_last(const struct parts *parts, const char *word)
{
        size_t bytes = strlen(word);

        for (size_t at = parts->held_count; at-- > 0;)
                if (parts->held_count - at >= bytes && !memcmp(parts->held + at, word, bytes))
                        return parts->held + at + bytes;
        return NULL;
}

/* The bytes of the word there: up to a blank or a mark. */
static size_t word_bytes(const struct parts *parts, const char *at)
{
        const char *end = parts->held + parts->held_count;
        size_t bytes = 0;

        while (at + bytes < end && !json_is_blank((uint8_t)at[bytes]) && at[bytes] != '<')
                bytes++;
        return bytes;
}

static bool word_is(const char *at, size_t bytes, const char *word)
{
        return bytes == strlen(word) && !memcmp(at, word, bytes);
}

static bool is_analysis(const struct parts *parts)
{
        const char *at = find_last(parts, parts->dialect->marks[MARK_CHANNEL].spelling.text);

        if (at && at < parts->held + parts->held_count && *at == ' ')
                at++;
        return at && word_is(at, word_bytes(parts, at), "analysis");
}

/* Does the header have a tool as its recipient?  Then the call has its name. */
static bool take_recipient(struct parts *parts)
{
        const char *at = find_last(parts, " to=");
        size_t bytes = at ? word_bytes(parts, at) : 0;

        parts->call = (struct parts_call){ .at = CHANNEL_OPEN };
        if (!bytes || bytes > PARTS_NAME_MAX || word_is(at, bytes, "assistant") ||
            word_is(at, bytes, "user"))
                return false;
        memcpy(parts->call.name, at, bytes);
        parts->call.name_bytes = (uint8_t)bytes;
        return true;
}

/* MARK_MESSAGE is the last of what is held. */
static void end_header(struct parts *parts)
{
        if (take_recipient(parts) && parts->calls_wanted) {
                parts->state = PARTS_IN_CALL;
                return;
        }
        parts->state = is_analysis(parts) ? PARTS_REASONING : PARTS_TEXT;
        parts->reasoned |= parts->state == PARTS_REASONING;
        parts_drop(parts);
}

/* The held bytes are no header. */
static void miss_header(struct parts *parts, struct parts_out *out, uint32_t flags)
{
        parts->state = PARTS_TEXT;
        parts_release(parts, out, SMV_PART_TEXT, flags);
}

static bool ends_with(const struct parts *parts, enum dialect_mark mark)
{
        size_t bytes = parts->dialect->marks[mark].bytes;

        return !parts->dialect->marks[mark].is_token && bytes && parts->held_count >= bytes &&
               !memcmp(parts->held + parts->held_count - bytes,
                       parts->dialect->marks[mark].spelling.text, bytes);
}

static bool begins_like(const struct parts *parts, const char *text)
{
        size_t bytes = strlen(text);

        bytes = bytes < parts->held_count ? bytes : parts->held_count;
        return !memcmp(parts->held, text, bytes);
}

/* A header begins with a mark, or behind the role with a recipient. */
static bool may_be_header(const struct parts *parts)
{
        static const enum dialect_mark first[] = { MARK_START,   MARK_CHANNEL, MARK_FORM,
                                                   MARK_MESSAGE, MARK_END,     MARK_SENT };

        for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
                if (begins_like(parts, parts->dialect->marks[first[i]].spelling.text))
                        return true;
        return begins_like(parts, " to=");
}

static void feed_header(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        parts_hold(parts, byte);
        if (!may_be_header(parts))
                miss_header(parts, out, 0);
        else if (ends_with(parts, MARK_MESSAGE))
                end_header(parts);
        else if (ends_with(parts, MARK_END) || ends_with(parts, MARK_SENT))
                parts_drop(parts);
        else if (parts->held_count >= HARMONY_HEADER_MAX)
                miss_header(parts, out, SMV_PARTS_UNPARSED);
}

/* ---- the text of messages ---- */

/* The mark that ends a message, as what is held: MARK_N: it is none; *ret_whole: all of it. */
static enum dialect_mark match_end(const struct parts *parts, bool *ret_whole)
{
        static const enum dialect_mark ends[] = { MARK_END, MARK_SENT, MARK_START, MARK_CHANNEL };

        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
                const char *text = parts->dialect->marks[ends[i]].spelling.text;

                if (parts->dialect->marks[ends[i]].is_token || !begins_like(parts, text))
                        continue;
                *ret_whole = parts->held_count == strlen(text);
                return ends[i];
        }
        return MARK_N;
}

/* The mark is held, and ends the message: the next header begins. */
static void end_message(struct parts *parts, enum dialect_mark mark)
{
        parts->reasoned |= parts->state == PARTS_REASONING;
        parts->state = PARTS_HEADER;
        if (mark == MARK_END || mark == MARK_SENT)
                parts_drop(parts);
}

static void feed_text(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        parts_hold(parts, byte);
        while (parts->held_count) {
                bool whole = false;
                enum dialect_mark mark = match_end(parts, &whole);

                if (whole)
                        end_message(parts, mark);
                if (mark != MARK_N)
                        return;
                parts_put(parts, out, kind_of(parts), 0, parts->held, 1);
                memmove(parts->held, parts->held + 1, --parts->held_count);
        }
}

static void give_up(struct parts *parts, struct parts_out *out)
{
        if (parts->call.begun)
                parts_put_call_end(parts, out, SMV_PARTS_UNPARSED | SMV_PARTS_CUT);
        miss_header(parts, out, SMV_PARTS_UNPARSED);
}

static void feed_call(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        enum call_outcome outcome = CALL_BAD;

        if (parts->call.at == ARGUMENTS)
                outcome = call_pass_argument(parts, byte, out);
        else if (byte == '{')
                outcome = call_pass_first_argument(parts, byte, out);
        else if (json_is_blank(byte) && parts->held_count < 2 * HARMONY_HEADER_MAX)
                outcome = call_take(parts, byte, CHANNEL_OPEN);
        if (outcome == CALL_WHOLE)
                parts->state = PARTS_HEADER;
        if (outcome != CALL_BAD)
                return;
        give_up(parts, out);
        feed_text(parts, byte, out);
}

/* ---- what the stream brings ---- */

void harmony_feed(struct parts *parts, const char *text, size_t bytes, struct parts_out *out)
{
        for (size_t i = 0; i < bytes; i++) {
                uint8_t byte = (uint8_t)text[i];

                switch ((enum parts_state)parts->state) {
                case PARTS_HEADER:
                        feed_header(parts, byte, out);
                        break;
                case PARTS_IN_CALL:
                        feed_call(parts, byte, out);
                        break;
                default:
                        feed_text(parts, byte, out);
                        break;
                }
        }
}

static void hold_mark(struct parts *parts, enum dialect_mark mark)
{
        for (const char *at = parts->dialect->marks[mark].spelling.text; *at; at++)
                parts_hold(parts, (uint8_t)*at);
}

static void mark_header(struct parts *parts, enum dialect_mark mark, struct parts_out *out)
{
        if (mark == MARK_END || mark == MARK_SENT) {
                parts_drop(parts);
                return;
        }
        if (parts->held_count + MARK_BYTES_MAX > HARMONY_HEADER_MAX)
                miss_header(parts, out, SMV_PARTS_UNPARSED);
        hold_mark(parts, mark);
        if (parts->state == PARTS_HEADER && mark == MARK_MESSAGE)
                end_header(parts);
        else if (parts->state != PARTS_HEADER)
                parts_release(parts, out, SMV_PART_TEXT, 0);
}

void harmony_mark(struct parts *parts, enum dialect_mark mark, struct parts_out *out)
{
        if (parts->state == PARTS_IN_CALL)
                give_up(parts, out);
        if (parts->state == PARTS_HEADER) {
                mark_header(parts, mark, out);
                return;
        }
        parts_release(parts, out, kind_of(parts), 0);
        hold_mark(parts, mark);
        if (mark == MARK_END || mark == MARK_SENT || mark == MARK_START || mark == MARK_CHANNEL)
                end_message(parts, mark);
        else
                parts_release(parts, out, kind_of(parts), 0);
}

void harmony_end(struct parts *parts, struct parts_out *out)
{
        uint32_t flags = parts->state == PARTS_IN_CALL ? SMV_PARTS_UNPARSED : 0;

        if (parts->state == PARTS_IN_CALL) {
                parts->flags |= SMV_PARTS_CUT;
                if (parts->call.begun)
                        parts_put_call_end(parts, out, SMV_PARTS_CUT);
        }
        parts_release(parts, out, kind_of(parts), flags);
        parts->state = PARTS_TEXT;
}
