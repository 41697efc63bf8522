// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete/internal/spell"
)

type refusal struct{ column, reason, hint string }

// refusals maps the constraints of rate_limit_rule to their meanings.
var refusals = map[string]refusal{
	"rate_limit_rule_name_key": {"name", "another rule has this name", "choose a unique name"},
	"rate_limit_rule_key_pattern_plan_key": {"key_pattern", "another active rule has this key_pattern and plan",
		"change or disable that rule, or make match, group, mode or on_missing in spec differ"},
	"rate_limit_rule_fallback_key":          {"is_fallback", "the policy has another active fallback", "disable it, or use another policy"},
	"rate_limit_rule_name_check":            {"name", "must be 1 to 64 printable ASCII characters without leading or trailing spaces", ""},
	"rate_limit_rule_key_pattern_check":     {"key_pattern", "must be a valid pattern of at most 128 characters", "as in user:{user_id}, endpoint:/api/search, tenant:{tenant}:user:{user_id} or global"},
	"rate_limit_rule_scope_check":           {"scope", "must be the label in key_pattern (user, endpoint or ip), global if key_pattern is global, or custom", ""},
	"rate_limit_rule_rate_per_second_check": {"rate_per_second", "must be a number above 0 and at most 9007199254740.991", ""},
	"rate_limit_rule_burst_capacity_check":  {"burst_capacity", "must be a number from 1 to 9007199254740.991, in thousandths", ""},
	"rate_limit_rule_plan_check":            {"plan", "must be 1 to 32 characters without stars and without leading or trailing spaces", "NULL matches all plans"},
	"rate_limit_rule_match_check":           {"spec", "has a list of alternatives as its match, which plan and the values in key_pattern would change", "write them into each alternative"},
	"rate_limit_rule_description_check":     {"description", "must have at most 1024 bytes", ""},
	"rate_limit_rule_policy_check":          {"policy", "must be 1 to 64 printable ASCII characters without leading or trailing spaces", ""},
	"rate_limit_rule_spec_check":            {"spec", "must be a JSON object of at most a megabyte", ""},
	"rate_limit_rule_limit_check": {"spec", "has no limit, or an incomplete one",
		"set both rate_per_second and burst_capacity, or algorithm_config or limits in spec"},
	"rate_limit_rule_keys_check":  {"spec", "limit_keys is missing", "set key_pattern, or limit_keys in spec"},
	"rate_limit_rule_twice_check": {"spec", "spec and another column have different values for one field", "set it in one place"},
}

// SQLSTATE codes for a CHECK, which the triggers also use, and for \u0000 in JSON.
const (
	checkViolation = "23514"
	untranslatable = "22P05"
)

// newRuleError converts the database's rejection of a row to [Errors].
func newRuleError(err error, r *Rule) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	known, found := refusals[e.ConstraintName]
	_, noRate := strconv.ParseFloat(r.RatePerSecond, 64)
	_, noBurst := strconv.ParseFloat(r.BurstCapacity, 64)
	switch limit := e.ConstraintName == "rate_limit_rule_limit_check"; {
	case e.Code == checkViolation && e.ColumnName != "": // the text of a trigger
		known = refusal{e.ColumnName, e.Message, e.Hint}
		unknown, _, _ := strings.Cut(strings.TrimPrefix(e.Message, `"`), `"`)
		if near := spell.Nearest(unknown, strings.Split(e.Detail, ", ")); near != "" {
			known.hint = fmt.Sprintf("did you mean %q?", near)
		}
	case limit && r.RatePerSecond != "" && r.BurstCapacity == "":
		known = refusal{"burst_capacity", "is required with rate_per_second", "set both, or set the limit in spec"}
	case limit && r.RatePerSecond == "" && r.BurstCapacity != "":
		known = refusal{"rate_per_second", "is required with burst_capacity", "set both, or set the limit in spec"}
	case found:
	case e.Code == untranslatable:
		known = refusal{"spec", "must not contain a zero character", ""}
	case strings.HasPrefix(e.Code, "22") && r.RatePerSecond != "" && noRate != nil: // PostgreSQL does not name the column
		known = refusals["rate_limit_rule_rate_per_second_check"]
	case strings.HasPrefix(e.Code, "22") && r.BurstCapacity != "" && noBurst != nil:
		known = refusals["rate_limit_rule_burst_capacity_check"]
	case strings.HasPrefix(e.Code, "22"), strings.HasPrefix(e.Code, "23"): // data, integrity
		known = refusal{e.ColumnName, e.Message, e.Hint}
	default:
		return err
	}
	values := map[string]string{"name": r.Name, "key_pattern": r.KeyPattern, "scope": r.Scope, "plan": r.Plan,
		"rate_per_second": r.RatePerSecond, "burst_capacity": r.BurstCapacity}
	m := Error{RuleID: r.ID, Name: cmp.Or(r.Name, r.KeyPattern), Path: known.column, Value: values[known.column], Reason: known.reason, Hint: known.hint}
	if number := strings.HasSuffix(m.Path, "_second") || strings.HasSuffix(m.Path, "_capacity"); m.Value != "" && !number || len(m.Value) > maxShownBytes {
		m.Value = quote(m.Value)
	}
	return Errors{m}
}

// newPolicyError converts the database's rejection of a policy's document to [Errors].
func newPolicyError(err error, id string) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case ok && e.ConstraintName == "rate_limit_policy_spec_check":
		return Errors{{Policy: id, Path: "spec", Reason: "must be a JSON object without rules, fallback_limit and bundle version fields", Hint: "rules are rows of rate_limit_rule"}}
	case ok && (strings.HasPrefix(e.Code, "22") || strings.HasPrefix(e.Code, "23")):
		return Errors{{Policy: id, Path: "spec", Reason: e.Message}}
	}
	return err
}
