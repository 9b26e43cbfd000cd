/*
 * Products with weights that are numbers, or integers or 8-bit numbers where a group of them
 * shares a scale.
 */
#include "kernels/cuda/linear-multiply.h"

int linear_basic(device *device, const launch &launch, const linear_args *args)
{
        switch (args->w.format) {
        case LINEAR_BFLOAT:
                return launch_epilogue<LINEAR_BFLOAT>(device, launch, args);
        case LINEAR_INT8:
                return launch_epilogue<LINEAR_INT8>(device, launch, args);
        case LINEAR_E4M3:
                return launch_epilogue<LINEAR_E4M3>(device, launch, args);
        default:
                return launch_epilogue<LINEAR_INT4>(device, launch, args);
        }
}
