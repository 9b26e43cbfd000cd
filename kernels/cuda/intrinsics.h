/*
 * The instructions that kernels are written in: each GPU instruction, and beside it the same
 * operation for the CPU.
 *
 * A kernel is a C++ function template that takes one struct of arguments.  Its source is compiled
 * twice: by nvcc, and by g++ for the emulator (emu.h).
 *
 *      template <int D> KERNEL(128) attend(attend_args a) { ... }
 *
 * 128 is the largest number of threads in a block.  KERNEL(128, 4) also limits registers, so that
 * four blocks fit on each multiprocessor.
 *
 * Shared memory is a single piece, sized at launch: shared().  There is no other.
 *
 * Numbers: bfloats and halves are kept as bits (uint16_t).  A uint32_t holds two of them, the
 * first in the lower 16 bits.  Every product of matrices is 16 x 8 x 16 on 16-bit numbers with
 * float sums.  For one product, the lanes hold these numbers (g = lane / 4, t = lane % 4):
 *
 *      a, 16 x 16      a[0] row g,     columns 2t, 2t+1        a[2] row g,     columns 2t+8, 2t+9
 *                      a[1] row g + 8, columns 2t, 2t+1        a[3] row g + 8, columns 2t+8, 2t+9
 *      b, 16 x 8       b[0] rows 2t, 2t+1, column g            b[1] rows 2t+8, 2t+9, column g
 *      c, 16 x 8       c[0], c[1] row g, columns 2t, 2t+1      c[2], c[3] row g + 8
 */
#ifndef KERNELS_CUDA_INTRINSICS_H
#define KERNELS_CUDA_INTRINSICS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__

#define DEVICE      static __device__ __forceinline__
#define KERNEL(...) __global__ void __launch_bounds__(__VA_ARGS__)
/*
 * UNROLL goes before a loop whose arrays must be in registers; UNROLL_BY(1) keeps a loop rolled.
 */
#define UNROLL         _Pragma("unroll")
#define UNROLL_BY(...) PRAGMA(unroll(__VA_ARGS__))
#define PRAGMA(...)    _Pragma(#__VA_ARGS__)

#else

#include <math.h>
#include <string.h>

#include "kernels/cuda/emu.h"

#define DEVICE      static inline
#define KERNEL(...) void
#define UNROLL      /* nothing */
#define UNROLL_BY(...)
#define threadIdx emu_thread
#define blockIdx  emu_block
#define blockDim  emu_block_size
#define gridDim   emu_grid_size

struct alignas(16) uint4 {
        uint32_t x, y, z, w;
};

struct alignas(8) uint2 {
        uint32_t x, y;
};

struct alignas(16) float4 {
        float x, y, z, w;
};

struct alignas(8) float2 {
        float x, y;
};

#endif

#define LANES 32u

DEVICE uint32_t bits_of(float f)
{
#ifdef __CUDACC__
        return __float_as_uint(f);
#else
        uint32_t u;

        memcpy(&u, &f, sizeof(u));
        return u;
#endif
}

DEVICE float float_of(uint32_t u)
{
#ifdef __CUDACC__
        return __uint_as_float(u);
#else
        float f;

        memcpy(&f, &u, sizeof(f));
        return f;
#endif
}

/* ---- 16-bit numbers; rounding is to nearest, ties to even ---- */

DEVICE float from_bfloat(uint32_t bits) /* in the lower 16 bits */
{
        return float_of(bits << 16);
}

DEVICE uint32_t two_bfloats(float low, float high)
{
#ifdef __CUDACC__
        uint32_t two;

        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
        return two;
#else
        auto one = [](float f) -> uint32_t {
                uint32_t u = bits_of(f);

                return f != f ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
        };

        return one(high) << 16 | one(low);
#endif
}

/* a - b, for each of the two numbers. */
DEVICE uint32_t subtract_bfloats(uint32_t a, uint32_t b)
{
#ifdef __CUDACC__
        uint32_t two;

        /* b * -1 + a, rounded once: every GPU that has bfloats has this instruction */
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(two) : "r"(b), "r"(0xbf80bf80), "r"(a));
        return two;
#else
        return two_bfloats(from_bfloat(a) - from_bfloat(b),
                           from_bfloat(a >> 16) - from_bfloat(b >> 16));
#endif
}

/*
 * a * b, for each of the two numbers, where no rounding is needed: b is a power of two, and a * b
 * is not too small.
 */
DEVICE uint32_t scale_bfloats(uint32_t a, uint32_t b)
{
#ifdef __CUDACC__
        uint32_t two;

        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(two) : "r"(a), "r"(b), "r"(0x80008000));
        return two;
#else
        return two_bfloats(from_bfloat(a) * from_bfloat(b),
                           from_bfloat(a >> 16) * from_bfloat(b >> 16));
#endif
}

DEVICE float from_half(uint32_t bits) /* in the lower 16 bits */
{
#ifdef __CUDACC__
        float f;

        asm("{ .reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h; }" : "=f"(f) : "r"(bits));
        return f;
#else
        uint32_t sign = (bits & 0x8000) << 16, rest = bits & 0x7fff;
        float scale = float_of(rest < 0x7c00 ? 0x77800000 : 0x7f800000); /* 2^112, or infinity */

        /* With the exponent bits in a float's place, any such number is too small by 2^112. */
        if (rest > 0x7c00)
                return float_of(0x7fffffff); /* a NaN keeps no bits, not even its sign */
        return float_of(sign | bits_of(float_of(rest << 13) * scale));
#endif
}

DEVICE uint32_t two_halves(float low, float high)
{
#ifdef __CUDACC__
        uint32_t two;

        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
        return two;
#else
        auto one = [](float f) -> uint32_t {
                uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, rest = u & 0x7fffffff;

                if (rest > 0x7f800000)
                        return 0x7fff;
                if (rest >= 0x47800000) /* 65536 and up */
                        return sign | 0x7c00;
                if (rest < 0x38800000) /* below 2^-14: multiples of 2^-24 */
                        return sign | (bits_of(float_of(rest) + 0.5f) - 0x3f000000);
                return sign | (rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13;
        };

        return one(high) << 16 | one(low);
#endif
}

/* a - b, for each of the two numbers. */
DEVICE uint32_t subtract_halves(uint32_t a, uint32_t b)
{
#ifdef __CUDACC__
        uint32_t two;

        asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(two) : "r"(a), "r"(b));
        return two;
#else
        return two_halves(from_half(a & 0xffff) - from_half(b & 0xffff),
                          from_half(a >> 16) - from_half(b >> 16));
#endif
}

/* 2^x.  On a GPU the error is up to 2 units in the last place, and subnormal numbers become 0. */
DEVICE float exp2_fast(float x)
{
#ifdef __CUDACC__
        float y;

        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
        return y;
#else
        return exp2f(x);
#endif
}

/*
 * For an angle between -pi and pi, with an error up to 2^-21.  On a GPU each is one instruction.
 */
DEVICE void sine_and_cosine(float angle, float *ret_sine, float *ret_cosine)
{
#ifdef __CUDACC__
        asm("sin.approx.ftz.f32 %0, %1;" : "=f"(*ret_sine) : "f"(angle));
        asm("cos.approx.ftz.f32 %0, %1;" : "=f"(*ret_cosine) : "f"(angle));
#else
        *ret_sine = sinf(angle);
        *ret_cosine = cosf(angle);
#endif
}

/* a / b.  For any NaN operand, a GPU's arithmetic yields these bits, and the CPU's does not. */
#define NAN_BITS 0x7fffffffu

DEVICE float divide(float a, float b)
{
#ifdef __CUDACC__
        return a / b;
#else
        float quotient = a / b;

        return quotient != quotient ? float_of(NAN_BITS) : quotient;
#endif
}

/* ---- lanes of a warp; all lanes must call these ---- */

DEVICE unsigned lane_number(void)
{
#ifdef __CUDACC__
        return threadIdx.x % LANES;
#else
        return emu_lane();
#endif
}

/* The value of the lane whose number differs from this lane's in these bits. */
template <class T> DEVICE T shuffle_xor(T mine, unsigned bits)
{
#ifdef __CUDACC__
        return __shfl_xor_sync(~0u, mine, bits);
#else
        T theirs;

        memcpy(&theirs, (*emu_exchange(&mine, sizeof(mine), nullptr))[emu_lane() ^ bits],
               sizeof(theirs));
        return theirs;
#endif
}

template <class T> DEVICE T shuffle_from(T mine, unsigned lane)
{
#ifdef __CUDACC__
        return __shfl_sync(~0u, mine, lane);
#else
        T theirs;

        memcpy(&theirs, (*emu_exchange(&mine, sizeof(mine), nullptr))[lane], sizeof(theirs));
        return theirs;
#endif
}

/* After this, all lanes see what any lane wrote before. */
DEVICE void warp_sync(void)
{
#ifdef __CUDACC__
        __syncwarp();
#else
        emu_exchange(nullptr, 0, nullptr);
#endif
}

/* The order does not depend on timing: halves of the warp are added pairwise. */
template <class T> DEVICE T warp_sum(T mine)
{
        for (unsigned bits = LANES / 2; bits; bits /= 2)
                mine += shuffle_xor(mine, bits);
        return mine;
}

DEVICE float warp_max(float mine)
{
        for (unsigned bits = LANES / 2; bits; bits /= 2)
                mine = fmaxf(mine, shuffle_xor(mine, bits));
        return mine;
}

/* ---- the block ---- */

DEVICE void block_sync(void)
{
#ifdef __CUDACC__
        __syncthreads();
#else
        emu_barrier();
#endif
}

/* The block's shared memory: as many bytes as the launch asked for, aligned to 128. */
DEVICE uint8_t *shared(void)
{
#ifdef __CUDACC__
        extern __shared__ __align__(128) uint8_t shared_memory[];

        return shared_memory;
#else
        return emu_shared;
#endif
}

/* ---- matrices ---- */

#ifndef __CUDACC__
struct lane_product {
        uint32_t a[4], b[2];
        float c[4];
};

/* The last lane to arrive computes the product, from the numbers that the lanes really hold. */
template <bool HALVES> static void lane_products(emu_exchanged *given)
{
        static thread_local float a[16][16], b[16][8];
        auto number = [](uint32_t bits) {
                return HALVES ? from_half(bits & 0xffff) : from_bfloat(bits & 0xffff);
        };

        for (unsigned lane = 0; lane < LANES; lane++) {
                const lane_product *one = (const lane_product *)(*given)[lane];
                unsigned g = lane / 4, t = lane % 4;

                for (unsigned i = 0; i < 4; i++) {
                        float *at = &a[g + i % 2 * 8][t * 2 + i / 2 * 8];

                        at[0] = number(one->a[i]);
                        at[1] = number(one->a[i] >> 16);
                }
                for (unsigned i = 0; i < 2; i++) {
                        b[t * 2 + i * 8][g] = number(one->b[i]);
                        b[t * 2 + i * 8 + 1][g] = number(one->b[i] >> 16);
                }
        }
        for (unsigned lane = 0; lane < LANES; lane++) {
                lane_product *one = (lane_product *)(*given)[lane];

                for (unsigned i = 0; i < 4; i++) {
                        unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;

                        for (unsigned k = 0; k < 16; k++)
                                one->c[i] += a[row][k] * b[k][column];
                        if (one->c[i] != one->c[i])
                                one->c[i] = float_of(NAN_BITS);
                }
        }
}

template <bool HALVES>
static inline void lane_multiply(float c[4], const uint32_t a[4], const uint32_t b[2])
{
        lane_product mine;
        const emu_exchanged *given;

        memcpy(mine.a, a, sizeof(mine.a));
        memcpy(mine.b, b, sizeof(mine.b));
        memcpy(mine.c, c, sizeof(mine.c));
        given = emu_exchange(&mine, sizeof(mine), lane_products<HALVES>);
        memcpy(c, ((const lane_product *)(*given)[emu_lane()])->c, sizeof(mine.c));
}
#endif

/* c += a * b, for bfloats. */
DEVICE void multiply_bfloats(float c[4], const uint32_t a[4], const uint32_t b[2])
{
#ifdef __CUDACC__
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
        lane_multiply<false>(c, a, b);
#endif
}

/* c += a * b, for halves. */
DEVICE void multiply_halves(float c[4], const uint32_t a[4], const uint32_t b[2])
{
#ifdef __CUDACC__
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
        lane_multiply<true>(c, a, b);
#endif
}

/*
 * Loads four 8 x 8 matrices of 16-bit numbers from shared memory.  Lane l passes the address of
 * row l % 8 of matrix l / 8 (16 bytes, aligned to 16).  out[i] belongs to matrix i: row g,
 * columns 2t and 2t+1; or, if TURNED (transposed), rows 2t and 2t+1, column g.
 */
template <bool TURNED> DEVICE void load_matrices(uint32_t out[4], const void *row)
{
#ifdef __CUDACC__
        uint32_t at = (uint32_t)__cvta_generic_to_shared(row);

        if (TURNED)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                             : "r"(at)
                             : "memory");
        else
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                             : "r"(at)
                             : "memory");
#else
        const emu_exchanged *given = emu_exchange(&row, sizeof(row), nullptr);
        unsigned g = emu_lane() / 4, t = emu_lane() % 4;

        for (unsigned i = 0; i < 4; i++) {
                auto at = [&](unsigned r, unsigned c) -> uint32_t {
                        const uint16_t *numbers;

                        memcpy(&numbers, (*given)[i * 8 + r], sizeof(numbers));
                        return numbers[c];
                };

                out[i] = TURNED ? at(2 * t, g) | at(2 * t + 1, g) << 16
                                : at(g, 2 * t) | at(g, 2 * t + 1) << 16;
        }
        warp_sync(); /* all lanes must have read before any lane writes there again */
#endif
}

/* ---- memory ---- */

/*
 * Begins to copy 16 bytes to shared memory, or zeros if not `there`.  No thread may read them
 * before the copy was waited for.
 */
DEVICE void async_copy(void *to, const void *from, bool there)
{
#ifdef __CUDACC__
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                             (uint32_t)__cvta_generic_to_shared(to)),
                     "l"(from), "r"(there ? 16 : 0)
                     : "memory");
#else
        emu_copy(to, there ? from : nullptr);
#endif
}

/*
 * The copies that this thread began since the last such call become a batch, which may be empty.
 */
DEVICE void async_copy_commit(void)
{
#ifdef __CUDACC__
        asm volatile("cp.async.commit_group;" ::: "memory");
#else
        emu_copy_commit();
#endif
}

/*
 * Waits until at most LEFT batches of this thread are in progress.  To see the copies of other
 * threads, call block_sync() as well.
 */
template <unsigned LEFT> DEVICE void async_copy_wait(void)
{
#ifdef __CUDACC__
        asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#else
        emu_copy_wait(LEFT);
#endif
}

/*
 * Loads 16 bytes of weights.  Each is read once a step, by one thread only, and is never written
 * while a kernel runs.
 */
DEVICE uint4 load_once(const void *from)
{
#ifdef __CUDACC__
        uint4 r;

        asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                     : "l"(from));
        return r;
#else
        return *(const uint4 *)from;
#endif
}

/* Returns the value from before the addition. */
DEVICE unsigned atomic_add(unsigned *to, unsigned what)
{
#ifdef __CUDACC__
        return atomicAdd(to, what);
#else
        return __atomic_fetch_add(to, what, __ATOMIC_SEQ_CST);
#endif
}

/*
 * Other blocks see what this thread wrote before this call no later than what it writes after it.
 */
DEVICE void memory_fence(void)
{
#ifdef __CUDACC__
        __threadfence();
#else
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* ---- kernels that overlap ---- */

/*
 * A kernel may begin before its predecessor in the stream has ended, to fetch data that does not
 * depend on the predecessor: weights.  Every thread calls this.  Before the call it must read
 * nothing else and write nothing.
 *
 * After the call the successor may begin as well.  The successor gets multiprocessors only once
 * all blocks of this kernel run, and it waits here until this kernel has ended.
 */
DEVICE void wait_for_predecessor(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        asm volatile("griddepcontrol.wait;" ::: "memory");
        asm volatile("griddepcontrol.launch_dependents;");
#elif !defined(__CUDACC__)
        emu_wait_for_predecessor();
#endif
}

#endif
