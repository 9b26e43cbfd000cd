/*
 * Runs the instructions of AMX on a processor that has AVX-512 and no AMX. Each of them raises
 * SIGILL. A handler of this signal decodes the instruction, does with tiles of the thread what
 * Intel's manual says, and goes on behind it. So the machine code that the compiler made is run,
 * with the operands and the memory that it really has.
 *
 * It is written from the manual, and shares no code with kernels/cpu/tiles.c. The order of sums of
 * bfloats, which the manual leaves open in part, is as measured: see `dot_bfloats` in tile-trap.c.
 *
 * An instruction that a processor would refuse (#UD, #GP) does nothing, and makes a complaint.
 * After such an LDTILECFG, tiles are not configured. An instruction that is none of AMX ends the
 * process by SIGILL.
 */
#ifndef TESTS_KERNELS_TILE_TRAP_H
#define TESTS_KERNELS_TILE_TRAP_H

#include <stdbool.h>
#include <stdint.h>

enum tile_op {
        TILE_CONFIG_LOAD,
        TILE_CONFIG_STORE,
        TILE_RELEASE,
        TILE_ZERO,
        TILE_LOAD, /* also TILELOADDT1 */
        TILE_STORE,
        TILE_DOT_BFLOATS,
        TILE_DOT_BYTES, /* both signed; then x is, w is, and neither is */
        TILE_DOT_BYTES_SU,
        TILE_DOT_BYTES_US,
        TILE_DOT_BYTES_UU,
        TILE_OPS
};

/* Has this processor what the handler, and isa_amx besides its tiles, need? */
bool tile_trap_can(void);

/*
 * Sets the handler, and forgets counts and complaints. cmocka handles SIGILL, too, and sets that
 * up before each case, so a case calls it.
 */
void tile_trap_install(void);
/* Restores the handler that was there before. */
void tile_trap_remove(void);

/* The instructions of all threads since the handler was installed. */
uint64_t tile_trap_count(enum tile_op op);

struct tile_complaint {
        const char *what; /* NULL: there is none */
        uintptr_t at;     /* the instruction */
};
/* The first instruction that a processor would have refused, of all threads; and forgets it. */
struct tile_complaint tile_trap_complaint(void);

#endif
