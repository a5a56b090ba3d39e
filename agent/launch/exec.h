/* `ringmaster-agent exec --parent PID -- COMMAND...`: the last thing before a user's program. */
#ifndef RM_LAUNCH_EXEC_H
#define RM_LAUNCH_EXEC_H

/* Makes this process what a program may expect to be (a session of its own, default signals, the first that
 * the kernel takes where memory is short, ended when its launcher ends, what was put aside given back) and
 * becomes it; the command is searched for in PATH. Returns an exit code as a shell has it where that fails:
 * 127 not there, 126 not to be run. */
int launch_exec(int argc, char **argv);

#endif
