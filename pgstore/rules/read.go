// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete/pgstore/internal/pools"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// MaxRows bounds the rules in the table, including inactive ones; [policy.MaxRules] bounds active rules.
const MaxRows = 10 * policy.MaxRules

type rowSelection bool

const (
	allRows    rowSelection = false
	activeRows rowSelection = true
)

// All statements of this package qualify functions, operators and types with their schema, so that the session's
// search_path has no effect.
const (
	selectRevision = `SELECT coalesce((SELECT revision FROM {schema}.rate_limit_revision), 0)`

	selectPolicies = `SELECT policy, spec::pg_catalog.text FROM {schema}.rate_limit_policy`

	// The size is checked first, so that a large table cannot exhaust the memory.
	selectSize = `SELECT (SELECT pg_catalog.count(*) FROM {schema}.rate_limit_rule WHERE is_active OR NOT $1::boolean),
	(SELECT coalesce(pg_catalog.sum(pg_catalog.octet_length(spec::pg_catalog.text)), 0) FROM {schema}.rate_limit_rule WHERE is_active OR NOT $1::boolean)
	OPERATOR(pg_catalog.+) (SELECT coalesce(pg_catalog.sum(pg_catalog.octet_length(spec::pg_catalog.text)), 0) FROM {schema}.rate_limit_policy)`

	// Times are read as numbers, because the text form depends on a setting that pgx does not know.
	selectRules = `SELECT rule_id, name, key_pattern, scope,
	coalesce(rate_per_second::pg_catalog.text, ''), coalesce(burst_capacity::pg_catalog.text, ''),
	coalesce(plan, ''), is_active, coalesce(description, ''), priority, policy, is_fallback, spec::pg_catalog.text,
	coalesce(window_tokens::pg_catalog.text, ''), coalesce(window_length, ''), version,
	CASE WHEN pg_catalog.isfinite(created_at) THEN (extract(epoch FROM created_at) OPERATOR(pg_catalog.*) 1000000)::bigint ELSE 0 END,
	CASE WHEN pg_catalog.isfinite(updated_at) THEN (extract(epoch FROM updated_at) OPERATOR(pg_catalog.*) 1000000)::bigint ELSE 0 END
	FROM {schema}.rate_limit_rule WHERE is_active OR NOT $1::boolean ORDER BY priority, rule_id`
)

// maxReadBytes bounds the specs that are read. The active ones must fit in a policy file anyway.
const maxReadBytes = 4 * policy.MaxFileBytes

// readPooled reads the tables. It retries once, because a pooled connection may have ended unnoticed.
func (s *Source) readPooled(ctx context.Context, which rowSelection) (*Set, error) {
	set, err := s.read(ctx, s.pool, which)
	if errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil {
		if s.owned {
			s.pool.Reset()
		}
		set, err = s.read(ctx, s.pool, which)
	}
	return set, err
}

// read reads the tables in one snapshot.
func (s *Source) read(ctx context.Context, db beginner, which rowSelection) (*Set, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var set *Set
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, db, options, func(tx pgx.Tx) (err error) {
		set, err = s.readTx(ctx, tx, which)
		return err
	})
	if err != nil {
		return nil, s.explainMissing(ctx, pools.MarkUnavailable(err))
	}
	return set, nil
}

func (s *Source) readTx(ctx context.Context, tx pgx.Tx, which rowSelection) (*Set, error) {
	set := &Set{Policies: map[string]json.RawMessage{}, schema: s.config.Schema}
	if err := tx.QueryRow(ctx, s.qualify(selectRevision), pgx.QueryExecModeExec).Scan(&set.Revision); err != nil {
		return nil, err
	}
	var count, size int64
	if err := tx.QueryRow(ctx, s.qualify(selectSize), pgx.QueryExecModeExec, bool(which)).Scan(&count, &size); err != nil {
		return nil, err
	}
	switch most := int64(MaxRows); {
	case which == activeRows && count > policy.MaxRules:
		return nil, Errors{{Reason: fmt.Sprintf("%d rules are active, the maximum is %d", count, policy.MaxRules)}}
	case count > most || size > maxReadBytes:
		return nil, Errors{{Reason: fmt.Sprintf("there are %d rules with %d bytes of spec, the maximum is %d with %d", count, size, most, int64(maxReadBytes)),
			Hint: "delete inactive rules"}}
	}
	rows, err := tx.Query(ctx, s.qualify(selectPolicies), pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	var id, spec string
	if _, err := pgx.ForEachRow(rows, []any{&id, &spec}, func() error {
		set.Policies[id] = json.RawMessage(spec)
		return nil
	}); err != nil {
		return nil, err
	}
	if rows, err = tx.Query(ctx, s.qualify(selectRules), pgx.QueryExecModeExec, bool(which)); err != nil {
		return nil, err
	}
	set.Rules, err = pgx.CollectRows(rows, scanRule)
	return set, err
}

func scanRule(row pgx.CollectableRow) (r Rule, err error) {
	var spec string
	var created, updated int64
	err = row.Scan(&r.ID, &r.Name, &r.KeyPattern, &r.Scope, &r.RatePerSecond, &r.BurstCapacity, &r.Plan, &r.Active, &r.Description, &r.Priority,
		&r.Policy, &r.Fallback, &spec, &r.WindowTokens, &r.WindowLength, &r.Version, &created, &updated)
	r.Spec, r.CreatedAt, r.UpdatedAt = json.RawMessage(spec), time.UnixMicro(created), time.UnixMicro(updated)
	return r, err
}

// SQLSTATE codes for missing tables.
const (
	undefinedTable    = "42P01"
	invalidSchemaName = "3F000"
)

const (
	selectOld = `SELECT pg_catalog.to_regclass($1::pg_catalog.text) IS NOT NULL AND pg_catalog.to_regclass($2::pg_catalog.text) IS NULL`

	// dropOld drops the tables of an earlier development version.
	dropOld = `DROP TABLE {schema}.rate_limit_rule, {schema}.rate_limit_attribute, {schema}.rate_limit_revision; ` +
		`DROP FUNCTION {schema}.rate_limit_rule_row, {schema}.rate_limit_changed; ` +
		`DELETE FROM {schema}.migration WHERE version = 2;`
)

// explainMissing adds a remedy to an error if the tables are missing, or are from an earlier development version.
func (s *Source) explainMissing(ctx context.Context, err error) error {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || refusal.Code != undefinedTable && refusal.Code != invalidSchemaName {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var old bool
	row := s.pool.QueryRow(ctx, selectOld, pgx.QueryExecModeExec, s.schema+".rate_limit_rule", s.schema+".rate_limit_policy")
	if row.Scan(&old) == nil && old {
		return fmt.Errorf("schema %q has the rules of an earlier development version of mete, which this version cannot read: "+
			"export them with that version, by mete rules export; then run %s and import them with this version, by mete rules import",
			s.config.Schema, s.qualify(dropOld))
	}
	return fmt.Errorf("schema %q has no rules: mete rules list or mete serve creates the tables; to use a different schema, add ?schema=NAME", s.config.Schema)
}
