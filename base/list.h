/*
 * An intrusive list: circular and doubly linked.
 *
 * The list and its links are of one type.  An object that is to be in a list has a member
 * `struct list_head`, one for each list that it can be in at the same time:
 *
 *      struct job { struct list_head link; ... };
 *      struct list_head jobs;
 *
 *      list_init(&jobs);
 *      list_push_back(&jobs, &job->link);
 *      list_each_safe(at, &jobs)
 *              job_free(LIST_ENTRY(at, struct job, link));
 *
 * Nothing here allocates; each function takes constant time.  A list does not own its objects.
 * list_init() makes an empty list, or a link that is in no list.  A zeroed link is in no list
 * either.  To remove a link that is in no list does nothing.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

struct list_head {
        struct list_head *next, *prev;
};

/* The object whose member `member` is this link. */
#define LIST_ENTRY(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

static inline void list_init(struct list_head *list)
{
        list->next = list->prev = list;
}

/* Of a list: has it no objects?  Of a link: is it in no list? */
static inline bool list_is_empty(const struct list_head *list)
{
        return !list->next || list->next == list;
}

/* The first and the last link, or NULL if the list is empty. */
static inline struct list_head *list_first(const struct list_head *list)
{
        return list_is_empty(list) ? NULL : list->next;
}

static inline struct list_head *list_last(const struct list_head *list)
{
        return list_is_empty(list) ? NULL : list->prev;
}

/* Puts a link, which is in no list, in front of `at`: another link, or the list (at its end). */
static inline void list_insert_before(struct list_head *at, struct list_head *link)
{
        assert(list_is_empty(link));

        link->next = at;
        link->prev = at->prev;
        at->prev->next = link;
        at->prev = link;
}

static inline void list_push_back(struct list_head *list, struct list_head *link)
{
        list_insert_before(list, link);
}

static inline void list_push_front(struct list_head *list, struct list_head *link)
{
        list_insert_before(list->next, link);
}

static inline void list_remove(struct list_head *link)
{
        if (!link->next)
                return;
        link->next->prev = link->prev;
        link->prev->next = link->next;
        list_init(link);
}

/* Removes the first link and returns it, or returns NULL if the list is empty. */
static inline struct list_head *list_pop_front(struct list_head *list)
{
        struct list_head *first = list_first(list);

        if (first)
                list_remove(first);
        return first;
}

/* Makes the second object the first one, and the first one the last. */
static inline void list_rotate(struct list_head *list)
{
        struct list_head *first = list_pop_front(list);

        if (first)
                list_push_back(list, first);
}

/* `at` is a `struct list_head *` that each of these declares. */
#define list_each(at, of) for (struct list_head *at = (of)->next; at != (of); at = at->next)

/* The same; the body may remove `at` from the list, or free its object, but no other link. */
#define list_each_safe(at, of)                                                                     \
        for (struct list_head *at = (of)->next, *at##_next = at->next; at != (of);                 \
             at = at##_next, at##_next = at->next)

#endif
