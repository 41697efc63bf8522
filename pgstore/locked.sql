-- SPDX-License-Identifier: Apache-2.0
--
-- Those of the keys $1 whose rows are locked by others, with the transaction that does
-- so, or that are not there. It is not prepared: its plan would be one for the size
-- that the table had then.
WITH free AS MATERIALIZED (SELECT key FROM {table} WHERE key = ANY ($1::bytea[]) FOR NO KEY UPDATE SKIP LOCKED)
SELECT k.key, coalesce(b.xmax::text::bigint, 0)
FROM unnest($1::bytea[]) AS k (key) LEFT JOIN {table} b ON b.key = k.key
WHERE NOT EXISTS (SELECT FROM free f WHERE f.key = k.key)
