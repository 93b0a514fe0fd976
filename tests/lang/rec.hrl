%% SPDX-License-Identifier: Apache-2.0
-record(rec, {a, b}).
-record(file, {inode, type}).
