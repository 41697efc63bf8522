-- SPDX-License-Identifier: Apache-2.0
--
-- Small documents that servers share: overrides that were made while they ran. The
-- table is logged: a crash does not lift a block.

CREATE TABLE {schema}.document (
    prefix     bytea       NOT NULL,
    name       text        NOT NULL,
    revision   bigint      NOT NULL CHECK (revision > 0),
    data       bytea       NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    CONSTRAINT document_pkey PRIMARY KEY (prefix, name)
);

COMMENT ON TABLE {schema}.document IS 'What administrators of mete have decided at run time. Change it through the API: mete override.';
