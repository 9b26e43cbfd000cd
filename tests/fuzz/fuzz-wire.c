/*
 * Hostile bytes for the decoder.  Beyond not crashing, it must hold that
 *
 *      bytes that the scan takes are one msgpack map to msgpack-c too, to the last byte,
 *      and bytes that msgpack-c takes are taken, unless they pass a limit of ours;
 *      the decoder takes only bytes that the scan takes;
 *      every value of an accepted request is in the range of its row, and
 *      its texts lie inside the body;
 *      an accepted conversation can be made into values;
 *      an accepted request, written again and read again, is the same;
 *      a refusal has a code, a message and a field that can be shown, and its
 *      reply is a frame that the scan takes.
 *
 * With -DREPLAY it is a test: every file of the directory $FUZZ_CORPUS, or of the one beside this
 * source, goes through the same function.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <msgpack.h>

#include "daemon/edge/values.h"
#include "daemon/edge/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count);

/* Has our scan a reason of its own to refuse this?  msgpack-c's depth is bounded already. */
static bool past_our_limits(const msgpack_object *object, uint32_t depth)
{
        bool past = false;

        if (object->type == MSGPACK_OBJECT_EXT)
                return true;
        if (object->type == MSGPACK_OBJECT_ARRAY) {
                past = depth > SMV_NESTING_MAX;
                for (uint32_t i = 0; !past && i < object->via.array.size; i++)
                        past = past_our_limits(&object->via.array.ptr[i], depth + 1);
        } else if (object->type == MSGPACK_OBJECT_MAP) {
                past = depth > SMV_NESTING_MAX || object->via.map.size > SMV_KEYS_MAX;
                for (uint32_t i = 0; !past && i < object->via.map.size; i++)
                        past = past_our_limits(&object->via.map.ptr[i].key, depth + 1) ||
                               past_our_limits(&object->via.map.ptr[i].val, depth + 1);
        }
        return past;
}

/* msgpack-c allocates memory for as many elements as a head declares.  So it gets bytes that we
 * refuse only if no head can declare more than 65535. */
static void compare_with_msgpack(const uint8_t *data, size_t count, bool taken)
{
        msgpack_unpacked unpacked;
        size_t end = 0;
        bool whole;

        if (!taken && (memchr(data, 0xdd, count) || memchr(data, 0xdf, count)))
                return;
        msgpack_unpacked_init(&unpacked);
        whole = msgpack_unpack_next(&unpacked, (const char *)data, count, &end) ==
                        MSGPACK_UNPACK_SUCCESS &&
                end == count && unpacked.data.type == MSGPACK_OBJECT_MAP;
        if (taken)
                assert(whole);
        else
                assert(!whole || past_our_limits(&unpacked.data, 1));
        msgpack_unpacked_destroy(&unpacked);
}

static void check_range(const struct wire_request *request, enum wire_field field, double value)
{
        const struct wire_row *row = wire_row(field);

        assert(row->field == field);
        if (!wire_has(request, field))
                return;
        assert(row->ops & 1u << request->op);
        assert(value >= row->low && value <= row->high && !(row->above && value == row->low));
}

static void check_inside(const struct wire_text *text, const uint8_t *data, size_t count)
{
        const uint8_t *at = (const uint8_t *)text->bytes;

        if (text->bytes)
                assert(at >= data && text->count <= count &&
                       (size_t)(at - data) <= count - text->count);
}

static void check_request(const struct wire_request *request, const uint8_t *data, size_t count)
{
        check_range(request, WIRE_F_ID, request->id);
        check_range(request, WIRE_F_MODEL, request->model.count);
        check_range(request, WIRE_F_PROMPT, request->prompt.count);
        check_range(request, WIRE_F_TOKENS, request->token_count);
        /* 0 is right beside prompt_logprobs, and nowhere else. */
        if (request->max_tokens || !wire_has(request, WIRE_F_PROMPT_LOGPROBS))
                check_range(request, WIRE_F_MAX_TOKENS, request->max_tokens);
        check_range(request, WIRE_F_TEMPERATURE, request->temperature);
        check_range(request, WIRE_F_TOP_K, request->top_k);
        check_range(request, WIRE_F_TOP_P, request->top_p);
        check_range(request, WIRE_F_MIN_P, request->min_p);
        check_range(request, WIRE_F_N_SIGMA, request->n_sigma);
        check_range(request, WIRE_F_TYPICAL, request->typical);
        check_range(request, WIRE_F_XTC_CHANCE, request->xtc_chance);
        check_range(request, WIRE_F_XTC_LEAST, request->xtc_least);
        check_range(request, WIRE_F_TEMPERATURE_RANGE, request->temperature_range);
        check_range(request, WIRE_F_TEMPERATURE_EXPONENT, request->temperature_exponent);
        check_range(request, WIRE_F_PRESENCE_PENALTY, request->penalties.presence);
        check_range(request, WIRE_F_FREQUENCY_PENALTY, request->penalties.frequency);
        check_range(request, WIRE_F_REPETITION_PENALTY, request->penalties.repetition);
        check_range(request, WIRE_F_DRY_MULTIPLIER, request->penalties.dry_multiplier);
        check_range(request, WIRE_F_DRY_BASE, request->penalties.dry_base);
        check_range(request, WIRE_F_REPEAT_WINDOW, request->penalties.repeat_window);
        check_range(request, WIRE_F_DRY_ALLOWED, request->penalties.dry_allowed);
        check_range(request, WIRE_F_DRY_WINDOW, request->penalties.dry_window);
        check_range(request, WIRE_F_NO_REPEAT_NGRAM, request->penalties.no_repeat_ngram);
        check_range(request, WIRE_F_MIN_TOKENS, request->penalties.min_tokens);
        check_range(request, WIRE_F_LOGIT_BIAS, request->logit_bias.count);
        check_range(request, WIRE_F_DRY_BREAKERS, request->dry_breakers.count);
        check_range(request, WIRE_F_ALLOWED_TOKENS, request->allowed_tokens.count);
        check_range(request, WIRE_F_BANNED_TOKENS, request->banned_tokens.count);
        check_range(request, WIRE_F_BANNED_TEXTS, request->banned_texts.count);
        check_range(request, WIRE_F_CONSTRAINT, request->constraint.count);
        check_range(request, WIRE_F_MIROSTAT_TAU, request->mirostat_tau);
        check_range(request, WIRE_F_MIROSTAT_ETA, request->mirostat_eta);
        check_range(request, WIRE_F_ASK_SLOTS, request->ask_slots);
        check_range(request, WIRE_F_ASK_MS, request->ask_ms);
        check_range(request, WIRE_F_ROW_TOP, request->row_top);
        check_range(request, WIRE_F_REASONING_MAX, request->reasoning_max);
        check_range(request, WIRE_F_REASONING_END, request->reasoning_end.count);
        check_range(request, WIRE_F_PREDICTION, request->prediction.count);
        check_range(request, WIRE_F_DRAFT_TOKENS, request->draft_tokens);
        check_range(request, WIRE_F_STOP, request->stop_count);
        check_range(request, WIRE_F_STOP_TOKENS, request->stop_token_count);
        check_range(request, WIRE_F_STREAM, request->stream);
        check_range(request, WIRE_F_DEADLINE_MS, request->deadline_ms);
        check_range(request, WIRE_F_COUNT, request->count);
        check_range(request, WIRE_F_N, request->n);
        check_range(request, WIRE_F_LOGPROBS, request->logprobs);
        check_range(request, WIRE_F_RING_BYTES, request->ring_bytes);
        check_range(request, WIRE_F_PIN_MS, request->pin_ms);
        check_range(request, WIRE_F_KEEP_MS, request->keep_ms);
        check_range(request, WIRE_F_LENGTH, request->length);
        check_range(request, WIRE_F_GROUP, request->group);
        check_range(request, WIRE_F_TEXT, request->text.count);
        check_range(request, WIRE_F_MESSAGES, request->chat.messages.count);
        check_range(request, WIRE_F_TOOLS, request->chat.tools.count);
        check_range(request, WIRE_F_TEMPLATE_VARS, request->chat.template_vars.count);
        assert(request->chat.value_count <= SMV_VALUES_MAX);
        assert(request->op < WIRE_OP_N && request->version_min <= request->version_max);
        for (uint32_t i = 0; wire_row(i); i++)
                assert(!(wire_row(i)->required & 1u << request->op) || wire_has(request, i));

        check_inside(&request->model, data, count);
        check_inside(&request->prompt, data, count);
        check_inside(&request->text, data, count);
        check_inside(&request->constraint, data, count);
        check_inside(&request->reasoning_end, data, count);
        check_inside(&request->prediction, data, count);
        for (uint32_t i = 0; i < request->stop_count; i++) {
                check_inside(&request->stop[i], data, count);
                assert(request->stop[i].count && request->stop[i].count <= SMV_STOP_BYTES_MAX);
        }
}

/* An accepted conversation can be made into values: all of it, in the memory that was computed for
 * it. */
static void check_values(const struct wire_chat *chat)
{
        struct arena *arena;
        struct value made;
        int r = arena_new(values_arena_bytes(chat), &arena);

        assert(!r);
        r = values_list(arena, &chat->messages, &made);
        assert(!r || r == VALUE_E_TWICE);
        r = values_list(arena, &chat->tools, &made);
        assert(!r || r == VALUE_E_TWICE);
        r = values_map(arena, &chat->template_vars, &made);
        assert(!r || r == VALUE_E_TWICE);
        arena_free(arena);
}

static const char *const priorities[] = { [WIRE_INTERACTIVE] = "interactive",
                                          [WIRE_NORMAL] = "normal",
                                          [WIRE_BACKGROUND] = "background" };

static void put_text(struct wire_writer *writer, const struct wire_text *text)
{
        wire_put_bytes(writer, text->bytes, text->count);
}

static void put_ids(struct wire_writer *writer, const uint32_t *ids, uint32_t count)
{
        wire_put_array(writer, count);
        for (uint32_t i = 0; i < count; i++)
                wire_put_uint(writer, ids[i]);
}

/* Writes the elements again as they were. */
static void put_values(struct wire_writer *writer, const struct wire_values *values, bool map)
{
        if (map)
                wire_put_map(writer, values->count);
        else
                wire_put_array(writer, values->count);
        if (!writer->result)
                writer->result = buffer_append(writer->to, values->bytes, values->size);
}

static const char *const transports[] = {
        [WIRE_SOCKET] = "socket",
        [WIRE_RING] = "ring",
        [WIRE_AUTO] = "auto",
};
static const char *const doorbells[] = {
        [WIRE_KICK] = "kick",
        [WIRE_FUTEX] = "futex",
        [WIRE_NONE] = "none",
};

static const char *const orders[] = {
        [WIRE_TEMPERATURE_FIRST] = "temperature_first",
        [WIRE_TEMPERATURE_LAST] = "temperature_last",
};

static void put_field(struct wire_writer *writer, const struct wire_request *request,
                      enum wire_field field)
{
        wire_put_text(writer, wire_row(field)->name);
        switch (field) {
        case WIRE_F_OP:
                return wire_put_text(writer, wire_op_name(request->op));
        case WIRE_F_ID:
                return wire_put_uint(writer, request->id);
        case WIRE_F_VERSIONS:
                return put_ids(writer, (uint32_t[]){ request->version_min, request->version_max },
                               2);
        case WIRE_F_FEATURES: /* the decoder stores none */
                return wire_put_array(writer, 0);
        case WIRE_F_TRANSPORT:
                return wire_put_text(writer, transports[request->transport]);
        case WIRE_F_DOORBELL:
                return wire_put_text(writer, doorbells[request->doorbell]);
        case WIRE_F_RING_BYTES:
                return wire_put_uint(writer, request->ring_bytes);
        case WIRE_F_N:
                return wire_put_uint(writer, request->n);
        case WIRE_F_SAMPLE_INDEX:
                return wire_put_uint(writer, request->sample_index);
        case WIRE_F_MODEL:
                return put_text(writer, &request->model);
        case WIRE_F_PROMPT:
                return put_text(writer, &request->prompt);
        case WIRE_F_TOKENS:
                return put_ids(writer, request->tokens, request->token_count);
        case WIRE_F_MAX_TOKENS:
                return wire_put_uint(writer, request->max_tokens);
        case WIRE_F_TEMPERATURE:
                return wire_put_float(writer, request->temperature);
        case WIRE_F_TOP_K:
                return wire_put_uint(writer, request->top_k);
        case WIRE_F_TOP_P:
                return wire_put_float(writer, request->top_p);
        case WIRE_F_MIN_P:
                return wire_put_float(writer, request->min_p);
        case WIRE_F_SEED:
                return wire_put_uint(writer, request->seed);
        case WIRE_F_N_SIGMA:
                return wire_put_float(writer, request->n_sigma);
        case WIRE_F_TYPICAL:
                return wire_put_float(writer, request->typical);
        case WIRE_F_XTC_CHANCE:
                return wire_put_float(writer, request->xtc_chance);
        case WIRE_F_XTC_LEAST:
                return wire_put_float(writer, request->xtc_least);
        case WIRE_F_TEMPERATURE_RANGE:
                return wire_put_float(writer, request->temperature_range);
        case WIRE_F_TEMPERATURE_EXPONENT:
                return wire_put_float(writer, request->temperature_exponent);
        case WIRE_F_ORDER:
                return wire_put_text(writer, orders[request->order]);
        case WIRE_F_PRESENCE_PENALTY:
                return wire_put_float(writer, request->penalties.presence);
        case WIRE_F_FREQUENCY_PENALTY:
                return wire_put_float(writer, request->penalties.frequency);
        case WIRE_F_REPETITION_PENALTY:
                return wire_put_float(writer, request->penalties.repetition);
        case WIRE_F_DRY_MULTIPLIER:
                return wire_put_float(writer, request->penalties.dry_multiplier);
        case WIRE_F_DRY_BASE:
                return wire_put_float(writer, request->penalties.dry_base);
        case WIRE_F_REPEAT_WINDOW:
                return wire_put_uint(writer, request->penalties.repeat_window);
        case WIRE_F_DRY_ALLOWED:
                return wire_put_uint(writer, request->penalties.dry_allowed);
        case WIRE_F_DRY_WINDOW:
                return wire_put_uint(writer, request->penalties.dry_window);
        case WIRE_F_NO_REPEAT_NGRAM:
                return wire_put_uint(writer, request->penalties.no_repeat_ngram);
        case WIRE_F_MIN_TOKENS:
                return wire_put_uint(writer, request->penalties.min_tokens);
        case WIRE_F_LOGIT_BIAS:
                return put_values(writer, &request->logit_bias, false);
        case WIRE_F_DRY_BREAKERS:
                return put_values(writer, &request->dry_breakers, false);
        case WIRE_F_ALLOWED_TOKENS:
                return put_values(writer, &request->allowed_tokens, false);
        case WIRE_F_BANNED_TOKENS:
                return put_values(writer, &request->banned_tokens, false);
        case WIRE_F_BANNED_TEXTS:
                return put_values(writer, &request->banned_texts, false);
        case WIRE_F_CONSTRAINT:
                return put_text(writer, &request->constraint);
        case WIRE_F_MIROSTAT_TAU:
                return wire_put_float(writer, request->mirostat_tau);
        case WIRE_F_MIROSTAT_ETA:
                return wire_put_float(writer, request->mirostat_eta);
        case WIRE_F_ASK_SLOTS:
                return wire_put_uint(writer, request->ask_slots);
        case WIRE_F_WHOLE_ROWS:
                return wire_put_bool(writer, request->whole_rows);
        case WIRE_F_ASK:
                return wire_put_text(writer, request->ask == SMV_ASK_TOKEN ? "token" : "mask");
        case WIRE_F_ASK_MS:
                return wire_put_uint(writer, request->ask_ms);
        case WIRE_F_ASK_LATE:
                return wire_put_text(writer, request->late_draws ? "draw" : "end");
        case WIRE_F_ROW_TOP:
                return wire_put_uint(writer, request->row_top);
        case WIRE_F_WHOLE_ROW:
                return wire_put_bool(writer, request->whole_row);
        case WIRE_F_REASONING_MAX:
                return wire_put_uint(writer, request->reasoning_max);
        case WIRE_F_REASONING_END:
                return put_text(writer, &request->reasoning_end);
        case WIRE_F_PREDICTION:
                return put_text(writer, &request->prediction);
        case WIRE_F_DRAFT_TOKENS:
                return wire_put_uint(writer, request->draft_tokens);
        case WIRE_F_STOP:
                wire_put_array(writer, request->stop_count);
                for (uint32_t i = 0; i < request->stop_count; i++)
                        put_text(writer, &request->stop[i]);
                return;
        case WIRE_F_STOP_TOKENS:
                return put_ids(writer, request->stop_tokens, request->stop_token_count);
        case WIRE_F_WHILE_STOPPING:
                return wire_put_bool(writer, request->while_stopping);
        case WIRE_F_PRINCIPAL:
                return put_text(writer, &request->principal);
        case WIRE_F_CLAMP:
                return wire_put_bool(writer, request->clamp);
        case WIRE_F_PROMPT_LOGPROBS:
                return wire_put_uint(writer, request->prompt_logprobs);
        case WIRE_F_PARTS:
                return wire_put_bool(writer, request->parts);
        case WIRE_F_PROGRESS:
                return wire_put_bool(writer, request->progress);
        case WIRE_F_CONTROL_TEXT:
                return wire_put_bool(writer, request->control_text);
        case WIRE_F_IGNORE_EOS:
                return wire_put_bool(writer, request->ignore_eos);
        case WIRE_F_STREAM:
                return wire_put_uint(writer, request->stream);
        case WIRE_F_TEXT:
                return put_text(writer, &request->text);
        case WIRE_F_MESSAGES:
                return put_values(writer, &request->chat.messages, false);
        case WIRE_F_TOOLS:
                return put_values(writer, &request->chat.tools, false);
        case WIRE_F_TEMPLATE_VARS:
                return put_values(writer, &request->chat.template_vars, true);
        case WIRE_F_ADD_GENERATION_PROMPT:
                return wire_put_bool(writer, request->chat.add_generation_prompt);
        case WIRE_F_CONTINUE_FINAL_MESSAGE:
                return wire_put_bool(writer, request->chat.continue_final_message);
        case WIRE_F_TOKENIZE:
                return wire_put_bool(writer, request->tokenize);
        case WIRE_F_PRIORITY:
                return wire_put_text(writer, priorities[request->priority]);
        case WIRE_F_DEADLINE_MS:
                return wire_put_uint(writer, request->deadline_ms);
        case WIRE_F_HANDLE:
                return wire_put_uint(writer, request->handle);
        case WIRE_F_LENGTH:
                return wire_put_uint(writer, request->length);
        case WIRE_F_COUNT:
                return wire_put_uint(writer, request->count);
        case WIRE_F_LOGPROBS:
                return wire_put_uint(writer, request->logprobs);
        case WIRE_F_PIN_MS:
                return wire_put_uint(writer, request->pin_ms);
        case WIRE_F_KEEP_MS:
                return wire_put_uint(writer, request->keep_ms);
        case WIRE_F_RESUME_ID:
                return wire_put_uint(writer, request->resume_id);
        case WIRE_F_NUMBER:
                return wire_put_uint(writer, request->number);
        case WIRE_F_FROM:
                return wire_put_uint(writer, request->from);
        case WIRE_F_TO:
                return wire_put_text(writer, request->to == WIRE_TO_GROUP ? "group" : "all");
        case WIRE_F_GROUP:
                return wire_put_uint(writer, request->group);
        case WIRE_FIELD_N:
                abort();
        }
}

static bool same_values(const struct wire_values *a, const struct wire_values *b)
{
        return a->count == b->count && a->size == b->size &&
               (!a->size || !memcmp(a->bytes, b->bytes, a->size));
}

static bool same_text(const struct wire_text *a, const struct wire_text *b)
{
        return a->count == b->count && (!a->count || !memcmp(a->bytes, b->bytes, a->count));
}

static bool same_ids(const uint32_t *a, const uint32_t *b, uint32_t count)
{
        return !count || !memcmp(a, b, count * sizeof(*a));
}

static void check_same(const struct wire_request *a, const struct wire_request *b)
{
        assert(a->op == b->op && a->id == b->id);
        assert(!memcmp(a->given, b->given, sizeof(a->given)));
        assert(a->version_min == b->version_min && a->version_max == b->version_max);
        assert(a->transport == b->transport && a->max_tokens == b->max_tokens);
        assert(a->temperature == b->temperature && a->top_p == b->top_p && a->min_p == b->min_p);
        assert(a->n_sigma == b->n_sigma && a->typical == b->typical && a->order == b->order);
        assert(a->xtc_chance == b->xtc_chance && a->xtc_least == b->xtc_least);
        assert(a->temperature_range == b->temperature_range);
        assert(a->temperature_exponent == b->temperature_exponent);
        assert(!memcmp(&a->penalties, &b->penalties, sizeof(a->penalties)));
        assert(same_values(&a->logit_bias, &b->logit_bias));
        assert(same_values(&a->dry_breakers, &b->dry_breakers));
        assert(same_values(&a->allowed_tokens, &b->allowed_tokens));
        assert(same_values(&a->banned_tokens, &b->banned_tokens));
        assert(same_values(&a->banned_texts, &b->banned_texts));
        assert(a->top_k == b->top_k && a->seed == b->seed && a->ignore_eos == b->ignore_eos);
        assert(a->while_stopping == b->while_stopping && a->clamp == b->clamp);
        assert(same_text(&a->principal, &b->principal));
        assert(a->handle == b->handle && a->length == b->length && a->count == b->count);
        assert(a->pin_ms == b->pin_ms && a->to == b->to && a->group == b->group);
        assert(a->stream == b->stream && same_text(&a->model, &b->model));
        assert(same_text(&a->prompt, &b->prompt) && same_text(&a->text, &b->text));
        assert(a->token_count == b->token_count && same_ids(a->tokens, b->tokens, a->token_count));
        assert(a->stop_token_count == b->stop_token_count);
        assert(same_ids(a->stop_tokens, b->stop_tokens, a->stop_token_count));
        assert(same_values(&a->chat.messages, &b->chat.messages));
        assert(same_values(&a->chat.tools, &b->chat.tools));
        assert(same_values(&a->chat.template_vars, &b->chat.template_vars));
        assert(a->chat.value_count == b->chat.value_count && a->tokenize == b->tokenize);
        assert(a->priority == b->priority && a->deadline_ms == b->deadline_ms);
        assert(a->doorbell == b->doorbell && a->ring_bytes == b->ring_bytes);
        assert(a->n == b->n && a->sample_index == b->sample_index && a->logprobs == b->logprobs);
        assert(a->keep_ms == b->keep_ms && a->resume_id == b->resume_id && a->from == b->from);
        assert(a->number == b->number && a->control_text == b->control_text);
        assert(a->progress == b->progress && a->prompt_logprobs == b->prompt_logprobs);
        assert(a->parts == b->parts && same_text(&a->constraint, &b->constraint));
        assert(a->mirostat_tau == b->mirostat_tau && a->mirostat_eta == b->mirostat_eta);
        assert(a->ask_slots == b->ask_slots && a->whole_rows == b->whole_rows);
        assert(a->ask == b->ask && a->ask_ms == b->ask_ms && a->late_draws == b->late_draws);
        assert(a->row_top == b->row_top && a->whole_row == b->whole_row);
        assert(a->reasoning_max == b->reasoning_max);
        assert(same_text(&a->reasoning_end, &b->reasoning_end));
        assert(same_text(&a->prediction, &b->prediction));
        assert(a->draft_tokens == b->draft_tokens);
        assert(a->chat.add_generation_prompt == b->chat.add_generation_prompt);
        assert(a->chat.continue_final_message == b->chat.continue_final_message);
        assert(a->stop_count == b->stop_count);
        for (uint32_t i = 0; i < a->stop_count; i++)
                assert(same_text(&a->stop[i], &b->stop[i]));
}

static void check_round_trip(const struct wire_request *request)
{
        struct wire_problem problem;
        struct wire_writer writer;
        struct wire_request again;
        struct buffer buffer;
        uint32_t given = 0;
        int r;

        buffer_init(&buffer, 64u << 20);
        wire_begin(&writer, &buffer);
        for (uint32_t i = 0; i < WIRE_FIELD_N; i++)
                given += wire_has(request, i);
        wire_put_map(&writer, given);
        for (uint32_t i = 0; i < WIRE_FIELD_N; i++)
                if (wire_has(request, i))
                        put_field(&writer, request, i);
        r = wire_end(&writer);
        assert(r == 0);
        r = wire_decode(buffer.bytes + 4, buffer_count(&buffer) - 4, &again, &problem);
        assert(r == 0);
        check_same(request, &again);
        wire_release(&again);
        buffer_deinit(&buffer);
}

static void check_problem(const struct wire_problem *problem)
{
        struct buffer buffer;
        int r;

        assert(problem->code > SMV_OK && problem->code != SMV_LOST);
        assert(problem->message[0] && problem->fatal == (problem->code == SMV_BAD_FRAME));
        for (const char *c = problem->field; *c; c++)
                assert((unsigned char)*c >= ' ' && *c != 0x7f);
        for (const char *c = problem->message; *c; c++)
                assert((unsigned char)*c >= ' ' && *c != 0x7f);
        buffer_init(&buffer, 4096);
        r = wire_error(&buffer, problem);
        assert(r == 0 && wire_scan(buffer.bytes + 4, buffer_count(&buffer) - 4));
        buffer_deinit(&buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count)
{
        bool taken = wire_scan(data, count);
        struct wire_request request;
        struct wire_problem problem;
        int r;

        compare_with_msgpack(data, count, taken);
        r = wire_decode(data, count, &request, &problem);
        assert(r == 0 || r == WIRE_E_REFUSED);
        if (r) {
                check_problem(&problem);
                assert(problem.fatal == !taken);
                return 0;
        }
        assert(taken);
        check_request(&request, data, count);
        check_values(&request.chat);
        check_round_trip(&request);
        wire_release(&request);
        return 0;
}

#ifdef REPLAY

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void the_corpus_is_decoded_without_a_crash(void **state)
{
        const char *here = getenv("FUZZ_CORPUS");
        static uint8_t bytes[1u << 20];
        char path[4096] = __FILE__;
        struct dirent *entry;
        uint32_t files = 0;
        DIR *directory;

        (void)state;
        if (!here) {
                strcpy(strstr(path, "fuzz-wire.c"), "corpus/wire");
                here = strdupa(path);
        }
        directory = opendir(here);
        if (!directory)
                fail_msg("%s: no such corpus", here);
        while ((entry = readdir(directory))) {
                FILE *file;

                if (entry->d_name[0] == '.')
                        continue;
                snprintf(path, sizeof(path), "%s/%s", here, entry->d_name);
                file = fopen(path, "r");
                assert_non_null(file);
                LLVMFuzzerTestOneInput(bytes, fread(bytes, 1, sizeof(bytes), file));
                fclose(file);
                files++;
        }
        closedir(directory);
        assert_true(files >= 40);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(
                the_corpus_is_decoded_without_a_crash) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
