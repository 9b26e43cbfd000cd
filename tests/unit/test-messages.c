/*
 * How a conversation becomes a prompt: two jobs for the text worker, a charge between them, and a
 * client that may leave or cancel at any time.  The test is the text worker.
 */
#include "tests/unit/edge-text-worker.h"

#include "daemon/text/chat.h"

static const char chatml[] =
        "{% for m in messages %}{% if m.content is not string %}"
        "{{ raise_exception('content is no text') }}{% endif %}"
        "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

#define HELLO       "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
#define HELLO_BYTES (sizeof(HELLO) - 1)

struct talk {
        struct edge_fixture *fixture;
        struct chat *chat;
        struct client client;
};

static int set_up(void **state)
{
        struct talk *talk = calloc(1, sizeof(*talk));
        const struct chat_conf conf = { .plain = chatml };

        assert_int_equal(chat_open(&conf, &talk->chat), 0);
        assert_null(chat_refusal(talk->chat));
        talk->fixture = edge_fixture_new();
        talk->fixture->served.chat = talk->chat;
        *state = talk;
        return 0;
}

static int tear_down(void **state)
{
        struct talk *talk = *state;

        chat_close(talk->chat);
        free(talk);
        return 0;
}

static struct edge_fixture *begin(struct talk *talk)
{
        edge_fixture_start(talk->fixture, false);
        say_hello(talk->fixture, &talk->client);
        return talk->fixture;
}

static void end_talk(struct talk *talk)
{
        expect_nothing_held(talk->fixture, &talk->client);
        client_close(&talk->client);
        edge_fixture_close(talk->fixture);
}

/* One message, `pairs` more fields; a content of NULL is nil. */
static void ask_message(struct client *client, const char *op, uint32_t id, const char *content,
                        size_t bytes, bool tokenize)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, tokenize ? 4 : 3);
        put_head(&writer, op, id);
        wire_put_text(&writer, "messages");
        wire_put_array(&writer, 1);
        wire_put_map(&writer, 2);
        wire_put_text(&writer, "role");
        wire_put_text(&writer, "user");
        wire_put_text(&writer, "content");
        if (content)
                wire_put_bytes(&writer, content, bytes);
        else
                wire_put_array(&writer, 0);
        if (tokenize) {
                wire_put_text(&writer, "tokenize");
                wire_put_bool(&writer, true);
        }
        wire_end(&writer);
        send_all(client, &frame);
}

static struct request *begun(struct edge_fixture *fixture)
{
        ENGINE_UNTIL(fixture, fixture->live_count);
        return fixture->live[0];
}

static void renders_then_tokenizes_then_streams_a_conversation(void **state)
{
        struct talk *talk = *state;
        struct edge_fixture *fixture = begin(talk);
        struct request *request;

        ask_message(&talk->client, "generate", 5, "hello", 5, false);
        do_job(fixture);
        do_job(fixture);
        assert_int_equal(reply_code(&talk->client, 5), SMV_OK);
        request = begun(fixture);
        assert_int_equal(request->prompt_count, HELLO_BYTES); /* and no bos before it */
        for (size_t i = 0; i < HELLO_BYTES; i++)
                assert_int_equal(request->sequence.tokens[i], HELLO[i]);
        end(fixture, request, SMV_END_EOS, SMV_OK);
        expect_end(&talk->client, 5);
        end_talk(talk);
}

/* Checks the reply of op template to a conversation; tokens are compared if they were requested. */
static void expect_template(struct talk *talk, uint32_t id, const char *text, bool tokenize)
{
        msgpack_unpacked reply;
        const msgpack_object *said, *tokens;

        assert_true(next_reply(&talk->client, &reply));
        assert_int_equal(get_uint(&reply.data, "id"), id);
        said = get(&reply.data, "text");
        assert_non_null(said);
        assert_int_equal(said->type, MSGPACK_OBJECT_STR);
        assert_int_equal(said->via.str.size, strlen(text));
        assert_memory_equal(said->via.str.ptr, text, strlen(text));
        tokens = get(&reply.data, "tokens");
        assert_int_equal(!!tokens, tokenize);
        for (size_t i = 0; tokens && i < strlen(text); i++)
                assert_int_equal(tokens->via.array.ptr[i].via.u64, text[i]);
        drop_frame(&talk->client, &reply);
}

static void template_returns_the_text_and_on_request_its_ids(void **state)
{
        struct talk *talk = *state;
        struct edge_fixture *fixture = begin(talk);

        for (int tokenize = 0; tokenize < 2; tokenize++) {
                ask_message(&talk->client, "template", 6, "hello", 5, tokenize);
                do_job(fixture);
                do_job(fixture);
                expect_template(talk, 6, HELLO, tokenize);
        }
        end_talk(talk);
}

static void tokenizes_a_long_conversation_in_the_text_worker(void **state)
{
        struct talk *talk = *state;
        char *text = letters(20000), *wanted = malloc(20000 + 64);
        struct edge_fixture *fixture = begin(talk);

        snprintf(wanted, 20064, "<|im_start|>user\n%.*s<|im_end|>\n<|im_start|>assistant\n", 20000,
                 text);
        ask_message(&talk->client, "template", 6, text, 20000, true);
        for (int job = 0; job < 3; job++)
                do_job(fixture);
        expect_template(talk, 6, wanted, true);
        free(text);
        free(wanted);
        end_talk(talk);
}

static void reports_the_message_of_a_template_that_refuses_a_conversation(void **state)
{
        static const char *const ops[] = { "generate", "template" };
        struct talk *talk = *state;
        struct edge_fixture *fixture = begin(talk);

        for (size_t i = 0; i < 2; i++) {
                msgpack_unpacked reply;
                const msgpack_object *said;

                ask_message(&talk->client, ops[i], 7, NULL, 0, false);
                do_job(fixture);
                assert_true(next_reply(&talk->client, &reply));
                assert_int_equal(get_uint(&reply.data, "code"), SMV_BAD_VALUE);
                said = get(&reply.data, "message");
                assert_non_null(
                        memmem(said->via.str.ptr, said->via.str.size, "content is no text", 18));
                said = get(&reply.data, "field");
                assert_memory_equal(said->via.str.ptr, "messages", 8);
                drop_frame(&talk->client, &reply);
        }
        assert_int_equal(counter_get(&fixture->stats.requests_refused), 1);
        end_talk(talk);
}

static void refuses_messages_for_a_model_without_a_template(void **state)
{
        struct talk *talk = *state;
        struct edge_fixture *fixture = talk->fixture;

        fixture->served.chat = NULL;
        begin(talk);
        ask_message(&talk->client, "generate", 7, "hello", 5, false);
        assert_int_equal(reply_code(&talk->client, 7), SMV_NO_TEMPLATE);
        ask_message(&talk->client, "template", 8, "hello", 5, false);
        assert_int_equal(reply_code(&talk->client, 8), SMV_NO_TEMPLATE);
        end_talk(talk);
}

/* Before its first job, between the two, and after the second; asked with each operation. */
static void can_cancel_a_conversation_in_every_stage(void **state)
{
        static const char *const ops[] = { "generate", "template" };
        struct talk *talk = *state;
        struct edge_fixture *fixture = begin(talk);

        for (uint32_t i = 0; i < 4; i++) {
                struct text_job *job;

                ask_message(&talk->client, ops[i % 2], 10 + i, "hello", 5, true);
                if (i % 2 == 0) /* tokenize is no field of generate */
                        assert_int_equal(reply_code(&talk->client, 10 + i), SMV_BAD_FIELD);
                if (i % 2 == 0)
                        ask_message(&talk->client, ops[0], 10 + i, "hello", 5, false);
                if (i / 2)
                        do_job(fixture);
                job = take_job(fixture);
                ask_cancel(&talk->client, 20, 10 + i);
                assert_int_equal(reply_code(&talk->client, 20), SMV_OK);
                assert_true(text_job_is_cancelled(job));
                job->result = job->work(job);
                assert_int_equal(job->result, -ECANCELED);
                give_back(fixture, job);
                assert_int_equal(reply_code(&talk->client, 10 + i), SMV_CANCELLED);
        }
        end_talk(talk);
}

/* The job is done when the cancel comes: its result is thrown away. */
static void discards_a_rendered_conversation_that_was_cancelled(void **state)
{
        struct talk *talk = *state;
        struct edge_fixture *fixture = begin(talk);
        struct text_job *job;

        ask_message(&talk->client, "generate", 10, "hello", 5, false);
        job = take_job(fixture);
        job->result = job->work(job);
        assert_int_equal(job->result, 0);
        ask_cancel(&talk->client, 20, 10);
        assert_int_equal(reply_code(&talk->client, 20), SMV_OK);
        give_back(fixture, job);
        assert_int_equal(reply_code(&talk->client, 10), SMV_CANCELLED);
        end_talk(talk);
}

static void frees_a_conversation_if_its_client_disconnects_while_it_is_rendered(void **state)
{
        static const char *const ops[] = { "generate", "template" };
        struct talk *talk = *state;
        struct edge_fixture *fixture = begin(talk);

        for (uint32_t i = 0; i < 4; i++) {
                struct text_job *job;
                struct client other;

                say_hello(fixture, &other);
                ask_message(&other, ops[i % 2], 3, "hello", 5, false);
                if (i / 2)
                        do_job(fixture);
                job = take_job(fixture);
                client_close(&other);
                let_loop_turn(&talk->client);
                job->result = job->work(job);
                give_back(fixture, job);
                expect_nothing_held(fixture, &talk->client);
        }
        end_talk(talk);
}

static void charges_a_conversation_as_sent_and_then_as_rendered(void **state)
{
        struct talk *talk = *state;
        struct edge_fixture *fixture = begin(talk);
        uint64_t sent, became;

        ask_message(&talk->client, "template", 6, "hello", 5, true);
        let_loop_turn(&talk->client);
        sent = charge_of(&talk->client, "prompt_bytes");
        do_job(fixture);
        let_loop_turn(&talk->client);
        became = charge_of(&talk->client, "prompt_bytes");
        /* Its text, an id for each byte of that and one more, and two parts of 16 bytes. */
        assert_int_equal(became - sent, HELLO_BYTES + 4 * (HELLO_BYTES + 1) + 2 * 16);
        do_job(fixture);
        expect_template(talk, 6, HELLO, true);
        end_talk(talk);
}

static void refuses_a_rendered_conversation_over_the_byte_limit_of_its_user(void **state)
{
        static const char *const ops[] = { "generate", "template" };
        struct talk *talk = *state;
        char *text = letters(4000);
        struct edge_fixture *fixture = talk->fixture;

        fixture->config.uid_prompt_bytes = 12000; /* 4000 and its ids are more */
        begin(talk);
        for (size_t i = 0; i < 2; i++) {
                ask_message(&talk->client, ops[i], 6, text, 4000, false);
                do_job(fixture);
                /* without ids the charge is not too much */
                if (i)
                        do_job(fixture);
                assert_int_equal(reply_code(&talk->client, 6), i ? SMV_OK : SMV_QUOTA);
        }
        free(text);
        end_talk(talk);
}

static bool third_time(void *times)
{
        return ++*(unsigned *)times == 3;
}

/* Else it would be refused, for it would work longer than templates may. */
static void cancels_a_rendering_in_the_middle(void **state)
{
        const struct chat_conf conf = { .plain =
                                                "{% for a in range(9999) %}{% for b in range(9999) "
                                                "%}{% endfor %}{% endfor %}" };
        unsigned times = 0;
        struct conversation about = { .cancelled = third_time, .arg = &times };
        struct rendered rendered;
        struct tm now = { .tm_mday = 1 };
        struct arena *arena;
        struct chat *chat;
        char why[200];

        (void)state;
        assert_int_equal(arena_new(1 << 20, &arena), 0);
        assert_int_equal(chat_open(&conf, &chat), 0);
        about.messages = about.tools = about.vars = value_none();
        assert_int_equal(chat_render(chat, arena, &about, &now, &rendered, why, sizeof(why)),
                         -ECANCELED);
        assert_int_equal(times, 3);
        about.cancelled = NULL;
        assert_int_equal(chat_render(chat, arena, &about, &now, &rendered, why, sizeof(why)),
                         -EINVAL);
        assert_non_null(strstr(why, "fuel"));
        chat_close(chat);
        arena_free(arena);
}

static void shutdown_discards_a_rendered_conversation(void **state)
{
        struct talk *talk = *state;
        struct edge_fixture *fixture = begin(talk);
        struct text_job *job;

        ask_message(&talk->client, "generate", 10, "hello", 5, false);
        job = take_job(fixture);
        drain(fixture, 2);
        while (!text_job_is_cancelled(job))
                usleep(1000);
        job->result = 0; /* it was just done */
        job->result = job->work(job);
        give_back(fixture, job);
        assert_int_equal(reply_code(&talk->client, 10), SMV_SHUTTING_DOWN);
        client_close(&talk->client);
        assert_int_equal(edge_fixture_stop(fixture), 0);
}

#define TOLD(story) cmocka_unit_test_setup_teardown(story, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TOLD(renders_then_tokenizes_then_streams_a_conversation),
                TOLD(template_returns_the_text_and_on_request_its_ids),
                TOLD(tokenizes_a_long_conversation_in_the_text_worker),
                TOLD(reports_the_message_of_a_template_that_refuses_a_conversation),
                TOLD(refuses_messages_for_a_model_without_a_template),
                TOLD(can_cancel_a_conversation_in_every_stage),
                TOLD(discards_a_rendered_conversation_that_was_cancelled),
                TOLD(frees_a_conversation_if_its_client_disconnects_while_it_is_rendered),
                TOLD(charges_a_conversation_as_sent_and_then_as_rendered),
                TOLD(refuses_a_rendered_conversation_over_the_byte_limit_of_its_user),
                cmocka_unit_test(cancels_a_rendering_in_the_middle),
                TOLD(shutdown_discards_a_rendered_conversation),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
