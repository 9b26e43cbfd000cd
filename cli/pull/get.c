#include "cli/pull/get.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/clock.h"
#include "cli/pull/choose.h"
#include "cli/pull/retry.h"
#include "cli/pull/source.h"

#define STALL_MS 30000u

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
        (void)number;
        stopped = 1;
}

void stop_watch(void)
{
        struct sigaction action = { .sa_handler = on_signal };

        /* The second one ends the program: a call may hang. */
        action.sa_flags = (int)SA_RESETHAND;
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
}

bool stop_wanted(void)
{
        return stopped;
}

struct getting {
        const struct get_ask *ask;
        struct get_answer *answer;
        uint32_t after_s;
        bool ended, too_long, no_memory;
        enum web_end end;
        char why[512];
};

static void copy_field(const struct web_head *head, const char *name, char *to, size_t bytes)
{
        const char *value = web_field(head, name);

        snprintf(to, bytes, "%s", value ? value : "");
}

uint64_t get_size(const char *text)
{
        uint64_t bytes = 0;

        for (; text && *text >= '0' && *text <= '9' && bytes <= LISTED_BYTES_MAX; text++)
                bytes = bytes * 10 + (uint64_t)(*text - '0');
        return text && !*text && bytes <= LISTED_BYTES_MAX ? bytes : 0;
}

/* "bytes 0-1/200", or the length of all. */
static uint64_t total_of(int status, const struct web_head *head)
{
        const char *range = web_field(head, "content-range"),
                   *slash = range ? strchr(range, '/') : NULL;
        const char *length = web_field(head, "content-length");

        if (status == 206)
                return slash ? get_size(slash + 1) : 0;
        return status == 200 ? get_size(length) : 0;
}

void get_validator(const struct web_head *head, char to[VALIDATOR_BYTES])
{
        const char *etag = web_field(head, "etag"), *date = web_field(head, "last-modified");

        if (!etag || *etag != '"' || strlen(etag) >= VALIDATOR_BYTES)
                etag = date && strlen(date) < VALIDATOR_BYTES ? date : "";
        snprintf(to, VALIDATOR_BYTES, "%s", etag);
}

static bool on_head(void *arg, int status, const struct web_head *head)
{
        struct getting *getting = arg;
        struct get_answer *answer = getting->answer;

        answer->status = status;
        answer->total = total_of(status, head);
        getting->after_s =
                retry_after_s(web_field(head, "retry-after"), web_field(head, "ratelimit"));
        get_validator(head, answer->validator);
        copy_field(head, "link", answer->link, sizeof(answer->link));
        copy_field(head, "x-error-code", answer->error_code, sizeof(answer->error_code));
        copy_field(head, "x-error-message", answer->error_text, sizeof(answer->error_text));
        return !getting->ask->head_only || retry_is_temporary(status);
}

static bool on_data(void *arg, const void *bytes, size_t count)
{
        struct getting *getting = arg;
        struct bytes *body = &getting->answer->body;

        getting->too_long = body->count + count > getting->ask->max;
        if (!getting->too_long)
                getting->no_memory = bytes_add(body, bytes, count);
        return !getting->too_long && !getting->no_memory;
}

static void on_end(void *arg, enum web_end end, const char *why)
{
        struct getting *getting = arg;

        getting->ended = true;
        getting->end = end;
        snprintf(getting->why, sizeof(getting->why), "%s", why ? why : "");
}

/* One try: 0, or -ENOMEM or -ECANCELED. */
static int try_once(struct web *web, struct getting *getting)
{
        const struct get_ask *ask = getting->ask;
        struct web_field field = { "Authorization", ask->authorization };
        struct web_request *request;
        int r = web_begin(web,
                          &(struct web_ask){
                                  .url = ask->url,
                                  .fields = &field,
                                  .field_count = ask->authorization && *ask->authorization,
                                  .from = ask->from,
                                  .to = ask->to,
                                  .stall_ms = STALL_MS,
                                  .on_head = on_head,
                                  .on_data = on_data,
                                  .on_end = on_end,
                                  .arg = getting,
                          },
                          &request);

        getting->ended = r;
        getting->answer->body.count = 0;
        getting->answer->status = 0;
        while (!r && !getting->ended) {
                r = web_wait(web, -1, NULL, 0);
                if (!r && stop_wanted() && !getting->ended)
                        r = -ECANCELED;
        }
        if (r && !getting->ended)
                web_cancel(web, request);
        if (!r && getting->no_memory)
                r = -ENOMEM;
        return r;
}

static int sleep_until(struct web *web, uint64_t at_ms)
{
        for (uint64_t now = clock_ms(); now < at_ms; now = clock_ms()) {
                int r = stop_wanted() ? -ECANCELED : web_wait(web, (int)(at_ms - now), NULL, 0);

                if (r)
                        return r;
        }
        return 0;
}

int get(struct web *web, const struct get_ask *ask, struct get_answer *ret_answer, char *why,
        size_t why_bytes)
{
        struct retry retry = { .limit = ask->retries };
        struct getting getting = { .ask = ask, .answer = ret_answer };
        char shown[512];
        int r;

        source_public_url(ask->url, shown, sizeof(shown));
        *ret_answer = (struct get_answer){ 0 };
        for (;;) {
                getting.after_s = 0;
                r = try_once(web, &getting);
                if (!r && getting.too_long) {
                        snprintf(why, why_bytes, "%s: the answer has more than %zu bytes", shown,
                                 ask->max);
                        r = -EFBIG;
                }
                if (r)
                        break;
                if (getting.end == WEB_STOPPED)
                        break; /* the head was enough */
                if (getting.end == WEB_GOOD && !retry_is_temporary(ret_answer->status))
                        break;
                if (getting.end == WEB_REFUSED || !retry_later(&retry, getting.after_s)) {
                        if (getting.end != WEB_GOOD) {
                                snprintf(why, why_bytes, "%s", getting.why);
                                r = -EIO;
                        }
                        break;
                }
                r = sleep_until(web, retry.at_ms);
                if (r)
                        break;
        }
        if (!r && bytes_add(&ret_answer->body, "", 1))
                r = -ENOMEM;
        if (r)
                get_answer_deinit(ret_answer);
        else
                ret_answer->body.count--;
        if (r == -EINVAL)
                snprintf(why, why_bytes, "%s is no URL", shown);
        else if (r == -ENOMEM)
                snprintf(why, why_bytes, "out of memory");
        return r;
}

void get_answer_deinit(struct get_answer *answer)
{
        bytes_deinit(&answer->body);
}
