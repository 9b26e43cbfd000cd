/*
 * Parts: answers that are divided into text, reasoning and calls.  The parts are those of the text
 * that the same request gets undivided, over each transport, however the stream is read.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/chat-model.h"
#include "tests/e2e/honest-client.h"
#include "tests/e2e/packed-messages.h"
#include "tests/e2e/told.h"

/* The shipped model, which calls tools. */
static void start_teaspoon(struct daemon_fixture *fixture)
{
        char model[256];

        snprintf(model, sizeof(model), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        START_DAEMON(fixture, "--model", model, "--threads", "1", MANY_CONNECTS);
}

static struct smv_client *connect_over(const struct daemon_fixture *fixture,
                                       enum smv_transport transport)
{
        const struct smv_connect where = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                           .transport = transport,
                                           .ring_bytes = SMV_RING_BYTES_MIN };
        struct smv_client *client;

        assert_int_equal(smv_connect(&where, &client), 0);
        return client;
}

/* ---- a question with a tool ---- */

static void pack_tools(msgpack_sbuffer *to)
{
        msgpack_packer packer;

        msgpack_sbuffer_init(to);
        msgpack_packer_init(&packer, to, msgpack_sbuffer_write);
        msgpack_pack_array(&packer, 1);
        msgpack_pack_map(&packer, 2);
        pack_pair(&packer, "type", "function");
        pack_text(&packer, "function");
        msgpack_pack_map(&packer, 3);
        pack_pair(&packer, "name", "weather");
        pack_pair(&packer, "description", "the weather of a place");
        pack_text(&packer, "parameters");
        msgpack_pack_map(&packer, 2);
        pack_pair(&packer, "type", "object");
        pack_text(&packer, "properties");
        msgpack_pack_map(&packer, 1);
        pack_text(&packer, "place");
        msgpack_pack_map(&packer, 1);
        pack_pair(&packer, "type", "string");
}

struct question {
        msgpack_sbuffer messages, tools;
        struct smv_generate ask;
};

static struct question make_question(const char *text)
{
        struct question question = { .ask = { SMV_SIZE(smv_generate), .seed = 7,
                                              .max_tokens = 120 } };

        pack_messages(&question.messages, text);
        pack_tools(&question.tools);
        question.ask.set = SMV_SET_TEMPERATURE | SMV_SET_SEED;
        question.ask.packed_messages =
                (struct smv_packed){ question.messages.data, question.messages.size };
        question.ask.packed_tools = (struct smv_packed){ question.tools.data, question.tools.size };
        return question;
}

static void free_question(struct question *question)
{
        msgpack_sbuffer_destroy(&question->messages);
        msgpack_sbuffer_destroy(&question->tools);
}

/* ---- answers ---- */

static void ask_all(struct smv_client *client, const struct smv_generate *ask, bool parts,
                    struct told *told)
{
        struct smv_generate options = *ask;
        uint32_t first;

        options.parts = parts;
        assert_int_equal(smv_generate(client, &options, &first), 0);
        read_all(client, first, told, options.n ? options.n : 1);
}

/* The parts that a text has, by itself. */
static struct told divided(const char *const templates[2], bool calls, const char *text)
{
        struct dialect_conf conf = { .templates = { templates[0], templates[1] } };
        struct told told = { 0 };
        struct tokenizer *tokenizer;
        struct dialect dialect;

        assert_int_equal(tokenizer_open_bytes(300, &tokenizer), 0);
        conf.tokenizer = tokenizer;
        dialect_open(&conf, &dialect);
        rig_begin(&told.rig, &dialect, calls, false);
        rig_feed(&told.rig, text, strlen(text));
        rig_end(&told.rig);
        tokenizer_close(tokenizer);
        return told;
}

static const char *const hermes[2] = { "<tool_call>", NULL };

static void assert_divided(const struct told *parted, const struct told *plain, bool calls)
{
        struct told wanted = divided(hermes, calls, plain->text ? plain->text : "");

        assert_int_equal(parted->token_count, plain->token_count);
        assert_memory_equal(parted->tokens, plain->tokens,
                            plain->token_count * sizeof(*plain->tokens));
        assert_string_equal(parted->rig.shown, wanted.rig.shown);
        assert_int_equal(parted->end.calls, wanted.rig.parts.call_count);
        assert_int_equal(parted->end.parts_flags, wanted.rig.parts.flags);
        free_told(&wanted);
}

/* ---- tests ---- */

static void an_offered_tool_is_called_in_parts(void **state)
{
        static const enum smv_transport transports[] = { SMV_TRANSPORT_SOCKET, SMV_TRANSPORT_RING };
        struct daemon_fixture *fixture = *state;
        struct question question = make_question("How warm is it in Tula?");
        struct smv_model model = { SMV_SIZE(smv_model) };

        start_teaspoon(fixture);
        for (size_t i = 0; i < 2; i++) {
                struct smv_client *client = connect_over(fixture, transports[i]);
                struct told plain = { 0 }, parted = { 0 };

                assert_int_equal(smv_model(client, 0, &model), 0);
                assert_string_equal(model.tool_dialect, "hermes");
                assert_string_equal(model.format, "gguf");
                assert_int_equal(model.layers, 4);
                assert_int_equal(model.gpu_layers, 0);
                ask_all(client, &question.ask, false, &plain);
                assert_string_equal(plain.rig.shown, "");
                ask_all(client, &question.ask, true, &parted);
                assert_string_equal(parted.rig.shown, "C0\"weather\"A0\"{\"place\": \"Tula\"}\"E0");
                assert_int_equal(parted.end.calls, 1);
                assert_int_equal(parted.end.parts_flags, 0);
                assert_int_equal(parted.end.reasoning_tokens, 0);
                assert_divided(&parted, &plain, true);
                free_told(&plain);
                free_told(&parted);
                smv_close(client);
        }
        free_question(&question);
        fixture_stop(fixture);
}

/* Without tools, what looks like a call is text. */
static void a_call_is_text_if_no_tool_was_offered(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct question question = make_question("How warm is it in Tula?");
        struct told plain = { 0 }, parted = { 0 };
        struct smv_generate ask = question.ask;
        struct smv_client *client;
        const char *prompt;
        size_t bytes;

        start_teaspoon(fixture);
        client = connect_over(fixture, SMV_TRANSPORT_AUTO);
        /* The same prompt, given as ids: the daemon does not know what is in it. */
        assert_int_equal(
                smv_template(client, &question.ask, &prompt, &bytes, &ask.tokens, &ask.token_count),
                0);
        ask.tokens = memcpy(malloc(ask.token_count * sizeof(*ask.tokens)), ask.tokens,
                            ask.token_count * sizeof(*ask.tokens));
        ask.packed_messages = ask.packed_tools = (struct smv_packed){ 0 };
        ask_all(client, &ask, false, &plain);
        ask_all(client, &ask, true, &parted);
        assert_non_null(strstr(parted.rig.shown, "T\"<tool_call>"));
        assert_int_equal(parted.end.calls, 0);
        assert_divided(&parted, &plain, false);
        free_told(&plain);
        free_told(&parted);
        free((void *)(uintptr_t)ask.tokens);
        smv_close(client);
        free_question(&question);
        fixture_stop(fixture);
}

/* Many answers, cut at the end or not, that were drawn at random: some are no calls. */
static void each_of_many_samples_is_divided(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct question question = make_question("How warm is it in Tula and in Lima?");
        uint32_t calls = 0, odd = 0;
        struct smv_client *client;

        start_teaspoon(fixture);
        client = connect_over(fixture, SMV_TRANSPORT_RING);
        question.ask.n = 8;
        for (uint32_t i = 0; i < 6; i++) {
                struct told plain[8] = { 0 }, parted[8] = { 0 };

                question.ask.seed = i + 1;
                question.ask.temperature = 0.5F * (float)i;
                question.ask.max_tokens = 10 + 10 * i;
                question.ask.ignore_eos = i == 5;
                ask_all(client, &question.ask, false, plain);
                ask_all(client, &question.ask, true, parted);
                for (uint32_t k = 0; k < 8; k++) {
                        assert_divided(&parted[k], &plain[k], true);
                        calls += parted[k].end.calls;
                        odd += parted[k].end.parts_flags != 0;
                        free_told(&plain[k]);
                        free_told(&parted[k]);
                }
        }
        printf("# %u calls, %u answers with odd ones\n", calls, odd);
        assert_true(calls && odd);
        smv_close(client);
        free_question(&question);
        fixture_stop(fixture);
}

/* The END cuts the call, at a stop string or at the limit of tokens. */
static void a_call_is_cut_where_the_stream_ends(void **state)
{
        static const char *const stops[] = { "ula" };
        struct daemon_fixture *fixture = *state;
        struct question question = make_question("How warm is it in Tula?");
        struct told told = { 0 };
        struct smv_client *client;

        start_teaspoon(fixture);
        client = connect_over(fixture, SMV_TRANSPORT_AUTO);
        question.ask.stops = stops;
        question.ask.stop_count = 1;
        ask_all(client, &question.ask, true, &told);
        assert_string_equal(told.rig.shown, "C0\"weather\"A0\"{\"place\": \"T\"E0/");
        assert_int_equal(told.end.reason, SMV_END_STOP);
        assert_int_equal(told.end.parts_flags, SMV_PARTS_CUT);
        free_told(&told);
        question.ask.stop_count = 0;
        question.ask.max_tokens = 2;
        ask_all(client, &question.ask, true, &told);
        assert_int_equal(told.end.reason, SMV_END_LENGTH);
        assert_int_equal(told.end.parts_flags, SMV_PARTS_CUT | SMV_PARTS_UNPARSED);
        assert_int_equal(strncmp(told.rig.shown, "T\"<tool_call>", 13), 0);
        free_told(&told);
        smv_close(client);
        free_question(&question);
        fixture_stop(fixture);
}

/* A handle remembers that its messages came with tools, and so do its forks. */
static void a_handle_remembers_its_tools(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct question question = make_question("How warm is it in Tula?");
        struct smv_generate ask = question.ask, plain = question.ask;
        struct told told = { 0 };
        struct smv_client *client;
        uint64_t fork;
        size_t length;

        start_teaspoon(fixture);
        client = connect_over(fixture, SMV_TRANSPORT_AUTO);
        ask.packed_messages = ask.packed_tools = (struct smv_packed){ 0 };
        assert_int_equal(smv_handle_open(client, &question.ask, &ask.handle, &length), 0);
        assert_int_equal(smv_handle_fork(client, ask.handle, 1, &fork), 0);
        ask_all(client, &ask, true, &told);
        assert_string_equal(told.rig.shown, "C0\"weather\"A0\"{\"place\": \"Tula\"}\"E0");
        free_told(&told);
        ask.handle = fork;
        ask_all(client, &ask, true, &told);
        assert_int_equal(told.end.calls, 1);
        free_told(&told);

        plain.packed_tools = (struct smv_packed){ 0 };
        assert_int_equal(smv_handle_open(client, &plain, &ask.handle, &length), 0);
        ask_all(client, &ask, true, &told);
        assert_int_equal(told.end.calls, 0);
        free_told(&told);
        smv_close(client);
        free_question(&question);
        fixture_stop(fixture);
}

/* ---- streams that go on elsewhere ---- */

/* After `most` events the reader comes back over another connection. */
static void read_in_two(const struct daemon_fixture *fixture, const struct smv_generate *ask,
                        uint32_t most, struct told *told)
{
        struct smv_client *client = connect_over(fixture, SMV_TRANSPORT_RING);
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t next = 0, stream;
        uint64_t resume_id;

        assert_int_equal(smv_generate(client, ask, &stream), 0);
        resume_id = smv_resume_id(client, stream);
        for (uint32_t i = 0; i < most && event.kind != SMV_EVENT_END; i++) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                tell(told, &event);
                next = event.sequence + 1;
        }
        smv_close(client);
        client = connect_over(fixture, SMV_TRANSPORT_SOCKET);
        if (event.kind != SMV_EVENT_END) {
                assert_int_equal(smv_attach(client, resume_id, next, &stream), 0);
                read_all(client, stream, told, 1);
        }
        assert_int_equal(smv_drop(client, resume_id), 0);
        smv_close(client);
}

static void a_stream_resumes_in_a_call(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct question question = make_question("How warm is it in Tula?");

        start_teaspoon(fixture);
        question.ask.keep_ms = 60000;
        question.ask.parts = 1;
        for (uint32_t most = 0; most < 24; most++) {
                struct told told = { 0 };

                read_in_two(fixture, &question.ask, most, &told);
                assert_string_equal(told.rig.shown, "C0\"weather\"A0\"{\"place\": \"Tula\"}\"E0");
                assert_int_equal(told.end.calls, 1);
                free_told(&told);
        }
        free_question(&question);
        fixture_stop(fixture);
}

/* One event for each token of a stream, to be told again. */
struct event_log {
        struct smv_event events[2048];
        uint32_t count;
};

static void *copied(const void *from, size_t bytes)
{
        void *to = malloc(bytes + 1);

        assert_non_null(to);
        return bytes ? memcpy(to, from, bytes) : to;
}

static void log_event(struct event_log *log, const struct smv_event *event)
{
        struct smv_event *to = &log->events[log->count++];

        assert_true(log->count <= 2048);
        *to = *event;
        to->tokens = copied(event->tokens, event->token_count * sizeof(*event->tokens));
        to->text = copied(event->text, event->text_bytes);
        to->parts = copied(event->parts, event->part_count * sizeof(*event->parts));
}

static void free_log(struct event_log *log)
{
        for (uint32_t i = 0; i < log->count; i++) {
                free((void *)(uintptr_t)log->events[i].tokens);
                free((void *)(uintptr_t)log->events[i].text);
                free((void *)(uintptr_t)log->events[i].parts);
        }
        log->count = 0;
}

/* The parent up to where the fork began, then the fork. */
static void check_fork(struct smv_client *client, const struct event_log *parent,
                       const struct event_log *fork)
{
        struct told told = { 0 }, plain = { 0 };
        const char *text;
        size_t bytes;

        for (uint32_t i = 0; i < parent->count; i++)
                if (parent->events[i].kind == SMV_EVENT_TOKENS &&
                    parent->events[i].position < fork->events[0].position)
                        tell(&told, &parent->events[i]);
        for (uint32_t i = 0; i < fork->count; i++)
                tell(&told, &fork->events[i]);
        assert_int_equal(smv_detokenize(client, NULL, told.tokens, told.token_count, &text, &bytes),
                         0);
        plain.text = copied(text, bytes);
        plain.text[bytes] = '\0';
        plain.tokens = copied(told.tokens, told.token_count * sizeof(*told.tokens));
        plain.token_count = told.token_count;
        assert_divided(&told, &plain, true);
        free_told(&told);
        free_told(&plain);
}

static void forks_go_on_where_their_parent_is(void **state)
{
        enum { FORKS = 6 };
        struct daemon_fixture *fixture = *state;
        struct question question = make_question("How warm is it in Tula?");
        static struct event_log logs[1 + FORKS];
        struct smv_event event = { SMV_SIZE(smv_event) };
        const struct smv_fork how = { SMV_SIZE(smv_fork), .count = FORKS, .max_tokens = 100,
                                      .temperature = 1.5F };
        uint32_t parent, forks[FORKS], left = 1 + FORKS;
        struct smv_client *client;

        start_teaspoon(fixture);
        client = connect_over(fixture, SMV_TRANSPORT_RING);
        question.ask.parts = 1;
        question.ask.ignore_eos = 1;
        /* More than the ring has space for: it cannot end before it is read. */
        question.ask.max_tokens = 1500;
        assert_int_equal(smv_generate(client, &question.ask, &parent), 0);
        for (uint32_t calls = 0; !calls;) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                for (size_t i = 0; i < event.part_count; i++)
                        calls += event.parts[i].kind == SMV_PART_CALL;
                log_event(&logs[0], &event);
        }
        assert_int_equal(smv_fork(client, parent, &how, forks), 0);
        while (left) {
                uint32_t which = 0;

                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                for (uint32_t i = 0; i < FORKS; i++)
                        which = event.stream == forks[i] ? 1 + i : which;
                log_event(&logs[which], &event);
                left -= event.kind == SMV_EVENT_END;
        }
        printf("# forked at token %u\n", logs[1].events[0].position - logs[0].events[0].position);
        for (uint32_t i = 1; i <= FORKS; i++)
                check_fork(client, &logs[0], &logs[i]);
        for (uint32_t i = 0; i <= FORKS; i++)
                free_log(&logs[i]);
        smv_close(client);
        free_question(&question);
        fixture_stop(fixture);
}

/* The stream has the only slot, and cannot end while nobody reads its ring. */
static void a_preempted_stream_has_the_same_parts(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct question question = make_question("How warm is it in Tula?");
        struct smv_generate other = question.ask;
        struct told plain = { 0 }, parted = { 0 }, quick = { 0 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_client *slow, *client;
        char model[256];
        uint32_t stream;

        snprintf(model, sizeof(model), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        START_DAEMON(fixture, "--model", model, "--threads", "1", "--max-seqs", "1");
        slow = connect_over(fixture, SMV_TRANSPORT_RING);
        client = connect_over(fixture, SMV_TRANSPORT_RING);
        question.ask.ignore_eos = 1;
        question.ask.temperature = 1;
        question.ask.max_tokens = 1500;
        question.ask.priority = SMV_PRIORITY_BACKGROUND;
        ask_all(client, &question.ask, false, &plain);

        question.ask.parts = 1;
        assert_int_equal(smv_generate(slow, &question.ask, &stream), 0);
        assert_int_equal(smv_next(slow, &event, TIMEOUT_MS), 1);
        tell(&parted, &event);
        other.priority = SMV_PRIORITY_INTERACTIVE;
        ask_all(client, &other, true, &quick);
        assert_int_equal(quick.end.calls, 1);
        read_all(slow, stream, &parted, 1);
        assert_true(parted.end.preemptions > 0);
        assert_divided(&parted, &plain, true);
        free_told(&plain);
        free_told(&parted);
        free_told(&quick);
        smv_close(slow);
        smv_close(client);
        free_question(&question);
        fixture_stop(fixture);
}

/* ---- reasoning ---- */

#define THINKING                                                                                   \
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + "                 \
        "'<|im_end|>\\n' }}{% endfor %}"                                                           \
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}"                 \
        "{% if done %}{{ '\\n</think>\\n\\n' }}{% endif %}{% endif %}"

/* The template may open reasoning behind the last message, and close it at once. */
static void a_prompt_may_open_reasoning(void **state)
{
        static const struct smv_message messages[] = { { .role = "user", .content = "<think>" } };
        struct smv_generate ask = { SMV_SIZE(smv_generate), .messages = messages,
                                    .message_count = 1,     .max_tokens = 40,
                                    .ignore_eos = 1,        .parts = 1 };
        struct daemon_fixture *fixture = *state;
        struct told told = { 0 };
        struct smv_client *client;

        start_chat_model(fixture, THINKING);
        client = connect_over(fixture, SMV_TRANSPORT_AUTO);
        ask_all(client, &ask, true, &told);
        assert_int_equal(told.rig.shown[0], 'R');
        assert_null(strstr(told.rig.shown, "T\""));
        assert_int_equal(told.end.reasoning_tokens, 40);
        free_told(&told);

        ask.packed_vars = (struct smv_packed){ "\x81\xa4"
                                               "done\xc3",
                                               7 };
        ask_all(client, &ask, true, &told);
        assert_int_equal(told.rig.shown[0], 'T');
        assert_int_equal(told.end.reasoning_tokens, 0);
        free_told(&told);
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- frames ---- */

/* Two streams come in turns, in many frames: each event has the logprobs and parts of its own. */
static void no_frame_ends_before_the_tokens_of_its_parts(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate ask = {
                SMV_SIZE(smv_generate), .prompt = "Once", .max_tokens = 1900, .ignore_eos = 1,
                .keep_ms = 60000,       .logprobs = 20,   .parts = 1
        };
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t streams[2], tokens = 0, left = 2;
        struct smv_client *client;
        uint64_t resume_ids[2];

        START_QUICK_DAEMON(fixture, "--threads", "1", "--uid-resumable-bytes", "1G");
        client = connect_over(fixture, SMV_TRANSPORT_SOCKET);
        for (uint32_t i = 0; i < 2; i++) {
                ask.seed = 5 + i;
                assert_int_equal(smv_generate(client, &ask, &streams[i]), 0);
                resume_ids[i] = smv_resume_id(client, streams[i]);
        }
        smv_close(client);
        fixture_await_status(fixture, "resumable.ended", 2);
        client = connect_over(fixture, SMV_TRANSPORT_SOCKET);
        for (uint32_t i = 0; i < 2; i++)
                assert_int_equal(smv_ask_attach(client, resume_ids[i], 0, &streams[i]), 0);
        while (left) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                left -= event.kind == SMV_EVENT_END;
                if (event.kind != SMV_EVENT_TOKENS)
                        continue;
                assert_non_null(event.parts);
                assert_non_null(event.logprobs);
                assert_int_equal(event.logprobs[0].token, event.tokens[0]);
                tokens++;
        }
        assert_int_equal(event.reason, SMV_END_LENGTH);
        assert_int_equal(tokens, 3800);
        for (uint32_t i = 0; i < 2; i++)
                assert_int_equal(smv_drop(client, resume_ids[i]), 0);
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "SOURCES", "TOY_MODEL", "TOY_MODEL_MAKER",
                                              NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(an_offered_tool_is_called_in_parts),
                DAEMON_TEST(a_call_is_text_if_no_tool_was_offered),
                DAEMON_TEST(each_of_many_samples_is_divided),
                DAEMON_TEST(a_call_is_cut_where_the_stream_ends),
                DAEMON_TEST(a_handle_remembers_its_tools),
                DAEMON_TEST(a_stream_resumes_in_a_call),
                DAEMON_TEST(forks_go_on_where_their_parent_is),
                DAEMON_TEST(a_preempted_stream_has_the_same_parts),
                DAEMON_TEST(a_prompt_may_open_reasoning),
                DAEMON_TEST(no_frame_ends_before_the_tokens_of_its_parts),
        };

        require_env_paths(needed);
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
