// SPDX-License-Identifier: Apache-2.0

// Package schema creates the tables and functions of mete in PostgreSQL, in a configurable schema.
//
// A migration is a file migrations/NNNN_name.sql. Released migrations are never edited; a change is a new file.
// In these files, {schema} stands for the quoted schema name, and qualifies every name that mete defines. The
// search path is pg_catalog, both here and in functions, which either set it or bind their names at creation.
// Statements outside of functions qualify operators, too. No setting outlives the transaction.
//
// All missing migrations run in one transaction, in the order of their numbers, under an advisory lock. The table
// {schema}.migration records them.
//
// Older servers keep using a schema after a newer one has migrated it. A migration must therefore keep everything
// that older versions need.
package schema
