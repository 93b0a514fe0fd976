/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces <stdatomic.h> for the files under the model checker (model.h): the model executes each operation. It has
 * only the C11 operations that nif/ uses, on integers and pointers of up to 8 bytes.
 */
#ifndef MODEL_STDATOMIC_H
#define MODEL_STDATOMIC_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    memory_order_relaxed,
    memory_order_acquire,
    memory_order_release,
    memory_order_acq_rel,
    memory_order_seq_cst
} memory_order;

uint64_t model_load(const volatile void *at, unsigned size, memory_order order);
void model_store(volatile void *at, unsigned size, uint64_t value, memory_order order);
uint64_t model_update(volatile void *at, unsigned size, char how, uint64_t value, memory_order order);
bool model_exchange_if(volatile void *at, unsigned size, uint64_t *expected, uint64_t value);
void model_fence(memory_order order);
void model_signal_fence(void);

#define MODEL_TYPE(p) __typeof__((void)0, *(p))
#define atomic_load_explicit(p, order) ((MODEL_TYPE(p))model_load((p), sizeof *(p), (order)))
#define atomic_store_explicit(p, value, order) model_store((p), sizeof *(p), (uint64_t)(value), (order))
#define atomic_exchange_explicit(p, value, order)                                                                      \
    ((MODEL_TYPE(p))model_update((p), sizeof *(p), '=', (uint64_t)(value), (order)))
#define atomic_fetch_add_explicit(p, value, order)                                                                     \
    ((MODEL_TYPE(p))model_update((p), sizeof *(p), '+', (uint64_t)(value), (order)))
#define atomic_fetch_sub_explicit(p, value, order)                                                                     \
    ((MODEL_TYPE(p))model_update((p), sizeof *(p), '-', (uint64_t)(value), (order)))
#define atomic_fetch_or_explicit(p, value, order)                                                                      \
    __extension__({ (MODEL_TYPE(p)) model_update((p), sizeof *(p), '|', (uint64_t)(value), (order)); })
#define atomic_fetch_and_explicit(p, value, order)                                                                     \
    __extension__({ (MODEL_TYPE(p)) model_update((p), sizeof *(p), '&', (uint64_t)(value), (order)); })
#define atomic_load(p) atomic_load_explicit(p, memory_order_seq_cst)
#define atomic_store(p, value) atomic_store_explicit(p, value, memory_order_seq_cst)
#define atomic_exchange(p, value) atomic_exchange_explicit(p, value, memory_order_seq_cst)
#define atomic_fetch_add(p, value) atomic_fetch_add_explicit(p, value, memory_order_seq_cst)
#define atomic_fetch_sub(p, value) atomic_fetch_sub_explicit(p, value, memory_order_seq_cst)
#define atomic_fetch_or(p, value) atomic_fetch_or_explicit(p, value, memory_order_seq_cst)
#define atomic_fetch_and(p, value) atomic_fetch_and_explicit(p, value, memory_order_seq_cst)
#define atomic_compare_exchange_strong(p, expected, value)                                                             \
    __extension__({                                                                                                    \
        uint64_t model_expected = (uint64_t) * (expected);                                                             \
        bool model_done = model_exchange_if((p), sizeof *(p), &model_expected, (uint64_t)(value));                     \
        *(expected) = (__typeof__(*(expected)))model_expected;                                                         \
        model_done;                                                                                                    \
    })
#define atomic_thread_fence(order) model_fence(order)
#define atomic_signal_fence(order) model_signal_fence()

#endif
