#include "cli/pull/fetch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/amounts.h"
#include "cli/cli.h"
#include "cli/clock.h"
#include "cli/pull/get.h"
#include "cli/pull/retry.h"
#include "store/sha1.h"

#define AT_ONCE    4u
#define STALL_MS   30000u
#define READ_BYTES (1u << 20)
#define WRONG_MAX  2u /* files with a wrong digest, until it is given up */
#define TICK_MS    200

enum job_state { JOB_WAITS, JOB_RUNS, JOB_DONE, JOB_FAILED };

/* What ends a try that our own code stopped. */
enum stop { STOP_NONE, STOP_RETRY, STOP_RESTART, STOP_FAIL };

struct job {
        const struct fetch_ask *ask;
        struct fetch_file *file;
        enum job_state state;
        struct web_request *request;
        struct retry retry;
        struct incoming_state known; /* of the part */
        int fd;                      /* -1: not open yet */
        struct sha256 hash;          /* of the bytes that are there */
        struct sha1 blob;
        bool is_blob;  /* its digest is git's */
        uint64_t skip; /* bytes to come that are there already */
        uint64_t best; /* the most that was there: only more than that is progress */
        unsigned wrong;
        uint32_t after_s;
        bool complete; /* a status said so */
        enum stop stop;
        int error;
        char why[768];
};

/* ---- parts ---- */

static void begin_hashes(struct job *job)
{
        sha256_begin(&job->hash);
        job->is_blob = strlen(job->file->digest) == 40 && job->file->size_known;
        if (job->is_blob)
                sha1_begin_blob(&job->blob, job->file->bytes);
}

static void add_hashes(struct job *job, const void *bytes, size_t count)
{
        sha256_add(&job->hash, bytes, count);
        if (job->is_blob)
                sha1_add(&job->blob, bytes, count);
}

/* The part of an earlier run is of this file. */
static bool is_same_file(const struct incoming_state *known, const struct fetch_file *file)
{
        char url[sizeof(known->url)];

        if (*file->digest)
                return !strcmp(known->digest, file->digest) && known->bytes == file->bytes;
        source_public_url(file->url, url, sizeof(url));
        return !strcmp(known->url, url);
}

static uint64_t file_bytes(const char *path)
{
        struct stat file;

        return stat(path, &file) < 0 ? 0 : (uint64_t)file.st_size;
}

static int look(const struct incoming *incoming, struct fetch_file *file)
{
        struct incoming_state known;
        char whole[STORE_PATH_BYTES], part[STORE_PATH_BYTES];

        file->have = 0;
        if (!incoming_path(incoming, file->name, "", whole) ||
            !incoming_path(incoming, file->name, ".part", part))
                return -ENAMETOOLONG;
        if (!incoming_read_state(incoming, file->name, &known) && is_same_file(&known, file)) {
                if (*file->digest && *known.sha256 && file_bytes(whole) == known.bytes &&
                    known.bytes) {
                        file->have = known.bytes;
                        snprintf(file->sha256, sizeof(file->sha256), "%s", known.sha256);
                        snprintf(file->revision, sizeof(file->revision), "%s", known.etag);
                        return 0;
                }
                /* Without a digest, only the server can say whether this is still of its file. */
                if (!*file->digest && *known.etag)
                        rename(whole, part);
                if (*file->digest || *known.etag)
                        file->have = file_bytes(part);
                if (file->size_known && file->have > file->bytes)
                        file->have = 0;
        }
        unlink(whole);
        if (!file->have)
                unlink(part);
        return 0;
}

int fetch_look(const struct fetch_ask *ask)
{
        int r = 0;

        for (size_t i = 0; i < ask->count && !r; i++)
                r = look(ask->incoming, &ask->files[i]);
        return r;
}

static int fail_system(struct job *job, const char *what)
{
        job->error = -errno;
        snprintf(job->why, sizeof(job->why), "%s: %s: %s", job->file->name, what, strerror(errno));
        return job->error;
}

static uint64_t sum(const struct fetch_ask *ask)
{
        uint64_t have = 0;

        for (size_t i = 0; i < ask->count; i++)
                have += ask->files[i].have;
        return have;
}

/* 0: some sizes are not known. */
static uint64_t total(const struct fetch_ask *ask)
{
        uint64_t bytes = 0;

        for (size_t i = 0; i < ask->count; i++) {
                if (!ask->files[i].size_known)
                        return 0;
                bytes += ask->files[i].bytes;
        }
        return bytes;
}

/* Reads what an earlier run has left, for the digest. */
static int hash_part(struct job *job)
{
        uint8_t *buffer = malloc(READ_BYTES);
        struct progress progress;
        uint64_t at = 0;
        ssize_t n = 1;
        int r = buffer ? 0 : -ENOMEM;

        progress_begin(&progress, "checking what is there", job->file->have);
        while (!r && n > 0 && at < job->file->have) {
                n = pread(job->fd, buffer, READ_BYTES, (off_t)at);
                if (n < 0)
                        r = fail_system(job, "cannot read");
                else if (stop_wanted())
                        r = -ECANCELED;
                if (r || n <= 0)
                        break;
                add_hashes(job, buffer, (size_t)n);
                at += (uint64_t)n;
                progress_show(&progress, at);
        }
        progress_clear(&progress);
        free(buffer);
        job->file->have = at;
        return r;
}

static int open_part(struct job *job)
{
        char path[STORE_PATH_BYTES];

        if (!incoming_path(job->ask->incoming, job->file->name, ".part", path))
                return -ENAMETOOLONG;
        job->fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (job->fd < 0)
                return fail_system(job, "cannot write");
        if (incoming_read_state(job->ask->incoming, job->file->name, &job->known))
                job->known = (struct incoming_state){ 0 };
        begin_hashes(job);
        return job->file->have ? hash_part(job) : 0;
}

/* From the beginning. */
static int empty_part(struct job *job)
{
        job->file->have = 0;
        job->skip = 0;
        begin_hashes(job);
        return ftruncate(job->fd, 0) < 0 ? fail_system(job, "cannot write") : 0;
}

/* ---- a try ---- */

static bool stop_job(struct job *job, enum stop stop)
{
        job->stop = stop;
        return false;
}

/* "bytes 100-199/200": false if it is not that; a total of * is 0. */
static bool read_range(const char *field, uint64_t *ret_from, uint64_t *ret_total)
{
        uint64_t to = 0;
        int end = 0;

        *ret_from = *ret_total = 0;
        if (!field)
                return false;
        if (!strncmp(field, "bytes */", 8)) {
                *ret_total = get_size(field + 8);
                return *ret_total;
        }
        if (sscanf(field, "bytes %" SCNu64 "-%" SCNu64 "/%n", ret_from, &to, &end) != 2 || !end)
                return false;
        *ret_total = get_size(field + end);
        return to >= *ret_from && (*ret_total || !strcmp(field + end, "*"));
}

/* The size that the answer says is not that of the file. */
static bool check_total(struct job *job, uint64_t total)
{
        if (!total || !job->file->size_known || total == job->file->bytes) {
                if (total && !job->file->size_known) {
                        job->file->bytes = total;
                        job->file->size_known = true;
                }
                return true;
        }
        snprintf(job->why, sizeof(job->why),
                 "%s: the server says that it has %" PRIu64 " bytes, but it should have %" PRIu64,
                 job->file->name, total, job->file->bytes);
        return stop_job(job, STOP_RETRY);
}

/* The server sends the whole file.  Our part is of use if the file is still the same. */
static bool take_whole(struct job *job, const char *validator, const struct web_head *head)
{
        bool same = *job->file->digest || (*validator && !strcmp(validator, job->known.etag));

        if (!check_total(job, get_size(web_field(head, "content-length"))))
                return false;
        if (job->file->have && same)
                job->skip = job->file->have;
        else if (job->file->have && empty_part(job))
                return stop_job(job, STOP_FAIL);
        return true;
}

static bool take_rest(struct job *job, const char *validator, const struct web_head *head)
{
        uint64_t from, total;

        if (!read_range(web_field(head, "content-range"), &from, &total) ||
            from != job->file->have) {
                snprintf(job->why, sizeof(job->why),
                         "%s: the server sent another range than that from byte %" PRIu64,
                         job->file->name, job->file->have);
                return stop_job(job, STOP_RESTART);
        }
        if (job->file->have && !*job->file->digest && strcmp(validator, job->known.etag)) {
                snprintf(job->why, sizeof(job->why), "%s: the file has changed on the server",
                         job->file->name);
                return stop_job(job, STOP_RESTART);
        }
        return check_total(job, total);
}

/*
 * Status 416: the server has nothing behind our part.  Either the part is the whole file, or it is
 * of another one.
 */
static bool take_nothing(struct job *job, const struct web_head *head)
{
        uint64_t from, total;

        job->complete = read_range(web_field(head, "content-range"), &from, &total) &&
                        total == job->file->have &&
                        (!job->file->size_known || total == job->file->bytes);
        if (job->complete)
                return true;
        snprintf(job->why, sizeof(job->why), "%s: the server does not have byte %" PRIu64,
                 job->file->name, job->file->have);
        return stop_job(job, STOP_RESTART);
}

static bool refuse_status(struct job *job, int status, const struct web_head *head)
{
        const char *code = web_field(head, "x-error-code"),
                   *text = web_field(head, "x-error-message");

        if (job->ask->hub)
                hub_explain(job->ask->hub, job->ask->source, status, code ? code : "",
                            text ? text : "", job->why, sizeof(job->why));
        else
                snprintf(job->why, sizeof(job->why), "%s: the server answers with status %d%s",
                         job->file->name, status,
                         status == 401 || status == 403 ? ", it wants a password or a key"
                         : status == 404                ? ", there is no such file"
                                                        : "");
        return stop_job(job, STOP_FAIL);
}

/* We ask for the bytes as they are, and could neither continue nor check others. */
static bool is_compressed(struct job *job, const char *coding)
{
        static const char *const codings[] = {
                "gzip", "x-gzip", "deflate", "compress", "br", "zstd"
        };

        for (size_t i = 0; coding && i < sizeof(codings) / sizeof(*codings); i++) {
                if (strcasecmp(coding, codings[i]))
                        continue;
                snprintf(job->why, sizeof(job->why),
                         "%s: the server sends it compressed (%s), although it was asked not to",
                         job->file->name, codings[i]);
                return true;
        }
        return false;
}

static void note_validator(struct job *job, const char *validator)
{
        struct incoming_state *known = &job->known;

        source_public_url(job->file->url, known->url, sizeof(known->url));
        snprintf(known->etag, sizeof(known->etag), "%s", validator);
        snprintf(known->digest, sizeof(known->digest), "%s", job->file->digest);
        known->bytes = job->file->bytes;
        *known->sha256 = '\0';
        snprintf(job->file->revision, sizeof(job->file->revision), "%s", validator);
        incoming_write_state(job->ask->incoming, job->file->name, known);
}

static bool on_head(void *arg, int status, const struct web_head *head)
{
        struct job *job = arg;
        char validator[VALIDATOR_BYTES];
        bool good;

        if (retry_is_temporary(status)) {
                job->after_s =
                        retry_after_s(web_field(head, "retry-after"), web_field(head, "ratelimit"));
                snprintf(job->why, sizeof(job->why), "%s: the server answers with status %d%s",
                         job->file->name, status, status == 429 ? ", too many requests" : "");
                return stop_job(job, STOP_RETRY);
        }
        if (status == 416)
                return take_nothing(job, head);
        if (status != 200 && status != 206)
                return refuse_status(job, status, head);
        if (is_compressed(job, web_field(head, "content-encoding")))
                return stop_job(job, STOP_FAIL);
        get_validator(head, validator);
        good = status == 200 ? take_whole(job, validator, head) : take_rest(job, validator, head);
        if (good)
                note_validator(job, validator);
        return good;
}

static int write_bytes(struct job *job, const uint8_t *at, size_t count)
{
        while (count) {
                ssize_t n = pwrite(job->fd, at, count, (off_t)job->file->have);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return fail_system(job, "cannot write");
                add_hashes(job, at, (size_t)n);
                job->file->have += (uint64_t)n;
                at += n;
                count -= (size_t)n;
        }
        return 0;
}

static bool on_data(void *arg, const void *bytes, size_t count)
{
        struct job *job = arg;
        const uint8_t *at = bytes;
        size_t skip = job->skip < count ? (size_t)job->skip : count;

        if (job->complete)
                return true; /* the text of a status 416 */
        job->skip -= skip;
        at += skip;
        count -= skip;
        if (job->file->size_known && job->file->have + count > job->file->bytes) {
                snprintf(job->why, sizeof(job->why),
                         "%s: the server sends more than the %" PRIu64 " bytes that it should have",
                         job->file->name, job->file->bytes);
                return stop_job(job, STOP_RESTART);
        }
        return !write_bytes(job, at, count) || stop_job(job, STOP_FAIL);
}

/* ---- the end of a try ---- */

static void try_later(struct job *job)
{
        char text[AMOUNT_BYTES];

        if (job->file->have > job->best) {
                job->best = job->file->have;
                retry_progress(&job->retry);
        }
        if (!retry_later(&job->retry, job->after_s)) {
                job->state = JOB_FAILED;
                job->error = -EIO;
                if (job->after_s > RETRY_AFTER_MAX_S)
                        snprintf(job->why + strlen(job->why), sizeof(job->why) - strlen(job->why),
                                 "; it wants us to wait %s", amount_wait(job->after_s, text));
                return;
        }
        job->state = JOB_WAITS;
        progress_clear(job->ask->progress);
        say("%s; trying again in %s", job->why,
            amount_wait((job->retry.at_ms - clock_ms() + 999) / 1000, text));
}

static void restart(struct job *job)
{
        if (empty_part(job)) {
                job->state = JOB_FAILED;
                return;
        }
        try_later(job);
}

static bool is_right(struct job *job, char ret_is[SHA256_HEX_BYTES])
{
        struct sha256 hash = job->hash;

        sha256_end_hex(&hash, job->file->sha256);
        snprintf(ret_is, SHA256_HEX_BYTES, "%s", job->file->sha256);
        if (job->is_blob)
                sha1_end_hex(&job->blob, ret_is);
        return strlen(job->file->digest) != (job->is_blob ? 40u : 64u) ||
               !strcasecmp(ret_is, job->file->digest);
}

static int keep_whole(struct job *job)
{
        char whole[STORE_PATH_BYTES], part[STORE_PATH_BYTES];

        if (fdatasync(job->fd) < 0)
                return fail_system(job, "cannot write");
        close(job->fd);
        job->fd = -1;
        incoming_path(job->ask->incoming, job->file->name, "", whole);
        incoming_path(job->ask->incoming, job->file->name, ".part", part);
        job->known.bytes = job->file->have;
        snprintf(job->known.sha256, sizeof(job->known.sha256), "%s", job->file->sha256);
        if (incoming_write_state(job->ask->incoming, job->file->name, &job->known) ||
            rename(part, whole) < 0)
                return fail_system(job, "cannot write");
        return 0;
}

static void finish(struct job *job)
{
        char is[SHA256_HEX_BYTES];

        if (job->skip) {
                snprintf(job->why, sizeof(job->why),
                         "%s: the answer ended %" PRIu64 " bytes before what is there already",
                         job->file->name, job->skip);
                try_later(job);
        } else if (job->file->size_known && job->file->have < job->file->bytes) {
                snprintf(job->why, sizeof(job->why),
                         "%s: the answer ended %" PRIu64 " bytes before the end of the file",
                         job->file->name, job->file->bytes - job->file->have);
                try_later(job);
        } else if (!is_right(job, is)) {
                snprintf(job->why, sizeof(job->why), "%s: its %s is %s, but %s %s%s",
                         job->file->name, job->is_blob ? "git id" : "SHA-256", is,
                         job->ask->digest_is_given ? "--sha256 says" : "it should be",
                         job->file->digest,
                         job->ask->digest_is_given
                                 ? ""
                                 : ": the server or something on the way has changed it");
                if (!job->ask->digest_is_given && ++job->wrong < WRONG_MAX) {
                        restart(job);
                } else {
                        empty_part(job);
                        job->state = JOB_FAILED;
                        job->error = -EBADMSG;
                }
        } else {
                job->file->bytes = job->file->have;
                job->file->size_known = true;
                job->state = keep_whole(job) ? JOB_FAILED : JOB_DONE;
        }
}

static void on_end(void *arg, enum web_end end, const char *why)
{
        struct job *job = arg;

        job->request = NULL;
        if (job->stop == STOP_FAIL) {
                job->state = JOB_FAILED;
                job->error = job->error ? job->error : -ENOENT;
        } else if (job->stop == STOP_RESTART) {
                restart(job);
        } else if (job->stop == STOP_RETRY) {
                try_later(job);
        } else if (end == WEB_GOOD || job->complete) {
                finish(job);
        } else {
                snprintf(job->why, sizeof(job->why), "%s: %s", job->file->name, why ? why : "");
                if (end == WEB_LOST) {
                        try_later(job);
                } else {
                        job->state = JOB_FAILED;
                        job->error = -EIO;
                }
        }
}

static int begin_try(struct job *job)
{
        const struct fetch_ask *ask = job->ask;
        struct fetch_file *file = job->file;
        struct web_field fields[2];
        size_t count = 0;
        int r = job->fd < 0 ? open_part(job) : 0;

        if (r)
                return r;
        if (ask->hub && *ask->hub->authorization)
                fields[count++] = (struct web_field){ "Authorization", ask->hub->authorization };
        if (file->have && *job->known.etag && !*file->digest)
                fields[count++] = (struct web_field){ "If-Range", job->known.etag };
        job->stop = STOP_NONE;
        job->complete = false;
        job->skip = 0;
        job->after_s = 0;
        if (job->best < file->have)
                job->best = file->have;
        job->state = JOB_RUNS;
        if (*file->digest && file->size_known && file->have == file->bytes) {
                finish(job); /* only the end was missing */
                return 0;
        }
        return web_begin(ask->web,
                         &(struct web_ask){ .url = file->url,
                                            .fields = fields,
                                            .field_count = count,
                                            .from = file->have,
                                            .stall_ms = STALL_MS,
                                            .bulk = true,
                                            .on_head = on_head,
                                            .on_data = on_data,
                                            .on_end = on_end,
                                            .arg = job },
                         &job->request);
}

/* ---- all files ---- */

/* Starts what may start.  0, or a negative errno: `*ret_failed` is the job that failed. */
static int start_jobs(struct job *jobs, size_t count, struct job **ret_failed)
{
        uint64_t now = clock_ms();
        unsigned running = 0;
        int r = 0;

        for (size_t i = 0; i < count; i++)
                running += jobs[i].state == JOB_RUNS;
        for (size_t i = 0; i < count && !r; i++) {
                if (jobs[i].state == JOB_WAITS && jobs[i].retry.at_ms <= now && running < AT_ONCE) {
                        *ret_failed = &jobs[i];
                        r = begin_try(&jobs[i]);
                        running++;
                }
                if (!r && jobs[i].state == JOB_FAILED) {
                        *ret_failed = &jobs[i];
                        r = jobs[i].error ? jobs[i].error : -EIO;
                }
        }
        if (!r)
                *ret_failed = NULL;
        return r;
}

static bool are_done(const struct job *jobs, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (jobs[i].state != JOB_DONE)
                        return false;
        return true;
}

static struct job *make_jobs(const struct fetch_ask *ask)
{
        struct job *jobs = calloc(ask->count, sizeof(*jobs));

        for (size_t i = 0; i < ask->count && jobs; i++) {
                jobs[i].ask = ask;
                jobs[i].file = &ask->files[i];
                jobs[i].fd = -1;
                jobs[i].retry.limit = ask->retries;
                if (*ask->files[i].sha256)
                        jobs[i].state = JOB_DONE;
        }
        return jobs;
}

static void free_jobs(struct job *jobs, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                if (jobs[i].request)
                        web_cancel(jobs[i].ask->web, jobs[i].request);
                if (jobs[i].fd >= 0)
                        close(jobs[i].fd);
        }
        free(jobs);
}

int fetch(const struct fetch_ask *ask, char *why, size_t why_bytes)
{
        struct job *jobs = make_jobs(ask), *failed = NULL;
        int r = jobs ? 0 : -ENOMEM;

        while (!r && !are_done(jobs, ask->count)) {
                r = start_jobs(jobs, ask->count, &failed);
                if (!r && !are_done(jobs, ask->count))
                        r = web_wait(ask->web, TICK_MS, NULL, 0);
                if (!r && stop_wanted())
                        r = -ECANCELED;
                ask->progress->total = total(ask);
                progress_show(ask->progress, sum(ask));
        }
        progress_clear(ask->progress);
        if (r)
                snprintf(why, why_bytes, "%s", failed && *failed->why ? failed->why : strerror(-r));
        if (jobs)
                free_jobs(jobs, ask->count);
        return r;
}
