#include "bridge/openai/batch-run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/sys.h"
#include "bridge/core/fields.h"
#include "bridge/core/state-folder.h"
#include "bridge/openai/batch-request.h"
#include "bridge/openai/file-store.h"

#define NS_PER_S   UINT64_C(1000000000)
#define READ_BYTES (UINT64_C(1) << 20) /* of lines, in one step */
#define AGAIN_NS   NS_PER_S            /* when something that was not possible is tried again */
#define WHY_BYTES  256u

static void finish(struct batch *batch, enum batch_status status);
static void fail(struct batch *batch, uint32_t line, const char *why);

void batch_enter(struct batch *batch, enum batch_status status)
{
        batch->record.status = status;
        batch->record.times_s[status] = sys_wall_clock_ns() / NS_PER_S;
}

void batch_name_in_state(const struct batch_record *record, const char *ending, char *to)
{
        snprintf(to, STATE_NAME_BYTES, "%.40s%s", record->id, ending);
}

static void wait_for(struct batch *batch, const char *what, int r)
{
        log_limited(LOG_WARN, "batch_waits id=%s for=%s error=%s", batch->record.id, what,
                    strerror(-r));
        loop_timer_set(batch->step, AGAIN_NS);
}

/* ---- the record ---- */

static int save(struct batch *batch, bool last, void (*done)(void *arg, int result), void *arg)
{
        struct state_change change = { .data_fd = -1 };
        struct json_builder to = json_build(&change.text);
        int r;

        batch_name_in_state(&batch->record, BATCH_RECORD_NAME, change.record);
        if (last) {
                batch_name_in_state(&batch->record, BATCH_OUTPUT_NAME, change.removed[0]);
                batch_name_in_state(&batch->record, BATCH_ERRORS_NAME, change.removed[1]);
                batch_name_in_state(&batch->record, BATCH_INPUT_NAME, change.removed[2]);
        }
        batch_record_write(&to, &batch->record);
        r = json_put_end(&to);
        if (!r)
                return state_folder_change(batch->bridge->state, &change, done, arg);
        bytes_deinit(&change.text);
        return r;
}

static void on_noted(void *arg, int result)
{
        (void)arg;
        (void)result; /* the folder has logged it */
}

/* Without this note a restart would only do more than it must. */
static void note(struct batch *batch)
{
        if (batch->bridge->state)
                (void)save(batch, false, on_noted, NULL);
}

/* ---- answers ---- */

static int open_answers(struct batch *batch, struct batch_answers *answers, const char *ending)
{
        char name[STATE_NAME_BYTES];

        if (answers->fd >= 0)
                return 0;
        batch_name_in_state(&batch->record, ending, name);
        answers->fd = batch->bridge->state ? state_folder_make_file(batch->bridge->state, name)
                                           : sys_open(batch->bridge->conf.spool,
                                                      O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        return answers->fd < 0 ? answers->fd : 0;
}

static int append(struct batch *batch, bool ok, const struct bytes *text)
{
        struct batch_answers *answers = ok ? &batch->output : &batch->errors;
        int r = open_answers(batch, answers, ok ? BATCH_OUTPUT_NAME : BATCH_ERRORS_NAME);

        if (!r)
                r = batch_answers_append(answers, text);
        if (r)
                return r;
        if (ok)
                batch->record.completed++;
        else
                batch->record.failed++;
        return 0;
}

/* The answer goes to one of the two files. */
static int write_answer(struct batch *batch, const struct batch_request *line)
{
        struct bytes text = { 0 };
        struct json_builder to = json_build(&text);
        int r;

        r = batch_request_put(&to, line);
        if (!r)
                r = append(batch, batch_request_succeeded(line), &text);
        bytes_deinit(&text);
        return r;
}

/* ---- lines ---- */

static bool is_served(const struct batch *batch, uint32_t *ret_principal)
{
        return http_server_serves(batch->bridge->server, batch->record.owner, ret_principal);
}

/* Begins the call of a line that lies in no list. */
static int ask(struct batch *batch, struct batch_request *line)
{
        uint32_t principal = 0;
        int r;

        (void)is_served(batch, &principal); /* the caller knows */
        r = batch_request_ask(line, batch->bridge, principal);
        if (r)
                return r;
        list_push_back(&batch->running, &line->of_batch);
        batch->running_count++;
        return 0;
}

/* A line of the input runs from now on. */
static int run_line(struct batch *batch, const struct batch_line_request *request)
{
        struct batch_request *line = batch_request_new(request, batch->step);
        int r;

        if (!line)
                return -ENOMEM;
        r = ask(batch, line);
        if (r)
                batch_request_free(line);
        return r;
}

/* The next line of the input.  1: it runs, or has its answer; 0: there is none. */
static int begin_line(struct batch *batch)
{
        struct batch_lines before = batch->lines;
        struct batch_line_request request;
        char why[WHY_BYTES];
        struct text text;
        int r = 0;

        if (!batch_lines_next(&batch->lines, &text))
                return 0;
        if (!batch_line_read(text, batch->record.endpoint, &request, why, sizeof(why)))
                r = -ENOMEM;
        else if (!batch->ids || !batch_ids_is_answered(batch->ids, request.custom_id))
                r = run_line(batch, &request);
        if (r)
                batch->lines = before; /* for another try */
        request.json = json_free(request.json);
        return r ? r : 1;
}

/* An answer that cannot be written stays, and with it the place of its line. */
static int take_done(struct batch *batch)
{
        list_each_safe(at, &batch->running) {
                struct batch_request *line = LIST_ENTRY(at, struct batch_request, of_batch);
                bool again = batch_request_found_no_place(line) &&
                             batch->record.status == BATCH_IN_PROGRESS;
                int r = line->done && !again ? write_answer(batch, line) : 0;

                if (r)
                        return r;
                if (!line->done)
                        continue;
                list_remove(&line->of_batch);
                batch->running_count--;
                if (again)
                        list_push_back(&batch->again, &line->of_batch);
                else
                        batch_request_free(line);
        }
        return 0;
}

/* ---- the check ---- */

/* Reads some lines.  1: all were read, and are right; 0: not yet, or it has failed. */
static int check(struct batch *batch)
{
        size_t until = batch->lines.at + READ_BYTES;
        struct batch_line_request request;
        char why[WHY_BYTES];
        struct text text;
        bool fresh;

        if (!batch->ids)
                batch->ids = batch_ids_new();
        if (!batch->ids)
                return -ENOMEM;
        while (batch->lines.at < until) {
                if (!batch_lines_next(&batch->lines, &text))
                        return 1;
                if (!batch_line_read(text, batch->record.endpoint, &request, why, sizeof(why))) {
                        fail(batch, batch->lines.number, why);
                        return 0;
                }
                fresh = batch_ids_add(batch->ids, request.custom_id);
                json_free(request.json);
                if (!fresh || ++batch->checked > BATCH_LINES_MAX) {
                        fail(batch, batch->lines.number,
                             fresh ? "a batch has at most 50000 lines"
                                   : "custom_id was in a line before");
                        return 0;
                }
        }
        loop_timer_set(batch->step, 0);
        return 0;
}

/* False: not yet, or it has failed. */
static bool has_checked(struct batch *batch)
{
        int r;

        if (batch->record.status == BATCH_CANCELLING && !batch->restored)
                return true;
        r = check(batch);
        batch->record.total = batch->checked;
        if (r < 0)
                wait_for(batch, "memory", r);
        if (r > 0 && !batch->checked) {
                fail(batch, 0, "the input file has no lines");
                return false;
        }
        return r > 0;
}

/* ---- the recovery ---- */

static int map_answers(struct batch *batch, struct batch_answers *answers, const char *ending)
{
        char name[STATE_NAME_BYTES];
        uint64_t bytes = 0;
        void *map;
        int r;

        batch_name_in_state(&batch->record, ending, name);
        if (answers->fd < 0)
                answers->fd = state_folder_open_file(batch->bridge->state, name, O_RDWR);
        if (answers->fd == -ENOENT)
                return 0;
        r = answers->fd < 0 ? answers->fd : sys_file_size(answers->fd, &bytes);
        if (r || !bytes)
                return r;
        map = sys_map_file(answers->fd, bytes, false);
        batch->recovery = (struct batch_recovery){ .text = { map, bytes } };
        return map ? 0 : -ENOMEM;
}

static void unmap_answers(struct batch *batch)
{
        if (batch->recovery.text.at)
                sys_unmap((void *)(uintptr_t)batch->recovery.text.at, batch->recovery.text.bytes);
        batch->recovery = (struct batch_recovery){ 0 };
}

/* 1: the answers of this file were read; 0: not yet; or a negative errno. */
static int recover(struct batch *batch, struct batch_answers *answers, const char *ending,
                   uint32_t *ret_count)
{
        struct batch_recovery *recovery = &batch->recovery;
        int r = 0;

        if (!recovery->text.at)
                r = map_answers(batch, answers, ending);
        if (!r)
                r = batch_recovery_next(recovery, batch->ids, READ_BYTES);
        if (r > 0) {
                loop_timer_set(batch->step, 0);
                return 0;
        }
        if (!r && recovery->at < recovery->text.bytes)
                log_warn("batch_answers_cut id=%s file=%s bytes=%zu", batch->record.id, ending + 1,
                         recovery->text.bytes - recovery->at);
        if (!r && answers->fd >= 0)
                r = batch_answers_cut(answers, recovery->at);
        if (r == -ENOMEM)
                return r;
        *ret_count = recovery->count;
        unmap_answers(batch);
        return r ? r : 1;
}

/* False: not yet, or it has failed. */
static bool has_recovered(struct batch *batch)
{
        int r = 1;

        if (!batch->restored)
                return true;
        if (batch->stage == 0) {
                r = recover(batch, &batch->output, BATCH_OUTPUT_NAME, &batch->record.completed);
                batch->stage += r > 0;
        }
        if (r > 0)
                r = recover(batch, &batch->errors, BATCH_ERRORS_NAME, &batch->record.failed);
        if (r > 0)
                log_info("batch_goes_on id=%s total=%u completed=%u failed=%u", batch->record.id,
                         batch->record.total, batch->record.completed, batch->record.failed);
        if (r < 0 && state_is_shortage(r))
                wait_for(batch, "its answers", r);
        else if (r < 0)
                fail(batch, 0, strerror(-r));
        return r > 0;
}

/* ---- the run ---- */

/* Lines that have waited come first.  1: there is more to read, in another step. */
static int begin_some(struct batch *batch)
{
        size_t until = batch->lines.at + READ_BYTES;
        struct list_head *at;
        int r = 1;

        while (r > 0 && batch->running_count < batch->bridge->conf.batch_parallel) {
                at = list_pop_front(&batch->again);
                if (!at && batch->lines.at >= until)
                        return 1;
                r = at ? ask(batch, LIST_ENTRY(at, struct batch_request, of_batch))
                       : begin_line(batch);
                if (at && r)
                        list_push_front(&batch->again, at);
                else if (at)
                        r = 1;
        }
        return r < 0 ? r : 0;
}

static bool found_no_place_lately(const struct batch *batch)
{
        return !list_is_empty(&batch->again);
}

static bool has_expired(const struct batch *batch)
{
        return sys_wall_clock_ns() / NS_PER_S >
               batch->record.times_s[BATCH_VALIDATING] + BATCH_WINDOW_S;
}

static void progress(struct batch *batch)
{
        bool runs = batch->record.status == BATCH_IN_PROGRESS;
        int r = take_done(batch), more = 0;
        uint32_t principal;

        if (runs && has_expired(batch)) {
                finish(batch, BATCH_EXPIRED);
                return;
        }
        if (!r && runs && !is_served(batch, &principal)) {
                loop_timer_set(batch->step, AGAIN_NS);
                return;
        }
        if (!r && runs && !found_no_place_lately(batch))
                more = begin_some(batch);
        if (!r && more < 0)
                r = more;
        if (r && state_is_shortage(r))
                wait_for(batch, "space", r);
        else if (r)
                fail(batch, 0, strerror(-r));
        else if (more)
                loop_timer_set(batch->step, 0);
        else if (found_no_place_lately(batch))
                loop_timer_set(batch->step, AGAIN_NS);
        else if (!batch->running_count)
                finish(batch, runs ? BATCH_COMPLETED : BATCH_CANCELLED);
}

/* The wait of those that found no place is over. */
static void ask_again(struct batch *batch)
{
        struct list_head waiting;
        struct list_head *at;
        uint32_t principal;

        if (!found_no_place_lately(batch) || batch->record.status != BATCH_IN_PROGRESS ||
            !is_served(batch, &principal))
                return;
        list_init(&waiting);
        while ((at = list_pop_front(&batch->again)))
                list_push_back(&waiting, at);
        while ((at = list_pop_front(&waiting)))
                if (ask(batch, LIST_ENTRY(at, struct batch_request, of_batch)))
                        list_push_back(&batch->again, at);
}

/* ---- the end ---- */

enum stage { NOTES_THE_END, STORES_OUTPUT, STORES_ERRORS, NOTES_THE_REST, IS_OVER };

static void stop_lines(struct batch *batch)
{
        list_each_safe(at, &batch->running)
                batch_request_free(LIST_ENTRY(at, struct batch_request, of_batch));
        list_each_safe(again, &batch->again)
                batch_request_free(LIST_ENTRY(again, struct batch_request, of_batch));
        batch->running_count = 0;
}

static void finish(struct batch *batch, enum batch_status status)
{
        stop_lines(batch);
        unmap_answers(batch);
        batch->ids = batch_ids_free(batch->ids);
        batch->phase = BATCH_RUNS;
        batch->record.ending = status;
        batch->stage = NOTES_THE_END;
        batch_enter(batch, BATCH_FINALIZING);
        loop_timer_set(batch->step, 0);
}

static void fail(struct batch *batch, uint32_t line, const char *why)
{
        snprintf(batch->record.why, sizeof(batch->record.why), "%s", why);
        batch->record.why_line = line;
        finish(batch, BATCH_FAILED);
}

/* A step of the end was done, or is tried again. */
static void on_step_done(void *arg, int result)
{
        struct batch *batch = arg;

        batch->saving = false;
        batch->stage += !result;
        if (result)
                wait_for(batch, "its end", result);
        else
                loop_timer_set(batch->step, 0);
}

static void on_stored(void *arg, struct stored_file *file, int result)
{
        (void)file;
        on_step_done(arg, result);
}

static bool *stored_flag(struct batch *batch)
{
        return batch->stage == STORES_OUTPUT ? &batch->record.has_output
                                             : &batch->record.has_errors;
}

/* A start may find the file: the last process ended behind this step. */
static void store_answers(struct batch *batch, const struct batch_answers *answers, const char *id,
                          const char *name)
{
        struct file_store *files = batch->bridge->files;
        char filename[96];
        struct file_conf conf = { .owner = batch->record.owner,
                                  .purpose = "batch_output",
                                  .id = id,
                                  .fd = -1,
                                  .bytes = answers->bytes };
        int r;

        *stored_flag(batch) = answers->fd >= 0 && answers->bytes;
        if (!*stored_flag(batch) || file_store_has(files, id)) {
                on_step_done(batch, 0);
                return;
        }
        snprintf(filename, sizeof(filename), "%s_%s.jsonl", batch->record.id, name);
        conf.filename = (struct text){ filename, strlen(filename) };
        conf.fd = sys_reopen(answers->fd, O_RDONLY | O_CLOEXEC);
        batch->saving = true;
        r = conf.fd < 0 ? conf.fd : file_store_add(files, &conf, on_stored, batch);
        if (r == -EDQUOT) {
                *stored_flag(batch) = false;
                snprintf(batch->record.why, sizeof(batch->record.why),
                         "the %s file was not stored: it is over the limit (files_max, "
                         "files_bytes)",
                         name);
                r = 0;
                on_step_done(batch, 0);
        }
        if (r)
                on_step_done(batch, r);
}

static void save_step(struct batch *batch, bool last)
{
        int r = 0;

        batch->saving = true;
        if (batch->bridge->state)
                r = save(batch, last, on_step_done, batch);
        if (r || !batch->bridge->state)
                on_step_done(batch, r);
}

static void release(struct batch *batch)
{
        stop_lines(batch);
        unmap_answers(batch);
        if (batch->map)
                sys_unmap(batch->map, batch->map_bytes);
        batch->map = NULL;
        batch->ids = batch_ids_free(batch->ids);
        batch->output.fd = sys_close(batch->output.fd);
        batch->errors.fd = sys_close(batch->errors.fd);
        batch->step = loop_timer_free(batch->step);
}

static void end_next(struct batch *batch)
{
        switch ((enum stage)batch->stage) {
        case NOTES_THE_END:
                save_step(batch, false);
                break;
        case STORES_OUTPUT:
                store_answers(batch, &batch->output, batch->record.output_id, "output");
                break;
        case STORES_ERRORS:
                store_answers(batch, &batch->errors, batch->record.error_id, "error");
                break;
        case NOTES_THE_REST:
                if (!batch_record_has_ended(&batch->record))
                        batch_enter(batch,
                                    *batch->record.why ? BATCH_FAILED : batch->record.ending);
                save_step(batch, true);
                break;
        case IS_OVER:
                log_info("batch_ended id=%s status=%s completed=%u failed=%u", batch->record.id,
                         batch_status_name(batch->record.status), batch->record.completed,
                         batch->record.failed);
                batch->over = true;
                release(batch);
        }
}

/* ---- steps ---- */

/* True: it has come to the phase in which lines run. */
static bool prepare(struct batch *batch)
{
        if (batch->phase == BATCH_CHECKS) {
                if (!has_checked(batch))
                        return false;
                batch->phase = BATCH_RECOVERS;
        }
        if (batch->phase == BATCH_RECOVERS) {
                if (!has_recovered(batch))
                        return false;
                batch->phase = BATCH_RUNS;
                batch->stage = NOTES_THE_END;
                batch->lines.at = batch->lines.number = 0;
                if (!batch->record.completed && !batch->record.failed)
                        batch->ids = batch_ids_free(batch->ids);
        }
        if (batch->record.status == BATCH_VALIDATING) {
                batch_enter(batch, BATCH_IN_PROGRESS);
                note(batch);
        }
        return true;
}

static void on_step(void *arg)
{
        struct batch *batch = arg;

        if (batch->saving || !prepare(batch))
                return;
        if (batch->record.status == BATCH_FINALIZING || batch_record_has_ended(&batch->record)) {
                end_next(batch);
                return;
        }
        if (list_is_empty(&batch->running))
                ask_again(batch);
        progress(batch);
}

bool batch_cancel(struct batch *batch)
{
        if (batch->record.status >= BATCH_CANCELLING || batch->record.status == BATCH_FINALIZING)
                return batch->record.status == BATCH_CANCELLING;
        batch_enter(batch, BATCH_CANCELLING);
        list_each_safe(at, &batch->running) {
                struct batch_request *line = LIST_ENTRY(at, struct batch_request, of_batch);

                if (line->done)
                        continue;
                batch_request_free(line);
                batch->running_count--;
        }
        list_each_safe(again, &batch->again)
                batch_request_free(LIST_ENTRY(again, struct batch_request, of_batch));
        note(batch);
        loop_timer_set(batch->step, 0);
        return true;
}

/* ---- life ---- */

int batch_open(struct batch *batch, int input)
{
        const struct batch_record *record = &batch->record;

        batch->output.fd = batch->errors.fd = -1;
        list_init(&batch->running);
        list_init(&batch->again);
        batch->map_bytes = (size_t)(record->input_offset + record->input_bytes);
        if (record->input_bytes) {
                batch->map = sys_map_file(input, batch->map_bytes, false);
                if (!batch->map)
                        return -ENOMEM;
                batch->lines.text = (struct text){ (char *)batch->map + record->input_offset,
                                                   record->input_bytes };
        }
        return loop_timer_new(batch->bridge->conf.loop, on_step, batch, &batch->step);
}

int batch_start(struct batch *batch)
{
        return loop_timer_set(batch->step, 0);
}

void batch_close(struct batch *batch)
{
        release(batch);
}
