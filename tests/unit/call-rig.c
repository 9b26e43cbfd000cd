#include "tests/unit/call-rig.h"

#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define NODES_MAX 65536u
#define WHY_BYTES 128u

/* ---- where the answer goes ---- */

static void take(struct call_rig *rig, const char *bytes, size_t count)
{
        assert_int_equal(bytes_add(&rig->said, bytes, count), 0);
        assert_int_equal(bytes_add(&rig->said, "", 1), 0);
        rig->said.count--;
}

static void on_reply(struct call *call, unsigned status, const char *type, const char *body,
                     size_t bytes)
{
        struct call_rig *rig = call->sink_arg;

        rig->status = status;
        snprintf(rig->type, sizeof(rig->type), "%s", type);
        take(rig, body, bytes);
}

static void on_begin(struct call *call, const char *type)
{
        struct call_rig *rig = call->sink_arg;

        rig->status = 200;
        snprintf(rig->type, sizeof(rig->type), "%s", type);
}

static void on_write(struct call *call, const char *bytes, size_t count)
{
        take(call->sink_arg, bytes, count);
}

static void on_finish(struct call *call)
{
        struct call_rig *rig = call->sink_arg;

        rig->finished = true;
}

static void on_cut(struct call *call)
{
        struct call_rig *rig = call->sink_arg;

        rig->cut = true;
}

static size_t on_queued(const struct call *call)
{
        (void)call;
        return 0;
}

static void on_header(struct call *call, const char *name, const char *value)
{
        struct call_rig *rig = call->sink_arg;

        snprintf(rig->header, sizeof(rig->header), "%s: %s", name, value);
}

static const struct call_sink memory = {
        .reply = on_reply,
        .begin = on_begin,
        .write = on_write,
        .finish = on_finish,
        .cut = on_cut,
        .queued = on_queued,
        .header = on_header,
};

/* ---- the call ---- */

void call_rig_start(struct call_rig *rig, const char *path, const char *body)
{
        *rig = (struct call_rig){ 0 };
        log_open(LOG_ERROR);
        assert_int_equal(loop_new(&rig->loop), 0);
        assert_int_equal(bridge_new(&(struct bridge_conf){ .loop = rig->loop,
                                                           .socket = "/nonexistent/socket",
                                                           .queue_bytes = 1 << 20,
                                                           .ping_ms = 1 },
                                    NULL, 0, &rig->bridge),
                         0);
        rig->call = call_new(rig->bridge, &memory, rig);
        assert_non_null(rig->call);
        rig->call->path = path;
        rig->call->dialect = failure_dialect(path);
        rig->call->link = links_get(rig->bridge->links, 1, NULL);
        assert_non_null(rig->call->link);
        rig->call->body = (struct text){ body, strlen(body) };
        snprintf(rig->call->request_id, sizeof(rig->call->request_id), "req_1");
        assert_true(call_read_json(rig->call));
}

void call_rig_end(struct call_rig *rig)
{
        call_end(rig->call);
        bridge_free(rig->bridge);
        loop_free(rig->loop);
        bytes_deinit(&rig->said);
}

/* ---- the run ---- */

void call_rig_accept(struct run *run, uint32_t prompt_tokens)
{
        run->begun = true;
        run->accepted.prompt_tokens = prompt_tokens;
        run->accepted.max_tokens = run->options.max_tokens;
        if (run->ops->begun)
                run->ops->begun(run);
}

static void pass(struct run *run, enum piece_kind kind, const char *text)
{
        struct run_choice *choice = &run->choices[0];
        struct run_piece piece = { .kind = kind,
                                   .text = { text, strlen(text) },
                                   .call = choice->last_call };

        if (run->ops->piece)
                run->ops->piece(run, 0, &piece);
}

static void add(struct bytes *to, const char *text)
{
        assert_int_equal(bytes_add(to, text, strlen(text)), 0);
}

void call_rig_text(struct run *run, const char *text)
{
        add(&run->choices[0].text, text);
        pass(run, PIECE_TEXT, text);
}

void call_rig_think(struct run *run, const char *text)
{
        add(&run->choices[0].reasoning, text);
        pass(run, PIECE_REASONING, text);
}

void call_rig_call(struct run *run, const char *name)
{
        struct run_choice *choice = &run->choices[0];
        struct run_call *call = arena_alloc(&run->call->arena, sizeof(*call));

        assert_non_null(call);
        call->index = choice->last_call ? choice->last_call->index + 1 : 0;
        snprintf(call->id, sizeof(call->id), "call_%u", call->index);
        add(&call->name, name);
        *(choice->last_call ? &choice->last_call->next : &choice->calls) = call;
        choice->last_call = call;
        choice->in_call = true;
        pass(run, PIECE_CALL, name);
}

void call_rig_arguments(struct run *run, const char *text)
{
        add(&run->choices[0].last_call->arguments, text);
        pass(run, PIECE_ARGUMENTS, text);
}

void call_rig_call_end(struct run *run)
{
        run->choices[0].in_call = false;
        pass(run, PIECE_CALL_END, "");
}

void call_rig_call_cut(struct run *run)
{
        run->choices[0].last_call->cut = true;
        call_rig_call_end(run);
}

void call_rig_finish(struct run *run, const struct smv_event *event)
{
        struct smv_event end = *event;

        end.kind = SMV_EVENT_END;
        run->ask.on_event(&run->ask, 0, &end);
}

/* ---- what was said ---- */

struct json_document *call_rig_json(const struct call_rig *rig)
{
        struct json_document *json = NULL;
        char why[WHY_BYTES];

        if (json_parse(rig->said.at, rig->said.count, NODES_MAX, &json, why, sizeof(why)))
                fail_msg("%s: %s", why, rig->said.at);
        return json;
}

uint32_t json_at(const struct json_document *json, const char *path)
{
        char name[64];
        uint32_t node = 0;

        for (const char *at = path; *at;) {
                size_t bytes = strcspn(at, ".");

                snprintf(name, sizeof(name), "%.*s", (int)bytes, at);
                if (json_kind(json, node) == JSON_ARRAY) {
                        unsigned long index = strtoul(name, NULL, 10);

                        node = json_first(json, node);
                        for (; index; index--)
                                node = json_next(json, node);
                } else {
                        node = json_member(json, node, name);
                }
                at += bytes + (at[bytes] == '.');
        }
        if (node == JSON_NONE)
                fail_msg("there is no %s", path);
        return node;
}

const char *json_text_at(const struct json_document *json, const char *path)
{
        const char *text = json_string(json, json_at(json, path), NULL);

        if (!text)
                fail_msg("%s is no text", path);
        return text;
}

uint64_t json_uint_at(const struct json_document *json, const char *path)
{
        uint64_t value = 0;

        if (!json_whole(json, json_at(json, path), &value))
                fail_msg("%s is no whole number", path);
        return value;
}

static void put_object(struct json_builder *to, const msgpack_object *object)
{
        switch (object->type) {
        case MSGPACK_OBJECT_ARRAY:
                json_put_array(to);
                for (uint32_t i = 0; i < object->via.array.size; i++)
                        put_object(to, &object->via.array.ptr[i]);
                json_put_array_end(to);
                break;
        case MSGPACK_OBJECT_MAP:
                json_put_object(to);
                for (uint32_t i = 0; i < object->via.map.size; i++) {
                        char key[64];

                        snprintf(key, sizeof(key), "%.*s",
                                 (int)object->via.map.ptr[i].key.via.str.size,
                                 object->via.map.ptr[i].key.via.str.ptr);
                        json_put_key(to, key);
                        put_object(to, &object->via.map.ptr[i].val);
                }
                json_put_object_end(to);
                break;
        case MSGPACK_OBJECT_STR:
                json_put_text(to, object->via.str.ptr, object->via.str.size);
                break;
        case MSGPACK_OBJECT_BOOLEAN:
                json_put_bool(to, object->via.boolean);
                break;
        case MSGPACK_OBJECT_POSITIVE_INTEGER:
                json_put_uint(to, object->via.u64);
                break;
        default:
                json_put_null(to);
        }
}

void call_rig_unpack(const struct smv_packed *packed, struct bytes *to)
{
        struct json_builder built = json_build(to);
        msgpack_unpacked unpacked;

        to->count = 0;
        msgpack_unpacked_init(&unpacked);
        assert_int_equal(msgpack_unpack_next(&unpacked, packed->bytes, packed->count, NULL),
                         MSGPACK_UNPACK_SUCCESS);
        put_object(&built, &unpacked.data);
        msgpack_unpacked_destroy(&unpacked);
        assert_int_equal(json_put_end(&built), 0);
}
