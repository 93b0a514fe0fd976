/* SPDX-License-Identifier: Apache-2.0 */
#include "groups.h"

#include "../views/sink.h"

#define ROW(letter, name, arg, type, where, field, help) OPT_ROW(struct where, letter, name, arg, type, field, help)

#define TLS_ROWS                                                                                                       \
    ROW(0, "tls", NULL, OPT_FLAG, node_opts, tls,                                                                      \
        "connect with TLS (-proto_dist inet_tls); implied by the options below"),                                      \
        ROW(0, "tls-optfile", "FILE", OPT_TEXT, node_opts, tls_optfile,                                                \
            "read certificates from this ssl_dist_optfile, section client"),                                           \
        ROW(0, "tls-ca", "FILE", OPT_TEXT, node_opts, tls_ca,                                                          \
            "trust the issuers in this file (default: those of the system)"),                                          \
        ROW(0, "tls-cert", "FILE", OPT_TEXT, node_opts, tls_cert, "client certificate, for a node that requires one"), \
        ROW(0, "tls-key", "FILE", OPT_TEXT, node_opts, tls_key, "its private key (default: in the same file)"),        \
        ROW(0, "tls-no-verify", NULL, OPT_FLAG, node_opts, tls_no_verify, "do not verify the node's certificate")

static const struct opt tls_rows[] = {TLS_ROWS};

static const struct opt node_rows[] = {
    ROW('n', "node", "NODE", OPT_SET, node_opts, nodes,
        "the node, repeatable; without @ a node of this host (default $ETRACE_NODE, $RELEASE_NODE, or the only local "
        "node); demo starts a small shop to try things on"),
    ROW('p', "pid", "OSPID", OPT_TEXT, node_opts, os_pid, "find the node by its operating system process"),
    ROW(0, "ssh", "[USER@]HOST", OPT_TEXT, node_opts, ssh, "log in to this host with ssh; the node is there"),
    ROW(0, "cookie-file", "FILE", OPT_TEXT, node_opts, cookie_file,
        "use only the cookie in FILE, - reads standard input (default: that of a local node itself, $RELEASE_COOKIE, "
        "~/.erlang.cookie)"),
    ROW(0, "port", "PORT", OPT_POSITIVE, node_opts, port,
        "connect to this port, without epmd (default $ERL_DIST_PORT); --node may be left out"),
    ROW(0, "cluster", NULL, OPT_FLAG, node_opts, cluster, "also every node that it is connected to"),
    ROW(0, "reattach", NULL, OPT_FLAG, node_opts, reattach,
        "wait, with no time limit, for a node that does not run, and attach again when it comes back"),
    TLS_ROWS,
    ROW(0, "fallback", NULL, OPT_FLAG, node_opts, fallback, "trace without the NIF: slower, with hard limits"),
};

static const struct opt what_rows[] = {
    ROW('P', "proc", "WHO", OPT_TEXTS, what_opts, procs,
        "all, existing, new, a pid, a registered name, {via,M,N}, app(A) or initial(M:F/A); repeatable (default all)"),
    ROW(0, "port-id", "WHO", OPT_TEXTS, what_opts, ports,
        "ports: all, existing, new, '#Port<0.5>' or driver:NAME; repeatable (default all for @ports, else none)"),
    ROW(0, "inherit", "none|spawn|first-spawn|link|first-link", OPT_CHOICE, what_opts, inherit,
        "also trace processes that the traced ones spawn or link to"),
    ROW(0, "follow", NULL, OPT_FLAG, what_opts, follow,
        "trace all processes that the traced ones spawn or link to from now on"),
    ROW(0, "silent", NULL, OPT_FLAG, what_opts, silent,
        "start silent: show the calls of a process after it has run silent(false)"),
    ROW('f', "file", "FILE", OPT_TEXTS, what_opts, files, "read expressions from a file; - is standard input"),
    ROW(0, "let", "NAME=TERM", OPT_TEXTS, what_opts, lets, "bind ^NAME in the expressions"),
    ROW(0, "hrl", "FILE", OPT_TEXTS, what_opts, records, "record definitions for #name{...}"),
    ROW(0, "unsafe", NULL, OPT_FLAG, what_opts, unsafe, "allow actions that affect the whole node, or may harm it"),
    ROW(0, "allow-empty", NULL, OPT_FLAG, what_opts, allow_empty, "continue if nothing matches an expression yet"),
    ROW(0, "overhead", "PERCENT", OPT_PERCENT, what_opts, overhead,
        "tracing calls takes at most this share of the schedulers' time (default 5% for wildcards over busy "
        "functions)"),
    ROW(0, "sample", "1/N", OPT_FRACTION, what_opts, sample, "with inside: show one of N roots, whole"),
    ROW(0, "keys", "N", OPT_POSITIVE, what_opts, keys,
        "with by: count N keys on each node, and the others together (default 4095, up to 65535)"),
    ROW(0, "force", NULL, OPT_FLAG, what_opts, force,
        "without the default of --overhead; also trace functions that etrace itself depends on"),
    ROW(0, "dry-run", NULL, OPT_FLAG, what_opts, dry_run, "attach, print what would be traced, and exit"),
};

static const struct opt limit_rows[] = {
    ROW('l', "limit", "N", OPT_POSITIVE, limit_opts, limit, "stop after N events; a call and its return count once"),
    ROW('t', "for", "DURATION", OPT_DURATION, limit_opts, for_ns, "stop after this time (500ms, 10s, 2m)"),
    ROW('r', "rate", "N", OPT_NUMBER, limit_opts, rate,
        "at most N events a second (default 10000, none for figures; 0 for no limit); those above it count as lost"),
    ROW(0, "memory", "BYTES", OPT_SIZE, limit_opts, memory,
        "stop when the node's memory has grown by this much (default a quarter, at least 512MB; 0 for no limit)"),
    ROW(0, "size", "BYTES", OPT_SIZE, limit_opts, size, "capture at most this much of an event's terms (default 1024)"),
    ROW(0, "depth", "N", OPT_POSITIVE, limit_opts, depth, "capture terms N levels deep (default 32)"),
    ROW(0, "items", "N", OPT_POSITIVE, limit_opts, items, "capture N elements of a list, tuple or map (default 256)"),
    ROW(0, "redact", "KEYS", OPT_TEXTS, limit_opts, redact, "hide the values under these keys too (a,b,c)"),
    ROW(0, "no-redact", NULL, OPT_OFF, limit_opts, redact_defaults,
        "show values that are hidden by default: password, secret, token, cookie, ..."),
    ROW(0, "on-loss", "warn|stop", OPT_CHOICE, limit_opts, on_loss, "what to do when events are lost (default warn)"),
};

#define LINE_ROWS                                                                                                      \
    ROW(0, "terms", "auto|erlang|elixir|json", OPT_CHOICE, view_opts, terms,                                           \
        "the syntax of terms (default auto: that of the node's or the module's language)"),                            \
        OPT_SHORT(struct view_opts, "elixir", terms, TERMS_ELIXIR, "the same as --terms elixir"),                      \
        ROW('g', "grep", "REGEX", OPT_TEXTS, view_opts, greps,                                                         \
            "show lines that match (PCRE2); repeatable, all must match"),                                              \
        ROW('v', "invert", NULL, OPT_FLAG, view_opts, invert, "show the lines that do not match --grep"),              \
        ROW('e', "where", "EXPR", OPT_TEXTS, view_opts, wheres,                                                        \
            "show events for which this holds: 'dur > 5ms'; repeatable"),                                              \
        ROW(0, "time", "local|utc|relative|delta", OPT_CHOICE, view_opts, time,                                        \
            "times of day (default local), since the start, or since the previous line"),                              \
        OPT_SHORT(struct view_opts, "utc", time, TIME_UTC, "the same as --time utc"),                                  \
        OPT_SHORT(struct view_opts, "relative", time, TIME_RELATIVE, "the same as --time relative"),                   \
        OPT_SHORT(struct view_opts, "delta", time, TIME_DELTA, "the same as --time delta"),                            \
        ROW(0, "color", "auto|always|never", OPT_CHOICE, view_opts, color, "colours (NO_COLOR is honoured)")

static const struct opt line_rows[] = {LINE_ROWS};

static const struct opt view_rows[] = {
    ROW(0, "as", "VIEW", OPT_TEXT, view_opts, as,
        "how to show events: text (default; requests: a table), json, tree, flame, ..."),
    ROW(0, "json", NULL, OPT_FLAG, view_opts, json, "the same as --as json: one object per line"),
    ROW('c', "summary", NULL, OPT_FLAG, view_opts, summary,
        "the same as --as summary: calls, errors and times by function"),
    ROW('o', "output", "FILE", OPT_TEXTS, view_opts, outputs,
        "write to FILE, in the view of its extension (.etr records) or --as; repeatable"),
    ROW('a', "append", NULL, OPT_FLAG, view_opts, append, "append to the files of -o instead of overwriting them"),
    ROW(0, "fields", "LIST", OPT_TEXT, view_opts, fields, "the columns of csv, tsv and text: time,pid,mfa,dur"),
    ROW(0, "format", "FORMAT", OPT_TEXT, view_opts, format, "the lines of text: '{time} {pid} {mfa}'"),
    ROW(0, "sort", "COLUMN", OPT_TEXT, view_opts, sort,
        "sort the rows of a table by this column, or by COLUMN:asc or COLUMN:desc"),
    ROW(0, "by", "KEYS:AGGREGATES", OPT_TEXT, view_opts, by,
        "count all events by keys, in a table: 'args[1]: count, max(dur)'"),
    LINE_ROWS,
};

static const struct opt screen_rows[] = {
    ROW(0, "browse", NULL, OPT_FLAG, view_opts, browse,
        "show the events in a list on the whole terminal, with searches and filters: see etrace browse"),
};

static const struct opt assert_rows[] = {
    ROW(0, "expect", "EXPR", OPT_TEXTS, assert_opts, expects,
        "exit with status 11 unless this held for an event: 'ret == ok'; repeatable, each must hold once"),
    ROW(0, "fail-on", "EXPR", OPT_TEXTS, assert_opts, fails,
        "stop with status 10 as soon as this holds for an event: 'dur > 100ms'; repeatable"),
};

static const struct opt recorder_rows[] = {
    ROW(0, "ring", "SIZE|TIME", OPT_TEXT, recorder_opts, ring,
        "keep the last events on the node, and show them at the end: 8MB for each thread, or 30s"),
    ROW(0, "snapshot-when", "EXPR", OPT_TEXT, recorder_opts, when,
        "show the last events when this holds: 'class == error or dur > 1s', or 'count > 100' with keys (by)"),
    ROW(0, "snapshot-after", "DURATION", OPT_DURATION, recorder_opts, after_ns,
        "and the events of this time after it (default 500ms)"),
    ROW(0, "snapshot-every", "DURATION", OPT_DURATION, recorder_opts, interval_ns,
        "the least time from the end of a snapshot to the next one (default 10s)"),
};

static const struct opt snapshot_rows[] = {
    ROW(0, "snapshot-within", "DURATION", OPT_DURATION, recorder_opts, within_ns,
        "the figures of keys count anew after so long; without it, after each snapshot"),
    ROW(0, "snapshots", "N", OPT_NUMBER, recorder_opts, snapshots,
        "stop after N snapshots (default 1, 0 for no limit); -o crash-%n.etr has a file for each"),
    ROW(0, "then", "ACTION", OPT_TEXTS, recorder_opts, then,
        "with each snapshot: stacks, 'trace PROBE' (for a time), or 'exec COMMAND' after it: 'exec gzip crash-%n.etr'; "
        "repeatable"),
    ROW(0, "then-for", "DURATION", OPT_DURATION, recorder_opts, then_for_ns,
        "how long --then 'trace PROBE' traces (default 10s)"),
};

static const struct opt talk_rows[] = {
    ROW('q', "quiet", NULL, OPT_COUNT, talk_opts, quiet, "no banner and no summary; twice: no warnings either"),
    ROW('h', "help", NULL, OPT_FLAG, talk_opts, help, "show this help"),
};

#define GROUP(name, title) const struct opt_group name##_group = {title, name##_rows, ARRAY_LEN(name##_rows)}

GROUP(node, "The node");
GROUP(tls, "Nodes with TLS");
GROUP(what, "What is traced");
GROUP(limit, "Limits");
GROUP(view, "What is shown");
GROUP(line, "Which lines, and how");
GROUP(screen, "The screen");
GROUP(assert, "Assertions");
GROUP(recorder, "The flight recorder");
GROUP(snapshot, "Snapshots of the flight recorder");
GROUP(talk, "");
