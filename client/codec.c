#include "client/codec.h"

#include <endian.h>
#include <errno.h>
#include <msgpack.h>
#include <samovar/protocol.h>
#include <string.h>

#include "json/writer.h"

#define ZONE_BYTES 8192u

int codec_init(struct codec *codec)
{
        codec->zone = msgpack_zone_new(ZONE_BYTES);
        return codec->zone ? 0 : -ENOMEM;
}

void codec_deinit(struct codec *codec)
{
        if (codec->zone)
                msgpack_zone_free(codec->zone);
        codec->zone = NULL;
}

/* The head of one element, and how many bytes and elements follow it. */
struct scan_head {
        size_t head;   /* bytes of the head itself, with its length word */
        uint64_t body; /* bytes of a str or bin */
        uint64_t elements;
        bool nests;
};

static uint64_t read_be(const unsigned char *bytes, unsigned width)
{
        uint64_t value = 0;

        for (unsigned i = 0; i < width; i++)
                value = value << 8 | bytes[i];
        return value;
}

static int scan_head(const unsigned char *b, size_t left, struct scan_head *ret_head)
{
        /* Bytes of the length or value for 0xc0 to 0xdf; 0xff: never used, or an ext type. */
        static const unsigned char widths[32] = {
                0, 0xff, 0, 0, 1,    2,    4,    0xff, 0xff, 0xff, 4, 8, 1, 2, 4, 8,
                1, 2,    4, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 1,    2, 4, 2, 4, 2, 4,
        };
        struct scan_head h = { .head = 1 };
        unsigned width;

        if (b[0] < 0x80 || b[0] >= 0xe0) {
                /* a small number */
        } else if (b[0] < 0xa0) {
                h.nests = true;
                h.elements = (b[0] & 0x0fu) * (b[0] < 0x90 ? 2u : 1u);
        } else if (b[0] < 0xc0) {
                h.body = b[0] & 0x1fu;
        } else {
                width = widths[b[0] - 0xc0];
                if (width == 0xff || width > left - 1)
                        return -EPROTO;
                h.head += width;
                if ((b[0] >= 0xc4 && b[0] <= 0xc6) || (b[0] >= 0xd9 && b[0] <= 0xdb)) {
                        h.body = read_be(b + 1, width);
                } else if (b[0] >= 0xdc) {
                        h.nests = true;
                        h.elements = read_be(b + 1, width) * (b[0] >= 0xde ? 2u : 1u);
                }
        }
        *ret_head = h;
        return 0;
}

/* 0 if the bytes are exactly one complete value, nested at most depth_max levels; else -EPROTO. */
static int scan_value(const char *body, size_t count, unsigned depth_max)
{
        const unsigned char *b = (const unsigned char *)body;
        uint64_t waiting[SMV_NESTING_MAX]; /* elements that must still come, per level */
        unsigned depth = 0;
        size_t at = 0;
        struct scan_head h;

        do {
                if (at == count || scan_head(b + at, count - at, &h) < 0)
                        return -EPROTO;
                at += h.head;
                /* An element has at least one byte, so there cannot be more elements than bytes. */
                if (h.body > count - at || h.elements > count - at)
                        return -EPROTO;
                at += h.body;

                if (depth)
                        waiting[depth - 1]--;
                if (h.nests) {
                        if (depth == depth_max)
                                return -EPROTO;
                        waiting[depth++] = h.elements;
                }
                while (depth && !waiting[depth - 1])
                        depth--;
        } while (depth);

        return at == count ? 0 : -EPROTO;
}

/* 0 if the bytes are exactly one complete map within the limits; else -EPROTO. */
static int scan(const char *body, size_t count)
{
        const unsigned char *b = (const unsigned char *)body;

        if (!count || !((b[0] & 0xf0) == 0x80 || b[0] == 0xde || b[0] == 0xdf))
                return -EPROTO;
        return scan_value(body, count, SMV_NESTING_MAX);
}

static const msgpack_object *get(const struct codec_frame *frame, const char *name)
{
        const msgpack_object_map *map = &frame->map->via.map;
        size_t bytes = strlen(name);

        for (uint32_t i = 0; i < map->size; i++) {
                const msgpack_object *key = &map->ptr[i].key;

                if (key->type == MSGPACK_OBJECT_STR && key->via.str.size == bytes &&
                    !memcmp(key->via.str.ptr, name, bytes))
                        return &map->ptr[i].val;
        }
        return NULL;
}

int codec_decode(struct codec *codec, const char *body, size_t count, struct codec_frame *ret_frame)
{
        struct codec_frame frame = { 0 };
        const msgpack_object *value;
        msgpack_object *map;
        size_t off = 0;
        int r;

        r = scan(body, count);
        if (r)
                return r;

        msgpack_zone_clear(codec->zone);
        map = msgpack_zone_malloc(codec->zone, sizeof(*map));
        if (!map)
                return -ENOMEM;
        switch (msgpack_unpack(body, count, &off, codec->zone, map)) {
        case MSGPACK_UNPACK_SUCCESS:
                break;
        case MSGPACK_UNPACK_NOMEM_ERROR:
                return -ENOMEM;
        default:
                return -EPROTO;
        }
        frame.map = map;

        value = get(&frame, "records");
        if (value) {
                if (value->type != MSGPACK_OBJECT_BIN)
                        return -EPROTO;
                frame.records = value->via.bin.ptr;
                frame.records_bytes = value->via.bin.size;
                *ret_frame = frame;
                return 0;
        }

        value = get(&frame, "ok");
        frame.ok = value && value->type == MSGPACK_OBJECT_BOOLEAN && value->via.boolean;
        if (codec_get_uint(&frame, "id", &frame.id) < 0 && frame.ok)
                return -EPROTO;
        if (!frame.ok && codec_get_uint(&frame, "code", &frame.code) < 0)
                return -EPROTO;
        *ret_frame = frame;
        return 0;
}

int codec_get_uint(const struct codec_frame *frame, const char *name, uint64_t *ret_value)
{
        const msgpack_object *value = get(frame, name);

        if (!value || value->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
                return -EPROTO;
        *ret_value = value->via.u64;
        return 0;
}

int codec_get_float(const struct codec_frame *frame, const char *name, float *ret_value)
{
        const msgpack_object *value = get(frame, name);

        if (!value)
                return -EPROTO;
        if (value->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
                *ret_value = (float)value->via.u64;
        else if (value->type == MSGPACK_OBJECT_FLOAT32 || value->type == MSGPACK_OBJECT_FLOAT64)
                *ret_value = (float)value->via.f64;
        else
                return -EPROTO;
        return 0;
}

int codec_get_uints(const struct codec_frame *frame, const char *name, uint64_t *ret_values,
                    size_t count)
{
        const msgpack_object *value = get(frame, name);

        if (!value || value->type != MSGPACK_OBJECT_ARRAY || value->via.array.size != count)
                return -EPROTO;
        for (size_t i = 0; i < count; i++) {
                if (value->via.array.ptr[i].type != MSGPACK_OBJECT_POSITIVE_INTEGER)
                        return -EPROTO;
                ret_values[i] = value->via.array.ptr[i].via.u64;
        }
        return 0;
}

int codec_get_text(const struct codec_frame *frame, const char *name, struct codec_text *ret_text)
{
        const msgpack_object *value = get(frame, name);

        if (!value)
                return -EPROTO;
        if (value->type == MSGPACK_OBJECT_STR)
                *ret_text = (struct codec_text){ value->via.str.ptr, value->via.str.size };
        else if (value->type == MSGPACK_OBJECT_BIN)
                *ret_text = (struct codec_text){ value->via.bin.ptr, value->via.bin.size };
        else
                return -EPROTO;
        return 0;
}

int codec_get_segment(const struct codec_frame *frame, const char *kind, uint64_t *ret_fd,
                      uint64_t *ret_bytes)
{
        const msgpack_object *all = get(frame, "segments");
        struct codec_text text;

        if (!all || all->type != MSGPACK_OBJECT_ARRAY)
                return -EPROTO;
        for (uint32_t i = 0; i < all->via.array.size; i++) {
                const struct codec_frame one = { .map = &all->via.array.ptr[i] };

                if (one.map->type != MSGPACK_OBJECT_MAP || codec_get_text(&one, "kind", &text) < 0)
                        return -EPROTO;
                if (text.count != strlen(kind) || memcmp(text.bytes, kind, text.count))
                        continue;
                if (codec_get_uint(&one, "fd", ret_fd) < 0)
                        return -EPROTO;
                return codec_get_uint(&one, "bytes", ret_bytes);
        }
        return -EPROTO;
}

int codec_get_ids(const struct codec_frame *frame, const char *name, struct bytes *to)
{
        const msgpack_object *value = get(frame, name);
        uint32_t id;
        int r;

        if (!value || value->type != MSGPACK_OBJECT_ARRAY)
                return -EPROTO;

        to->count = 0;
        for (uint32_t i = 0; i < value->via.array.size; i++) {
                const msgpack_object *one = &value->via.array.ptr[i];

                if (one->type != MSGPACK_OBJECT_POSITIVE_INTEGER || one->via.u64 > UINT32_MAX)
                        return -EPROTO;
                id = (uint32_t)one->via.u64;
                r = bytes_add(to, &id, sizeof(id));
                if (r)
                        return r;
        }
        return 0;
}

int codec_get_pieces(const struct codec_frame *frame, struct bytes *to)
{
        const msgpack_object *pieces = get(frame, "pieces"), *kinds = get(frame, "kinds");

        if (!pieces || pieces->type != MSGPACK_OBJECT_ARRAY || !kinds ||
            kinds->type != MSGPACK_OBJECT_ARRAY || kinds->via.array.size != pieces->via.array.size)
                return -EPROTO;

        to->count = 0;
        for (uint32_t i = 0; i < pieces->via.array.size; i++) {
                const msgpack_object *bytes = &pieces->via.array.ptr[i];
                const msgpack_object *kind = &kinds->via.array.ptr[i];
                struct smv_piece piece;
                int r;

                if (bytes->type != MSGPACK_OBJECT_BIN ||
                    kind->type != MSGPACK_OBJECT_POSITIVE_INTEGER || kind->via.u64 > UINT32_MAX)
                        return -EPROTO;
                piece = (struct smv_piece){ bytes->via.bin.ptr, bytes->via.bin.size,
                                            (uint32_t)kind->via.u64 };
                r = bytes_add(to, &piece, sizeof(piece));
                if (r)
                        return r;
        }
        return 0;
}

int codec_get_model(const struct codec_frame *frame, size_t index, struct codec_frame *ret_model)
{
        const msgpack_object *all = get(frame, "models");

        if (!all || all->type != MSGPACK_OBJECT_ARRAY || index >= all->via.array.size)
                return -ENOENT;
        *ret_model = (struct codec_frame){ .map = &all->via.array.ptr[index] };
        return ret_model->map->type == MSGPACK_OBJECT_MAP ? 0 : -EPROTO;
}

bool codec_has(const struct codec_frame *frame, const char *name)
{
        return get(frame, name);
}

bool codec_get_flag(const struct codec_frame *frame, const char *name)
{
        const msgpack_object *value = get(frame, name);

        return value && value->type == MSGPACK_OBJECT_BOOLEAN && value->via.boolean;
}

/* A key in JSON is a string; in msgpack it may have any type. */
static void write_key(struct json_writer *json, const msgpack_object *key)
{
        char text[24];

        if (key->type == MSGPACK_OBJECT_STR) {
                json_write_text(json, key->via.str.ptr, key->via.str.size);
        } else if (key->type == MSGPACK_OBJECT_POSITIVE_INTEGER) {
                snprintf(text, sizeof(text), "%llu", (unsigned long long)key->via.u64);
                json_write_text(json, text, strlen(text));
        } else {
                json_write_raw(json, "\"?\"");
        }
}

/* Recursion is fine: scan() has limited the depth. */
static void write_value(struct json_writer *json, const msgpack_object *value)
{
        switch (value->type) {
        case MSGPACK_OBJECT_BOOLEAN:
                json_write_raw(json, value->via.boolean ? "true" : "false");
                break;
        case MSGPACK_OBJECT_POSITIVE_INTEGER:
                json_write_uint(json, value->via.u64);
                break;
        case MSGPACK_OBJECT_NEGATIVE_INTEGER:
                json_write_int(json, value->via.i64);
                break;
        case MSGPACK_OBJECT_FLOAT32:
        case MSGPACK_OBJECT_FLOAT64:
                json_write_float(json, value->via.f64);
                break;
        case MSGPACK_OBJECT_STR:
                json_write_text(json, value->via.str.ptr, value->via.str.size);
                break;
        case MSGPACK_OBJECT_BIN:
                json_write_text(json, value->via.bin.ptr, value->via.bin.size);
                break;
        case MSGPACK_OBJECT_ARRAY:
                json_write_raw(json, "[");
                for (uint32_t i = 0; i < value->via.array.size; i++) {
                        json_write_raw(json, i ? "," : "");
                        write_value(json, &value->via.array.ptr[i]);
                }
                json_write_raw(json, "]");
                break;
        case MSGPACK_OBJECT_MAP:
                json_write_raw(json, "{");
                for (uint32_t i = 0; i < value->via.map.size; i++) {
                        json_write_raw(json, i ? "," : "");
                        write_key(json, &value->via.map.ptr[i].key);
                        json_write_raw(json, ":");
                        write_value(json, &value->via.map.ptr[i].val);
                }
                json_write_raw(json, "}");
                break;
        default:
                json_write_raw(json, "null");
                break;
        }
}

int codec_get_json(const struct codec_frame *frame, const char *name, struct bytes *to)
{
        const msgpack_object *value = get(frame, name);
        struct json_writer json = { .to = to };

        if (!value || value->type != MSGPACK_OBJECT_MAP)
                return -EPROTO;
        to->count = 0;
        write_value(&json, value);
        return json_write_end(&json);
}

static int write_bytes(void *data, const char *bytes, size_t count)
{
        struct codec_writer *writer = data;

        if (!writer->result && count > writer->limit - (writer->to->count - writer->frame - 4))
                writer->result = -EMSGSIZE;
        if (!writer->result)
                writer->result = bytes_add(writer->to, bytes, count);
        return writer->result ? -1 : 0;
}

static msgpack_packer packer(struct codec_writer *writer)
{
        msgpack_packer pk;

        msgpack_packer_init(&pk, writer, write_bytes);
        return pk;
}

static msgpack_packer put_name(struct codec_writer *writer, const char *name)
{
        msgpack_packer pk = packer(writer);

        writer->pairs++;
        msgpack_pack_str_with_body(&pk, name, strlen(name));
        return pk;
}

/* The length and the number of pairs are known only at the end: leaves space for both words. */
void codec_begin(struct codec_writer *writer, struct bytes *to, size_t limit, const char *op,
                 uint32_t id)
{
        static const char head[] = { 0, 0, 0, 0, (char)0xde, 0, 0 };

        *writer = (struct codec_writer){ .to = to, .frame = to->count, .limit = limit };
        writer->result = bytes_add(to, head, sizeof(head));
        codec_put_text(writer, "op", op, strlen(op));
        codec_put_uint(writer, "id", id);
}

void codec_put_given(struct codec_writer *writer, const char *name, const char *text, size_t count)
{
        codec_put_text(writer, name, text, count ? count : strlen(text));
}

void codec_put_text(struct codec_writer *writer, const char *name, const char *text, size_t bytes)
{
        msgpack_packer pk = put_name(writer, name);

        msgpack_pack_str_with_body(&pk, text, bytes);
}

void codec_put_texts(struct codec_writer *writer, const char *name, const char *const *texts,
                     size_t count)
{
        msgpack_packer pk = put_name(writer, name);

        msgpack_pack_array(&pk, count);
        for (size_t i = 0; i < count && !writer->result; i++)
                msgpack_pack_str_with_body(&pk, texts[i], strlen(texts[i]));
}

void codec_put_ids(struct codec_writer *writer, const char *name, const uint32_t *ids, size_t count)
{
        msgpack_packer pk = put_name(writer, name);

        msgpack_pack_array(&pk, count);
        for (size_t i = 0; i < count && !writer->result; i++)
                msgpack_pack_uint32(&pk, ids[i]);
}

void codec_put_biases(struct codec_writer *writer, const char *name, const struct smv_bias *biases,
                      size_t count)
{
        msgpack_packer pk = put_name(writer, name);

        msgpack_pack_array(&pk, count);
        for (size_t i = 0; i < count && !writer->result; i++) {
                msgpack_pack_array(&pk, 2);
                msgpack_pack_uint32(&pk, biases[i].token);
                msgpack_pack_float(&pk, biases[i].bias);
        }
}

void codec_put_uint(struct codec_writer *writer, const char *name, uint64_t value)
{
        msgpack_packer pk = put_name(writer, name);

        msgpack_pack_uint64(&pk, value);
}

void codec_put_float(struct codec_writer *writer, const char *name, double value)
{
        msgpack_packer pk = put_name(writer, name);

        msgpack_pack_double(&pk, value);
}

void codec_put_bool(struct codec_writer *writer, const char *name, bool value)
{
        msgpack_packer pk = put_name(writer, name);

        if (value)
                msgpack_pack_true(&pk);
        else
                msgpack_pack_false(&pk);
}

static void put_pair(msgpack_packer *pk, const char *name, const char *text, size_t bytes)
{
        msgpack_pack_str_with_body(pk, name, strlen(name));
        msgpack_pack_str_with_body(pk, text, bytes);
}

void codec_put_messages(struct codec_writer *writer, const char *name,
                        const struct smv_message *messages, size_t count)
{
        msgpack_packer pk = put_name(writer, name);

        msgpack_pack_array(&pk, count);
        for (size_t i = 0; i < count && !writer->result; i++) {
                const struct smv_message *m = &messages[i];

                msgpack_pack_map(&pk, 2);
                put_pair(&pk, "role", m->role, strlen(m->role));
                put_pair(&pk, "content", m->content,
                         m->content_bytes ? m->content_bytes : strlen(m->content));
        }
}

bool codec_is_value(const struct smv_packed *packed)
{
        return !scan_value(packed->bytes, packed->count, SMV_NESTING_MAX - 1);
}

void codec_put_packed(struct codec_writer *writer, const char *name,
                      const struct smv_packed *packed)
{
        put_name(writer, name);
        write_bytes(writer, packed->bytes, packed->count);
}

void codec_abort(struct codec_writer *writer)
{
        writer->to->count = writer->frame;
}

int codec_end(struct codec_writer *writer)
{
        char *at;
        uint32_t length;
        uint16_t pairs = htobe16((uint16_t)writer->pairs);

        if (writer->result) {
                codec_abort(writer);
                return writer->result;
        }

        at = writer->to->at + writer->frame;
        length = htole32((uint32_t)(writer->to->count - writer->frame - 4));
        memcpy(at, &length, sizeof(length));
        memcpy(at + 5, &pairs, sizeof(pairs));
        return 0;
}
