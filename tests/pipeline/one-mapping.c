/*
 * mmap() has the name that it has with 64-bit file offsets; the linker puts these functions before
 * it.
 */
#include "tests/pipeline/one-mapping.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SEGMENTS_MAX 64u

struct mapped {
        void *at; /* NULL: none */
        ino_t inode;
        uint32_t holds;
};

static struct mapped segments[SEGMENTS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t joined;

void *__real_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);

static struct mapped *find(const void *at, ino_t inode)
{
        for (uint32_t i = 0; i < SEGMENTS_MAX; i++)
                if (at ? segments[i].at == at : segments[i].at && segments[i].inode == inode)
                        return &segments[i];
        return NULL;
}

static struct mapped *find_gap(void)
{
        for (uint32_t i = 0; i < SEGMENTS_MAX; i++)
                if (!segments[i].at)
                        return &segments[i];
        return NULL;
}

void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
        struct mapped *mapped;
        struct stat file;

        if (fd < 0 || fstat(fd, &file) || !(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK))
                return __real_mmap64(at, bytes, protection, flags, fd, offset);

        pthread_mutex_lock(&lock);
        mapped = find(NULL, file.st_ino);
        if (!mapped) {
                mapped = find_gap();
                at = __real_mmap64(at, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
                if (mapped && at != MAP_FAILED)
                        *mapped = (struct mapped){ .at = at, .inode = file.st_ino };
        }
        if (mapped && mapped->at) {
                joined += mapped->holds++ > 0;
                at = mapped->at;
        }
        pthread_mutex_unlock(&lock);
        return at;
}

int __wrap_munmap(void *at, size_t bytes)
{
        struct mapped *mapped;
        int r = 0;

        pthread_mutex_lock(&lock);
        mapped = find(at, 0);
        if (!mapped || --mapped->holds == 0) {
                r = __real_munmap(at, bytes);
                if (mapped)
                        mapped->at = NULL;
        }
        pthread_mutex_unlock(&lock);
        return r;
}

uint32_t one_mapping_joined(void)
{
        uint32_t count;

        pthread_mutex_lock(&lock);
        count = joined;
        pthread_mutex_unlock(&lock);
        return count;
}
