// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// maxPlanRunes bounds the column plan.
const maxPlanRunes = 32

// row fills in the columns, and what is left into the spec.
func (v vocabulary) row(row *Rule, t *translation) {
	spec := t.rule
	delete(spec, "name")
	delete(spec, "description")
	if spec.has("mode") {
		if mode := modeWord(spec.text("mode")); mode == "" {
			delete(spec, "mode")
		} else {
			spec.put("mode", mode)
		}
	}
	if t.policy != "" {
		spec.put("policy", t.policy)
	}
	if t.last {
		spec.put("fallback", true)
	}
	match, _ := parseObject(spec["match"])
	if t.last {
		for name := range match { // as the selector is spelled that an export makes of it
			if a, err := policy.ParseAttribute(name); err == nil {
				if values, ok := listed(match[name], a.Source); ok {
					match[name] = clauseOf(values)
				}
			}
		}
	}
	row.Plan = v.takePlan(match)
	keys := spelled(spec["limit_keys"])
	path := pathOf(match)
	var taken bool
	row.KeyPattern, row.Scope, taken = v.spell(keys, path)
	if taken {
		delete(match, "path")
	}
	if delete(spec, "limit_keys"); row.KeyPattern == patternCustom {
		spec.put("limit_keys", keys)
	}
	if delete(spec, "match"); len(match) > 0 {
		for name := range match {
			match[name] = asText(match[name])
		}
		spec.put("match", match)
	}
	takeSlot(spec, keys)
	takeNumbers(row, spec)
	row.Spec = canonical(marshal(spec))
}

// takePlan takes the plan out of a match, where it is one word that a column can hold.
func (v vocabulary) takePlan(match object) string {
	a, wrong := v.attribute("plan")
	if wrong != nil {
		return ""
	}
	for name, value := range match {
		if spelled, err := policy.Normalize(name); err != nil || spelled != a {
			continue
		}
		plan, ok := clauseText(value)
		if !ok || plan == "" || strings.Contains(plan, "*") || strings.Trim(plan, " ") != plan || utf8.RuneCountInString(plan) > maxPlanRunes {
			return ""
		}
		delete(match, name)
		return plan
	}
	return ""
}

// pathOf is the value that a match wants of path, where it is one.
func pathOf(match object) string {
	if value := match["path"]; len(value) > 0 && value[0] == '"' {
		return match.text("path")
	}
	return ""
}

// spelled returns a list of attributes as they are spelled.
func spelled(list json.RawMessage) []string {
	var names []string
	_ = json.Unmarshal(list, &names) // it has been compiled
	keys := []string{}
	for _, name := range names {
		if a, err := policy.ParseAttribute(name); err == nil {
			keys = append(keys, a.Spelled())
		}
	}
	return keys
}

// asText writes the numbers and booleans of a clause as text, which means the same:
// jsonb would write numbers in another way.
func asText(value json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	var not object
	switch {
	case len(value) == 0 || value[0] == '"':
		return value
	case value[0] == '[' && json.Unmarshal(value, &list) == nil:
		for i := range list {
			list[i] = asText(list[i])
		}
		return marshal(list)
	case value[0] == '{' && json.Unmarshal(value, &not) == nil:
		for name := range not {
			not[name] = asText(not[name])
		}
		return marshal(not)
	}
	return marshal(string(value))
}

// takeSlot removes slot_by from a rule whose keys it does not tag.
func takeSlot(spec object, keys []string) {
	by, err := policy.Normalize(spec.text("slot_by"))
	if err != nil || !slices.ContainsFunc(keys, func(key string) bool { name, err := policy.Normalize(key); return err == nil && name == by }) {
		delete(spec, "slot_by")
	}
}

// takeNumbers takes the rate and the burst of a plain token bucket out of the spec,
// where columns can hold them.
func takeNumbers(row *Rule, spec object) {
	if algorithm := spec.text("algorithm"); spec.has("limits") || algorithm != "" && algorithm != "token_bucket" {
		return
	}
	delete(spec, "algorithm")
	config, err := parseObject(spec["algorithm_config"])
	if err != nil {
		return
	}
	i := slices.IndexFunc(rateFields, func(f string) bool { return config.has(f) })
	if i < 0 || rateFields[i] == "rate" || config.text("refill") == "interval" {
		return
	}
	rate, rateOK := decimal(config[rateFields[i]])
	burst, burstOK := decimal(config["burst"])
	if tokens, err := bucket.ParseTokens(burst); !rateOK || !burstOK || err != nil || tokens < bucket.Token {
		return
	}
	row.RatePerSecond, row.BurstCapacity = rate, burst
	for _, f := range append([]string{"burst"}, rateFields...) {
		delete(config, f)
	}
	if delete(spec, "algorithm_config"); len(config) > 0 {
		spec.put("algorithm_config", config)
	}
}

// decimal returns a number that may stand in a string, in plain digits.
func decimal(value json.RawMessage) (string, bool) {
	var s string
	if json.Unmarshal(value, &s) != nil {
		s = string(value)
	}
	return plainDecimal(s)
}
