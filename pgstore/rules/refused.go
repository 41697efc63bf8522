// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

// A refusal is what a constraint of rate_limit_rule stands for.
type refusal struct{ column, reason, hint string }

// refusals are those of the constraints, by their names.
var refusals = map[string]refusal{
	"rate_limit_rule_name_key": {"name", "another rule has that name", "give it a name of its own"},
	"rate_limit_rule_key_pattern_plan_key": {"key_pattern", "another active rule has that key_pattern and plan",
		"change or disable that one, or set them apart in spec: by match, group, mode or on_missing"},
	"rate_limit_rule_name_check":        {"name", "must be 1 to 64 letters of printable ASCII, with no space at its ends", ""},
	"rate_limit_rule_key_pattern_check": {"key_pattern", "is no pattern", "as in user:{user_id}, endpoint:/api/search, tenant:{tenant}:user:{user_id} or global"},
	"rate_limit_rule_scope_check": {"scope", "must be user, endpoint or ip, where key_pattern has that label, global where it is global, or custom",
		""},
	"rate_limit_rule_rate_per_second_check": {"rate_per_second", "must be a number above 0 and at most 9007199254740.991", ""},
	"rate_limit_rule_burst_capacity_check":  {"burst_capacity", "must be a number from 1 to 9007199254740.991, in thousandths", ""},
	"rate_limit_rule_plan_check":            {"plan", "must not be empty, have a star, or a space at its ends", "NULL is all plans"},
	"rate_limit_rule_description_check":     {"description", "must have at most 1024 bytes", ""},
	"rate_limit_rule_spec_check":            {"spec", "must be a JSON object of at most a megabyte", ""},
	limitCheck: {"spec", "a limit is either in rate_per_second and burst_capacity, both, or in spec as algorithm_config or limits",
		"where the columns say it, algorithm_config has none of rps, tokens_per_second, rate and burst"},
	"rate_limit_rule_custom_check":  {"spec", "limit_keys are in spec where key_pattern is custom, and nowhere else", ""},
	"rate_limit_rule_columns_check": {"spec", "says what is a column of its own", "remove it from spec"},
}

// limitCheck is the constraint that has a limit said once.
const limitCheck = "rate_limit_rule_limit_check"

// untranslatable is what PostgreSQL says of \u0000 in JSON.
const untranslatable = "22P05"

// refused turns what the database says of a row into a mistake, nil for nothing.
func refused(err error, r *Rule) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	m := Mistake{RuleID: r.ID, Name: r.Name, Column: e.ColumnName, Reason: e.Message}
	known, found := refusals[e.ConstraintName]
	if !found {
		known, found = unstorable(e, r)
	}
	half := e.ConstraintName == limitCheck && (r.RatePerSecond == "") != (r.BurstCapacity == "")
	switch {
	case half && r.RatePerSecond == "":
		m.Column, m.Reason = "rate_per_second", "is missing beside burst_capacity; a limit has both or, in spec, none"
	case half:
		m.Column, m.Reason = "burst_capacity", "is missing beside rate_per_second; a limit has both or, in spec, none"
	case found:
		m.Column, m.Reason, m.Hint = known.column, known.reason, known.hint
	case !strings.HasPrefix(e.Code, "22") && !strings.HasPrefix(e.Code, "23"): // data, integrity
		return err
	}
	if m.Name == "" {
		m.Name = r.KeyPattern
	}
	switch m.Column {
	case "name":
		m.Value = shown(r.Name)
	case "key_pattern":
		m.Value = shown(r.KeyPattern)
	case "scope":
		m.Value = shown(r.Scope)
	case "rate_per_second":
		m.Value = number(r.RatePerSecond)
	case "burst_capacity":
		m.Value = number(r.BurstCapacity)
	case "plan":
		m.Value = shown(r.Plan)
	}
	return Errors{m}
}

// number is what was to be a number, as it is where that is short.
func number(s string) string {
	if len(s) > maxShownBytes {
		return shown(s)
	}
	return s
}

// unstorable finds the column whose value is none of its type: PostgreSQL does not
// say which it was.
func unstorable(e *pgconn.PgError, r *Rule) (refusal, bool) {
	_, rate := plainDecimal(r.RatePerSecond)
	_, burst := plainDecimal(r.BurstCapacity)
	letters := utf8.RuneCountInString
	switch {
	case !strings.HasPrefix(e.Code, "22"):
	case letters(r.KeyPattern) > maxPatternRunes:
		return refusal{"key_pattern", fmt.Sprintf("must have at most %d letters", maxPatternRunes), "say what is long in spec.match"}, true
	case letters(r.Plan) > maxPlanRunes:
		return refusal{"plan", fmt.Sprintf("must have at most %d letters", maxPlanRunes), ""}, true
	case r.RatePerSecond != "" && !rate:
		return refusals["rate_limit_rule_rate_per_second_check"], true
	case r.BurstCapacity != "" && !burst:
		return refusals["rate_limit_rule_burst_capacity_check"], true
	case e.Code == untranslatable:
		return refusal{"spec", "PostgreSQL has no text with a zero character", ""}, true
	}
	return refusal{}, false
}
