-- SPDX-License-Identifier: Apache-2.0
--
-- Those of the keys $1 whose rows are locked by others, with the transaction that does
-- so, or that are not there. It is not prepared: its plan would be one for the size
-- that the table had then.
WITH free AS MATERIALIZED (SELECT key FROM {table} WHERE key OPERATOR(pg_catalog.=) ANY ($1) FOR NO KEY UPDATE SKIP LOCKED)
SELECT k.key, coalesce(b.xmax::pg_catalog.text::pg_catalog.int8, 0)
FROM pg_catalog.unnest($1) AS k (key) LEFT JOIN {table} b ON b.key OPERATOR(pg_catalog.=) k.key
WHERE NOT EXISTS (SELECT FROM free f WHERE f.key OPERATOR(pg_catalog.=) k.key)
