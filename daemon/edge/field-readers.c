/*
 * How a value is read: it must have the type of the row and be in its range, or it is refused.  The
 * message shows a value that is a number, but never a text.  There is one exception: where a real
 * number is expected, an integer is accepted, because some encoders write 1.0 as 1.
 */
#include "daemon/edge/field-readers.h"
#include "daemon/edge/values.h"
#include "daemon/text/chat.h"
#include "json/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <samovar/ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const char *const kind_names[] = {
        [ITEM_NIL] = "nil",         [ITEM_BOOL] = "a bool",
        [ITEM_UINT] = "an integer", [ITEM_NEGATIVE] = "a negative integer",
        [ITEM_FLOAT] = "a float",   [ITEM_TEXT] = "a text",
        [ITEM_BIN] = "binary",      [ITEM_ARRAY] = "an array",
        [ITEM_MAP] = "a map",
};

/* Makes every refusal of a value; `how` continues the field's name. */
#define REFUSE(in, field, how, ...)                                                                \
        wire_refuse((in)->problem, SMV_BAD_VALUE, (in)->request->id, (field)->row.name, "%s " how, \
                    (field)->row.name, __VA_ARGS__)

static int refuse_kind(struct reading *in, const struct field *field, enum item_kind kind,
                       const char *wanted)
{
        return REFUSE(in, field, "is %s; it must be %s", kind_names[kind], wanted);
}

static void *target(struct reading *in, const struct field *field)
{
        return (char *)in->request + field->offset;
}

/* The count of a text or an array. */
static int check_count(struct reading *in, const struct field *field, uint32_t count,
                       const char *of)
{
        if (count >= field->row.low && count <= field->row.high)
                return 0;
        if (field->row.low == field->row.high)
                return REFUSE(in, field, "has %u %s; it must have %.0f", count, of, field->row.low);
        return REFUSE(in, field, "has %u %s; it may have from %.0f to %.0f", count, of,
                      field->row.low, field->row.high);
}

static int check_uint(struct reading *in, const struct field *field, const struct item *item)
{
        uint64_t high = field->row.high >= U64_LIMIT ? UINT64_MAX : (uint64_t)field->row.high;
        uint64_t low = (uint64_t)field->row.low;

        if (item->kind == ITEM_NEGATIVE)
                return REFUSE(in, field, "is %" PRId64 "; it may be from %" PRIu64 " to %" PRIu64,
                              item->negative, low, high);
        if (item->kind != ITEM_UINT)
                return refuse_kind(in, field, item->kind, "an integer");
        if (item->u < low || item->u > high)
                return REFUSE(in, field, "is %" PRIu64 "; it may be from %" PRIu64 " to %" PRIu64,
                              item->u, low, high);
        return 0;
}

int read_uint32(struct reading *in, const struct field *field, const struct item *item)
{
        int r = check_uint(in, field, item);

        if (r)
                return r;
        *(uint32_t *)target(in, field) = (uint32_t)item->u;
        return 0;
}

/* 0 is outside of the range, and allowed with another field: see check_max_tokens() in wire.c. */
int read_max_tokens(struct reading *in, const struct field *field, const struct item *item)
{
        if (item->kind == ITEM_UINT && !item->u) {
                *(uint32_t *)target(in, field) = 0;
                return 0;
        }
        return read_uint32(in, field, item);
}

int read_uint64(struct reading *in, const struct field *field, const struct item *item)
{
        int r = check_uint(in, field, item);

        if (r)
                return r;
        *(uint64_t *)target(in, field) = item->u;
        return 0;
}

/*
 * The range must hold for the number that was given, and for the float that is stored: 1e-60 is
 * above 0, but its float is not.  NaN is in no range.
 */
int read_float(struct reading *in, const struct field *field, const struct item *item)
{
        const struct wire_row *row = &field->row;
        double given;
        float kept;

        if (item->kind == ITEM_FLOAT)
                given = item->number;
        else if (item->kind == ITEM_UINT)
                given = (double)item->u;
        else if (item->kind == ITEM_NEGATIVE)
                given = (double)item->negative;
        else
                return refuse_kind(in, field, item->kind, "a number");

        /* The double is checked first: to convert 1e300 to float is undefined. */
        if (!(given >= row->low && given <= row->high) ||
            (kept = (float)given, row->above && !(kept > row->low)))
                return REFUSE(in, field, "is %.9g; it may be from %.9g%s to %.9g", given, row->low,
                              row->above ? " (not included)" : "", row->high);
        *(float *)target(in, field) = kept;
        return 0;
}

int read_bool(struct reading *in, const struct field *field, const struct item *item)
{
        if (item->kind != ITEM_BOOL)
                return refuse_kind(in, field, item->kind, "a bool");
        *(bool *)target(in, field) = item->u;
        return 0;
}

static int check_utf8(struct reading *in, const struct field *field, const struct item *item)
{
        size_t valid = utf8_valid(item->bytes, item->count);

        if (valid < item->count)
                return REFUSE(in, field, "is not valid UTF-8 at byte %zu", valid);
        return 0;
}

int read_text(struct reading *in, const struct field *field, const struct item *item)
{
        int r;

        if (item->kind != ITEM_TEXT)
                return refuse_kind(in, field, item->kind, "a text");
        r = check_count(in, field, item->count, "bytes");
        if (!r)
                r = check_utf8(in, field, item);
        if (r)
                return r;
        *(struct wire_text *)target(in, field) = (struct wire_text){ item->bytes, item->count };
        return 0;
}

static bool is_name_byte(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
}

int read_name(struct reading *in, const struct field *field, const struct item *item)
{
        int r = read_text(in, field, item);

        for (uint32_t i = 0; !r && i < item->count; i++)
                if (!is_name_byte(item->bytes[i]))
                        r = REFUSE(in, field,
                                   "has a character at byte %u that is none of a-z, A-Z, 0-9, '.', "
                                   "'_' and '-'",
                                   i);
        return r;
}

static bool same(const struct item *item, const char *word)
{
        return item->count == strlen(word) && !memcmp(item->bytes, word, item->count);
}

int read_op(struct reading *in, const struct field *field, const struct item *item)
{
        char all[192];
        size_t used = 0;

        if (item->kind != ITEM_TEXT)
                return refuse_kind(in, field, item->kind, "a text");
        for (uint32_t i = 0; i < WIRE_OP_N; i++)
                if (same(item, wire_op_name(i))) {
                        in->request->op = (enum wire_op)i;
                        return 0;
                }
        for (uint32_t i = 0; i < WIRE_OP_N && used < sizeof(all); i++)
                used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
                                         wire_op_name(i));
        return REFUSE(in, field, "must be one of %s", all);
}

/* Reads one of three words; *ret_number is its index. */
static int read_word(struct reading *in, const struct field *field, const struct item *item,
                     const char *const words[3], unsigned *ret_number)
{
        if (item->kind != ITEM_TEXT)
                return refuse_kind(in, field, item->kind, "a text");
        for (unsigned i = 0; i < 3; i++)
                if (same(item, words[i])) {
                        *ret_number = i;
                        return 0;
                }
        return REFUSE(in, field, "must be one of %s, %s, %s", words[0], words[1], words[2]);
}

int read_transport(struct reading *in, const struct field *field, const struct item *item)
{
        static const char *const words[] = { "socket", "ring", "auto" };

        return read_word(in, field, item, words, &in->request->transport);
}

int read_doorbell(struct reading *in, const struct field *field, const struct item *item)
{
        static const char *const words[] = { "kick", "futex", "none" };

        return read_word(in, field, item, words, &in->request->doorbell);
}

int read_priority(struct reading *in, const struct field *field, const struct item *item)
{
        static const char *const words[] = {
#define X(name, word) [WIRE_##name] = word,
                SMV_PRIORITIES(X)
#undef X
        };

        return read_word(in, field, item, words, &in->request->priority);
}

/* One of two words; *ret_second: it is the second one. */
static int read_either(struct reading *in, const struct field *field, const struct item *item,
                       const char *first, const char *second, bool *ret_second)
{
        if (item->kind != ITEM_TEXT)
                return refuse_kind(in, field, item->kind, "a text");
        if (!same(item, first) && !same(item, second))
                return REFUSE(in, field, "must be one of %s, %s", first, second);
        *ret_second = same(item, second);
        return 0;
}

int read_to(struct reading *in, const struct field *field, const struct item *item)
{
        bool group = false;
        int r = read_either(in, field, item, "all", "group", &group);

        in->request->to = group ? WIRE_TO_GROUP : WIRE_TO_ALL;
        return r;
}

int read_order(struct reading *in, const struct field *field, const struct item *item)
{
        bool last = false;
        int r = read_either(in, field, item, "temperature_first", "temperature_last", &last);

        in->request->order = last ? WIRE_TEMPERATURE_LAST : WIRE_TEMPERATURE_FIRST;
        return r;
}

int read_ask(struct reading *in, const struct field *field, const struct item *item)
{
        bool token = false;
        int r = read_either(in, field, item, "mask", "token", &token);

        in->request->ask = token ? SMV_ASK_TOKEN : SMV_ASK_MASK;
        return r;
}

int read_ask_late(struct reading *in, const struct field *field, const struct item *item)
{
        return read_either(in, field, item, "end", "draw", &in->request->late_draws);
}

int read_tool_choice(struct reading *in, const struct field *field, const struct item *item)
{
        static const char *const words[] = { [WIRE_TOOLS_AUTO] = "auto",
                                             [WIRE_TOOLS_NONE] = "none",
                                             [WIRE_TOOLS_REQUIRED] = "required" };

        if (item->kind != ITEM_TEXT)
                return refuse_kind(in, field, item->kind, "a text");
        for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++)
                if (same(item, words[i])) {
                        in->request->chat.tool_choice = i;
                        return 0;
                }
        return REFUSE(in, field, "must be one of %s, %s, %s", words[0], words[1], words[2]);
}

int read_ring_bytes(struct reading *in, const struct field *field, const struct item *item)
{
        int r = check_uint(in, field, item);

        if (r)
                return r;
        if (item->u & (item->u - 1))
                return REFUSE(in, field, "is %" PRIu64 "; it must be a power of two", item->u);
        in->request->ring_bytes = (uint32_t)item->u;
        return 0;
}

static int next_id(struct reading *in, const struct field *field, uint32_t index, uint32_t *ret_id)
{
        struct item item;

        item_next(&in->at, &item);
        if (item.kind == ITEM_NEGATIVE)
                return REFUSE(in, field, "has %" PRId64 " at index %u", item.negative, index);
        if (item.kind != ITEM_UINT)
                return REFUSE(in, field, "has %s at index %u; integers are wanted",
                              kind_names[item.kind], index);
        if (item.u > UINT32_MAX)
                return REFUSE(in, field, "has %" PRIu64 " at index %u; the largest is %u", item.u,
                              index, UINT32_MAX);
        *ret_id = (uint32_t)item.u;
        return 0;
}

/* The caller has checked `count`.  Which ids a model has is not known here. */
static int read_ids(struct reading *in, const struct field *field, uint32_t count,
                    uint32_t *ret_ids)
{
        for (uint32_t i = 0; i < count; i++) {
                int r = next_id(in, field, i, &ret_ids[i]);

                if (r)
                        return r;
        }
        return 0;
}

static int check_array(struct reading *in, const struct field *field, const struct item *item)
{
        if (item->kind != ITEM_ARRAY)
                return refuse_kind(in, field, item->kind, "an array");
        return check_count(in, field, item->count, "elements");
}

int read_tokens(struct reading *in, const struct field *field, const struct item *item)
{
        struct wire_request *request = in->request;
        int r = check_array(in, field, item);

        if (r)
                return r;
        /* An element has at least one byte, so this is at most four times the frame. */
        request->memory = malloc(item->count * sizeof(uint32_t));
        if (!request->memory)
                return error_raise(-ENOMEM);
        r = read_ids(in, field, item->count, request->memory);
        if (r)
                return r;
        request->tokens = request->memory;
        request->token_count = item->count;
        return 0;
}

int read_stop_tokens(struct reading *in, const struct field *field, const struct item *item)
{
        int r = check_array(in, field, item);

        if (!r)
                r = read_ids(in, field, item->count, in->request->stop_tokens);
        if (r)
                return r;
        in->request->stop_token_count = item->count;
        return 0;
}

int read_versions(struct reading *in, const struct field *field, const struct item *item)
{
        uint32_t range[2];
        int r = check_array(in, field, item);

        if (!r)
                r = read_ids(in, field, 2, range);
        if (r)
                return r;
        if (range[0] > range[1])
                return REFUSE(in, field, "are %u to %u; the lower comes first", range[0], range[1]);
        in->request->version_min = range[0];
        in->request->version_max = range[1];
        return 0;
}

/* Checks one text of an array. */
static int check_member(struct reading *in, const struct field *field, const struct item *item,
                        uint32_t index)
{
        if (item->kind != ITEM_TEXT)
                return REFUSE(in, field, "has %s at index %u; texts are wanted",
                              kind_names[item->kind], index);
        if (!item->count || item->count > field->row.member_max)
                return REFUSE(in, field, "has a text of %u bytes at index %u; it may have 1 to %u",
                              item->count, index, field->row.member_max);
        return check_utf8(in, field, item);
}

/*
 * The daemon has no features yet.  It ignores features that a client offers, because they are a
 * negotiation.
 */
int read_features(struct reading *in, const struct field *field, const struct item *item)
{
        int r = check_array(in, field, item);

        for (uint32_t i = 0; !r && i < item->count; i++) {
                struct item member;

                item_next(&in->at, &member);
                r = check_member(in, field, &member, i);
        }
        return r;
}

int read_stop(struct reading *in, const struct field *field, const struct item *item)
{
        bool alone = item->kind == ITEM_TEXT;
        uint32_t count = alone ? 1 : item->count;
        struct item member = *item;
        int r = 0;

        if (!alone && item->kind != ITEM_ARRAY)
                return refuse_kind(in, field, item->kind, "a text or an array of texts");
        if (!alone)
                r = check_count(in, field, count, "elements");
        for (uint32_t i = 0; !r && i < count; i++) {
                if (!alone)
                        item_next(&in->at, &member);
                r = check_member(in, field, &member, i);
                if (!r)
                        in->request->stop[i] = (struct wire_text){ member.bytes, member.count };
        }
        if (r)
                return r;
        in->request->stop_count = count;
        return 0;
}

/* ---- values that stay in the frame as they are ---- */

/* Checks one value at the cursor; `index` is its place, for the message. */
static int check_value(struct reading *in, const struct field *field, uint32_t index)
{
        const char *wrong = values_check(&in->at, &in->request->chat.value_count);

        if (wrong)
                return REFUSE(in, field, "has %s at index %u", wrong, index);
        if (in->request->chat.value_count > SMV_VALUES_MAX)
                return REFUSE(in, field, "has more than %u values", SMV_VALUES_MAX);
        return 0;
}

static void keep_values(struct reading *in, const struct field *field, const uint8_t *from,
                        uint32_t count)
{
        *(struct wire_values *)target(in, field) =
                (struct wire_values){ from, (uint32_t)(in->at.at - from), count };
}

/*
 * Finds the value of a key in the map at the cursor, whose head was read: ITEM_NIL if it is not
 * there.
 */
static struct item look_up(struct cursor at, uint32_t pairs, const char *key)
{
        struct item item = { .kind = ITEM_NIL };

        while (pairs--) {
                item_next(&at, &item);
                if (item.kind == ITEM_TEXT && same(&item, key)) {
                        item_next(&at, &item);
                        return item;
                }
                item_skip(&at, 1);
        }
        return (struct item){ .kind = ITEM_NIL };
}

static int read_bias(struct reading *in, const struct field *field, uint32_t index)
{
        struct item item;
        uint32_t id;
        double bias;
        int r;

        item_next(&in->at, &item);
        if (item.kind != ITEM_ARRAY || item.count != 2)
                return REFUSE(in, field, "has no array of an id and a number at index %u", index);
        r = next_id(in, field, index, &id);
        if (r)
                return r;
        item_next(&in->at, &item);
        if (item.kind != ITEM_FLOAT && item.kind != ITEM_UINT && item.kind != ITEM_NEGATIVE)
                return REFUSE(in, field, "has %s for a number at index %u", kind_names[item.kind],
                              index);
        bias = item.kind == ITEM_FLOAT  ? item.number
               : item.kind == ITEM_UINT ? (double)item.u
                                        : (double)item.negative;
        if (!(bias >= -SMV_BIAS_MAX && bias <= SMV_BIAS_MAX))
                return REFUSE(in, field, "has %.9g at index %u; it may be from %d to %d", bias,
                              index, -SMV_BIAS_MAX, SMV_BIAS_MAX);
        return 0;
}

int read_biases(struct reading *in, const struct field *field, const struct item *item)
{
        const uint8_t *from = in->at.at;
        int r = check_array(in, field, item);

        for (uint32_t i = 0; !r && i < item->count; i++)
                r = read_bias(in, field, i);
        if (!r)
                keep_values(in, field, from, item->count);
        return r;
}

int read_id_list(struct reading *in, const struct field *field, const struct item *item)
{
        const uint8_t *from = in->at.at;
        int r = check_array(in, field, item);
        uint32_t id;

        for (uint32_t i = 0; !r && i < item->count; i++)
                r = next_id(in, field, i, &id);
        if (!r)
                keep_values(in, field, from, item->count);
        return r;
}

int read_texts(struct reading *in, const struct field *field, const struct item *item)
{
        const uint8_t *from = in->at.at;
        int r = check_array(in, field, item);

        for (uint32_t i = 0; !r && i < item->count; i++) {
                struct item member;

                item_next(&in->at, &member);
                r = check_member(in, field, &member, i);
        }
        if (!r)
                keep_values(in, field, from, item->count);
        return r;
}

/* Reads an array of maps; each of the messages must have a role. */
int read_maps(struct reading *in, const struct field *field, const struct item *item)
{
        const uint8_t *from = in->at.at;
        int r = check_array(in, field, item);

        for (uint32_t i = 0; !r && i < item->count; i++) {
                struct cursor after = in->at;
                struct item map;

                item_next(&after, &map);
                if (map.kind != ITEM_MAP)
                        return REFUSE(in, field, "has %s at index %u; maps are wanted",
                                      kind_names[map.kind], i);
                r = check_value(in, field, i);
                if (!r && field->row.field == WIRE_F_MESSAGES &&
                    look_up(after, map.count, "role").kind != ITEM_TEXT)
                        r = REFUSE(in, field, "has no role, which is a text, at index %u", i);
        }
        if (!r)
                keep_values(in, field, from, item->count);
        return r;
}

int read_vars(struct reading *in, const struct field *field, const struct item *item)
{
        const uint8_t *from = in->at.at;
        int r = 0;

        if (item->kind != ITEM_MAP)
                return refuse_kind(in, field, item->kind, "a map");
        for (uint32_t i = 0; !r && i < item->count; i++) {
                struct item key;

                item_next(&in->at, &key);
                if (key.kind != ITEM_TEXT)
                        return REFUSE(in, field, "has a key that is not a text at index %u", i);
                r = check_utf8(in, field, &key);
                if (!r && chat_sets_variable(key.bytes, key.count))
                        r = REFUSE(in, field, "may not set %.*s", (int)key.count, key.bytes);
                if (!r)
                        r = check_value(in, field, i);
        }
        if (!r)
                keep_values(in, field, from, item->count);
        return r;
}
