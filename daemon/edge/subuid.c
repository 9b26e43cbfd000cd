#include "daemon/edge/subuid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"

#define FILE_BYTES_MAX (1u << 20)
/* "alice:100000:65536" */
#define PARTS 3

struct range {
        uint32_t first, count, account;
};

struct subuid {
        const char *path;
        uint32_t owner;
        struct range *ranges; /* in the order of the file */
        uint32_t count;
};

int subuid_new(const char *path, uint32_t owner, struct subuid **ret_subuid)
{
        struct subuid *subuid = calloc(1, sizeof(*subuid));

        if (!subuid)
                return error_raise(-ENOMEM);
        subuid->path = path;
        subuid->owner = owner;
        *ret_subuid = subuid;
        return 0;
}

struct subuid *subuid_free(struct subuid *subuid)
{
        if (!subuid)
                return NULL;
        free(subuid->ranges);
        free(subuid);
        return NULL;
}

uint32_t subuid_account(const struct subuid *subuid, uint32_t uid)
{
        for (uint32_t i = 0; i < subuid->count; i++) {
                const struct range *range = &subuid->ranges[i];

                if (uid >= range->first && uid - range->first < range->count)
                        return range->account;
        }
        return uid;
}

/* ---- the file ---- */

static bool read_number(const char *text, uint32_t *ret_number)
{
        uint64_t n = 0;

        if (!*text)
                return false;
        for (; *text >= '0' && *text <= '9'; text++) {
                n = n * 10 + (uint64_t)(*text - '0');
                if (n > UINT32_MAX)
                        return false;
        }
        *ret_number = (uint32_t)n;
        return !*text;
}

static bool is_privileged(const struct subuid *subuid, uint32_t uid)
{
        return !uid || uid == subuid->owner;
}

/* 0; 1: the line gives no range; or a negative errno. */
static int read_range(const struct subuid *subuid, char *line, struct range *ret_range)
{
        char *parts[PARTS], *rest = line;
        int r = 0;

        for (int i = 0; i < PARTS; i++)
                parts[i] = strsep(&rest, ":");
        if (rest || !parts[1] || !parts[2] || !*parts[0] ||
            !read_number(parts[1], &ret_range->first) ||
            !read_number(parts[2], &ret_range->count) || !ret_range->count ||
            ret_range->count > UINT32_MAX - ret_range->first)
                return 1;
        if (!read_number(parts[0], &ret_range->account))
                r = sys_user(parts[0], &ret_range->account);
        if (r)
                return r == -ENOENT ? 1 : error_raise(r);
        if (!is_privileged(subuid, ret_range->account))
                return 0;
        /* Its account is the first uid in the range that is neither root's nor the owner's. */
        ret_range->account = ret_range->first;
        while (is_privileged(subuid, ret_range->account))
                ret_range->account++;
        return ret_range->account - ret_range->first < ret_range->count ? 0 : 1;
}

/* `text` has as many lines as `ranges` has room for. */
static int parse(const struct subuid *subuid, char *text, struct range *ranges, uint32_t *ret_count)
{
        uint32_t count = 0, skipped = 0;
        char *line;

        while ((line = strsep(&text, "\n"))) {
                int r;

                if (!*line || *line == '#')
                        continue;
                r = read_range(subuid, line, &ranges[count]);
                if (r < 0)
                        return error_pass(r);
                count += !r;
                skipped += r;
        }
        if (skipped)
                log_warn("subuid_lines_skipped file=%s lines=%u", subuid->path, skipped);
        *ret_count = count;
        return 0;
}

/* NUL-ended.  A missing file is an empty one. */
static int read_file(const char *path, char **ret_text)
{
        char *text = malloc(FILE_BYTES_MAX + 1);
        size_t have = 0;
        ssize_t n = 1;
        int fd;

        if (!text)
                return error_raise(-ENOMEM);
        fd = sys_open(path, O_RDONLY | O_NONBLOCK, 0);
        if (fd == -ENOENT)
                n = 0;
        else if (fd < 0)
                n = fd;
        while (n > 0 && have < FILE_BYTES_MAX) {
                n = sys_read(fd, text + have, FILE_BYTES_MAX - have);
                have += n > 0 ? (size_t)n : 0;
        }
        if (fd >= 0)
                sys_close(fd);
        if (n) {
                free(text);
                return error_raise(n < 0 ? (int)n : -EFBIG);
        }
        text[have] = '\0';
        *ret_text = text;
        return 0;
}

int subuid_load(struct subuid *subuid)
{
        struct range *ranges = NULL;
        uint32_t lines = 1, count = 0;
        char *text = NULL;
        int r;

        r = read_file(subuid->path, &text);
        if (r)
                return error_pass(r);
        for (const char *at = text; (at = strchr(at, '\n')); at++)
                lines++;
        ranges = calloc(lines, sizeof(*ranges));
        r = ranges ? parse(subuid, text, ranges, &count) : error_raise(-ENOMEM);
        free(text);
        if (r) {
                free(ranges);
                return error_pass(r);
        }
        free(subuid->ranges);
        subuid->ranges = ranges;
        subuid->count = count;
        return 0;
}
