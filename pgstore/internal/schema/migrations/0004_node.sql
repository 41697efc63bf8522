-- SPDX-License-Identifier: Apache-2.0
--
-- Who shares the buckets of a prefix, and the secret that they share.

-- A row is a server, and when it last said that it is there. After a crash of the
-- database it is empty until they have said so again.
CREATE UNLOGGED TABLE {schema}.node (
    prefix bytea       NOT NULL,
    id     text        NOT NULL,
    seen   timestamptz NOT NULL,

    CONSTRAINT node_pkey PRIMARY KEY (prefix, id)
) WITH (fillfactor = 50);

COMMENT ON TABLE {schema}.node IS 'Servers of mete that use this schema now.';

CREATE TABLE {schema}.secret (
    prefix  bytea       NOT NULL,
    secret  text        NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT secret_pkey PRIMARY KEY (prefix)
);

COMMENT ON TABLE {schema}.secret IS 'What keys of hashes are derived from: whoever reads it can try out whose a bucket is.';
