#include "bridge/http/refusal.h"

#include <stdarg.h>
#include <stdio.h>

static const struct row {
        const char *name;
        unsigned status;
} rows[HTTP_REFUSALS] = {
        [HTTP_BAD_REQUEST] = { "bad_request", 400 },
        [HTTP_BAD_VERSION] = { "bad_version", 505 },
        [HTTP_BAD_METHOD] = { "bad_method", 501 },
        [HTTP_LINE_TOO_LONG] = { "line_too_long", 414 },
        [HTTP_HEADERS_TOO_LARGE] = { "headers_too_large", 431 },
        [HTTP_BODY_TOO_LARGE] = { "body_too_large", 413 },
        [HTTP_BAD_EXPECTATION] = { "bad_expectation", 417 },
        [HTTP_TOO_SLOW] = { "too_slow", 408 },
        [HTTP_DENIED_HOST] = { "denied_host", 403 },
        [HTTP_DENIED_ORIGIN] = { "denied_origin", 403 },
        [HTTP_DENIED_USER] = { "denied_user", 403 },
        [HTTP_DENIED_KEY] = { "denied_key", 401 },
        [HTTP_BAD_CONTENT_TYPE] = { "bad_content_type", 415 },
        [HTTP_TOO_MANY] = { "too_many", 503 },
        [HTTP_OUT_OF_RESOURCES] = { "out_of_resources", 503 },
};

const char *http_refusal_name(enum http_refusal refusal)
{
        return rows[refusal].name;
}

int http_problem_set(struct http_problem *problem, enum http_refusal refusal, const char *format,
                     ...)
{
        va_list values;

        problem->refusal = refusal;
        problem->status = rows[refusal].status;
        va_start(values, format);
        vsnprintf(problem->message, sizeof(problem->message), format, values);
        va_end(values);
        return -1;
}
