/*
 * A client with a ring, in the raw: the descriptors as they come, the memory as it is mapped, so
 * that a story may do to them what it likes.  What is read honestly goes through its talk, which
 * judges it as it judges what came over a socket.
 */
#ifndef TESTS_E2E_RAW_RING_H
#define TESTS_E2E_RAW_RING_H

#include "tests/e2e/talk.h"

struct raw_ring {
        struct talk *talk;
        int data, control;            /* the descriptors of segments D and C */
        const struct smv_ring *page;  /* D, mapped for reading */
        struct smv_ring_control *own; /* C */
        size_t bytes;                 /* D's */
        uint64_t head;                /* read, and told */
};

#define RAW_RING_BYTES (64u << 10)

/* On a connection that has said nothing: says hello, no more. */
void raw_hello(struct talk *talk, const char *transport, const char *doorbell, uint32_t bytes);
/* The two descriptors that lie in front of what can be read: taken, and nothing else is. */
void raw_take(struct talk *talk, int fds[2]);
/* One that somebody sent through this socket. */
int raw_receive(int fd);

/* Connected, greeted, mapped.  It has said that it is awake. */
struct raw_ring *raw_open(const struct house *house, const char *doorbell, uint32_t bytes);
struct raw_ring *raw_adopt(int fd, const char *doorbell, uint32_t bytes); /* connected already */
struct raw_ring *raw_close(struct raw_ring *ring);
/* The same, but the connection alone goes. */
void raw_leave(struct raw_ring *ring);

/* At most so many records, given back, and the daemon told if it waits: how many there were. */
uint32_t raw_read(struct raw_ring *ring, uint32_t most);
/* Reads until the stream's END. */
struct stream *raw_end(struct raw_ring *ring, uint32_t id);

/* 512-byte blocks behind a descriptor. */
uint64_t blocks_of(int fd);

/* Until one number of status is this. */
void wait_status(const struct house *house, const char *path, uint64_t value);

/*
 * A child, which dies with us; a failed assert is its abort.  Returns 0 in it.  It shares what is
 * mapped, and ends with _exit().
 */
pid_t child(void);
void child_kill(pid_t pid);

/* Ours and n descriptors in front of its bytes: what sendmsg() says. */
ssize_t send_with(int fd, const void *bytes, size_t count, const int *fds, size_t n);

#endif
