// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/policy"
)

// A Change is what became of one rule in an edit.
type Change struct {
	Before *Rule // nil: it was not there
	After  *Rule // nil: it is gone
}

// errDryRun ends a transaction that was only to be tried.
var errDryRun = errors.New("dry run")

// An editError is what the caller's function returned.
type editError struct{ error }

func (e editError) Unwrap() error { return e.error }

// Edit lets a function change the rules, and writes what it did in one transaction. In
// it no one else writes rules. The function adds rules with ID 0, changes or removes
// others; its own error ends all, and is returned. Then the whole set must compile:
// servers that follow it would else keep their old one. Where it does not, or where
// the database refuses a row, nothing is written and the error is an [Errors].
//
// It returns what has changed, in the order of the rules, what is gone first. With
// dryRun it does all the same and writes nothing.
func (s *Source) Edit(ctx context.Context, dryRun bool, edit func(*Set) error) ([]Change, error) {
	ctx, cancel := context.WithTimeout(ctx, editTimeout)
	defer cancel()
	var changes []Change
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) (err error) {
		if changes, err = s.editIn(ctx, tx, edit); err == nil && dryRun {
			return errDryRun
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
	case errors.Is(err, errDryRun), err == nil:
		return changes, nil
	}
	return nil, fmt.Errorf("rules: edit: %w", s.missing(unanswered(err)))
}

// editIn does what Edit does within a transaction.
func (s *Source) editIn(ctx context.Context, tx pgx.Tx, edit func(*Set) error) ([]Change, error) {
	for _, sql := range []string{
		"SET LOCAL lock_timeout = '10s'",
		"SET LOCAL idle_in_transaction_session_timeout = '30s'",
		"LOCK TABLE {schema}.rate_limit_rule IN SHARE ROW EXCLUSIVE MODE",
	} {
		if _, err := tx.Exec(ctx, s.sql(sql)); err != nil {
			return nil, err
		}
	}
	before, err := s.readIn(ctx, tx, all)
	if err != nil {
		return nil, err
	}
	wanted := before.clone()
	if err := edit(wanted); err != nil {
		return nil, editError{err}
	}
	if err := s.write(ctx, tx, before.Rules, wanted.Rules); err != nil {
		return nil, err
	}
	after, err := s.readIn(ctx, tx, all)
	if err != nil {
		return nil, err
	}
	changes := compare(before.Rules, after.Rules)
	if len(changes) == 0 {
		return nil, nil
	}
	if _, err := after.Compile(policy.Options{}); err != nil {
		return nil, err
	}
	return changes, nil
}

// clone returns a copy of s that can be changed.
func (s *Set) clone() *Set {
	c := *s
	c.Rules = slices.Clone(s.Rules)
	for i := range c.Rules {
		c.Rules[i].Spec = slices.Clone(c.Rules[i].Spec)
	}
	return &c
}

// byID returns the rules that are in the database.
func byID(list []Rule) map[int64]*Rule {
	m := map[int64]*Rule{}
	for i := range list {
		if list[i].ID != 0 {
			m[list[i].ID] = &list[i]
		}
	}
	return m
}

// compare returns what is different.
func compare(before, after []Rule) (changes []Change) {
	old, now := byID(before), byID(after)
	for i := range before {
		if now[before[i].ID] == nil {
			changes = append(changes, Change{Before: &before[i]})
		}
	}
	for i := range after {
		r := &after[i]
		if b := old[r.ID]; b == nil || !b.sameRow(r) {
			changes = append(changes, Change{Before: b, After: r})
		}
	}
	return changes
}

const (
	deleteRule = `DELETE FROM {schema}.rate_limit_rule WHERE rule_id OPERATOR(pg_catalog.=) $1::bigint`

	updateRule = `UPDATE {schema}.rate_limit_rule SET name = $2::pg_catalog.text, key_pattern = $3::pg_catalog.text, scope = $4::pg_catalog.text,
	rate_per_second = $5::pg_catalog.text::numeric, burst_capacity = $6::pg_catalog.text::numeric, plan = $7::pg_catalog.text,
	is_active = $8::boolean, description = $9::pg_catalog.text, priority = $10::integer, spec = $11::pg_catalog.text::pg_catalog.jsonb
	WHERE rule_id OPERATOR(pg_catalog.=) $1::bigint`

	insertRule = `INSERT INTO {schema}.rate_limit_rule
	(name, key_pattern, scope, rate_per_second, burst_capacity, plan, is_active, description, priority, spec)
	VALUES ($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text,
	$4::pg_catalog.text::numeric, $5::pg_catalog.text::numeric, $6::pg_catalog.text,
	$7::boolean, $8::pg_catalog.text, $9::integer, $10::pg_catalog.text::pg_catalog.jsonb)`
)

// write makes the rows those that are wanted. What makes room goes first: names, and
// patterns of which one rule can be active.
func (s *Source) write(ctx context.Context, tx pgx.Tx, before, wanted []Rule) error {
	kept := byID(wanted)
	for i := range before {
		if kept[before[i].ID] == nil {
			if _, err := tx.Exec(ctx, s.sql(deleteRule), pgx.QueryExecModeExec, before[i].ID); err != nil {
				return refused(err, &before[i])
			}
		}
	}
	old := byID(before)
	for _, active := range []bool{false, true} {
		for i := range wanted {
			r := &wanted[i]
			b := old[r.ID]
			if r.ID == 0 || r.Active != active || b != nil && b.sameRow(r) {
				continue
			}
			if err := s.writeRow(ctx, tx, s.sql(updateRule), r, r.ID, r.Name); err != nil {
				return err
			}
		}
	}
	for i := range wanted {
		if r := &wanted[i]; r.ID == 0 {
			if err := s.writeRow(ctx, tx, s.sql(insertRule), r, orNull(r.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// orNull is null for an empty text.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// writeRow writes one row. The statement has the values of first before the others.
func (s *Source) writeRow(ctx context.Context, tx pgx.Tx, sql string, r *Rule, first ...any) error {
	scope, spec := r.Scope, r.Spec
	if scope == "" {
		scope = ScopeFor(r.KeyPattern)
	}
	if len(spec) == 0 {
		spec = json.RawMessage("{}")
	}
	args := append([]any{pgx.QueryExecModeExec}, first...)
	args = append(args, r.KeyPattern, scope, orNull(r.RatePerSecond), orNull(r.BurstCapacity), orNull(r.Plan),
		r.Active, orNull(r.Description), r.Priority, string(spec))
	_, err := tx.Exec(ctx, sql, args...)
	return refused(err, r)
}
