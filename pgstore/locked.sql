-- SPDX-License-Identifier: Apache-2.0
--
-- Returns the keys of $1 with rows that other transactions have locked, and these transactions. It also returns
-- the keys without a row. It is not prepared, because its plan would fit only the table's size at that time.
WITH free AS MATERIALIZED (SELECT key FROM {table} WHERE key OPERATOR(pg_catalog.=) ANY ($1) FOR NO KEY UPDATE SKIP LOCKED)
SELECT k.key, coalesce(b.xmax::pg_catalog.text::pg_catalog.int8, 0)
FROM pg_catalog.unnest($1) AS k (key) LEFT JOIN {table} b ON b.key OPERATOR(pg_catalog.=) k.key
WHERE NOT EXISTS (SELECT FROM free f WHERE f.key OPERATOR(pg_catalog.=) k.key)
