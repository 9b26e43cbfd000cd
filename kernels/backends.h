/*
 * The built-in backends; only kernels_open() calls these. Each function makes its own table;
 * `conf` holds for the table's whole life.
 */
#ifndef KERNELS_BACKENDS_H
#define KERNELS_BACKENDS_H

#include "kernels/kernels.h"

int ref_open(const struct kernels_conf *conf, struct kernels **ret_kernels);
int cpu_open(const struct kernels_conf *conf, struct kernels **ret_kernels);

#endif
