/*
 * mmap() and munmap() for a program in which the daemon and its client are threads.
 *
 * A ring is mapped twice, by its writer and by its reader, and a race detector compares addresses:
 * it would see two memories and no race.  Here the second mapping of a segment gives the address of
 * the first, for reading and writing.
 */
#ifndef TESTS_PIPELINE_ONE_MAPPING_H
#define TESTS_PIPELINE_ONE_MAPPING_H

#include <stdint.h>

/* The number of mappings that were given an address that an earlier mapping had already. */
uint32_t one_mapping_joined(void);

#endif
