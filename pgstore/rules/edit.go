// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/pgstore/internal/pools"
	"github.com/metehq/mete/policy"
)

// A Change is an edit of one row. Before is nil for a new row, After for a removed row. For a row of
// rate_limit_policy, Policy is its name, and Before and After only have a Spec. For a rule, Policy is nil.
type Change struct {
	Policy        *string
	Before, After *Rule
}

// errUnwanted rolls back a transaction that must not write: a dry run, or no change.
var errUnwanted = errors.New("nothing to write")

type editError struct{ error }

// Edit lets a function change the rules, and writes the changes in one transaction. Other writers of rules wait
// until it ends. The function can change and remove rules, and add rules with ID 0. Edit returns an error of the
// function unchanged. A changed column updates the row's Spec, and the columns follow Spec. The resulting set
// must compile, because servers would otherwise keep their old policy. If it does not compile, or the database
// rejects a row, Edit writes nothing and returns an [Errors].
//
// Edit returns the changes in the order of the rules, removed rows first. With dryRun it writes nothing.
func (s *Source) Edit(ctx context.Context, dryRun bool, edit func(*Set) error) ([]Change, error) {
	ctx, cancel := context.WithTimeout(ctx, editTimeout)
	defer cancel()
	var changes []Change
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) (err error) {
		if changes, err = s.editTx(ctx, tx, edit); err == nil && (dryRun || len(changes) == 0) {
			return errUnwanted
		}
		return err
	})
	mistakes, broken := errors.AsType[Errors](err)
	own, isOwn := errors.AsType[editError](err)
	switch {
	case isOwn:
		return nil, own.error
	case broken:
		return nil, mistakes
	case errors.Is(err, errUnwanted), err == nil:
		return changes, nil
	}
	return nil, fmt.Errorf("rules: edit: %w", s.explainMissing(ctx, pools.MarkUnavailable(err)))
}

func (s *Source) editTx(ctx context.Context, tx pgx.Tx, edit func(*Set) error) ([]Change, error) {
	for _, sql := range []string{
		"SET LOCAL lock_timeout = '10s'",
		"SET LOCAL idle_in_transaction_session_timeout = '30s'",
		"LOCK TABLE {schema}.rate_limit_rule, {schema}.rate_limit_policy IN SHARE ROW EXCLUSIVE MODE",
	} {
		if _, err := tx.Exec(ctx, s.qualify(sql)); err != nil {
			return nil, err
		}
	}
	before, err := s.readTx(ctx, tx, allRows)
	if err != nil {
		return nil, err
	}
	wanted := *before
	wanted.Rules, wanted.Policies = slices.Clone(before.Rules), maps.Clone(before.Policies)
	if err := edit(&wanted); err != nil {
		return nil, editError{err}
	}
	if err := s.write(ctx, tx, before.Rules, wanted.Rules); err != nil {
		return nil, err
	}
	if err := s.writePolicies(ctx, tx, before.Policies, wanted.Policies); err != nil {
		return nil, err
	}
	after, err := s.readTx(ctx, tx, allRows)
	if err != nil {
		return nil, err
	}
	changes := compareSets(before, after)
	if len(changes) > 0 {
		_, err = after.Compile(policy.Options{})
	}
	return changes, err
}

func byID(list []Rule) map[int64]*Rule {
	m := map[int64]*Rule{}
	for i := range list {
		if list[i].ID != 0 {
			m[list[i].ID] = &list[i]
		}
	}
	return m
}

// compareSets returns the changes between two reads of the tables. It compares the versions of rules, which the
// database counts.
func compareSets(before, after *Set) (changes []Change) {
	old, now := byID(before.Rules), byID(after.Rules)
	for i := range before.Rules {
		if now[before.Rules[i].ID] == nil {
			changes = append(changes, Change{Before: &before.Rules[i]})
		}
	}
	for i := range after.Rules {
		r := &after.Rules[i]
		if b := old[r.ID]; b == nil || b.Version != r.Version {
			changes = append(changes, Change{Before: b, After: r})
		}
	}
	document := func(specs map[string]json.RawMessage, id string) *Rule {
		if spec, ok := specs[id]; ok {
			return &Rule{Spec: spec}
		}
		return nil
	}
	every := maps.Clone(before.Policies)
	maps.Copy(every, after.Policies)
	for _, id := range slices.Sorted(maps.Keys(every)) {
		if !bytes.Equal(before.Policies[id], after.Policies[id]) {
			changes = append(changes, Change{Policy: &id, Before: document(before.Policies, id), After: document(after.Policies, id)})
		}
	}
	return changes
}

const (
	deleteRule = `DELETE FROM {schema}.rate_limit_rule WHERE rule_id OPERATOR(pg_catalog.=) $1::bigint`

	updateRule = `UPDATE {schema}.rate_limit_rule SET name = $2::pg_catalog.text, key_pattern = $3::pg_catalog.text, scope = $4::pg_catalog.text,
	rate_per_second = $5::pg_catalog.text::numeric, burst_capacity = $6::pg_catalog.text::numeric, plan = $7::pg_catalog.text,
	description = $8::pg_catalog.text, is_active = $9::boolean, priority = $10::integer, policy = $11::pg_catalog.text, is_fallback = $12::boolean,
	spec = $13::pg_catalog.text::pg_catalog.jsonb
	WHERE rule_id OPERATOR(pg_catalog.=) $1::bigint`

	insertRule = `INSERT INTO {schema}.rate_limit_rule
	(name, key_pattern, scope, rate_per_second, burst_capacity, plan, description, is_active, priority, policy, is_fallback, spec)
	VALUES ($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text,
	$4::pg_catalog.text::numeric, $5::pg_catalog.text::numeric, $6::pg_catalog.text, $7::pg_catalog.text,
	$8::boolean, $9::integer, $10::pg_catalog.text, $11::boolean, $12::pg_catalog.text::pg_catalog.jsonb)`

	deletePolicy = `DELETE FROM {schema}.rate_limit_policy WHERE policy OPERATOR(pg_catalog.=) $1::pg_catalog.text`

	setPolicy = `INSERT INTO {schema}.rate_limit_policy (policy, spec) VALUES ($1::pg_catalog.text, $2::pg_catalog.text::pg_catalog.jsonb)
	ON CONFLICT (policy) DO UPDATE SET spec = excluded.spec`
)

// write changes the rows to the wanted ones. Removed and inactive rows come first, since active rows may need
// their names or patterns.
func (s *Source) write(ctx context.Context, tx pgx.Tx, before, wanted []Rule) error {
	kept := byID(wanted)
	for i := range before {
		if kept[before[i].ID] == nil {
			if _, err := tx.Exec(ctx, s.qualify(deleteRule), pgx.QueryExecModeExec, before[i].ID); err != nil {
				return newRuleError(err, &before[i])
			}
		}
	}
	old := byID(before)
	for _, active := range []bool{false, true} {
		for i := range wanted {
			r := &wanted[i]
			if b := old[r.ID]; b == nil || r.Active != active || b.sameRow(r) {
				continue
			}
			if err := s.writeRow(ctx, tx, updateRule, r, r.ID); err != nil {
				return err
			}
		}
	}
	for i := range wanted {
		if r := &wanted[i]; r.ID == 0 {
			if err := s.writeRow(ctx, tx, insertRule, r); err != nil {
				return err
			}
		}
	}
	return nil
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// writeRow writes a row. The values in first precede the others.
func (s *Source) writeRow(ctx context.Context, tx pgx.Tx, sql string, r *Rule, first ...any) error {
	spec := string(r.Spec)
	if spec == "" {
		spec = "{}"
	}
	args := append([]any{pgx.QueryExecModeExec}, first...)
	args = append(args, orNull(r.Name), orNull(r.KeyPattern), orNull(r.Scope), orNull(r.RatePerSecond), orNull(r.BurstCapacity), orNull(r.Plan),
		orNull(r.Description), r.Active, r.Priority, cmp.Or(r.Policy, DefaultPolicy), r.Fallback, spec)
	_, err := tx.Exec(ctx, s.qualify(sql), args...)
	return newRuleError(err, r)
}

func (s *Source) writePolicies(ctx context.Context, tx pgx.Tx, before, wanted map[string]json.RawMessage) error {
	for id := range before {
		if _, kept := wanted[id]; !kept {
			if _, err := tx.Exec(ctx, s.qualify(deletePolicy), pgx.QueryExecModeExec, id); err != nil {
				return err
			}
		}
	}
	for id, spec := range wanted {
		if old, there := before[id]; there && sameJSON(old, spec) {
			continue
		}
		if _, err := tx.Exec(ctx, s.qualify(setPolicy), pgx.QueryExecModeExec, id, string(spec)); err != nil {
			return newPolicyError(err, id)
		}
	}
	return nil
}
