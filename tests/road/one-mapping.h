/*
 * mmap() and munmap() for a program in which the daemon and its client are threads.
 *
 * A ring is mapped twice, by the one who writes it and by the one who reads, and a race
 * detector goes by addresses: it would see two memories and no race.  Here the second
 * mapping of a segment gives the address of the first, for reading and writing.
 */
#ifndef TESTS_ROAD_ONE_MAPPING_H
#define TESTS_ROAD_ONE_MAPPING_H

#include <stdint.h>

/* Mappings that were given an address somebody had already. */
uint32_t one_mapping_joined(void);

#endif
