/*
 * Counts allocations of the whole process, libraries included: by the sanitizer's
 * hooks where there is one, else by standing in for malloc.
 */
#ifndef TESTS_UNIT_COUNT_ALLOC_H
#define TESTS_UNIT_COUNT_ALLOC_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNT_BY_HOOK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNT_BY_HOOK 1
#endif
#endif

static volatile unsigned long alloc_count;

#ifdef COUNT_BY_HOOK

int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                              void (*on_free)(const volatile void *));

static void on_malloc(const volatile void *at, size_t bytes)
{
        (void)at;
        (void)bytes;
        alloc_count++;
}

static void on_free(const volatile void *at)
{
        (void)at;
}

static void count_allocs(void)
{
        __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}

#else

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *at, size_t bytes);

void *malloc(size_t bytes)
{
        alloc_count++;
        return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
        alloc_count++;
        return __libc_calloc(count, bytes);
}

void *realloc(void *at, size_t bytes)
{
        alloc_count++;
        return __libc_realloc(at, bytes);
}

static void count_allocs(void)
{
}

#endif
#endif
