-- SPDX-License-Identifier: Apache-2.0
--
-- The nodes that share the buckets of a prefix, and their shared secret.

-- A row is a server and its last heartbeat. After a crash of the database, the table is empty until the next
-- heartbeats.
CREATE UNLOGGED TABLE {schema}.node (
    prefix bytea       NOT NULL,
    id     text        NOT NULL,
    seen   timestamptz NOT NULL,

    CONSTRAINT node_pkey PRIMARY KEY (prefix, id)
) WITH (fillfactor = 50);

COMMENT ON TABLE {schema}.node IS 'Servers of mete that currently use this schema.';

CREATE TABLE {schema}.secret (
    prefix  bytea       NOT NULL,
    secret  text        NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT secret_pkey PRIMARY KEY (prefix)
);

COMMENT ON TABLE {schema}.secret IS 'The secret for deriving hash keys. A reader can find the client of a hashed key by trying values.';
