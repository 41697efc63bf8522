-- SPDX-License-Identifier: Apache-2.0
--
-- Those of the keys $1 whose rows are locked by others, or are not there, which the
-- second column tells apart.
WITH free AS MATERIALIZED (SELECT key FROM {table} WHERE key = ANY ($1::bytea[]) FOR NO KEY UPDATE SKIP LOCKED)
SELECT k.key, EXISTS (SELECT FROM {table} b WHERE b.key = k.key)
FROM unnest($1::bytea[]) AS k (key)
WHERE NOT EXISTS (SELECT FROM free f WHERE f.key = k.key)
