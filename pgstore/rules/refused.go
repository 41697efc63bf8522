// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete/internal/spell"
)

// A refusal is the meaning of a constraint.
type refusal struct{ column, reason, hint string }

// refusals has the meanings of the constraints of rate_limit_rule, by their names. An
// empty reason is that of the database, which names the value.
var refusals = map[string]refusal{
	"rate_limit_rule_name_key": {"name", "another rule has that name", "give it a name of its own"},
	"rate_limit_rule_key_pattern_plan_key": {"key_pattern", "another active rule has that key_pattern and plan",
		"change or disable that one, or set them apart: by match, group, mode or on_missing in spec"},
	"rate_limit_rule_fallback_key":          {"is_fallback", "the policy has another active fallback", "disable that one, or name another policy"},
	"rate_limit_rule_name_check":            {"name", "must be 1 to 64 letters of printable ASCII, with no space at its ends", ""},
	"rate_limit_rule_key_pattern_check":     {"key_pattern", "is no pattern", "as in user:{user_id}, endpoint:/api/search, tenant:{tenant}:user:{user_id} or global"},
	"rate_limit_rule_scope_check":           {"scope", "must be user, endpoint or ip, where key_pattern has that label, global where it is global, or custom", ""},
	"rate_limit_rule_rate_per_second_check": {"rate_per_second", "must be a number above 0 and at most 9007199254740.991", ""},
	"rate_limit_rule_burst_capacity_check":  {"burst_capacity", "must be a number from 1 to 9007199254740.991, in thousandths", ""},
	"rate_limit_rule_plan_check":            {"plan", "must not be empty, have a star, or a space at its ends", "NULL is all plans"},
	"rate_limit_rule_description_check":     {"description", "must have at most 1024 bytes", ""},
	"rate_limit_rule_policy_check":          {"policy", "must be 1 to 64 letters of printable ASCII, with no space at its ends", ""},
	"rate_limit_rule_spec_check":            {"spec", "must be a JSON object of at most a megabyte", ""},
	"rate_limit_rule_limit_check": {"spec", "has no limit, or half of one",
		"write rate_per_second and burst_capacity, both, or algorithm_config or limits in spec"},
	"rate_limit_rule_keys_check":  {"spec", "limit_keys are missing", "write a key_pattern, or limit_keys in spec"},
	"rate_limit_rule_twice_check": {"spec", "spec and another column say different things of one field", "say it once"},
}

// untranslatable is the code of PostgreSQL for \u0000 in JSON.
const untranslatable = "22P05"

// refused turns the database's refusal of a row into a mistake.
func refused(err error, r *Rule) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	m := Mistake{RuleID: r.ID, Name: r.Name, Path: e.ColumnName, Reason: e.Message, Hint: e.Hint}
	known, found := refusals[e.ConstraintName]
	if !found {
		known, found = unstorable(e, r)
	}
	switch {
	case e.ColumnName != "" && e.Code == checkViolation: // a trigger's own words
		unknown, _, _ := strings.Cut(strings.TrimPrefix(e.Message, `"`), `"`)
		if near := spell.Nearest(unknown, strings.Split(e.Detail, ", ")); near != "" {
			m.Hint = fmt.Sprintf("did you mean %q?", near)
		}
	case e.ConstraintName == "rate_limit_rule_limit_check" && r.RatePerSecond != "" && r.BurstCapacity == "":
		m.Path, m.Reason = "burst_capacity", "is missing beside rate_per_second; a limit has both or, in spec, none"
	case e.ConstraintName == "rate_limit_rule_limit_check" && r.RatePerSecond == "" && r.BurstCapacity != "":
		m.Path, m.Reason = "rate_per_second", "is missing beside burst_capacity; a limit has both or, in spec, none"
	case found:
		m.Path, m.Reason, m.Hint = known.column, known.reason, known.hint
	case !strings.HasPrefix(e.Code, "22") && !strings.HasPrefix(e.Code, "23"): // data, integrity
		return err
	}
	if m.Name == "" {
		m.Name = r.KeyPattern
	}
	number := func(s string) string {
		if len(s) > maxShownBytes {
			return shown(s)
		}
		return s
	}
	switch m.Path {
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

// checkViolation is the code of PostgreSQL for a CHECK, which the triggers use as well.
const checkViolation = "23514"

// unstorable finds the column whose value has another type than the column: PostgreSQL
// does not name it.
func unstorable(e *pgconn.PgError, r *Rule) (refusal, bool) {
	_, rate := strconv.ParseFloat(r.RatePerSecond, 64)
	_, burst := strconv.ParseFloat(r.BurstCapacity, 64)
	const patternRunes, planRunes = 128, 32 // the types of the columns
	switch {
	case !strings.HasPrefix(e.Code, "22"):
	case utf8.RuneCountInString(r.KeyPattern) > patternRunes:
		return refusal{"key_pattern", fmt.Sprintf("must have at most %d letters", patternRunes), "write match and limit_keys in spec"}, true
	case utf8.RuneCountInString(r.Plan) > planRunes:
		return refusal{"plan", fmt.Sprintf("must have at most %d letters", planRunes), ""}, true
	case r.RatePerSecond != "" && rate != nil:
		return refusals["rate_limit_rule_rate_per_second_check"], true
	case r.BurstCapacity != "" && burst != nil:
		return refusals["rate_limit_rule_burst_capacity_check"], true
	case e.Code == untranslatable:
		return refusal{"spec", "PostgreSQL has no text with a zero character", ""}, true
	}
	return refusal{}, false
}

// refusedPolicy turns the database's refusal of a policy's document into a mistake.
func refusedPolicy(err error, id string) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && (strings.HasPrefix(e.Code, "22") || strings.HasPrefix(e.Code, "23")) {
		return Errors{{Policy: id, Path: "spec", Reason: e.Message}}
	}
	return err
}
