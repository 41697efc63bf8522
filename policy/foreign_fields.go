// SPDX-License-Identifier: Apache-2.0

package policy

// Fields that users of other limiters write, with the correction.

var (
	foreignRule = foreignFields{
		"shadow":     {Hint: "say mode: shadow"},
		"enabled":    {Hint: "say mode: off for a rule that is not in force"},
		"is_active":  {Hint: "say mode: off for a rule that is not in force"},
		"enforce":    {Hint: "say mode"},
		"priority":   {Hint: "the rules of a group are tried in the order of the file"},
		"selector":   {Hint: "it is a policy's, beside rules; in a rule, say match"},
		"path":       {Hint: `say match, as in {"path": "/v1/*"}`},
		"method":     {Hint: `say match, as in {"method": "POST"}`},
		"host":       {Hint: `say match, as in {"host": "api.example.com"}`},
		"scope":      {Hint: "limit_keys say who shares a bucket", Means: []string{"limit_keys"}},
		"id":         {Hint: "say name", Means: []string{"name"}},
		"config":     {Hint: "say algorithm_config", Means: []string{"algorithm_config"}},
		"rate_limit": {Hint: "say algorithm_config", Means: []string{"algorithm_config"}},
	}
	foreignFallback = foreignFields{
		"match": {Hint: "fallback_limit is for what no rule takes; what has a match is a rule"},
		"group": {Hint: "fallback_limit is for what no rule takes, whatever their groups"},
	}
	foreignLimit = foreignFields{
		"requests_per_second": {Hint: "say rps", Means: []string{"tokens_per_second"}},
		"requests_per_minute": {Hint: `say rate, as in "60/1m"`, Means: []string{"tokens_per_second"}},
		"requests_per_hour":   {Hint: `say rate, as in "60/1h"`, Means: []string{"tokens_per_second"}},
		"tokens_per_minute":   {Hint: `say rate, as in "60/1m"`, Means: []string{"tokens_per_second"}},
		"rpm":                 {Hint: `say rate, as in "60/1m"`, Means: []string{"tokens_per_second"}},
		"refill_rate":         {Hint: "say rps", Means: []string{"tokens_per_second"}},
		"rate_per_second":     {Hint: "say rps", Means: []string{"tokens_per_second"}},
		"burst_capacity":      {Hint: "say burst", Means: []string{"burst"}},
		"max_tokens":          {Hint: "say burst", Means: []string{"burst"}},
		"interval":            {Hint: `say it in rate, as in "5/10s"`},
		"limit":               {Hint: "say how many, and in what time, by the fields of the algorithm"},
	}
	foreignSelector = foreignFields{
		"path":     {Hint: "say pathExact or pathPrefix"},
		"prefix":   {Hint: "say pathPrefix"},
		"headers":  {Hint: "say it in the match of a rule"},
		"paths":    {Hint: "say pathExact, with a list"},
		"pathGlob": {Hint: "say pathPrefix"},
	}
	foreignEntry = foreignFields{
		"name": {Hint: "say id", Means: []string{"id"}},
	}
	foreignOverride = foreignFields{
		"comment":     {Hint: "say it in reason"},
		"description": {Hint: "say it in reason"},
		"rule":        {Hint: "say rules, with a list", Means: []string{"rules"}},
		"until":       {Hint: "say expires_at", Means: []string{"expires_at"}},
		"ttl":         {Hint: "say expires_at, an instant", Means: []string{"expires_at"}},
	}
)
