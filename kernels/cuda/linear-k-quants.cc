/* Products with weights in blocks of 256 integers, whose scales have a scale themselves. */
#include "kernels/cuda/linear-multiply.h"

int linear_k_quants(device *device, const launch &launch, const linear_args *args)
{
        switch (args->w.format) {
        case LINEAR_K4:
                return launch_epilogue<LINEAR_K4>(device, launch, args);
        case LINEAR_K5:
                return launch_epilogue<LINEAR_K5>(device, launch, args);
        default:
                return launch_epilogue<LINEAR_K6>(device, launch, args);
        }
}
