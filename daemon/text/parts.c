#include "daemon/text/parts.h"

#include <string.h>

#include "daemon/text/parts/call.h"
#include "daemon/text/parts/harmony.h"

void parts_begin(struct parts *parts, const struct dialect *dialect,
                 const struct argument_types *types, bool calls_wanted, bool in_reasoning)
{
        *parts = (struct parts){
                .dialect = dialect,
                .types = types,
                .calls_wanted = calls_wanted && dialect_has_calls(dialect),
                .state = dialect->shape == SHAPE_CHANNELS ? PARTS_HEADER
                         : in_reasoning                   ? PARTS_REASONING
                                                          : PARTS_TEXT,
                .fresh = true,
        };
}

void parts_follow(struct parts *parts, const struct parts *other,
                  const struct argument_types *types)
{
        *parts = *other;
        parts->types = types;
        parts->reasoning_tokens = parts->held_tokens = 0;
        parts->reasoned = false;
}

/* ---- marks ---- */

static enum smv_part_kind kind_of(const struct parts *parts)
{
        return parts->state == PARTS_REASONING ? SMV_PART_REASONING : SMV_PART_TEXT;
}

static bool is_call(enum dialect_mark mark)
{
        return mark == MARK_CALL || mark == MARK_CALL_TOO;
}

/* Does this mark have a meaning here, in text or in reasoning? */
static bool is_possible(const struct parts *parts, enum dialect_mark mark)
{
        if (!parts->dialect->marks[mark].bytes)
                return false;
        if (parts->state == PARTS_REASONING && mark != MARK_THINK_END &&
            !((is_call(mark) || mark == MARK_CALLS) &&
              parts->dialect->traits & DIALECT_IN_REASONING))
                return false;
        switch (mark) {
        case MARK_THINK_END:
                return parts->state == PARTS_REASONING || parts->dialect->traits & DIALECT_STRAY;
        case MARK_THINK:
                return parts->fresh || parts->dialect->traits & DIALECT_STRAY;
        case MARK_CALL:
        case MARK_CALL_TOO:
        case MARK_CALLS:
                return parts->calls_wanted;
        case MARK_CALLS_END:
                return parts->calls_wanted && parts->call_count && parts->fresh;
        case MARK_ANSWER:
                return parts->fresh && !parts->answer;
        case MARK_ANSWER_END:
                return parts->answer;
        default:
                return false;
        }
}

/* The bytes that are held contain the mark, and perhaps a newline before it, and nothing else. */
static void take_mark(struct parts *parts, enum dialect_mark mark)
{
        parts->skip = parts->dialect->marks[mark].spelling.newlines_after;
        parts->word_after = parts->dialect->marks[mark].spelling.word_after;
        parts->word = 0;
        if (is_call(mark) || mark == MARK_CALLS) {
                (is_call(mark) ? call_begin : call_begin_frame)(parts,
                                                                parts->state == PARTS_REASONING);
                parts->state = PARTS_IN_CALL;
                return;
        }
        parts_drop(parts);
        if (mark == MARK_ANSWER || mark == MARK_ANSWER_END)
                parts->answer = mark == MARK_ANSWER;
        if (mark != MARK_THINK && mark != MARK_THINK_END)
                return;
        parts->reasoned = true;
        parts->fresh = true;
        parts->state = mark == MARK_THINK ? PARTS_REASONING : PARTS_TEXT;
}

enum match { NO_MATCH, BEGINNING, WHOLE };

/* Compares with a mark, behind so many newlines.  Of a control token only these are bytes. */
static enum match match_mark(const struct parts *parts, enum dialect_mark mark, uint32_t newlines)
{
        const struct dialect *dialect = parts->dialect;
        size_t bytes = dialect->marks[mark].bytes, count = parts->held_count;

        if (count && newlines && parts->held[0] != '\n')
                return NO_MATCH;
        if (count <= newlines)
                return BEGINNING;
        count -= newlines;
        if (dialect->marks[mark].is_token || count > bytes ||
            memcmp(parts->held + newlines, dialect->marks[mark].spelling.text, count))
                return NO_MATCH;
        return count == bytes ? WHOLE : BEGINNING;
}

/* Are the bytes that are held a mark that is possible here, or its beginning? */
static enum match match_held(const struct parts *parts, enum dialect_mark *ret_mark)
{
        enum match best = NO_MATCH;

        for (unsigned mark = 0; mark < MARK_N && best != WHOLE; mark++) {
                uint32_t newlines = parts->dialect->marks[mark].spelling.newline_before;

                if (!is_possible(parts, (enum dialect_mark)mark))
                        continue;
                *ret_mark = (enum dialect_mark)mark;
                for (uint32_t n = 0; n <= newlines && best != WHOLE; n++) {
                        enum match match = match_mark(parts, *ret_mark, n);

                        best = match > best ? match : best;
                }
        }
        return best;
}

/* ---- text and reasoning ---- */

/* An object without a mark may be a call. */
static bool may_be_bare_call(const struct parts *parts)
{
        return (parts->dialect->traits & DIALECT_BARE) && parts->calls_wanted && parts->fresh &&
               parts->state == PARTS_TEXT;
}

static char bare_beginning(const struct parts *parts)
{
        return parts->dialect->shape == SHAPE_PYTHON ? '[' : '{';
}

/* With these bytes a mark may begin here, or a call without a mark; how many. */
static size_t list_beginnings(const struct parts *parts, char to[MARK_N + 2])
{
        bool newline = false;
        size_t count = 0;

        for (unsigned mark = 0; mark < MARK_N; mark++) {
                const struct dialect_spelling *spelling = &parts->dialect->marks[mark].spelling;

                if (!is_possible(parts, (enum dialect_mark)mark))
                        continue;
                to[count++] = spelling->text[0];
                newline |= spelling->newline_before;
        }
        if (newline)
                to[count++] = '\n';
        if (may_be_bare_call(parts))
                to[count++] = bare_beginning(parts);
        return count;
}

/* Passes on the bytes in front that begin no mark; how many. */
static size_t pass_plain(struct parts *parts, const char *text, size_t bytes, struct parts_out *out)
{
        char beginnings[MARK_N + 2];
        size_t count = 0, listed;

        if (parts->held_count || parts->skip || parts->word_after)
                return 0;
        /* The mark of reasoning is possible only until the first of these bytes is passed on. */
        if (parts->fresh)
                bytes = bytes ? 1 : 0;
        listed = list_beginnings(parts, beginnings);
        while (count < bytes && !memchr(beginnings, text[count], listed))
                count++;
        parts_put(parts, out, kind_of(parts), 0, text, count);
        return count;
}

/* The word behind a mark does not come: what has come of it is text. */
static void miss_word(struct parts *parts, struct parts_out *out)
{
        if (parts->word_after)
                parts_put(parts, out, kind_of(parts), 0, parts->word_after, parts->word);
        parts->word_after = NULL;
}

/* False: the byte is none of the word. */
static bool take_word(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        if (!parts->word_after)
                return false;
        if ((uint8_t)parts->word_after[parts->word] != byte) {
                miss_word(parts, out);
                return false;
        }
        if (!parts->word_after[++parts->word])
                parts->word_after = NULL;
        return true;
}

static void feed_text(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        enum dialect_mark mark = MARK_N;

        if (take_word(parts, byte, out))
                return;
        if (parts->skip && byte == '\n') {
                parts->skip--;
                return;
        }
        parts->skip = 0;
        if (!parts->held_count && may_be_bare_call(parts) && byte == bare_beginning(parts)) {
                parts->state = PARTS_IN_CALL;
                call_begin_bare(parts);
                (void)call_feed(parts, byte, out);
                return;
        }
        parts_hold(parts, byte);
        while (parts->held_count) {
                enum match match = match_held(parts, &mark);

                if (match == WHOLE)
                        take_mark(parts, mark);
                if (match != NO_MATCH)
                        return;
                parts_put(parts, out, kind_of(parts), 0, parts->held, 1);
                memmove(parts->held, parts->held + 1, --parts->held_count);
        }
}

/* ---- calls ---- */

/*
 * An object without a mark is perhaps no call, but an answer in JSON.  Reasoning may speak of the
 * mark.
 */
static bool is_doubtful(const struct parts *parts)
{
        return parts->call.bare ||
               (parts->call.in_reasoning && !call_is_open(parts) && !call_is_passed_on(parts));
}

static void release_unparsed(struct parts *parts, struct parts_out *out)
{
        bool reasoning = is_doubtful(parts) && parts->call.in_reasoning;

        parts->state = reasoning ? PARTS_REASONING : PARTS_TEXT;
        parts_release(parts, out, kind_of(parts), is_doubtful(parts) ? 0 : SMV_PARTS_UNPARSED);
}

/* Gives up a call: the bytes that are held back are text. */
static void give_up(struct parts *parts, struct parts_out *out)
{
        if (call_is_open(parts))
                parts_put_call_end(parts, out, SMV_PARTS_UNPARSED | SMV_PARTS_CUT);
        release_unparsed(parts, out);
        parts->fresh = false;
}

static void end_call(struct parts *parts)
{
        parts_drop(parts);
        parts->fresh = true;
        parts->state = PARTS_TEXT;
}

/*
 * The call is over, and no closing mark comes: the blanks that were held for it, its beginning, or
 * other bytes behind the call are text, or another call.
 */
static void miss_call_end(struct parts *parts, struct parts_out *out)
{
        char held[PARTS_HELD_MAX];
        size_t count = parts->held_count;

        memcpy(held, parts->held, count);
        end_call(parts);
        parts_feed(parts, held, count, out);
}

/* False: the byte was not taken, and the state has changed. */
static bool feed_call(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        switch (call_feed(parts, byte, out)) {
        case CALL_MORE:
                return true;
        case CALL_WHOLE:
                parts->state = PARTS_CALL_END;
                if (parts->held_count)
                        miss_call_end(parts, out);
                else if (!parts->dialect->marks[MARK_CALL_END].bytes)
                        end_call(parts);
                return true;
        default:
                break;
        }
        if (call_may_end(parts))
                parts->state = PARTS_CALL_END;
        else
                give_up(parts, out);
        return false;
}

/* The closing mark, or its beginning, after the blanks, or the end of a fence, that are held. */
static enum match match_call_end(const struct parts *parts)
{
        const struct dialect *dialect = parts->dialect;
        bool fenced = dialect->traits & DIALECT_FENCED;
        uint32_t blanks = 0, left;

        while (blanks < parts->held_count && (json_is_blank((uint8_t)parts->held[blanks]) ||
                                              (fenced && parts->held[blanks] == '`')))
                blanks++;
        left = parts->held_count - blanks;
        if (blanks > CALL_BLANKS_MAX || left > dialect->marks[MARK_CALL_END].bytes)
                return NO_MATCH;
        if (!left)
                return BEGINNING;
        if (dialect->marks[MARK_CALL_END].is_token ||
            memcmp(parts->held + blanks, dialect->marks[MARK_CALL_END].spelling.text, left))
                return NO_MATCH;
        return left == dialect->marks[MARK_CALL_END].bytes ? WHOLE : BEGINNING;
}

static bool feed_call_end(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        parts_hold(parts, byte);
        switch (match_call_end(parts)) {
        case WHOLE:
                end_call(parts);
                return true;
        case BEGINNING:
                return true;
        default:
                parts->held_count--;
                miss_call_end(parts, out);
                return false;
        }
}

/* ---- what the stream brings ---- */

/* False: feed it again, as the state has changed. */
static bool feed_byte(struct parts *parts, uint8_t byte, struct parts_out *out)
{
        switch ((enum parts_state)parts->state) {
        case PARTS_IN_CALL:
                return feed_call(parts, byte, out);
        case PARTS_CALL_END:
                return feed_call_end(parts, byte, out);
        default:
                feed_text(parts, byte, out);
                return true;
        }
}

void parts_feed(struct parts *parts, const char *text, size_t bytes, struct parts_out *out)
{
        if (parts->dialect->shape == SHAPE_CHANNELS) {
                harmony_feed(parts, text, bytes, out);
                return;
        }
        for (size_t at = 0; at < bytes;) {
                size_t count = 0;

                if (parts->state == PARTS_TEXT || parts->state == PARTS_REASONING)
                        count = pass_plain(parts, text + at, bytes - at, out);
                if (!count)
                        count = feed_byte(parts, (uint8_t)text[at], out);
                at += count;
        }
}

/* A mark in text or in reasoning. */
static void mark_text(struct parts *parts, enum dialect_mark mark, struct parts_out *out)
{
        const struct dialect_spelling *spelling = &parts->dialect->marks[mark].spelling;
        bool possible = is_possible(parts, mark), newline;

        newline = possible && spelling->newline_before && parts->held_count &&
                  parts->held[parts->held_count - 1] == '\n';
        parts->held_count -= newline;
        parts_release(parts, out, kind_of(parts), 0);
        if (!possible) {
                parts_put(parts, out, kind_of(parts), 0, spelling->text,
                          parts->dialect->marks[mark].bytes);
                return;
        }
        if (newline)
                parts_hold(parts, '\n');
        for (const char *at = spelling->text; *at; at++)
                parts_hold(parts, (uint8_t)*at);
        take_mark(parts, mark);
}

void parts_mark(struct parts *parts, enum dialect_mark mark, struct parts_out *out)
{
        if (parts->dialect->shape == SHAPE_CHANNELS) {
                harmony_mark(parts, mark, out);
                return;
        }
        parts->skip = 0;
        miss_word(parts, out);
        if (parts->state == PARTS_IN_CALL && call_mark(parts, mark, out) == CALL_MORE)
                return;
        if (parts->state == PARTS_IN_CALL && call_may_end(parts))
                parts->state = PARTS_CALL_END;
        if (parts->state == PARTS_IN_CALL)
                give_up(parts, out);
        if (parts->state == PARTS_CALL_END && mark == MARK_CALL_END) {
                end_call(parts);
                return;
        }
        if (parts->state == PARTS_CALL_END)
                miss_call_end(parts, out);
        mark_text(parts, mark, out);
}

void parts_end(struct parts *parts, struct parts_out *out)
{
        if (parts->dialect->shape == SHAPE_CHANNELS) {
                harmony_end(parts, out);
                return;
        }
        switch ((enum parts_state)parts->state) {
        case PARTS_IN_CALL:
                if (call_may_end(parts)) {
                        end_call(parts);
                        return;
                }
                if (!call_is_passed_on(parts) && !is_doubtful(parts))
                        parts->flags |= SMV_PARTS_CUT;
                if (call_is_open(parts))
                        parts_put_call_end(parts, out, SMV_PARTS_CUT);
                release_unparsed(parts, out);
                break;
        case PARTS_CALL_END:
                if (parts_holds_only_blanks(parts))
                        parts_drop(parts);
                parts_release(parts, out, SMV_PART_TEXT, 0);
                break;
        default:
                miss_word(parts, out);
                parts_release(parts, out, kind_of(parts), 0);
                break;
        }
        parts->state = PARTS_TEXT;
}

void parts_count(struct parts *parts)
{
        if (parts->reasoned || parts->state == PARTS_REASONING) {
                parts->reasoning_tokens += 1 + parts->held_tokens;
                parts->held_tokens = 0;
        } else if (parts->state == PARTS_TEXT && parts->fresh && parts->held_count) {
                parts->held_tokens++;
        } else {
                parts->held_tokens = 0;
        }
        parts->reasoned = false;
}
