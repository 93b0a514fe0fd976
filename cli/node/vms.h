/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the virtual machines among the processes of this host, in /proc. Any user can start a process with any command
 * line, so the arguments of a process prove nothing.
 */
#ifndef ETRACE_VMS_H
#define ETRACE_VMS_H

#include "../ground/buf.h"
#include "connect.h"

/* A hint for a root without the capability to see the sockets of a process. */
#define HIDDEN_HINT                                                                                                    \
    "root needs the capability SYS_PTRACE: docker run --cap-add=SYS_PTRACE, kubectl debug --profile=sysadmin; or use " \
    "--port"

/* A hint that names tools for nodes with an old OTP. */
#define OLD_OTP_HINT "dbg of its runtime_tools, recon_trace and redbug trace there"

/* The options on the command line of a virtual machine. */
struct arguments {
    char name[NODE_NAME_MAX + 1]; /* -name or -sname; "": none; lacks @host if the option lacks it */
    bool vm;                      /* erlexec started the process */
    bool elixir;                  /* the node runs Elixir */
    bool deaf;                    /* -dist_listen false was given: the node accepts no connections */
    int otp;                      /* the OTP release; 0: unknown */
    int port;                     /* -erl_epmd_port, the port of a node that does not use epmd; 0: none */
    char optfile[256];            /* -ssl_dist_optfile; "": none */
};

/*
 * Sets the hint for a virtual machine that listens on no port. The hint says how to give it a name, or where to look if
 * its command line has one.
 */
void hint_of_no_port(const struct arguments *a, struct err *e);

/* Reads the options of a process of this host. Returns false if /proc does not show its command line. */
bool find_arguments(long ospid, struct arguments *ret);

/* Reads a command line as proc_read() returns it. *a must be zeroed. */
void arguments_read(const struct buf *b, struct arguments *a);

/* The listening TCP sockets of one network namespace. Free them with listeners_release(). */
struct listeners {
    struct listener {
        unsigned long inode;
        int port;
    } * items;
    size_t count, cap;
};

/* Reads the listening sockets of the namespace of process `ospid`, or of this thread if `ospid` is 0. */
void listeners_read(long ospid, struct listeners *ret);
void listeners_release(struct listeners *l);

/*
 * Finds the TCP ports on which a process of this host listens. `table` has the listening sockets of the process's
 * namespace; NULL: reads them. Returns false if the process has no such port, or if /proc does not show its sockets.
 */
bool find_listening(long ospid, const struct listeners *table, int *ret_ports, size_t most, size_t *ret_count,
                    struct err *e);

/*
 * Returns true if a descriptor of the process is the socket with this inode. Sets *ret_hidden to true if /proc hides
 * the descriptors.
 */
bool process_has_socket(long ospid, unsigned long inode, bool *ret_hidden);

struct vm {
    long ospid;
    unsigned uid; /* the user of the process */
    bool here;    /* the process is in our network namespace, or /proc does not show its namespace */
    bool visible; /* /proc shows the sockets of the process */
    struct arguments arguments;
    int ports[16]; /* ports on which it listens, or -erl_epmd_port if they are hidden; see vms_find_ports() */
    size_t nports;
};

/* A list of virtual machines. Free it with vms_release(). */
struct vms {
    struct vm *items;
    size_t count;
};

/*
 * Finds the virtual machines of this host. If `alive` is not NULL, leaves out those that were started with another
 * name.
 */
void vms_find(const char *alive, struct vms *ret);

/*
 * Finds the ports of each virtual machine. May take twenty milliseconds, because the kernel goes through all its
 * sockets.
 */
void vms_find_ports(struct vms *v);
void vms_release(struct vms *v);

/*
 * Returns the virtual machine in our network namespace that was started with this name, if exactly one was, else NULL.
 */
const struct vm *vms_named(const struct vms *v, const char *alive);

/*
 * Returns the virtual machine in our network namespace that listens on this port. If none does, returns one in our
 * namespace that was started with the name `alive` and whose sockets /proc hides. `alive` is the part before the @, or
 * NULL. Returns NULL if there is neither.
 */
const struct vm *vms_at(const struct vms *v, int port, const char *alive);
bool vm_is_named(const struct vm *v, const char *alive);

/* Sets a hint to use -p if a process was started with this name. Call it if epmd does not know the name. */
void vms_hint(const struct vms *v, const char *alive, struct err *e);

/*
 * Finds the virtual machine that the user means by a process. It is the process itself, or the only node that the
 * process started, as a script, run_erl or the first process of a container does. Nodes that this node started do not
 * count. If the process started several nodes, the user means the only one that has a name and accepts connections.
 * Sets *ret_ospid to `ospid` if the process started no node. Returns false if several nodes are possible.
 */
bool vm_below(long ospid, long *ret_ospid, struct err *e);
bool vm_is_below(long vm, long ospid); /* returns true if process `vm` is a descendant of process `ospid` */

#endif
