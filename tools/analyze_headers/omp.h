/* What our code uses of OpenMP, for the analyzer: clang often comes without this header, and gcc's is written
 * for gcc alone. Found only where there is no other. */
#ifndef RM_TOOLS_ANALYZE_HEADERS_OMP_H
#define RM_TOOLS_ANALYZE_HEADERS_OMP_H

void omp_set_num_threads(int threads);

#endif
