/* Requests that do not wait, as tests ask them, and what a scripted daemon says to them. */
#ifndef TESTS_UNIT_CLIENT_ASKS_RIG_H
#define TESTS_UNIT_CLIENT_ASKS_RIG_H

#include "tests/unit/client-ring-rig.h"

static const struct smv_generate once = { SMV_SIZE(smv_generate), .prompt = "Once" };

static const struct smv_message hi = { .role = "user", .content = "hi" };
static const struct smv_generate chat = { SMV_SIZE(smv_generate), .messages = &hi,
                                          .message_count = 1 };
static const struct smv_generate kept = { SMV_SIZE(smv_generate), .prompt = "Once",
                                          .keep_ms = 1000 };

static inline uint32_t ask_generate(struct smv_client *client)
{
        uint32_t stream = 0;

        assert_int_equal(smv_ask_generate(client, &once, &stream), 0);
        return stream;
}

static inline uint32_t ask_tokenize(struct smv_client *client)
{
        uint32_t request = 0;

        assert_int_equal(smv_ask_tokenize(client, NULL, "x", 1, &request), 0);
        return request;
}

static inline uint32_t ask_status(struct smv_client *client)
{
        uint32_t request = 0;

        assert_int_equal(smv_ask_status(client, &request), 0);
        return request;
}

static inline struct smv_event expect_reply(struct smv_client *client, uint32_t request,
                                            enum smv_code code)
{
        struct smv_event e = next(client);

        assert_int_equal(e.kind, SMV_EVENT_REPLY);
        assert_int_equal(e.stream, request);
        assert_int_equal(e.code, code);
        if (code)
                assert_int_equal(problem(client).code, code);
        return e;
}

/* The words of the scripted daemon. */

static inline void say_tokens(struct script *s, uint32_t id, uint32_t token)
{
        ok_begin(s, id, 1);
        text(s, "tokens");
        byte(s, 0x91);
        number(s, token);
        frame_end(s);
}

static inline void say_status(struct script *s, uint32_t id)
{
        ok_begin(s, id, 1);
        text(s, "status");
        byte(s, 0x81);
        text(s, "pid");
        number(s, id);
        frame_end(s);
}

static inline void say_text_and_tokens(struct script *s, uint32_t id)
{
        ok_begin(s, id, 2);
        text(s, "text");
        text(s, "<|user|>hi");
        text(s, "tokens");
        byte(s, 0x92);
        number(s, 7);
        number(s, 8);
        frame_end(s);
}

static inline void say_kept(struct script *s, uint32_t id)
{
        ok_begin(s, id, 1);
        text(s, "resume_id");
        number(s, 77);
        frame_end(s);
}

#endif
