-- SPDX-License-Identifier: Apache-2.0
--
-- Small documents that servers share, such as overrides from the API. The table is logged, so that a crash does
-- not lift a block.

CREATE TABLE {schema}.document (
    prefix     bytea       NOT NULL,
    name       text        NOT NULL,
    revision   bigint      NOT NULL CHECK (revision > 0),
    data       bytea       NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    CONSTRAINT document_pkey PRIMARY KEY (prefix, name)
);

COMMENT ON TABLE {schema}.document IS 'Documents that servers of mete share, such as overrides. Change them with mete override.';
