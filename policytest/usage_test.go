// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

const modelRules = `{"prices": {"version": "1", "models": {"small": {"input": 1000, "output": 2000}, "large": {"input": 10000, "output": 20000}}}, "rules": [
	{"name": "chat", "limit_keys": [], "group": "a", "algorithm": "token_bucket_llm", "tokens_per_minute": 1000, "tokens_per_day": 100000, "default_max_completion": 300},
	{"name": "money", "limit_keys": [], "group": "b", "algorithm": "cost_based", "budget": 100, "period": "day", "timezone": "UTC", "cost_source": "ai:money"}
], "tests": [%s]}`

// A usage settles the estimate of each request, by the prices of its model.
func TestRun_Usage(t *testing.T) {
	policytest.Check(t, compile(t, strings.Replace(modelRules, "%s", `
		{"name": "a small answer is refunded", "request": {"ai:model": "small", "ai:prompt_tokens": 200, "ai:max_tokens": 800}, "steps": [
			{"usage": {"input": 210, "output": 90}, "expect": "allowed"},
			{"with": {"ai:max_tokens": 500}, "usage": {"input": 100, "cached": 50, "cache_write": 20, "output": 20, "reasoning": 10}, "expect": {"allowed": true, "remaining": {"chat/tpm": 0, "chat/tpd": 99000}}},
			{"with": {"ai:prompt_tokens": 1}, "without": "ai:max_tokens", "expect": {"allowed": true, "remaining": {"chat/tpm": 199}}}]},
		{"name": "an excess is owed", "request": {"ai:model": "small", "ai:prompt_tokens": 200, "ai:max_tokens": 100}, "steps": [
			{"usage": {"input": 200, "output": 2000}, "expect": "allowed"},
			{"expect": {"denied": "chat/tpm", "retry_after": "1m30s"}}]},
		{"name": "an error costs nothing", "request": {"ai:prompt_tokens": 200, "ai:max_tokens": 800}, "times": 20, "status": 429, "expect": "allowed"},
		{"name": "the prices of the model count", "request": {"ai:prompt_tokens": 100, "ai:max_tokens": 100}, "steps": [
			{"with": {"ai:model": "small"}, "usage": {"input": 100, "output": 100}, "expect": "allowed"},
			{"with": {"ai:model": "large"}, "usage": {"input": 100, "output": 100}, "expect": {"allowed": true, "remaining": {"money": 96.7}}},
			{"with": {"ai:model": "small"}, "expect": {"allowed": true, "remaining": {"money": 96.4}}}]},
		{"name": "at the end of a request that runs", "request": {"ai:model": "small", "ai:prompt_tokens": 500, "ai:max_tokens": 500}, "steps": [
			{"runs": "1s", "usage": {"input": 5, "output": 5}, "expect": "allowed"},
			{"with": {"ai:max_tokens": 1}, "expect": "denied"},
			{"after": "1s", "with": {"ai:max_tokens": 1}, "expect": "allowed"}]}`, 1)))
}

func TestRead_BadUsage(t *testing.T) {
	m := compile(t, strings.Replace(modelRules, "%s", `{"name": "bad", "steps": [
		{"usage": 5}, {"usage": {"input": -1}}, {"usage": {"total": 5}}, {"usage": {"output": 1.5}}, {"usage": {"output": 1000000001}}]},
		{"name": "steps", "usage": {}, "steps": [{}]}, {"name": "running", "runs": "1s", "steps": [{}]}`, 1))
	_, _, err := policytest.Read(m)
	all, _ := err.(policy.Errors)
	var places []string
	for _, e := range all {
		places = append(places, strings.TrimPrefix(e.Path, "/tests/"))
	}
	const want = "0/steps/0/usage 0/steps/1/usage/input 0/steps/2/usage/total 0/steps/3/usage/output 0/steps/4/usage/output 1/usage 2/runs"
	if got := strings.Join(places, " "); got != want {
		t.Errorf("got errors at %s, want %s:\n%v", got, want, err)
	}
}
