# The sources that decide the bits which the CPU backend computes: kernels and sums, learning rate, order of the
# samples, random numbers, order of the parameters. Their order counts, their paths do not.
set(numerics_cpu
  common/base/prng.c common/base/prng.h
  common/model/layout.c common/model/layout.h
  trainer/core/cursor.c trainer/core/cursor.h
  trainer/core/schedule.c trainer/core/schedule.h
  trainer/exact/kernels_x86.c trainer/exact/kernels.h
  trainer/exact/lanes.c trainer/exact/lanes.h
  trainer/exact/lineage.c trainer/exact/lineage.h
  trainer/exact/pieces.c trainer/exact/pieces.h
  trainer/exact/update.c trainer/exact/update.h
  trainer/exact/verdict.c trainer/exact/verdict.h
  trainer/model/activations.c trainer/model/activations.h
  trainer/model/attention.c trainer/model/attention.h trainer/model/attention_bf16.c
  trainer/model/bf16.c trainer/model/bf16.h
  trainer/model/bias.c trainer/model/bias.h
  trainer/model/cross_entropy.c trainer/model/cross_entropy.h
  trainer/model/embedding.c trainer/model/embedding.h
  trainer/model/gelu.c trainer/model/gelu.h
  trainer/model/gpt.c trainer/model/gpt.h trainer/model/gpt_impl.h
  trainer/model/gpt_backward.c trainer/model/gpt_forward.c trainer/model/gpt_init.c trainer/model/gpt_parts.c
  trainer/model/head.c trainer/model/head.h
  trainer/model/head_bf16.c trainer/model/head_bf16.h
  trainer/model/layernorm.c trainer/model/layernorm.h
  trainer/model/linear.c trainer/model/linear.h
  trainer/model/matmul.c trainer/model/matmul.h
  trainer/model/matmul_bf16_x86.c trainer/model/matmul_bf16.h
  trainer/model/scalar.c trainer/model/scalar.h
  trainer/model/soft_blocks.c trainer/model/soft_blocks.h
  trainer/model/tiling.c
  trainer/model/vec.h trainer/model/vec_gelu.h trainer/model/vec_half.h)

# Beside them, and without a say in any bit of the weights: who does the work, where the state lies, what is told of it.
set(numerics_cpu_not
  trainer/exact/state.c trainer/exact/state.h trainer/exact/state_file.h
  trainer/model/crew.c trainer/model/crew.h
  trainer/model/cpu_name.c trainer/model/cpu_name.h
  trainer/model/gpt_fingerprint.c trainer/model/isa.h trainer/model/numerics_id.h
  trainer/model/sample.c trainer/model/sample.h)

# Where those of x86-64 are not built (rm_library), these are, and stand in the list in their place.
set(numerics_cpu_portable
  trainer/exact/kernels_portable.c
  trainer/model/matmul_bf16_portable.c)
