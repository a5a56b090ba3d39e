/* `ringmaster-agent exec --parent PID -- COMMAND...`: the last thing before a user's program. */
#ifndef RM_LAUNCH_EXEC_H
#define RM_LAUNCH_EXEC_H

/* How a command ended that could not begin, or was ended by a signal, as a shell says it. */
enum { SHELL_NOT_RUN = 126, SHELL_NOT_THERE = 127, SHELL_BY_SIGNAL = 128 /* and the signal's number */ };

/* Makes this process what a program may expect to be (a session of its own, default signals, the first that
 * the kernel takes where memory is short, ended when its launcher ends, what was put aside given back) and
 * becomes it; the command is searched for in PATH. Returns only where that fails,
 * with SHELL_NOT_THERE or SHELL_NOT_RUN as the exit code. */
int launch_exec(int argc, char **argv);

#endif
