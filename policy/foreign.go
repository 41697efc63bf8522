// SPDX-License-Identifier: Apache-2.0

package policy

// What people write who know another limiter, or guess.

// A foreign field is a name that an object does not have, and what to write instead.
type foreign struct {
	hint  string
	means []string // the fields that it stands for, and which are then not missing
}

var (
	foreignRule = map[string]foreign{
		"shadow":     {hint: "say mode: shadow"},
		"enabled":    {hint: "say mode: off for a rule that is not in force"},
		"is_active":  {hint: "say mode: off for a rule that is not in force"},
		"enforce":    {hint: "say mode"},
		"priority":   {hint: "the rules of a group are tried in the order of the file"},
		"selector":   {hint: "it is a policy's, beside rules; in a rule, say match"},
		"path":       {hint: `say match, as in {"path": "/v1/*"}`},
		"method":     {hint: `say match, as in {"method": "POST"}`},
		"host":       {hint: `say match, as in {"host": "api.example.com"}`},
		"scope":      {hint: "limit_keys say who shares a bucket", means: []string{"limit_keys"}},
		"id":         {hint: "say name", means: []string{"name"}},
		"config":     {hint: "say algorithm_config", means: []string{"algorithm_config"}},
		"rate_limit": {hint: "say algorithm_config", means: []string{"algorithm_config"}},
	}
	foreignFallback = map[string]foreign{
		"match": {hint: "fallback_limit is for what no rule takes; what has a match is a rule"},
		"group": {hint: "fallback_limit is for what no rule takes, whatever their groups"},
	}
	foreignLimit = map[string]foreign{
		"requests_per_second": {hint: "say rps", means: []string{"tokens_per_second"}},
		"requests_per_minute": {hint: `say rate, as in "60/1m"`, means: []string{"tokens_per_second"}},
		"requests_per_hour":   {hint: `say rate, as in "60/1h"`, means: []string{"tokens_per_second"}},
		"tokens_per_minute":   {hint: `say rate, as in "60/1m"`, means: []string{"tokens_per_second"}},
		"rpm":                 {hint: `say rate, as in "60/1m"`, means: []string{"tokens_per_second"}},
		"refill_rate":         {hint: "say rps", means: []string{"tokens_per_second"}},
		"rate_per_second":     {hint: "say rps", means: []string{"tokens_per_second"}},
		"burst_capacity":      {hint: "say burst", means: []string{"burst"}},
		"max_tokens":          {hint: "say burst", means: []string{"burst"}},
		"interval":            {hint: `say it in rate, as in "5/10s"`},
		"limit":               {hint: "say how many, and in what time, by the fields of the algorithm"},
	}
	foreignSelector = map[string]foreign{
		"path":     {hint: "say pathExact or pathPrefix"},
		"prefix":   {hint: "say pathPrefix"},
		"headers":  {hint: "say it in the match of a rule"},
		"paths":    {hint: "say pathExact, with a list"},
		"pathGlob": {hint: "say pathPrefix"},
	}
	foreignEntry = map[string]foreign{
		"name": {hint: "say id", means: []string{"id"}},
	}
	foreignOverride = map[string]foreign{
		"comment":     {hint: "say it in reason"},
		"description": {hint: "say it in reason"},
		"rule":        {hint: "say rules, with a list", means: []string{"rules"}},
		"until":       {hint: "say expires_at", means: []string{"expires_at"}},
		"ttl":         {hint: "say expires_at, an instant", means: []string{"expires_at"}},
	}
)
