// SPDX-License-Identifier: Apache-2.0

// Package schema makes the tables and functions that mete keeps in PostgreSQL, in
// a schema of choice.
//
// A change of them is a file migrations/NNNN_name.sql. What has been released is
// never edited: another file follows. In these files {schema} stands for the
// quoted name of the schema. It qualifies every name of ours. The search path is
// pg_catalog, here and in the functions, which set it themselves or are bound to their
// names here. Statements outside of functions qualify operators, too. No setting
// outlives the transaction. All that is missing is applied in one transaction, in
// the order of the numbers, under an advisory lock, and recorded in
// {schema}.migration.
//
// A server that is newer than another adds what that does not know, and so must
// leave in place what it needs.
package schema
