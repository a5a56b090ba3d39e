/* oneDNN lets its instruction set be chosen on x86-64 alone; elsewhere it refuses even "whatever there is".
 * So there it is not asked: that one is granted, and a set that has a name is refused. For matmul.c, behind
 * oneDNN's header. */
#ifndef RM_TRAINER_ISA_H
#define RM_TRAINER_ISA_H

#ifndef __x86_64__
/* 0 is "whatever there is", and dnnl_success. */
static inline int isa_as_it_is(int isa)
{
    return isa;
}

#define dnnl_set_max_cpu_isa(isa) isa_as_it_is((int)(isa))
#endif

#endif
