/*
 * The parts of bench-ring.  Each call runs one round of one part and adds it to the table
 * (table.h).  Sender and reader are separate processes.  The sender spins on processor 0 until
 * a message is due, like an engine that computes.  The reader runs on processor 1.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "bench/pipeline.h"

#define BENCH_SENDER_CPU 0
#define BENCH_READER_CPU 1

void bench_latency(double scale); /* 1: the full number of samples */
void bench_fanout(double scale);
void bench_connect(double scale);
void bench_kill(double scale);
void bench_threads(double scale);
void bench_turns(double scale);
void bench_forks(double scale);

/* Zeroed memory that forked processes share. */
void *bench_shared(size_t bytes);
void bench_unshare(void *memory, size_t bytes);

/*
 * A socket path in a directory of ours.  All pipelines use the same path, since only one runs at a
 * time.
 */
const char *bench_socket(void);
void bench_cleanup(void);

/* Both ends of a connected stream: send on [0], read on [1]. */
enum bench_wire { BENCH_UNIX, BENCH_TCP };
void bench_pair(enum bench_wire wire, int ret_fds[2]);
size_t
bench_wire_bytes(enum bench_wire wire); /* of a message: a record, or an event-stream's line */

/* Ends the program if `good` is 0, naming the call that failed. */
void bench_must(int good, const char *what);

#endif
