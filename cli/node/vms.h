/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the virtual machines among the processes of this host, in /proc. Any user can start a process with any command
 * line, so the arguments of a process prove nothing.
 */
#ifndef ETRACE_VMS_H
#define ETRACE_VMS_H

#include "../ground/buf.h"
#include "connect.h"

/* A hint for root without the capability to see the sockets of a process. */
#define HIDDEN_HINT                                                                                                    \
    "root needs the capability SYS_PTRACE: docker run --cap-add=SYS_PTRACE, kubectl debug --profile=sysadmin; or use " \
    "--port"

/* A hint that names tools for nodes whose OTP is too old. */
#define OLD_OTP_HINT "dbg of its runtime_tools, recon_trace and redbug trace there"

/* The options on the command line of a virtual machine. */
struct arguments {
    char name[NODE_NAME_MAX + 1]; /* "": the command line has no name; without @host if the option has none */
    bool vm;                      /* erlexec started the process */
    bool elixir;                  /* the node runs Elixir */
    bool deaf;                    /* -dist_listen false: the node accepts no connections */
    int otp;                      /* the OTP release; 0: unknown */
    int port;                     /* -erl_epmd_port, on which a node without epmd listens; 0: none */
    char optfile[256];            /* -ssl_dist_optfile; "": none */
};

/* Hints at how a virtual machine that listens on no port gets a name, or what became of its name. */
void hint_of_no_port(const struct arguments *a, struct err *e);

/* Returns false if /proc does not show the command line. */
bool find_arguments(long ospid, struct arguments *ret);

/* Reads a command line as proc_read() returns it. *a must be zeroed. */
void arguments_read(const struct buf *b, struct arguments *a);

/* The listening TCP sockets of a network namespace. The owner calls listeners_release(). */
struct listeners {
    struct listener {
        unsigned long inode;
        int port;
    } * items;
    size_t count, cap;
};

/* Reads the table of the namespace of process `ospid`; 0: of this thread. */
void listeners_read(long ospid, struct listeners *ret);
void listeners_release(struct listeners *l);

/*
 * Finds the TCP ports on which a process of this host listens. `table` is that of its namespace; NULL: reads it.
 * Returns false if the process has no such port, or /proc does not show its sockets.
 */
bool find_listening(long ospid, const struct listeners *table, int *ret_ports, size_t most, size_t *ret_count,
                    struct err *e);

/*
 * Returns true if a descriptor of the process is this socket. Sets *ret_hidden if /proc does not show the descriptors.
 */
bool process_has_socket(long ospid, unsigned long inode, bool *ret_hidden);

struct vm {
    long ospid;
    unsigned uid; /* of its user */
    bool here;    /* in our network namespace, or /proc does not show in which one */
    bool visible; /* /proc shows its sockets */
    struct arguments arguments;
    int ports[16]; /* ports on which it listens; if they are hidden, -erl_epmd_port; vms_find_ports() fills them */
    size_t nports;
};

/* The owner calls vms_release(). */
struct vms {
    struct vm *items;
    size_t count;
};

/* Finds the virtual machines of this host. If `alive` is not NULL, omits those that were started with another name. */
void vms_find(const char *alive, struct vms *ret);

/* Finds the ports of each virtual machine. May take twenty milliseconds: the kernel goes through all its sockets. */
void vms_find_ports(struct vms *v);
void vms_release(struct vms *v);

/*
 * Returns the only virtual machine in our network namespace that was started with this name. Returns NULL if none or
 * several were.
 */
const struct vm *vms_named(const struct vms *v, const char *alive);

/*
 * Returns the virtual machine that listens on this port of our network namespace. If none does, returns one that was
 * started with the name `alive` (before the @; may be NULL) and whose sockets /proc hides. Returns NULL if there is
 * neither.
 */
const struct vm *vms_at(const struct vms *v, int port, const char *alive);
bool vm_is_named(const struct vm *v, const char *alive);

/* Hints at -p if a process was started with this name, which epmd does not know; otherwise leaves *e as it is. */
void vms_hint(const struct vms *v, const char *alive, struct err *e);

/*
 * Finds the virtual machine that the user means by a process: the process itself, or the only node that the process
 * started, as a script, run_erl and the first process of a container do. Virtual machines that a node started do not
 * count. Sets *ret_ospid to `ospid` if there is none. Returns false if there are several.
 */
bool vm_below(long ospid, long *ret_ospid, struct err *e);
bool vm_is_below(long vm, long ospid); /* returns true if process `vm` is a descendant of process `ospid` */

#endif
