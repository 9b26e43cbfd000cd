#include "cli/pull/source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* Behind the prefix, or NULL. */
static const char *behind(const char *text, const char *prefix)
{
        size_t bytes = strlen(prefix);

        return strncmp(text, prefix, bytes) ? NULL : text + bytes;
}

static bool ends_in(const char *text, const char *suffix)
{
        size_t bytes = strlen(text), end = strlen(suffix);

        return bytes > end && !strcmp(text + bytes - end, suffix);
}

/* The part of the address behind the hub's name; NULL: it is not of the hub. */
static const char *hub_path(const char *text, const char *endpoint)
{
        static const char *const hosts[] = { "https://huggingface.co/", "https://hf.co/",
                                             "huggingface.co/", "hf.co/" };
        const char *path;

        for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++)
                if ((path = behind(text, hosts[i])))
                        return path;
        path = behind(text, endpoint);
        return path && *path == '/' ? path + 1 : NULL;
}

/* Another file of the hub's host than those of repositories. */
static bool is_other_file(const char *path)
{
        size_t bytes = strcspn(path, "?#");

        return bytes > 5 && !strncmp(path + bytes - 5, ".gguf", 5) && !strstr(path, "/resolve/") &&
               !strstr(path, "/blob/");
}

static bool copy(char *to, size_t bytes, const char *from, size_t count)
{
        if (count >= bytes)
                return false;
        memcpy(to, from, count);
        to[count] = '\0';
        return true;
}

/* One or two words of LETTERS with a slash between. */
static bool is_repository(const char *text)
{
        size_t first = strspn(text, LETTERS), second;

        if (!first || strstr(text, "..") || (text[first] && text[first] != '/'))
                return false;
        if (!text[first])
                return true;
        second = strspn(text + first + 1, LETTERS);
        return second && !text[first + 1 + second];
}

/* A revision may be a reference with slashes: refs/pr/1. */
static bool is_revision(const char *text)
{
        return !strstr(text, "..") && !text[strspn(text, LETTERS "/")];
}

static bool is_wish(const char *text)
{
        for (const char *at = text; *at; at++)
                if ((unsigned char)*at < ' ' || *at == 0x7f)
                        return false;
        return *text != '/' && !strstr(text, "..") && !strpbrk(text, "?#%\\\"'<>{}|^`");
}

/* OWNER/NAME[:WANT][@REVISION], or @ before : */
static bool read_words(const char *text, struct source *source)
{
        const char *colon = strchr(text, ':'), *at = strchr(text, '@');
        const char *end = text + strlen(text), *first;

        first = colon && (!at || colon < at) ? colon : at ? at : end;
        if (!copy(source->repository, sizeof(source->repository), text, (size_t)(first - text)))
                return false;
        if (colon && !copy(source->want, sizeof(source->want), colon + 1,
                           (size_t)((at && at > colon ? at : end) - colon - 1)))
                return false;
        if (at && !copy(source->revision, sizeof(source->revision), at + 1,
                        (size_t)((colon && colon > at ? colon : end) - at - 1)))
                return false;
        return (!colon || *source->want) && (!at || *source->revision);
}

static int digit_of(char letter)
{
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *at = letter ? strchr(digits, letter) : NULL;

        return at ? (int)(at - digits) % 16 : -1;
}

/* Turns %2F into a slash, as the site writes revisions, and so on; the rest stays. */
static void unescape(char *text)
{
        char *to = text;

        for (; *text; text++) {
                int high = *text == '%' ? digit_of(text[1]) : -1;
                int low = high < 0 ? -1 : digit_of(text[2]);

                *to++ = low < 0 ? *text : (char)(high * 16 + low);
                text += low < 0 ? 0 : 2;
                if (!to[-1])
                        to[-1] = '%'; /* which neither a file nor a revision may have */
        }
        *to = '\0';
}

/* OWNER/NAME, or OWNER/NAME/resolve/REVISION/FILE; also blob and tree. */
static bool read_address(const char *path, struct source *source)
{
        static const char *const kinds[] = { "/resolve/", "/blob/", "/tree/" };
        size_t count = strcspn(path, "?#");
        const char *kind = NULL, *slash;
        char whole[512];

        if (!copy(whole, sizeof(whole), path, count))
                return false;
        while (count && whole[count - 1] == '/')
                whole[--count] = '\0';
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && !kind; i++)
                if ((kind = strstr(whole, kinds[i])))
                        slash = kind + strlen(kinds[i]);
        if (!kind)
                return read_words(whole, source);
        count = strcspn(slash, "/");
        if (!copy(source->repository, sizeof(source->repository), whole, (size_t)(kind - whole)) ||
            !copy(source->revision, sizeof(source->revision), slash, count) ||
            (slash[count] && !copy(source->want, sizeof(source->want), slash + count + 1,
                                   strlen(slash + count + 1))))
                return false;
        unescape(source->revision);
        unescape(source->want);
        return true;
}

static int refuse_hub(const char *text, char *why, size_t why_bytes)
{
        snprintf(why, why_bytes,
                 "%.200s names no model: a repository of Hugging Face is OWNER/NAME, "
                 "OWNER/NAME:Q4_K_M, OWNER/NAME:FILE or OWNER/NAME@REVISION; a file of this "
                 "machine begins with ./ or /",
                 text);
        return -EINVAL;
}

static int read_hub(const char *text, bool is_address, const char *given, struct source *source,
                    char *why, size_t why_bytes)
{
        source->kind = SOURCE_HUB;
        if (!(is_address ? read_address(text, source) : read_words(text, source)) ||
            !is_repository(source->repository) || !is_wish(source->want) ||
            !is_revision(source->revision))
                return refuse_hub(given, why, why_bytes);
        return 0;
}

static bool is_path(const char *text)
{
        struct stat file;

        if (*text == '/' || *text == '.' || *text == '~')
                return true;
        return (ends_in(text, ".gguf") || ends_in(text, ".safetensors")) && !stat(text, &file);
}

int source_read(const char *text, const char *endpoint, struct source *ret_source, char *why,
                size_t why_bytes)
{
        const char *path;

        *ret_source = (struct source){ 0 };
        if ((path = behind(text, "hf:")))
                return read_hub(path, false, text, ret_source, why, why_bytes);
        path = hub_path(text, endpoint);
        if (path && !is_other_file(path))
                return read_hub(path, true, text, ret_source, why, why_bytes);
        path = behind(text, "file://");
        if (path || is_path(text)) {
                ret_source->kind = SOURCE_PATH;
                path = path ? path : text;
        } else if (behind(text, "http://") || behind(text, "https://")) {
                ret_source->kind = SOURCE_URL;
                path = text;
        } else if (strchr(text, '/') && !strstr(text, "://")) {
                return read_hub(text, false, text, ret_source, why, why_bytes);
        } else {
                return refuse_hub(text, why, why_bytes);
        }
        if (copy(ret_source->place, sizeof(ret_source->place), path, strlen(path)))
                return 0;
        snprintf(why, why_bytes, "the address is longer than %zu bytes",
                 sizeof(ret_source->place) - 1);
        return -EINVAL;
}

void source_public_url(const char *url, char *to, size_t bytes)
{
        const char *end = url + strcspn(url, "?#"), *user = strstr(url, "://"), *host;

        user = user && user < end ? user + 3 : url;
        host = user;
        for (const char *at = user; at < end && *at != '/'; at++)
                if (*at == '@')
                        host = at + 1;
        snprintf(to, bytes, "%.*s%.*s", (int)(user - url), url, (int)(end - host), host);
}

void source_write(const struct source *source, char *to, size_t bytes)
{
        if (source->kind == SOURCE_HUB)
                snprintf(to, bytes, "hf:%s%s%s%s%s", source->repository, *source->want ? ":" : "",
                         source->want, *source->revision ? "@" : "", source->revision);
        else if (source->kind == SOURCE_URL)
                source_public_url(source->place, to, bytes);
        else
                snprintf(to, bytes, "file://%s", source->place);
}
