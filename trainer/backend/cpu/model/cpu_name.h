/* Which processor this is, for the fingerprint: "AMD EPYC 9655 (26/2/1)" with family, model and stepping on
 * x86-64, "implementer 0x41 part 0xd40 (8/1/1)" with architecture, variant and revision on arm64, as
 * /proc/cpuinfo says. */
#ifndef RM_TRAINER_CPU_NAME_H
#define RM_TRAINER_CPU_NAME_H

enum { CPU_NAME_MAX = 128 };

/* Names the first CPU in that file; a machine's cores are taken to be alike. "unknown CPU (0/0/0)" where
 * nothing is said. */
void cpu_name(const char *cpuinfo, char out[CPU_NAME_MAX]);

#endif
