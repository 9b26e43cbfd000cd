/*
 * We read with our own code (msgpack-reader.c, fields.c) and not with msgpack-c.  Its tree takes 24
 * bytes for an id that took one byte, so a frame of 8 MiB would need 192 MiB for a moment, per
 * peer.  Items borrow from the frame; only an array of ids is copied. msgpack-c writes what we
 * send.  The tests and the fuzzer compare our reader with it.
 */
#include "daemon/edge/wire.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <msgpack.h>

#include "daemon/edge/fields.h"
#include "daemon/edge/wire-checks.h"
#include "json/utf8.h"
#include "base/error.h"

#define PEEK_BYTES 4096u
/* As in llama.cpp; so are dry_base and dry_allowed. */
#define XTC_LEAST    0.1f
#define MIROSTAT_ETA 0.1f

static const char *const code_names[] = {
#define X(number, name, word, text) [SMV_##name] = word,
        SMV_ERRORS(X)
#undef X
};

const struct wire_row *wire_row(uint32_t index)
{
        return index < WIRE_FIELD_N ? &field_at(index)->row : NULL;
}

int wire_frame(const uint8_t *bytes, size_t count, size_t frame_max, size_t *ret_bytes,
               const uint8_t **ret_body, struct wire_problem *ret_problem)
{
        uint32_t length;

        if (count < 4) {
                *ret_bytes = 4;
                return WIRE_E_PARTIAL;
        }
        length = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                 (uint32_t)bytes[3] << 24;
        if (length > frame_max) {
                wire_refuse(ret_problem, SMV_BAD_FRAME, 0, NULL,
                            "a frame of %u bytes is announced; at most %zu are taken", length,
                            frame_max);
                ret_problem->fatal = true;
                return WIRE_E_REFUSED;
        }
        *ret_bytes = (size_t)length + 4;
        if (count < *ret_bytes)
                return WIRE_E_PARTIAL;
        *ret_body = bytes + 4;
        return 0;
}

static const char *scan(const uint8_t *body, size_t count)
{
        struct cursor cursor = { .at = body };
        const char *wrong;

        if (!count || ((body[0] & 0xf0) != 0x80 && body[0] != 0xde && body[0] != 0xdf))
                return "the frame is not a map";
        cursor.end = body + count;
        wrong = item_skip(&cursor, 0);
        if (!wrong && cursor.at != cursor.end)
                wrong = "bytes follow the map";
        return wrong;
}

bool wire_scan(const uint8_t *body, size_t count)
{
        return !scan(body, count);
}

/* ---- requests ---- */

/*
 * Finds the value of the first pair with this key: true, and the cursor stands at the value.  Also
 * works on bytes that were not scanned, up to the place that is broken.
 */
static bool find_value(const uint8_t *body, size_t count, const char *name, struct cursor *ret_at)
{
        struct cursor cursor = { body, body + count };
        struct item map, key;

        if (item_next(&cursor, &map) || map.kind != ITEM_MAP)
                return false;
        for (uint32_t i = 0; i < map.count; i++) {
                struct cursor before = cursor;

                if (item_skip(&cursor, 1))
                        return false;
                item_next(&before, &key);
                if (key.kind == ITEM_TEXT && key.count == strlen(name) &&
                    !memcmp(key.bytes, name, key.count)) {
                        *ret_at = cursor;
                        return true;
                }
                if (item_skip(&cursor, 1))
                        return false;
        }
        return false;
}

/* Also works on bytes that were not scanned.  0: there is no id, or it is not valid. */
static uint32_t find_id(const uint8_t *body, size_t count)
{
        struct cursor at;
        struct item id;

        if (!count || !find_value(body, count, "id", &at) || item_next(&at, &id) ||
            id.kind != ITEM_UINT || id.u > UINT32_MAX)
                return 0;
        return (uint32_t)id.u;
}

uint32_t wire_peek_id(const uint8_t *body, size_t count)
{
        return find_id(body, count < PEEK_BYTES ? count : PEEK_BYTES);
}

static int refuse_frame(const uint8_t *body, size_t count, const char *wrong,
                        struct wire_problem *ret_problem)
{
        wire_refuse(ret_problem, SMV_BAD_FRAME, find_id(body, count), NULL, "%s", wrong);
        ret_problem->fatal = true;
        return WIRE_E_REFUSED;
}

/*
 * Reads id or op before all other fields.  Refusals carry the id, and the op decides which fields
 * are allowed.
 */
static int read_first(struct reading *in, const uint8_t *body, size_t count, enum wire_field number)
{
        const struct field *field = field_at(number);
        struct item item;

        if (!find_value(body, count, field->row.name, &in->at))
                return wire_refuse_missing(in, number);
        item_next(&in->at, &item);
        return field->read(in, field, &item);
}

static int refuse_key(struct reading *in, const struct item *key)
{
        uint32_t id = in->request->id;
        char shown[32];

        wire_shown(shown, key->bytes, key->count);
        if (field_reserved(key->bytes, key->count))
                return wire_refuse(in->problem, SMV_RESERVED, id, shown,
                                   "%s is reserved for a later version", shown);
        return wire_refuse(in->problem, SMV_BAD_FIELD, id, shown, "no request has a field %s",
                           shown);
}

/* Reads one pair and moves the cursor past it. */
static int read_pair(struct reading *in, struct cursor *cursor)
{
        struct wire_request *request = in->request;
        const struct field *field;
        struct item key, value;
        int r;

        in->at = *cursor;
        item_next(&in->at, &key);
        if (key.kind != ITEM_TEXT)
                return wire_refuse(in->problem, SMV_BAD_FIELD, request->id, NULL,
                                   "a key is not a text");
        field = field_find(key.bytes, key.count);
        if (!field)
                return refuse_key(in, &key);
        if (!(field->row.ops & 1u << request->op))
                return wire_refuse(in->problem, SMV_BAD_FIELD, request->id, field->row.name,
                                   "%s has no field %s", wire_op_name(request->op),
                                   field->row.name);
        if (wire_has(request, field->row.field))
                return wire_refuse(in->problem, SMV_BAD_FIELD, request->id, field->row.name,
                                   "%s is given twice", field->row.name);
        wire_give(request, field->row.field);

        item_next(&in->at, &value);
        r = field->read(in, field, &value);
        *cursor = in->at; /* the reader of the field has read the value to its end */
        return error_pass(r);
}

static int read_all(struct reading *in, const uint8_t *body, size_t count)
{
        struct cursor cursor = { body, body + count };
        struct item map;
        int r;

        r = read_first(in, body, count, WIRE_F_ID);
        if (!r)
                r = read_first(in, body, count, WIRE_F_OP);
        item_next(&cursor, &map);
        for (uint32_t i = 0; !r && i < map.count; i++)
                r = read_pair(in, &cursor);
        if (!r)
                r = wire_check(in);
        return error_pass(r);
}

int wire_decode(const uint8_t *body, size_t count, struct wire_request *ret_request,
                struct wire_problem *ret_problem)
{
        struct wire_request request = { .priority = WIRE_NORMAL,
                                        .xtc_least = XTC_LEAST,
                                        .temperature_exponent = 1,
                                        .mirostat_eta = MIROSTAT_ETA,
                                        .ask_ms = SMV_ASK_MS,
                                        .penalties = { .repetition = 1,
                                                       .repeat_window = SMV_WINDOW_MAX,
                                                       .dry_base = 1.75f,
                                                       .dry_allowed = 2,
                                                       .dry_window = SMV_WINDOW_MAX },
                                        .chat.add_generation_prompt = true };
        struct reading in = { .request = &request, .problem = ret_problem };
        const char *wrong = scan(body, count);
        int r;

        if (wrong)
                return refuse_frame(body, count, wrong, ret_problem);
        r = read_all(&in, body, count);
        if (r) {
                wire_release(&request);
                ret_problem->id = request.id; /* for the reply, whatever failed */
                return error_pass(r);
        }
        *ret_request = request;
        return 0;
}

void wire_release(struct wire_request *request)
{
        free(request->memory);
        request->memory = NULL;
        buffer_deinit(&request->frame);
        request->tokens = NULL;
        request->token_count = 0;
}

/* ---- writing ---- */

static int on_bytes(void *arg, const char *bytes, size_t count)
{
        struct wire_writer *writer = arg;

        if (!writer->result)
                writer->result = buffer_append(writer->to, bytes, count);
        return writer->result ? -1 : 0;
}

/*
 * A reply is mostly short texts and small numbers, whose heads have one byte.  If the buffer has
 * room for them, they are written directly.
 */
static bool has_room(const struct wire_writer *writer, size_t count)
{
        return !writer->result && count <= writer->to->room - writer->to->end;
}

static msgpack_packer packer(struct wire_writer *writer)
{
        return (msgpack_packer){ .data = writer, .callback = on_bytes };
}

void wire_begin(struct wire_writer *writer, struct buffer *to)
{
        *writer = (struct wire_writer){ .to = to, .frame = buffer_count(to) };
        on_bytes(writer, "\0\0\0\0", 4);
}

void wire_put_map(struct wire_writer *writer, uint32_t pairs)
{
        msgpack_packer p = packer(writer);

        msgpack_pack_map(&p, pairs);
}

void wire_put_array(struct wire_writer *writer, uint32_t count)
{
        msgpack_packer p = packer(writer);

        msgpack_pack_array(&p, count);
}

void wire_put_text(struct wire_writer *writer, const char *text)
{
        wire_put_bytes(writer, text, strlen(text));
}

void wire_put_bytes(struct wire_writer *writer, const char *bytes, size_t count)
{
        struct buffer *to = writer->to;
        msgpack_packer p = packer(writer);

        if (count && count < 32 && has_room(writer, 1 + count)) {
                to->bytes[to->end] = (uint8_t)(0xa0 | count);
                memcpy(to->bytes + to->end + 1, bytes, count);
                to->end += 1 + count;
                return;
        }
        msgpack_pack_str(&p, count);
        msgpack_pack_str_body(&p, bytes, count);
}

void wire_put_bin(struct wire_writer *writer, const void *bytes, size_t count)
{
        msgpack_packer p = packer(writer);

        msgpack_pack_bin(&p, count);
        msgpack_pack_bin_body(&p, bytes, count);
}

void wire_put_uint(struct wire_writer *writer, uint64_t value)
{
        struct buffer *to = writer->to;
        msgpack_packer p = packer(writer);

        if (value < 128 && has_room(writer, 1)) {
                to->bytes[to->end++] = (uint8_t)value;
                return;
        }
        msgpack_pack_uint64(&p, value);
}

void wire_put_float(struct wire_writer *writer, double value)
{
        msgpack_packer p = packer(writer);

        msgpack_pack_double(&p, value);
}

void wire_put_bool(struct wire_writer *writer, bool value)
{
        msgpack_packer p = packer(writer);

        if (value)
                msgpack_pack_true(&p);
        else
                msgpack_pack_false(&p);
}

int wire_end(struct wire_writer *writer)
{
        struct buffer *to = writer->to;
        size_t length;
        uint8_t *word;

        if (writer->result) {
                to->end = to->start + writer->frame;
                return error_pass(writer->result);
        }
        length = buffer_count(to) - writer->frame - 4;
        assert(length <= UINT32_MAX);
        word = to->bytes + to->start + writer->frame;
        for (uint32_t i = 0; i < 4; i++)
                word[i] = (uint8_t)(length >> 8 * i);
        return 0;
}

void wire_put_ok(struct wire_writer *writer, uint32_t id, uint32_t more)
{
        wire_put_map(writer, 2 + more);
        wire_put_text(writer, "id");
        wire_put_uint(writer, id);
        wire_put_text(writer, "ok");
        wire_put_bool(writer, true);
}

int wire_error(struct buffer *to, const struct wire_problem *problem)
{
        /* may be cut in the middle of a character */
        size_t message_bytes = strlen(problem->message);
        struct wire_writer writer;

        wire_begin(&writer, to);
        wire_put_map(&writer, 4 + !!problem->field[0] + !!problem->retry_ms);
        wire_put_text(&writer, "id");
        wire_put_uint(&writer, problem->id);
        wire_put_text(&writer, "error");
        wire_put_text(&writer, code_names[problem->code]);
        wire_put_text(&writer, "code");
        wire_put_uint(&writer, problem->code);
        wire_put_text(&writer, "message");
        wire_put_bytes(&writer, problem->message, utf8_valid(problem->message, message_bytes));
        if (problem->field[0]) {
                wire_put_text(&writer, "field");
                wire_put_text(&writer, problem->field);
        }
        if (problem->retry_ms) {
                wire_put_text(&writer, "retry_ms");
                wire_put_uint(&writer, problem->retry_ms);
        }
        return error_pass(wire_end(&writer));
}
