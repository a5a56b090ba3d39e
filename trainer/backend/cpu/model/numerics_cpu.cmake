# The sources that decide the bits which the CPU backend computes: kernels and sums, learning rate, order of the
# samples, random numbers, order of the parameters. Their order counts, their paths do not.
set(numerics_cpu
  common/base/prng.c common/base/prng.h
  common/model/layout.c common/model/layout.h
  trainer/core/cursor.c trainer/core/cursor.h
  trainer/exact/schedule.c trainer/exact/schedule.h
  trainer/backend/cpu/sums/kernels_x86.c trainer/backend/cpu/sums/kernels.h
  trainer/backend/cpu/sums/lanes.c trainer/backend/cpu/sums/lanes.h
  trainer/exact/lineage.c trainer/exact/lineage.h
  trainer/backend/cpu/sums/pieces.c trainer/backend/cpu/sums/pieces.h
  trainer/backend/cpu/sums/update.c trainer/backend/cpu/sums/update.h
  trainer/exact/verdict.c trainer/exact/verdict.h trainer/exact/wide.h
  trainer/backend/cpu/model/activations.c trainer/backend/cpu/model/activations.h
  trainer/backend/cpu/model/attention.c trainer/backend/cpu/model/attention.h trainer/backend/cpu/model/attention_bf16.c
  trainer/backend/cpu/model/bf16.c trainer/backend/cpu/model/bf16.h
  trainer/backend/cpu/model/bias.c trainer/backend/cpu/model/bias.h
  trainer/backend/cpu/model/cross_entropy.c trainer/backend/cpu/model/cross_entropy.h
  trainer/backend/cpu/model/embedding.c trainer/backend/cpu/model/embedding.h
  trainer/backend/cpu/model/gelu.c trainer/backend/cpu/model/gelu.h
  trainer/backend/cpu/model/gpt.c trainer/backend/cpu/model/gpt.h trainer/backend/cpu/model/gpt_impl.h
  trainer/backend/cpu/model/gpt_backward.c trainer/backend/cpu/model/gpt_forward.c trainer/backend/cpu/model/gpt_init.c trainer/backend/cpu/model/gpt_parts.c
  trainer/backend/cpu/model/head.c trainer/backend/cpu/model/head.h
  trainer/backend/cpu/model/head_bf16.c trainer/backend/cpu/model/head_bf16.h
  trainer/backend/cpu/model/layernorm.c trainer/backend/cpu/model/layernorm.h
  trainer/backend/cpu/model/linear.c trainer/backend/cpu/model/linear.h
  trainer/backend/cpu/model/matmul.c trainer/backend/cpu/model/matmul.h
  trainer/backend/cpu/model/matmul_bf16_x86.c trainer/backend/cpu/model/matmul_bf16.h
  trainer/backend/cpu/model/scalar.c trainer/backend/cpu/model/scalar.h
  trainer/backend/cpu/model/soft_blocks.c trainer/backend/cpu/model/soft_blocks.h
  trainer/backend/cpu/model/tiling.c
  trainer/backend/cpu/model/vec.h trainer/backend/cpu/model/vec_gelu.h trainer/backend/cpu/model/vec_half.h)

# Beside them, and without a say in any bit of the weights: who does the work, where the state lies, what is told of it.
set(numerics_cpu_not
  trainer/state/state.c trainer/state/state.h trainer/state/state_file.h
  trainer/backend/cpu/sums/rest.c trainer/backend/cpu/sums/rest.h
  trainer/exact/audit.c trainer/exact/audit.h trainer/exact/header.c trainer/exact/header.h trainer/exact/proof.h
  trainer/backend/cpu/backend_cpu.c trainer/backend/cpu/backend_cpu.h trainer/backend/cpu/probe_cpu.c trainer/backend/cpu/probe_cpu.h
  trainer/backend/cpu/model/crew.c trainer/backend/cpu/model/crew.h
  trainer/backend/cpu/model/cpu_name.c trainer/backend/cpu/model/cpu_name.h
  trainer/backend/cpu/model/gpt_step.c trainer/backend/cpu/model/gpt_step.h
  trainer/backend/cpu/model/gpt_fingerprint.c trainer/backend/cpu/model/isa.h trainer/backend/cpu/model/numerics_id.h
  trainer/backend/cpu/model/sample.c trainer/backend/cpu/model/sample.h)

# Where those of x86-64 are not built (rm_library), these are, and stand in the list in their place.
set(numerics_cpu_portable
  trainer/backend/cpu/sums/kernels_portable.c
  trainer/backend/cpu/model/matmul_bf16_portable.c)
