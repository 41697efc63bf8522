-- SPDX-License-Identifier: Apache-2.0
--
-- Takes $2 from the bucket of key $1 with capacity $3. It returns a row if the bucket
-- had enough.
INSERT INTO bucket AS b (key, spent, as_of)
VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
ON CONFLICT (key) DO UPDATE SET
	spent = greatest(b.spent - greatest(excluded.as_of - b.as_of, 0), 0) + $2,
	as_of = greatest(excluded.as_of, b.as_of)
WHERE greatest(b.spent - greatest(excluded.as_of - b.as_of, 0), 0) + $2 <= $3
RETURNING spent
