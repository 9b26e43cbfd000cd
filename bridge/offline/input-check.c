#include "bridge/offline/input-check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bridge/core/fields.h"
#include "json/reader.h"
#include "json/shown.h"

#define STEP_BYTES (UINT64_C(1) << 20)
#define NODES_MAX  (1u << 26)
#define WRONG_MAX  10u
#define WHY_BYTES  512u

int input_check_init(struct input_check *check, int input, int answers, const char *folder)
{
        line_reader_init(&check->input, input, (struct line_place){ 0 });
        line_reader_init(&check->answers, answers, (struct line_place){ 0 });
        check->compares = answers >= 0;
        check->ids = id_check_new(folder, 0);
        return check->ids ? 0 : -ENOMEM;
}

void input_check_deinit(struct input_check *check)
{
        line_reader_deinit(&check->input);
        line_reader_deinit(&check->answers);
        check->ids = id_check_free(check->ids);
}

__attribute__((format(printf, 2, 3))) static int refuse(struct input_check *check,
                                                        const char *format, ...)
{
        char why[WHY_BYTES];
        va_list values;

        va_start(values, format);
        vsnprintf(why, sizeof(why), format, values);
        va_end(values);
        check->tell(check->arg, why);
        return -EINVAL;
}

/* ---- answers ---- */

static bool is_good(const struct json_document *json, uint32_t response)
{
        uint64_t status = 0;

        return json_whole(json, json_member(json, response, "status_code"), &status) &&
               status >= 200 && status < 300;
}

/* The next answer belongs to the line that was just read. */
static int compare(struct input_check *check, struct text line, struct text id)
{
        uint32_t number = line_reader_place(&check->answers).number;
        struct json_document *json = NULL;
        uint32_t response;
        char why[128];
        struct text other;
        int r = json_parse(line.at, line.bytes, NODES_MAX, &json, why, sizeof(why));

        if (r == -ENOMEM)
                return r;
        if (r)
                return refuse(check, "%s:%u: it is no answer of a batch: %s", check->answers_name,
                              number, why);
        response = json_member(json, 0, "response");
        other = text_of(json, json_member(json, 0, "custom_id"));
        if (json_kind(json, response) != JSON_OBJECT || !other.at)
                r = refuse(check, "%s:%u: it is no answer of a batch", check->answers_name, number);
        else if (other.bytes != id.bytes || memcmp(other.at, id.at, id.bytes))
                r = refuse(check,
                           "%s:%u answers custom_id '%s', but %s:%u has '%s': these are answers to "
                           "another input",
                           check->answers_name, number, shown(other.at).text, check->name,
                           line_reader_place(&check->input).number, shown(id.at).text);
        check->answered += !r;
        check->failed += !r && !is_good(json, response);
        json_free(json);
        return r;
}

static int compare_next(struct input_check *check, struct text id)
{
        struct text line;
        int r = line_reader_next(&check->answers, &line);

        if (r < 0)
                return r;
        check->compares = r && line_reader_was_whole(&check->answers);
        if (!check->compares)
                return 0;
        r = compare(check, line, id);
        if (r)
                return r;
        check->answers_bytes = line_reader_place(&check->answers).at;
        check->goes_on = line_reader_place(&check->input);
        return 0;
}

/* ---- lines ---- */

static int check_line(struct input_check *check, struct text line)
{
        uint32_t number = line_reader_place(&check->input).number;
        struct batch_line_request request;
        char why[256];
        int r;

        check->lines++;
        if (!batch_line_read(line, NULL, &request, why, sizeof(why))) {
                if (check->wrong++ < WRONG_MAX)
                        refuse(check, "%s:%u: %s", check->name, number, why);
                check->compares = false;
                return 0;
        }
        r = id_check_add(check->ids, request.custom_id, number);
        if (!r && check->compares)
                r = compare_next(check, request.custom_id);
        json_free(request.json);
        return r;
}

static int end(struct input_check *check)
{
        uint32_t first, second;
        struct text line;
        int r = check->compares ? line_reader_next(&check->answers, &line) : 0;

        if (r > 0 && line_reader_was_whole(&check->answers))
                return refuse(check, "%s has more answers than %s has lines", check->answers_name,
                              check->name);
        if (check->wrong > WRONG_MAX)
                refuse(check, "%llu lines are wrong, and %u of them are shown",
                       (unsigned long long)check->wrong, WRONG_MAX);
        if (r < 0 || check->wrong)
                return r < 0 ? r : -EINVAL;
        r = id_check_end(check->ids, &first, &second);
        if (r > 0)
                return refuse(check, "%s:%u: line %u has the same custom_id", check->name, second,
                              first);
        return r < 0 ? r : 1;
}

int input_check_step(struct input_check *check)
{
        uint64_t until = line_reader_place(&check->input).at + STEP_BYTES;
        struct text line;
        int r = 0;

        while (!r && line_reader_place(&check->input).at < until) {
                r = line_reader_next(&check->input, &line);
                if (!r)
                        return end(check);
                if (r == -EFBIG)
                        return refuse(check, "%s:%u: the next line has more than %llu MiB",
                                      check->name, line_reader_place(&check->input).number,
                                      (unsigned long long)(LINE_BYTES_MAX >> 20));
                if (r > 0)
                        r = check_line(check, line);
        }
        return r;
}
