#include "bridge/core/failure.h"

#include <samovar/client.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
        unsigned status, anthropic_status;
        const char *openai_type, *openai_code, *anthropic_type;
} classes[FAILURE_CLASS_N] = {
        [FAILURE_REQUEST]     = { 400, 400, "invalid_request_error", NULL, "invalid_request_error" },
        [FAILURE_UNSUPPORTED] = { 400, 400, "invalid_request_error", "unsupported_parameter", "invalid_request_error" },
        [FAILURE_TOO_LONG]    = { 400, 400, "invalid_request_error", "context_length_exceeded", "invalid_request_error" },
        [FAILURE_KEY]         = { 401, 401, "invalid_request_error", "invalid_api_key", "authentication_error" },
        [FAILURE_DENIED]      = { 403, 403, "invalid_request_error", "forbidden", "permission_error" },
        [FAILURE_NO_MODEL]    = { 404, 404, "invalid_request_error", "model_not_found", "not_found_error" },
        [FAILURE_NOT_FOUND]   = { 404, 404, "invalid_request_error", NULL, "not_found_error" },
        [FAILURE_METHOD]      = { 405, 405, "invalid_request_error", "method_not_allowed", "invalid_request_error" },
        [FAILURE_TOO_LARGE]   = { 413, 413, "invalid_request_error", "request_too_large", "request_too_large" },
        [FAILURE_QUOTA]       = { 429, 429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error" },
        [FAILURE_BUSY]        = { 503, 529, "server_error", "overloaded", "overloaded_error" },
        [FAILURE_UNAVAILABLE] = { 503, 503, "server_error", "unavailable", "api_error" },
        [FAILURE_DEADLINE]    = { 504, 504, "server_error", "timeout", "timeout_error" },
        [FAILURE_INTERNAL]    = { 500, 500, "server_error", "internal_error", "api_error" },
};
/* clang-format on */

struct failure failure_make(enum failure_class class, const char *param, const char *format, ...)
{
        struct failure failure = { .class = class };
        va_list values;

        snprintf(failure.param, sizeof(failure.param), "%s", param ? param : "");
        va_start(values, format);
        vsnprintf(failure.message, sizeof(failure.message), format, values);
        va_end(values);
        return failure;
}

static enum failure_class class_of(uint32_t code)
{
        switch ((enum smv_code)code) {
        case SMV_TOO_LONG:
                return FAILURE_TOO_LONG;
        case SMV_NO_MODEL:
                return FAILURE_NO_MODEL;
        case SMV_NO_HANDLE:
        case SMV_NO_STREAM:
        case SMV_NO_RESUMABLE:
                return FAILURE_NOT_FOUND;
        case SMV_TOO_LARGE:
                return FAILURE_TOO_LARGE;
        case SMV_QUOTA:
                return FAILURE_QUOTA;
        case SMV_BUSY:
        case SMV_HANDLE_BUSY:
        case SMV_MOVED:
                return FAILURE_BUSY;
        case SMV_SHUTTING_DOWN:
        case SMV_LOST:
        case SMV_BACKEND:
                return FAILURE_UNAVAILABLE;
        case SMV_TIMEOUT:
                return FAILURE_DEADLINE;
        case SMV_INTERNAL:
        case SMV_NUMERIC:
        case SMV_NO_MEMORY:
        case SMV_CANCELLED:
        case SMV_DENIED:
                return FAILURE_INTERNAL;
        default:
                return FAILURE_REQUEST;
        }
}

struct failure failure_of_problem(const struct smv_problem *problem)
{
        struct failure failure =
                failure_make(class_of(problem->code), problem->field, "%s", problem->message);

        if (problem->code == SMV_OK) /* the library, not the daemon */
                failure.class =
                        strcmp(problem->name, "ENOMEM") ? FAILURE_REQUEST : FAILURE_INTERNAL;
        failure.retry_ms = problem->retry_ms;
        failure.no_retry = problem->code == SMV_NUMERIC;
        return failure;
}

struct failure failure_of_code(uint32_t code)
{
        struct failure failure =
                failure_make(class_of(code), NULL, "%s", smv_code_text((enum smv_code)code));

        failure.no_retry = code == SMV_NUMERIC;
        return failure;
}

struct failure failure_of_status(unsigned status, const char *message)
{
        enum failure_class class = status >= 500 ? FAILURE_UNAVAILABLE : FAILURE_REQUEST;
        struct failure failure;

        for (unsigned i = 0; i < FAILURE_CLASS_N; i++)
                if (classes[i].status == status && class <= FAILURE_REQUEST)
                        class = (enum failure_class)i;
        if (status == 404)
                class = FAILURE_NOT_FOUND;
        if (status == 431 || status == 414)
                class = FAILURE_TOO_LARGE;
        if (status == 400)
                class = FAILURE_REQUEST;
        failure = failure_make(class, NULL, "%s", message);
        failure.status = status;
        return failure;
}

enum dialect failure_dialect(const char *path)
{
        if (!strncmp(path, "/v1/messages", 12))
                return DIALECT_ANTHROPIC;
        return strncmp(path, "/api/", 5) ? DIALECT_OPENAI : DIALECT_OLLAMA;
}

unsigned failure_status(const struct failure *failure, enum dialect dialect)
{
        if (failure->status)
                return failure->status;
        return dialect == DIALECT_ANTHROPIC ? classes[failure->class].anthropic_status
                                            : classes[failure->class].status;
}

void failure_write_error(const struct failure *failure, enum dialect dialect,
                         struct json_builder *to)
{
        if (dialect == DIALECT_OLLAMA) {
                json_put_word(to, failure->message);
                return;
        }
        json_put_object(to);
        if (dialect == DIALECT_ANTHROPIC) {
                json_put_key_word(to, "type", classes[failure->class].anthropic_type);
                json_put_key_word(to, "message", failure->message);
        } else {
                json_put_key_word(to, "message", failure->message);
                json_put_key_word(to, "type", classes[failure->class].openai_type);
                json_put_key_word(to, "param", *failure->param ? failure->param : NULL);
                json_put_key_word(to, "code", classes[failure->class].openai_code);
        }
        json_put_object_end(to);
}

void failure_write(const struct failure *failure, enum dialect dialect, const char *request_id,
                   struct json_builder *to)
{
        json_put_object(to);
        if (dialect == DIALECT_ANTHROPIC)
                json_put_key_word(to, "type", "error");
        json_put_key(to, "error");
        failure_write_error(failure, dialect, to);
        if (dialect == DIALECT_ANTHROPIC)
                json_put_key_word(to, "request_id", request_id);
        json_put_object_end(to);
}
