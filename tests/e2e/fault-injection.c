#include "tests/e2e/fault-injection.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sys.h"

#define SITES_MAX 1024u
#define TOLD_MAX  32u

/* The site of an allocation is its return address; the site of a system call is its name. */
struct site {
        _Atomic uintptr_t key;
        _Atomic bool failed;
};

struct told {
        uintptr_t key;
        int error;
};

struct shared {
        struct fault_plan plan;
        _Atomic bool paused;
        _Atomic uint32_t met, failed; /* since armed */
        _Atomic uint64_t failed_ever;
        struct told told[TOLD_MAX];
        struct site sites[FAULT_KINDS][SITES_MAX];
};

static struct shared *shared;
static bool armed;

void faults_begin(void)
{
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                      0);
        assert(shared != MAP_FAILED);
}

uint32_t faults_stride(void)
{
        const char *given = getenv("SMV_FAULT_STRIDE");
        uint32_t n = given ? (uint32_t)strtoul(given, NULL, 10) : 0;

#ifdef FAULTS_WRAP
        return n ? n : 8;
#else
        return n ? n : 4;
#endif
}

/* A table without deletions: a key is found at or after its place, before the first gap. */
static struct site *find_site(enum fault_kind kind, uintptr_t key)
{
        size_t start = key * 0x9e3779b97f4a7c15u >> 32;

        for (size_t i = 0; i < SITES_MAX; i++) {
                struct site *site = &shared->sites[kind][(start + i) % SITES_MAX];
                uintptr_t none = 0;

                if (atomic_compare_exchange_strong(&site->key, &none, key) || none == key)
                        return site;
        }
        abort();
}

static bool fails(enum fault_kind kind, uintptr_t key, int error)
{
        const struct fault_plan *plan;
        struct site *site;
        uint32_t number, at;

        if (!armed || atomic_load(&shared->paused))
                return false;
        plan = &shared->plan;
        site = find_site(kind, key);
        if (plan->kind != kind)
                return false;
        number = atomic_fetch_add(&shared->met, 1);
        if (number - plan->first >= plan->count)
                return false;

        atomic_store(&site->failed, true);
        atomic_fetch_add(&shared->failed_ever, 1);
        at = atomic_fetch_add(&shared->failed, 1);
        if (at < TOLD_MAX)
                shared->told[at] = (struct told){ .key = key, .error = error };
        return true;
}

/* ---- system calls ---- */

#define FLAVOURS 2

static const struct {
        const char *call;
        int errors[FLAVOURS];
} ways[] = {
        { "accept", { EMFILE, ECONNABORTED } },
        { "bind", { EADDRINUSE, EACCES } },
        { "connect", { ECONNREFUSED, EAGAIN } },
        { "eventfd", { EMFILE, ENOMEM } },
        { "fadvise", { EINVAL, ENOSYS } },
        { "fallocate", { ENOSPC, EOPNOTSUPP } },
        { "fchmod", { EPERM, EROFS } },
        { "fcntl", { EPERM, EBADF } },
        { "flock", { EWOULDBLOCK, ENOLCK } },
        { "fstat", { EIO, ENOMEM } },
        { "ftruncate", { EFBIG, ENOSPC } },
        { "getpeername", { ENOTCONN, ENOBUFS } },
        { "getpwnam", { EMFILE, EIO } },
        { "getrandom", { ENOSYS, EAGAIN } },
        { "affinity", { EPERM, EINVAL } },
        { "getrlimit", { EPERM, EINVAL } },
        { "getsockname", { ENOBUFS, ENOTSOCK } },
        { "getsockopt", { ENOBUFS, ENOPROTOOPT } },
        { "io_uring_enter", { EIO, EBADR } },
        { "io_uring_read", { EIO, EISDIR } },
        { "io_uring_setup", { EPERM, ENOSYS } },
        { "listen", { EADDRINUSE, ENOBUFS } },
        { "lstat", { EACCES, ENOENT } },
        { "memfd_create", { EMFILE, ENOSYS } },
        { "mkdir", { EACCES, ENOSPC } },
        { "mmap", { ENOMEM, ENOMEM } },
        { "open", { EMFILE, ENOENT } },
        { "openat", { EMFILE, ENOENT } },
        { "poll", { ENOMEM, EINVAL } },
        { "pread", { EIO, EISDIR } },
        { "preadv2", { EOPNOTSUPP, EAGAIN } },
        { "read", { EIO, ECONNRESET } },
        { "reopen", { EMFILE, ENOENT } },
        { "send", { EPIPE, ENOBUFS } },
        { "sendmsg", { ETOOMANYREFS, EPIPE } },
        { "setrlimit", { EPERM, EINVAL } },
        { "setsockopt", { ENOBUFS, ENOPROTOOPT } },
        { "socket", { EMFILE, ENFILE } },
        { "thread", { EAGAIN, EPERM } },
        { "unlink", { EACCES, EROFS } },
        { "write", { EAGAIN, ENOSPC } },
};

/* A helper thread writes to nothing but its bell, an eventfd; that write cannot fail. */
static bool cannot_fail(const char *call)
{
        return !strcmp(call, "write") && gettid() != getpid();
}

static int fail_call(const char *call, void *arg)
{
        (void)arg;
        for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
                int error = ways[i].errors[shared->plan.flavour % FLAVOURS];

                if (strcmp(ways[i].call, call))
                        continue;
                return !cannot_fail(call) && fails(FAULT_CALL, (uintptr_t)ways[i].call, error)
                               ? -error
                               : 0;
        }
        fprintf(stderr, "fault-injection.c does not know how %s fails\n", call);
        abort();
}

void faults_arm(const struct fault_plan *plan)
{
        shared->plan = *plan;
        atomic_store(&shared->paused, false);
        atomic_store(&shared->met, 0);
        atomic_store(&shared->failed, 0);
        armed = true;
        sys_set_fault(fail_call, NULL);
}

void faults_disarm(void)
{
        armed = false;
        sys_set_fault(NULL, NULL);
}

void faults_pause(bool paused)
{
        atomic_store(&shared->paused, paused);
}

/* ---- reports ---- */

uint32_t faults_failed(void)
{
        return atomic_load(&shared->failed);
}

static uint32_t logprob_count(void)
{
        uint32_t failed = faults_failed();

        return failed < TOLD_MAX ? failed : TOLD_MAX;
}

bool faults_failed_call(const char *call)
{
        for (uint32_t i = 0; i < logprob_count() && shared->plan.kind == FAULT_CALL; i++)
                if (!strcmp((const char *)shared->told[i].key, call))
                        return true;
        return false;
}

bool faults_failed_in_libc(void)
{
        Dl_info info = { 0 };

        if (!logprob_count() || shared->plan.kind != FAULT_ALLOC)
                return false;
        dladdr((void *)shared->told[0].key, &info);
        return info.dli_fname && strstr(info.dli_fname, "/libc.so");
}

static void tell_site(FILE *to, enum fault_kind kind, uintptr_t key)
{
        Dl_info info = { 0 };

        if (kind == FAULT_CALL) {
                fprintf(to, "%s", (const char *)key);
        } else {
                dladdr((void *)key, &info);
                fprintf(to, "%s+%#lx", info.dli_fname ? info.dli_fname : "?",
                        (unsigned long)(key - (uintptr_t)info.dli_fbase));
        }
}

void faults_print(FILE *to)
{
        for (uint32_t i = 0; i < logprob_count(); i++) {
                fprintf(to, "#   failed ");
                tell_site(to, shared->plan.kind, shared->told[i].key);
                fprintf(to, ": %s\n", strerror(shared->told[i].error));
        }
}

struct faults_sum faults_sum(void)
{
        struct faults_sum sum = { .failed = atomic_load(&shared->failed_ever) };

        for (size_t kind = 0; kind < FAULT_KINDS; kind++) {
                for (size_t i = 0; i < SITES_MAX; i++) {
                        sum.sites_met[kind] += atomic_load(&shared->sites[kind][i].key) != 0;
                        sum.sites_failed[kind] += atomic_load(&shared->sites[kind][i].failed);
                }
        }
        return sum;
}

static bool was_met(const char *call)
{
        for (size_t i = 0; i < SITES_MAX; i++) {
                uintptr_t key = atomic_load(&shared->sites[FAULT_CALL][i].key);

                if (key && !strcmp((const char *)key, call))
                        return true;
        }
        return false;
}

void faults_print_missed(FILE *to)
{
        bool of_a_daemon = was_met("accept");

        for (size_t i = 0; of_a_daemon && i < sizeof(ways) / sizeof(*ways); i++)
                if (!was_met(ways[i].call))
                        fprintf(to, "#   never asked for: %s\n", ways[i].call);
        for (size_t kind = 0; kind < FAULT_KINDS; kind++) {
                for (size_t i = 0; i < SITES_MAX; i++) {
                        struct site *site = &shared->sites[kind][i];

                        if (!atomic_load(&site->key) || atomic_load(&site->failed))
                                continue;
                        fprintf(to, "#   never failed: ");
                        tell_site(to, kind, atomic_load(&site->key));
                        fprintf(to, "\n");
                }
        }
}

/* ---- allocations ---- */

#ifdef FAULTS_WRAP
#define OURS(name) __wrap_##name
#define REAL(name) __real_##name
#define PROTOTYPE(type, name, ...)                                                                 \
        type REAL(name)(__VA_ARGS__);                                                              \
        type OURS(name)(__VA_ARGS__)
#else
#define OURS(name)                 name
#define REAL(name)                 __libc_##name
#define PROTOTYPE(type, name, ...) type REAL(name)(__VA_ARGS__)
#endif

PROTOTYPE(void *, malloc, size_t bytes);
PROTOTYPE(void *, calloc, size_t count, size_t bytes);
PROTOTYPE(void *, realloc, void *memory, size_t bytes);

#define FAILS fails(FAULT_ALLOC, (uintptr_t)__builtin_return_address(0), ENOMEM)

static void *no_memory(void)
{
        errno = ENOMEM;
        return NULL;
}

void *OURS(malloc)(size_t bytes)
{
        return FAILS ? no_memory() : REAL(malloc)(bytes);
}

void *OURS(calloc)(size_t count, size_t bytes)
{
        return FAILS ? no_memory() : REAL(calloc)(count, bytes);
}

void *OURS(realloc)(void *memory, size_t bytes)
{
        return FAILS ? no_memory() : REAL(realloc)(memory, bytes);
}

#ifdef FAULTS_WRAP

PROTOTYPE(void *, aligned_alloc, size_t alignment, size_t bytes);
PROTOTYPE(int, posix_memalign, void **ret_memory, size_t alignment, size_t bytes);
PROTOTYPE(void *, reallocarray, void *memory, size_t count, size_t bytes);
PROTOTYPE(char *, strdup, const char *text);

void *OURS(aligned_alloc)(size_t alignment, size_t bytes)
{
        return FAILS ? no_memory() : REAL(aligned_alloc)(alignment, bytes);
}

int OURS(posix_memalign)(void **ret_memory, size_t alignment, size_t bytes)
{
        return FAILS ? ENOMEM : REAL(posix_memalign)(ret_memory, alignment, bytes);
}

void *OURS(reallocarray)(void *memory, size_t count, size_t bytes)
{
        return FAILS ? no_memory() : REAL(reallocarray)(memory, count, bytes);
}

char *OURS(strdup)(const char *text)
{
        return FAILS ? no_memory() : REAL(strdup)(text);
}

#else

/* The C library's own reallocarray() and strdup() call malloc() and realloc(), which are ours. */
void *__libc_memalign(size_t alignment, size_t bytes);

void *aligned_alloc(size_t alignment, size_t bytes)
{
        return FAILS ? no_memory() : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **ret_memory, size_t alignment, size_t bytes)
{
        void *memory = FAILS ? NULL : __libc_memalign(alignment, bytes);

        if (!memory)
                return ENOMEM;
        *ret_memory = memory;
        return 0;
}

#endif
