// SPDX-License-Identifier: Apache-2.0

package policy

// Fields that users of other limiters write, with the correction.

var (
	foreignRule = foreignFields{
		"shadow":     {Hint: "use mode: shadow"},
		"enabled":    {Hint: "use mode: off to disable a rule"},
		"is_active":  {Hint: "use mode: off to disable a rule"},
		"enforce":    {Hint: "use mode"},
		"priority":   {Hint: "the rules of a group are tried in the order of the file"},
		"selector":   {Hint: "a selector belongs beside the rules of a policy; in a rule, use match"},
		"path":       {Hint: `use match, as in {"path": "/v1/*"}`},
		"method":     {Hint: `use match, as in {"method": "POST"}`},
		"host":       {Hint: `use match, as in {"host": "api.example.com"}`},
		"scope":      {Hint: "use limit_keys to choose which requests share a bucket", Replaces: []string{"limit_keys"}},
		"id":         {Hint: "use name", Replaces: []string{"name"}},
		"config":     {Hint: "use algorithm_config", Replaces: []string{"algorithm_config"}},
		"rate_limit": {Hint: "use algorithm_config", Replaces: []string{"algorithm_config"}},
		"limit":      {Hint: `use rate, as in "100/1m", or limits for several limits`, Replaces: []string{"rate", "limits"}},
	}
	foreignFallback = foreignFields{
		"match": {Hint: "fallback_limit applies to requests that match no rule; to match requests, use a rule"},
		"group": {Hint: "fallback_limit applies to requests that match no rule of any group"},
	}
	foreignLimit = foreignFields{
		"requests_per_second": {Hint: "use rps", Replaces: []string{"tokens_per_second"}},
		"requests_per_minute": {Hint: `use rate, as in "60/1m"`, Replaces: []string{"tokens_per_second"}},
		"requests_per_hour":   {Hint: `use rate, as in "60/1h"`, Replaces: []string{"tokens_per_second"}},
		"tokens_per_minute":   {Hint: `use rate, as in "60/1m"`, Replaces: []string{"tokens_per_second"}},
		"rpm":                 {Hint: `use rate, as in "60/1m"`, Replaces: []string{"tokens_per_second"}},
		"refill_rate":         {Hint: "use rps", Replaces: []string{"tokens_per_second"}},
		"rate_per_second":     {Hint: "use rps", Replaces: []string{"tokens_per_second"}},
		"burst_capacity":      {Hint: "use burst", Replaces: []string{"burst"}},
		"max_tokens":          {Hint: "use burst", Replaces: []string{"burst"}},
		"interval":            {Hint: `use rate, as in "5/10s"`},
		"limit":               {Hint: "use the fields of the algorithm: an amount and a time"},
	}
	foreignSelector = foreignFields{
		"path":     {Hint: "use pathExact or pathPrefix"},
		"prefix":   {Hint: "use pathPrefix"},
		"headers":  {Hint: "use match in a rule"},
		"paths":    {Hint: "use pathExact with a list"},
		"pathGlob": {Hint: "use pathPrefix"},
	}
	foreignChargeOn = foreignFields{
		"statuses":    {Hint: "use status"},
		"status_code": {Hint: "use status"},
		"code":        {Hint: "use status for HTTP statuses, or grpc for gRPC codes"},
		"bytes":       {Hint: "use response_bytes"},
	}
	foreignDenial = foreignFields{
		"code":        {Hint: "use status"},
		"status_code": {Hint: "use status"},
		"message":     {Hint: "use body"},
		"type":        {Hint: "use format or content_type"},
		"headers":     {Hint: "the headers of the rule choose the RateLimit fields; other fields are not supported"},
	}
	foreignEntry = foreignFields{
		"name": {Hint: "use id", Replaces: []string{"id"}},
	}
	foreignOverride = foreignFields{
		"comment":     {Hint: "use reason"},
		"description": {Hint: "use reason"},
		"rule":        {Hint: "use rules with a list", Replaces: []string{"rules"}},
		"until":       {Hint: "use expires_at", Replaces: []string{"expires_at"}},
		"ttl":         {Hint: "use expires_at with a timestamp", Replaces: []string{"expires_at"}},
	}
)
